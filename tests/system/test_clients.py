"""One seed of records: Python, `umpc demo`, and R (`make test-r`) find the same numbers."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tests.support.two_sites import (
    BOUNDS,
    COLUMNS,
    COUNTS,
    FOLDER,
    LOUD,
    estimated,
    numbers,
    records,
    stored,
    survival,
)
from tests.system.test_demo import demo
from umpc.cli.main import umpc as umpc_command
from umpc.errors import ConfigError, StudyError, UmpcError
from umpc.reporting.json_document import check_document


def test_the_stored_records_are_those_of_the_seed():
    for site, columns in records().items():
        assert stored(site) == {name: list(map(str, values)) for name, values in columns.items()}


def rounded(value: object) -> object:
    """A number, or numbers in lists and dicts, to 13 digits: processors differ in the last one."""
    match value:
        case float():
            return float(f"{value:.13g}")
        case list():
            return [rounded(each) for each in value]
        case dict():
            return {name: rounded(each) for name, each in value.items()}
    return value


def test_python_and_the_demo_find_the_numbers_that_r_is_tested_against(tmp_path):
    expected = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
    result = estimated()
    assert rounded(numbers(result.to_dict())) == rounded(expected)
    low, high = result.interval(kind="population")
    assert rounded([result.estimate, result.p_value(), [low, high]]) == rounded(
        [expected["estimate"], expected["p_value"], expected["population"]]
    )
    files = [word for site in ("north", "south") for word in ("--csv", str(FOLDER / f"{site}.csv"))]
    bounds = [
        word
        for name, given in BOUNDS.items()
        for word in ("--bounds", f"{name}={':'.join(map(str, given))}")
    ]
    given = ["--fields", ",".join(COLUMNS), "--epsilon", str(LOUD), "--edges", "all"]
    ended = demo(*files, *bounds, *given, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    printed = json.loads(ended.stdout)
    assert rounded(numbers(printed)) == rounded(expected)
    assert printed["records_by_node"] == [18, 14]
    assert "field 'age': 0 to 127, whole numbers, as was said" in ended.stderr
    report = tmp_path / "report.json"
    report.write_text(ended.stdout, encoding="utf-8")
    check_infer(report, result)


def check_infer(report, result):
    """`umpc infer` says of a report what Python says of it."""
    asked = ["infer", str(report), "--level", "0.9", "--alternative", "greater", "--null", "0.1"]
    said = json.loads(CliRunner().invoke(umpc_command, [*asked, "--format", "json"]).stdout)
    interval = said["intervals"][2]
    assert (interval["low"], interval["high"]) == tuple(result.interval(0.9, "population"))
    assert said["test"]["p_value"] == result.p_value("greater", 0.1) != result.p_value()
    shown = CliRunner().invoke(umpc_command, asked).stdout
    assert "0.9 interval, the population" in shown and "p = " in shown
    for wrong, error in ((["--level", "2"], StudyError), ([], ConfigError)):
        file = report if wrong else report.parent / "none.json"
        with pytest.raises(error):
            CliRunner().invoke(umpc_command, ["infer", str(file), *wrong], catch_exceptions=False)


def shape(value: object) -> object:
    """The names, kinds and lengths of a document, without its values."""
    match value:
        case list():
            return list(map(shape, value))
        case dict():
            return {name: shape(each) for name, each in value.items()}
    return "number or none" if isinstance(value, int | float | None) else type(value)


def test_the_stored_report_that_r_reads_is_one_of_today():
    """Else run `python -m tests.support.two_sites`."""
    read = json.loads(COUNTS.read_text(encoding="utf-8"))
    check_document(read)
    assert shape(read) == shape(json.loads(survival().to_json()))
    assert [each["kind"] for each in read["answers"]] == ["kaplan_meier", "logrank"]


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        (["--nodes", "3"], ConfigError, "tables of 2 sites"),
        (["--bounds", "weight=0:9"], ConfigError, "--bounds names weight"),
        (["--bounds", "age=0"], UmpcError, "no value is in any"),
    ],
)
def test_wrong_files_and_bounds_are_refused_in_one_line(options, error, told):
    files = [word for site in ("north", "south") for word in ("--csv", str(FOLDER / f"{site}.csv"))]
    arguments = ["demo", *files, "--fields", "age,balance", *options]
    with pytest.raises(error, match=told):
        CliRunner().invoke(umpc_command, arguments, catch_exceptions=False)
