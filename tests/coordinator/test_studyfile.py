"""umpc.coordinator.studyfile: a good file, and every wrong key by file and name."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.protocols import flat_study
from tests.support.studyfile_text import BALANCE, GOOD, load, participant, replaced, study
from umpc.coordinator.studyfile import load_study_file
from umpc.coordinator.studyfile_entries import datasets_of
from umpc.coordinator.studyfile_text import field_entry, write_study_file
from umpc.errors import StudyError
from umpc.protocols.registry import decode_study
from umpc.study.parts import FieldText, Participant


def test_a_good_file_is_this_study(tmp_path):
    assert study(tmp_path) == flat_study(
        name="kendall-2026",
        statistic="kendall_tau",
        kernels=("sign(a.age - b.age) * sign(a.balance - b.balance)",),
        fields=(
            FieldText("age", "0", "127", whole=True),
            FieldText("balance", "-1000.0", "1e3", "0.01"),
        ),
        epsilon="0.1",
        edges="3n",
        max_colluding=0,
        noise="in_mpc",
        coordinator="hospitals",
        dealer=Participant("dealer", "dealer.example.org:7100"),
        nodes=(
            Participant("north", "north.example.org:7100"),
            Participant("south", "south.example.org:7100"),
        ),
        seconds_per_step=30,
    )
    assert decode_study(study(tmp_path).encode()) == study(tmp_path)


def test_decimals_stay_exact(tmp_path):
    exact = study(tmp_path)
    assert exact.exact_epsilon == Fraction(1, 10)
    assert exact.schema["balance"].resolution == Fraction(1, 100)
    long = "0.1000000000000000000000000000000001"
    assert study(
        tmp_path, replaced("epsilon = 0.1", f"epsilon = {long}")
    ).exact_epsilon == Fraction(long)


@pytest.mark.parametrize(
    ("line", "epsilon"),
    [("1", 1), ('"1/3"', Fraction(1, 3)), ('"0.5"', Fraction(1, 2)), ("5e-1", Fraction(1, 2))],
)
def test_a_number_may_be_written_as_number_or_text(tmp_path, line, epsilon):
    assert study(tmp_path, replaced("epsilon = 0.1", f"epsilon = {line}")).exact_epsilon == epsilon


def test_what_is_left_out_has_the_safe_default(tmp_path):
    text = GOOD
    for line in ('edges = "3n"\n', "max_colluding = 0\n", "seconds_per_step = 30\n"):
        text = text.replace(line, "")
    defaults = study(tmp_path, text)
    assert (defaults.edges, defaults.max_colluding, defaults.seconds_per_step) == (
        "up to 920000",
        1,
        600,
    )


def test_the_identity_is_found_beside_the_file(tmp_path):
    assert load(tmp_path, GOOD).identity == (tmp_path / "coordinator").resolve()
    assert load(tmp_path, replaced('"coordinator"', '"/etc/umpc"')).identity == Path("/etc/umpc")


@pytest.mark.parametrize(
    ("line", "instead", "words"),
    [
        ('statistic = "kendall_tau"\n', "", "one of `statistic` and `kernel`"),
        (
            'statistic = "kendall_tau"\n',
            'statistic = "kendall_tau"\nkernel = "k.py:f"\n',
            "one of `statistic` and `kernel`",
        ),
        ('statistic = "kendall_tau"\n', 'kernel = "k.py:f"\n', "`columns` goes with `statistic`"),
        ('columns = ["age", "balance"]\n', "", "`columns` goes with `statistic`"),
    ],
)
def test_a_study_is_of_a_statistic_over_columns_or_of_a_kernel(tmp_path, line, instead, words):
    with pytest.raises(StudyError) as refusal:
        load(tmp_path, replaced(line, instead))
    assert str(tmp_path / "study.toml") in str(refusal.value) and words in str(refusal.value)


def test_a_kernel_of_ones_own_travels_as_its_expression(tmp_path):
    (tmp_path / "k.py").write_text("def product(a, b):\n    return a.age * b.age\n")
    text = replaced('statistic = "kendall_tau"\n', 'kernel = "k.py:product"\n').replace(
        'columns = ["age", "balance"]\n', ""
    )
    study = load(tmp_path, text.replace(BALANCE, "")).study("coordinator")
    assert (study.statistic, study.kernels, study.degree) == ("product", ("a.age * b.age",), 2)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("lower = 0\n", ""),
        ("upper = 127\n", ""),
        ("lower = 0\n", 'lower = 0\ncategories = ["a", "b"]\n'),
        ("lower = 0\nupper = 127\n", 'upper = 1\ncategories = ["a", "b"]\n'),
        ("lower = 0\nupper = 127\n", 'categories = ["a", "b"]\n'),
    ],
)
def test_a_field_has_bounds_or_categories(tmp_path, line, instead):
    with pytest.raises(
        StudyError,
        match=r"study\.toml: field 'age': either lower and upper or categories .*fields\[0\]",
    ):
        load(tmp_path, replaced(line, instead))


@pytest.mark.parametrize(
    ("instead", "message"),
    [
        ("", r"neither came\. Write resolution = .*, or whole = true"),
        ("whole = false\n", "neither came"),
        ("whole = true\nresolution = 1\n", "both came; leave one of them out"),
    ],
)
def test_a_field_of_numbers_states_its_resolution_or_that_it_is_whole(tmp_path, instead, message):
    with pytest.raises(StudyError, match=rf"study\.toml: field 'age': .*{message}.*fields\[0\]"):
        load(tmp_path, replaced("whole = true\n", instead))


def test_categories_become_numbers_from_0(tmp_path):
    text = replaced("lower = 0\nupper = 127\nwhole = true\n", 'categories = ["low", "high"]\n')
    text = text.replace('statistic = "kendall_tau"', 'statistic = "duplicate_pair_ratio"').replace(
        '["age", "balance"]', '["age"]'
    )
    study = load(tmp_path, text.replace(BALANCE, "")).study("coordinator")
    assert study.fields[0] == FieldText("age", "0", "1", "1", ("low", "high"))
    assert study.schema["age"].upper_units == 1


def test_large_integers_are_not_cut(tmp_path):
    with pytest.raises(StudyError, match="99999999999999999999999"):
        study(tmp_path, replaced("max_colluding = 0", "max_colluding = 99999999999999999999999"))


@pytest.mark.parametrize("field", ["age", "mean radius", 'say "x"', "x\\y", "größe", "🦊", "a\nb"])
@pytest.mark.parametrize("max_colluding", [None, 0])
def test_a_written_file_is_read_back_as_the_same_study(tmp_path, field, max_colluding):
    entries = {
        "name": "demo",
        "statistic": "gini_mean_difference",
        "columns": [field],
        "fields": [field_entry(FieldText(field, "-1/3", "1", "1/3"))],
        "epsilon": "1/2",
        "identity": "coordinator",
        "edges": "all",
        "dealer": participant("dealer", "localhost:1"),
        "nodes": [participant("node-1", "localhost:2"), participant("node-2", "[::1]:3")],
        "max_colluding": max_colluding,
    }
    path = write_study_file(tmp_path, entries)
    found = load_study_file(path).study("coordinator")
    assert found.fields == (FieldText(field, "-1/3", "1", "1/3"),) and found.edges == "all"
    assert found.exact_epsilon == Fraction(1, 2) and found.max_colluding == (
        1 if max_colluding is None else 0
    )
    assert found.dealer == Participant("dealer", "localhost:1") and found.nodes[1] == Participant(
        "node-2", "[::1]:3"
    )


DEALER = GOOD[GOOD.index("[dealer]") : GOOD.index("[[nodes]]")]
GARBLED = 'backend = "garbled"\npreprocessing = "none"\n' + GOOD.replace(DEALER, "")


def test_a_file_without_a_dealer_is_a_study_whose_nodes_draw_the_noise_together(tmp_path):
    found = study(tmp_path, GARBLED)
    assert (found.backend, found.preprocessing, found.dealer, found.noise) == (
        "garbled",
        "none",
        None,
        "in_mpc",
    )
    assert study(tmp_path, 'noise = "distributed"\n' + GARBLED).noise == "distributed"
    assert decode_study(found.encode()) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (GOOD.replace(DEALER, ""), "names no dealer"),
        ('preprocessing = "none"\n' + GOOD, "leave 'dealer' out"),
        ('backend = "garbled"\n' + GOOD, "leave 'dealer' out"),
        ('preprocessing = "none"\nbackend = "shared"\n' + GOOD, "go together"),
        (GARBLED + DEALER, "leave 'dealer' out"),
    ],
)
def test_half_a_study_without_a_dealer_is_refused(tmp_path, text, reason):
    with pytest.raises(StudyError, match=reason):
        study(tmp_path, text)


def test_a_written_file_without_a_dealer_is_read_back(tmp_path):
    entries = {
        "name": "s",
        "fields": [field_entry(FieldText("x", "0", "1", whole=True))],
        "epsilon": "1",
        "identity": "coordinator",
        "edges": "all",
        "nodes": [participant("node-1", "a:1"), participant("node-2", "b:1")],
        "statistic": "variance",
        "columns": ["x"],
        "backend": "garbled",
        "preprocessing": "none",
        "dealer": None,
    }
    path = write_study_file(tmp_path, entries)
    assert load_study_file(path).study("c").dealer is None


def test_a_statistic_takes_edges_that_are_drawn_and_other_protocols_do_not(tmp_path):
    drawn = replaced('statistic = "kendall_tau"', 'statistic = "kendall_tau"\nsampling = "uniform"')
    assert study(tmp_path, drawn).sampling == "uniform"
    for text, reason in (
        (drawn.replace('"uniform"', '"two_sample"'), "takes pairs of balanced sampling"),
        (drawn.replace('edges = "3n"', 'backend = "grid"'), "'grid' takes none that way"),
        (drawn.replace("columns", 'estimator = "mean"\ncolumns'), "Remove `estimator`"),
    ):
        with pytest.raises(StudyError, match=reason):
            study(tmp_path, text)


def test_a_study_names_the_data_set_of_each_node():
    nodes = [Participant("north", "n:1"), Participant("south", "s:1")]
    assert datasets_of(nodes, None) == datasets_of(nodes, {}) == ()
    assert datasets_of(nodes, "heart") == ("heart", "heart")
    assert datasets_of(nodes, {"south": "cardio"}) == ("", "cardio")
    with pytest.raises(StudyError, match="'nort', which the study does not have; did you mean"):
        datasets_of(nodes, {"nort": "heart"})
    with pytest.raises(StudyError, match="empty name"):
        datasets_of(nodes, "")
