"""The ViewDefinitions of docs/fhir.md over resources: `make test-sql`, never `make test`.

They need the package sqlonfhir, which evaluates ViewDefinitions. The rows become the export of the
page, and the page's SELECT makes the table of it.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlonfhir import evaluate

from tests.support.document_blocks import ROOT, blocks

PAGE = {each.name: each.text for each in blocks((ROOT / "docs/fhir.md").read_text("utf-8"))}
LOINC, UCUM = "http://loinc.org", "http://unitsofmeasure.org"


def patient(name: str, gender: str, born: str) -> dict[str, Any]:
    return {"resourceType": "Patient", "id": name, "gender": gender, "birthDate": born}


def result(
    of: str,
    value: float,
    taken: str,
    *,
    code: str = "1988-5",
    unit: str = "mg/L",
    status: str = "final",
    **more: str,
) -> dict[str, Any]:
    return {
        "resourceType": "Observation",
        "id": f"{of}-{taken}",
        "status": status,
        "code": {"coding": [{"system": LOINC, "code": code}]},
        "subject": {"reference": f"Patient/{of}"},
        "effectiveDateTime": taken,
        "valueQuantity": {"value": value, "unit": unit, "system": UCUM, "code": unit, **more},
    }


RESOURCES = (
    patient("a", "male", "1970-02-03"),
    patient("b", "female", "1950"),
    patient("c", "other", "1980-01"),
    patient("d", "female", "1981-01-01"),
    result("a", 9, "2024-06-01T10:00:00Z"),
    result("a", 5.5, "2024-05-01"),
    result("a", 77, "2023-12-31"),  # before the study's period
    result("b", 5, "2024-05-01", comparator="<"),
    result("c", 7, "2024-05-01", status="preliminary"),
    result("c", 8, "2024-06-01", status="amended"),
    result("d", 1.2, "2024-05-01", unit="mg/dL"),  # in another unit
    result("d", 4, "2024-05-01", code="2345-7"),  # another test
)


def rows_of(name: str) -> list[dict[str, Any]]:
    return list(evaluate([*RESOURCES], json.loads(PAGE[f"{name}.view.json"])))


@pytest.fixture
def export(tmp_path):
    """The two files of the export, in the folder of the test."""
    with contextlib.chdir(tmp_path):
        for name in ("crp", "patient"):
            rows = rows_of(name)
            texts = ", ".join(f"{key}: 'VARCHAR'" for key in rows[0])
            Path("rows.json").write_text(json.dumps(rows, default=str))
            duckdb.execute(
                f"COPY (SELECT * FROM read_json('rows.json', columns = {{{texts}}}))"
                f" TO '{name}.parquet' (FORMAT parquet)"
            )
        yield


def test_a_view_takes_code_state_and_unit_that_it_names():
    found = [(row["patient_id"], float(row["value"]), row["comparator"]) for row in rows_of("crp")]
    assert sorted(found, key=str) == [
        ("a", 5.5, None),
        ("a", 77, None),
        ("a", 9, None),
        ("b", 5, "<"),
        ("c", 8, None),
    ]
    assert [row["gender"] for row in rows_of("patient")] == ["male", "female", "other", "female"]


def test_the_pages_select_makes_one_row_of_a_patient(export):
    duckdb.execute(PAGE["table.sql"])
    found = duckdb.execute("SELECT * FROM 'table.parquet'").fetchall()
    assert found == [("a", "male", "5.5"), ("b", "female", "<5.0"), ("c", "other", "8.0")]
