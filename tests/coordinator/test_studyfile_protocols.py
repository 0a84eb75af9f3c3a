"""umpc.coordinator.studyfile: each protocol's settings, and what a file leaves out."""

from __future__ import annotations

import re

import pytest

from tests.protocols.test_registry import FOREIGN, VALUES
from tests.support.studyfile_text import bins_of, participant
from umpc.coordinator.studyfile import load_study_file
from umpc.coordinator.studyfile_text import field_entry, write_study_file
from umpc.errors import StudyError
from umpc.protocols.registry import PROTOCOLS
from umpc.study.document import Study
from umpc.study.parts import FieldBins, FieldText, Participant
from umpc.study.settings import keys_of
from umpc_papers.local.settings import BellAucSettings, CellSettings

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
            "protocol must be one of u-mpc, grid, people, linked, vector, overlap, counts, "
            "bell-2pc, bell-auc, "
            "bell-ldp, "
            "central, ghazi-ldp, ghazi-rounds, "
            r"ghazi-shuffle, gopa, hajek-grid, local-mean, got 'ghazi-sum'\. Correct the key "
            "`protocol`",
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


@pytest.mark.parametrize(("protocol", "key"), FOREIGN)
def test_a_key_of_another_protocol_is_refused_with_the_keys_that_there_are(tmp_path, protocol, key):
    """Whatever its value is: somebody would think that it had been obeyed."""
    known = ", ".join(keys_of(PROTOCOLS[protocol].settings)) or "none"
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
        ({"bins": 4}, "`bins`: a table was expected, and a whole number came"),
        ({"bins": {"age": "4"}}, "`bins.age`: a whole number or a list was expected, and a text"),
        ({"bins": {"age": True}}, "`bins.age`: .* and true or false came"),
        ({"rounding": 1}, "`rounding`: a text in quotes was expected"),
        ({"protocol": "bell-auc", "levels": "3"}, "`levels`: a whole number was expected"),
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
