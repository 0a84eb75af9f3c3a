"""A report as a JSON document of a versioned schema: the report, and what follows from it.

`report.schema.json` in this folder describes the document (JSON Schema 2020-12).
`docs/report_schema.py` makes it from the types below and from the docstring of `Report`. A change
that breaks a reader takes a new number of `VERSION`; a new key does not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from umpc.counts.answers import CountsAnswer, finite
from umpc.decoding import convert
from umpc.errors import ConfigError
from umpc.inference.matrix import CorrelationMatrix, matrix_of
from umpc.inference.null_laws import NullTest
from umpc.inference.report_inference import ErrorSource, Inference, ReportInterval
from umpc.reporting.rows import answers_in, errors_of, intervals_of, promise_of
from umpc.study.report import Report
from umpc.text_file import read_text

VERSION = "umpc-report-1"
SCHEMA = Path(__file__).parent / "report.schema.json"
Extra = Mapping[str, float | None]
"""Values that only a demo knows: exact, exact_over_edges, quantised."""


@dataclass(frozen=True)
class InferenceDocument:
    """Inference from the report at no further epsilon.

    intervals: 95 % in a report, of each kind that has ends: noise, records, population, hoeffding.
    test: of the statistic's own hypothesis; null where its law is not known.
    errors: the four sources of error, each by itself.
    """

    intervals: list[ReportInterval]
    test: NullTest | None
    errors: list[ErrorSource]


@dataclass(frozen=True)
class ReportDocument(Report):
    """A report.

    schema: the version of this document.
    inference: intervals, a test and the sources of error; empty for a report of several values.
    inference_of_parts: the same of each of several values, in the order of parts.
    answers: curves, tables and tests that a released table of counts says.
    matrix: the values of a statistic of every pair of columns; left out of other reports.
    promise: what the protocol promises to records or people and to sites, and what is disclosed.
    exact, exact_over_edges, quantised: only of a demo, which knows all records: the values without
        noise on all sets, on the sampled sets, and on the records' bins.
    """

    schema: str
    promise: str
    inference: InferenceDocument
    exact: float | None = None
    exact_over_edges: float | None = None
    quantised: float | None = None
    inference_of_parts: list[InferenceDocument] = field(default_factory=list)
    answers: list[CountsAnswer] = field(default_factory=list)
    matrix: CorrelationMatrix | None = None


def document(report: Report, extra: Extra | None = None) -> dict[str, Any]:
    """The report as plain values: those of `Report.to_dict`, with `schema` and `inference`."""
    inference = inference_document(inference_of(report))
    told = {"schema": VERSION, "promise": str(promise_of(report)), "inference": inference}
    values = {**report.to_dict(), **(extra or {}), **told}
    values["inference_of_parts"] = [
        inference_document(inference_of(report.of_part(place)))
        for place in range(len(report.parts))
    ]
    if answers := answers_in(report):
        values["answers"] = [answer.to_dict() for answer in answers]
    if (matrix := matrix_of(report)) is not None:
        values["matrix"] = asdict(matrix)
    found: dict[str, Any] = finite(values)
    return found


def inference_of(report: Report, level: float = 0.95) -> InferenceDocument:
    """Inference from a report; empty where it has no value."""
    return InferenceDocument(
        intervals_of(report, level), Inference(report).usual_test(), errors_of(report)
    )


def inference_document(inference: InferenceDocument) -> dict[str, Any]:
    """Inference as plain values, as the key `inference` of a document."""
    found: dict[str, Any] = finite(asdict(inference))
    return found


def check_document(values: Mapping[str, Any]) -> None:
    """Check a document by the types that the schema is made of.

    Raises: msgspec.ValidationError naming the place.
    """
    convert(dict(values), ReportDocument)


def read_report(file: Path) -> Report:
    """The report of a file that holds a document. Raises: ConfigError for another file."""
    expected = f"a report of the schema {VERSION}"
    text = read_text(file, expected, ConfigError)
    try:
        values = json.loads(text)
        check_document(values)
    except (ValueError, TypeError, RecursionError, msgspec.ValidationError) as error:
        raise ConfigError(
            f"{file}: {expected} was expected, {_why_no_report(text, error)}. Name a file to which "
            "`umpc study run --format json` printed its whole report"
        ) from error
    return Report.from_dict(values)


def _why_no_report(text: str, error: Exception) -> str:
    """Return why a file is no report, with the place where its reading stopped."""
    if not text.strip():
        return "and the file is empty"
    begins = text.lstrip().startswith("{")
    if isinstance(error, json.JSONDecodeError) and begins:
        return f"and the file is damaged, or its end is missing ({error})"
    return f"and the file is another one ({error})" if begins else "and the file is no JSON"
