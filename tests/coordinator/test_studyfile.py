"""umpc.coordinator.studyfile: a good file, and every wrong key by file and name."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.protocols import flat_study
from umpc.coordinator.studyfile import field_entry, load_study_file, write_study_file
from umpc.errors import DuplicateParticipant, InvalidEpsilon, KernelError, StudyError, UnknownField
from umpc.protocols.local.settings import BellAucSettings, CellSettings
from umpc.protocols.registry import PROTOCOLS, decode_study
from umpc.study.document import Study
from umpc.study.parts import FieldBins, FieldText, Participant
from umpc.study.settings import keys_of

GOOD = """\
name = "kendall-2026"
statistic = "kendall_tau"
columns = ["age", "balance"]
epsilon = 0.1
edges = "3n"
identity = "coordinator"
max_colluding = 0
seconds_per_step = 30

[[fields]]
name = "age"
lower = 0
upper = 127
whole = true

[[fields]]
name = "balance"
lower = -1000.0
upper = "1e3"
resolution = 0.01

[dealer]
name = "dealer"
address = "dealer.example.org:7100"

[[nodes]]
name = "north"
address = "north.example.org:7100"

[[nodes]]
name = "south"
address = "south.example.org:7100"
"""


BALANCE = GOOD[GOOD.index('[[fields]]\nname = "balance"') : GOOD.index("[dealer]")]
"""The entry of a field that a study of age alone may not have."""


def load(folder: Path, text: str):
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return load_study_file(path)


def study(folder: Path, text: str = GOOD) -> Study:
    return load(folder, text).study("hospitals")


def participant(name: str, address: str) -> dict[str, str]:
    return {"name": name, "address": address}


def bins_of(study: Study) -> tuple[FieldBins, ...]:
    return study.settings_as(CellSettings).bins


def replaced(old: str, new: str) -> str:
    assert GOOD.count(old) >= 1
    return GOOD.replace(old, new, 1)


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
    assert (defaults.edges, defaults.max_colluding, defaults.seconds_per_step) == ("2n", 1, 600)


def test_the_identity_is_found_beside_the_file(tmp_path):
    assert load(tmp_path, GOOD).identity == (tmp_path / "coordinator").resolve()
    assert load(tmp_path, replaced('"coordinator"', '"/etc/umpc"')).identity == Path("/etc/umpc")


REQUIRED = {
    'name = "kendall-2026"\n': "name",
    "epsilon = 0.1\n": "epsilon",
    'identity = "coordinator"\n': "identity",
    'name = "age"\n': "name` - at `$.fields",
    'name = "dealer"\n': "name` - at `$.dealer",
    'address = "dealer.example.org:7100"\n': "address` - at `$.dealer",
    'name = "north"\n': "name` - at `$.nodes",
    'address = "north.example.org:7100"\n': "address` - at `$.nodes",
}


@pytest.mark.parametrize("line", REQUIRED)
def test_a_missing_key_is_named_with_the_file(tmp_path, line):
    with pytest.raises(StudyError) as refusal:
        load(tmp_path, replaced(line, ""))
    message = str(refusal.value)
    assert (
        str(tmp_path / "study.toml") in message
        and f"missing required field `{REQUIRED[line]}" in message
    )


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


LINES = {
    'name = "kendall-2026"': ("name", ("1", "true", '["a"]')),
    'statistic = "kendall_tau"': ("statistic", ("1", "false")),
    'columns = ["age", "balance"]': ("columns", ('"age"', "[1, 2]", "1")),
    "epsilon = 0.1": ("epsilon", ("true", "[1]", "2026-01-01", "{}")),
    'edges = "3n"': ("edges", ("true", "[]")),
    'identity = "coordinator"': ("identity", ("1", "[]")),
    "max_colluding = 0": ("max_colluding", ('"0"', "0.5", "true")),
    "seconds_per_step = 30": ("seconds_per_step", ('"30"', "0.5", "true")),
    "lower = 0": ("fields[0].lower", ("true", "[]", "10:00:00")),
    "upper = 127": ("fields[0].upper", ("true", "{}")),
    "whole = true": ("fields[0].whole", ("1", '"yes"')),
    "resolution = 0.01": ("fields[1].resolution", ("true", "[]")),
    'address = "dealer.example.org:7100"': ("dealer.address", ("7100", "true")),
    'address = "south.example.org:7100"': ("nodes[1].address", ("7100", "true")),
}


@pytest.mark.parametrize(
    ("line", "wrong"), [(line, wrong) for line, (_, bad) in LINES.items() for wrong in bad]
)
def test_a_wrong_value_is_named_with_the_file(tmp_path, line, wrong):
    with pytest.raises(StudyError) as refusal:
        load(tmp_path, replaced(line, f"{line.split(' = ')[0]} = {wrong}"))
    message = str(refusal.value)
    assert str(tmp_path / "study.toml") in message and f"$.{LINES[line][0]}" in message


@pytest.mark.parametrize(
    ("after", "where"),
    [
        (
            "seconds_per_step = 30\n",
            "`extra` is not a key of a study of protocol = 'u-mpc', which has, beside the keys of "
            "every study, edges, noise, delta, coins, backend, preprocessing, dealer",
        ),
        ("upper = 127\n", "unknown field `extra` - at `$.fields"),
        ('address = "dealer.example.org:7100"\n', "unknown field `extra` - at `$.dealer"),
        ('address = "south.example.org:7100"\n', "unknown field `extra` - at `$.nodes"),
    ],
)
def test_an_unknown_key_is_named_with_the_file(tmp_path, after, where):
    with pytest.raises(StudyError) as refusal:
        load(tmp_path, replaced(after, after + "extra = 1\n"))
    assert str(tmp_path / "study.toml") in str(refusal.value) and where in str(refusal.value)


@pytest.mark.parametrize(
    "text", ["", "name =", "name = 1\nname = 2", "[[fields]", "\x00", "a = " + "[" * 5000]
)
def test_what_is_no_toml_or_empty_is_refused_with_the_file(tmp_path, text):
    with pytest.raises(StudyError) as refusal:
        load(tmp_path, text)
    assert str(tmp_path / "study.toml") in str(refusal.value)


def test_an_absent_file_a_folder_and_wrong_bytes_are_refused_with_the_path(tmp_path):
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'name = "\xe9"')
    for path in (tmp_path / "absent.toml", tmp_path, latin):
        with pytest.raises(StudyError, match="a readable study file was expected") as refusal:
            load_study_file(path)
        assert str(path) in str(refusal.value)


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("epsilon = 0.1", "epsilon = 0", InvalidEpsilon, "epsilon must be positive"),
        ("epsilon = 0.1", "epsilon = nan", StudyError, "epsilon must be a number.*got 'NaN'"),
        ("epsilon = 0.1", "epsilon = -inf", StudyError, "epsilon must be a number"),
        ('edges = "3n"', "edges = 0.5", StudyError, "edges must be"),
        ('"kendall_tau"', '"average"', KernelError, "there is no statistic 'average'"),
        ('["age", "balance"]', '["age"]', KernelError, "kendall_tau takes 2 field"),
        ('["age", "balance"]', '["age", "weight"]', UnknownField, "'weight'"),
        ('name = "balance"', 'name = "age"', StudyError, "a field is named twice"),
        ("upper = 127", "upper = 1e400", StudyError, "field 'age': upper"),
        ('name = "south"', 'name = "north"', DuplicateParticipant, "named 'north'"),
        (
            "max_colluding = 0",
            "max_colluding = 2",
            StudyError,
            "max_colluding must be between 0 and 1",
        ),
    ],
)
def test_the_study_itself_is_checked(tmp_path, old, new, error, message):
    with pytest.raises(error, match=message):
        study(tmp_path, replaced(old, new))


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
        ('preprocessing = "none"\n' + GOOD, "go together"),
        ('backend = "garbled"\n' + GOOD, "go together"),
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


# --- one message of every node --------------------------------------------------------------------

LOCAL = {"statistic": "kendall_tau", "columns": ["age", "balance"], "protocol": "bell-ldp"}
AGES = (FieldText("age", "0", "127", whole=True), FieldText("balance", "-1000", "1000", "0.5"))
LABEL = FieldText.of_categories("y", ["yes", "no"], public=True)


BASE = {
    "name": "local",
    "epsilon": "1",
    "identity": "coordinator",
    "fields": [field_entry(field) for field in AGES],
    "nodes": [participant("north", "n:1"), participant("south", "s:1")],
}


def local_file(folder, fields=AGES, **changes) -> Study:
    """The study of a written file. Args: fields: as in the document; changes: entries."""
    entries = BASE | LOCAL | {"fields": [field_entry(field) for field in fields]} | changes
    path = write_study_file(folder, entries)
    return load_study_file(path).study("hospitals")


def test_a_one_message_study_needs_no_more_than_its_protocol(tmp_path):
    study = local_file(tmp_path)
    assert bins_of(study) == (FieldBins("age", 4), FieldBins("balance", 4))
    assert (study.edges, study.noise, study.backend, study.preprocessing) == (
        "all",
        "local",
        "none",
        "none",
    )
    auc = local_file(
        tmp_path, statistic="auc", columns=["age"], fields=(AGES[0], LABEL), protocol="bell-auc"
    )
    assert (auc.settings, auc.sampling) == (BellAucSettings(levels=4), "two_sample")


def test_gopa_needs_a_delta_and_no_more(tmp_path):
    mean = {"statistic": "mean", "columns": ["age"], "protocol": "gopa"}
    study = local_file(tmp_path, AGES[:1], delta="1e-9", **mean)
    assert (study.edges, study.noise, study.backend, study.preprocessing) == (
        "all",
        "gopa",
        "none",
        "none",
    )
    assert (study.max_colluding, study.honest, study.degree) == (1, 1, 1)
    with pytest.raises(
        StudyError, match="takes a delta between 0 and 1, got ''; a usual value is 1e-9"
    ):
        local_file(tmp_path, AGES[:1], **mean)
    with pytest.raises(StudyError, match="mean of one kernel over single records"):
        local_file(tmp_path, delta="1e-9", protocol="gopa")


def test_a_shuffled_study_names_its_shufflers(tmp_path):
    both = [participant("left", "l:1"), participant("right", "[::1]:2")]
    study = local_file(tmp_path, protocol="ghazi-shuffle", shufflers=both)
    assert study.shufflers == (Participant("left", "l:1"), Participant("right", "[::1]:2"))
    assert (study.edges, study.noise, study.backend, study.preprocessing) == (
        "all",
        "shuffled",
        "none",
        "none",
    )
    assert bins_of(study) == (FieldBins("age", 4), FieldBins("balance", 4))


def test_bins_are_numbers_or_cut_points_and_exact(tmp_path):
    study = local_file(tmp_path, bins={"balance": ["-0.5", "1e2"], "age": 3}, protocol="ghazi-ldp")
    assert bins_of(study) == (FieldBins("balance", 0, ("-0.5", "1e2")), FieldBins("age", 3))
    assert bins_of(study)[0].units(study.schema["balance"]) == (-1, 200)
    randomised = local_file(tmp_path, rounding="randomised", bins={"age": 9})
    assert randomised.settings_as(CellSettings).rounding == "randomised"
    (tmp_path / "numbers.toml").write_text(
        (tmp_path / "study.toml").read_text().replace("age = 9", "age = 9\nbalance = [0, 0.5]")
    )
    numbers = load_study_file(tmp_path / "numbers.toml").study("hospitals")
    assert bins_of(numbers)[1] == FieldBins("balance", 0, ("0", "0.5"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"bins": {"shoe": 4}}, "got bins for shoe, age, balance"),
        ({"bins": {"age": 200}}, "1 to 128 bins are possible"),
        ({"statistic": "kendall_tau_b"}, "the mean of one kernel"),
        ({"protocol": "bell-auc"}, 'computes statistic = "auc"'),
        (
            {"protocol": "ghazi-sum"},
            "protocol must be one of u-mpc, bell-2pc, bell-ldp, bell-auc, ghazi-ldp, ghazi-rounds, "
            r"ghazi-shuffle, gopa, central, got 'ghazi-sum'\. Correct the key `protocol`",
        ),
        (
            {"protocol": "ghazi-shuffle"},
            r"exactly two shufflers, .* got 0: write two \[\[shufflers\]\]",
        ),
    ],
    ids=str,
)
def test_what_a_one_message_study_cannot_say_is_refused(tmp_path, changes, reason):
    with pytest.raises(StudyError, match=reason):
        local_file(tmp_path, **changes)


@pytest.mark.parametrize("protocol", [1, True, ["gopa"]], ids=str)
def test_a_protocol_that_is_no_text_is_refused_with_the_file(tmp_path, protocol):
    path = write_study_file(tmp_path, {"protocol": protocol})
    with pytest.raises(StudyError, match=r"study\.toml: .*Correct the key `protocol`"):
        load_study_file(path)


# --- keys of another protocol ---------------------------------------------------------------------

VALUES = {
    "edges": "2n",
    "noise": "in_mpc",
    "delta": "1e-9",
    "coins": "dealt",
    "backend": "garbled",
    "preprocessing": "none",
    "dealer": {"name": "dealer", "address": "d:1"},
    "bins": {"age": 4},
    "rounding": "simple",
    "levels": 3,
    "shufflers": [{"name": "a", "address": "a:1"}, {"name": "b", "address": "b:1"}],
}
FOREIGN = [
    (name, key)
    for name, protocol in PROTOCOLS.items()
    for key in VALUES
    if key not in keys_of(protocol.settings)
]


def test_every_setting_of_every_protocol_is_written_below():
    assert set(VALUES) == {key for each in PROTOCOLS.values() for key in keys_of(each.settings)}


@pytest.mark.parametrize(("protocol", "key"), FOREIGN)
def test_a_key_of_another_protocol_is_refused_with_the_keys_that_there_are(tmp_path, protocol, key):
    """Whatever its value is: somebody would think that it had been obeyed."""
    known = ", ".join(keys_of(PROTOCOLS[protocol].settings))
    message = (
        f"`{key}` is not a key of a study of protocol = '{protocol}', which has, beside the keys "
        f"of every study, {known}. Remove it"
    )
    with pytest.raises(StudyError, match=re.escape(message)) as refusal:
        local_file(tmp_path, protocol=protocol, **{key: VALUES[key]})
    assert str(tmp_path / "study.toml") in str(refusal.value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_key_that_nobody_has_is_refused(tmp_path, protocol):
    with pytest.raises(StudyError, match=f"`extra` is not a key .* protocol = '{protocol}'"):
        local_file(tmp_path, protocol=protocol, extra=1)


@pytest.mark.parametrize(
    ("entries", "where"),
    [
        ({"bins": 4}, r"Expected `object`, got `int` - at `\$\.bins`"),
        ({"bins": {"age": "4"}}, r"Expected `int \| array`, got `str` - at `\$\.bins\.age`"),
        ({"bins": {"age": True}}, r"got `bool` - at `\$\.bins\.age`"),
        ({"rounding": 1}, r"Expected `str`, got `int` - at `\$\.rounding`"),
        ({"protocol": "bell-auc", "levels": "3"}, r"Expected `int`, .* at `\$\.levels`"),
        (
            {"protocol": "ghazi-shuffle", "shufflers": [{"name": "a"}]},
            r"required field `address` - at `\$\.shufflers\[0\]`",
        ),
    ],
    ids=str,
)
def test_a_wrong_value_of_a_setting_is_refused_when_the_file_is_read(tmp_path, entries, where):
    path = write_study_file(tmp_path, BASE | LOCAL | entries)
    with pytest.raises(StudyError, match=f"study.toml: .*{where}"):
        load_study_file(path)


# --- what a file leaves out -----------------------------------------------------------------------


@pytest.mark.parametrize(("statistic", "edges"), [("kendall_tau", "1p"), ("auc", "2n")])
def test_a_study_of_bell_2pc_pairs_all_records_once_or_samples_pairs_of_classes(
    tmp_path, statistic, edges
):
    columns = {"kendall_tau": ["age", "balance"], "auc": ["age"]}[statistic]
    fields = AGES if statistic == "kendall_tau" else (AGES[0], LABEL)
    study = local_file(tmp_path, fields, protocol="bell-2pc", statistic=statistic, columns=columns)
    assert (study.edges, study.noise, study.delta) == (edges, "pair_laplace", "")
    assert (study.backend, study.preprocessing, study.dealer) == ("garbled", "none", None)


@pytest.mark.parametrize(
    ("noise", "edges"),
    [(None, "all"), ("laplace", "all"), ("hajek", "all"), ("hajek_subsampled", "2n")],
)
def test_a_study_of_a_curator_averages_over_the_sets_of_its_mechanism(tmp_path, noise, edges):
    study = local_file(tmp_path, protocol="central", noise=noise)
    assert (study.noise, study.edges) == (noise or "laplace", edges)
