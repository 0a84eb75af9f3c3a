"""The JSON document: its schema is the file, the file is made from the types, and both refuse."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path

import jsonschema
import msgspec
import pytest

import umpc
from umpc.cli.shared import print_report
from umpc.errors import ConfigError
from umpc.reporting.json_document import (
    SCHEMA,
    VERSION,
    check_document,
    document,
    read_report,
)
from umpc.study.report import Report

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def result() -> umpc.Result:
    table = {"x": list(range(9)), "y": [3, 1, 4, 1, 5, 9, 2, 6, 5]}
    bounds = {"x": (0, 15), "y": (0, 15)}
    return umpc.estimate("kendall_tau", [table, table], ["x", "y"], bounds=bounds, epsilon=9)


def test_the_file_is_what_the_types_make():
    script = runpy.run_path(str(ROOT / "docs" / "report_schema.py"))
    assert SCHEMA.read_text(encoding="utf-8") == script["make_schema"](), "run `make settings`"


def test_documents_are_valid_and_damaged_ones_are_not(result, capsys):
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    print_report(result.report, "json", {"exact": 0.25, "exact_over_edges": None})
    printed = json.loads(capsys.readouterr().out)
    drowned = replace(result.report, estimate=None, low=None, note="no value")
    for values in (result.to_dict(), printed, document(drowned)):
        validator.validate(values)
        check_document(values)
        assert values["schema"] == VERSION
    assert printed["exact"] == 0.25 and Report.from_dict(printed) == result.report
    assert document(drowned)["inference"] == {"intervals": [], "test": None, "errors": []}
    for key, wrong in (("estimate", "0.5"), ("sums", [{}]), ("inference", None), ("nodes", 1.5)):
        damaged = {**result.to_dict(), key: wrong}
        assert not validator.is_valid(damaged), key
        with pytest.raises(msgspec.ValidationError):
            check_document(damaged)
    assert not validator.is_valid({**result.to_dict(), "schema": "umpc-report-0"})


def test_a_result_is_saved_in_the_form_that_the_file_s_name_ends_with(result, tmp_path):
    saved = {form: result.save(tmp_path / f"report.{form}") for form in ("html", "JSON")}
    texts = {form: file.read_text(encoding="utf-8") for form, file in saved.items()}
    assert texts["html"] == result.to_html()
    assert json.loads(texts["JSON"]) == result.to_dict()
    assert read_report(saved["JSON"]) == result.report
    for name in ("report", "report.md", "report.pdf"):
        with pytest.raises(ConfigError, match=r"saved as \.html or \.json"):
            result.save(tmp_path / name)
    with pytest.raises(ConfigError, match="cannot be written"):
        result.save(tmp_path / "nowhere" / "report.html")


def test_a_reader_of_before_and_a_document_of_before_miss_nothing(result):
    """The test of a document got a new key; documents without it are read, too."""
    values = result.to_dict()
    assert values["inference"]["test"].pop("is_below") is False
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8"))).validate(values)
    check_document(values)


def test_every_property_of_the_report_is_described():
    properties = json.loads(SCHEMA.read_text(encoding="utf-8"))["properties"]
    assert {"estimate", "low", "inference", "noise_std", "timeline"} <= set(properties)
    named = [key for key, entry in properties.items() if "description" in entry]
    assert len(named) > 15 and "inference" in properties


def test_numbers_that_json_cannot_write_become_null(result):
    values = document(replace(result.report, sampling_std=float("inf")))
    assert values["sampling_std"] is None
    json.dumps(values, allow_nan=False)
