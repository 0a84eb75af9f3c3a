"""umpc.coordinator.studyfile: a mistake is refused with the file and the key."""

from __future__ import annotations

import pytest

from tests.support.studyfile_text import load, replaced, study
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import DuplicateParticipant, InvalidEpsilon, KernelError, StudyError, UnknownField

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
    assert str(tmp_path / "study.toml") in message and f"`{LINES[line][0]}" in message


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
        with pytest.raises(StudyError, match="the file of a study was expected, and ") as refusal:
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
