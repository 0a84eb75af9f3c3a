"""Sentences about a report that the table, the page and Markdown share."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from umpc.errors import UmpcError
from umpc.inference.null_test import NullTest
from umpc.inference.report_inference import (
    HOEFFDING,
    KINDS,
    NOISE,
    POPULATION,
    RECORDS,
    ErrorSource,
    Inference,
    ReportInterval,
)
from umpc.protocols.registry import find_protocol
from umpc.study.parts import FieldText
from umpc.study.report import Report

MOST_SUMS = 16
"""The most sums that are listed; a vector may have thousands. The JSON document has all."""
WIDEST_FIELD = 70
"""Characters of a field's description; a field may have thousands of categories."""
KIND_WORDS = {
    NOISE: "noise alone",
    RECORDS: "these records",
    POPULATION: "the population",
    HOEFFDING: "the population, for any n",
}
"""Kind of interval → its name in pictures and tables."""


def describe_fields(report: Report) -> Iterator[tuple[str, str]]:
    """Each field's name, and its bounds and resolution or the first of its categories.

    A label's row also says what its classes mean.
    """
    for values in report.fields:
        field = FieldText.from_dict(values)
        shown = textwrap.shorten(field.values(), WIDEST_FIELD, placeholder=" …")
        meaning = report.classes.get(field.name)
        yield field.name, f"{shown}; {meaning}" if meaning else shown


def describe_records(report: Report) -> str:
    """Which records counted, in words; empty where all complete ones did."""
    told = [f"only where {report.where}"] if report.where else []
    if report.missing:
        told.append(f"of the nodes that were left, without {', '.join(report.missing)}")
    if report.protected != "one record":
        told.append("p-values and intervals for the population take records for independent")
    return "; ".join(told)


def names_of_parts(report: Report) -> list[str]:
    """The name of each of several values: its statistic, its stratum, or both."""
    one_statistic = len({part.statistic for part in report.parts}) == 1
    found = []
    for part in report.parts:
        stratum = part.stratum if one_statistic else f"{part.statistic}, {part.stratum}"
        found.append(stratum if part.stratum else part.statistic)
    return found


def describe_share(report: Report, place: int) -> str:
    """The part of ε that one of several values took."""
    part = report.parts[place]
    shared = f" for all strata of {report.strata!r}" if part.stratum else ""
    return f"epsilon {part.epsilon:.3g}{shared}"


def evaluated(report: Report) -> str:
    """How sets of records of several owners were evaluated."""
    return find_protocol(report.protocol).describe_evaluation(report.backend)


def intervals_of(report: Report, level: float = 0.95) -> list[ReportInterval]:
    """The report's interval of each kind, without those that have no end."""
    inference = Inference(report)
    found = []
    for kind in KINDS:
        try:
            found.append(inference.interval(level, kind))
        except UmpcError:
            continue  # no value, or no end: the report's note says why
    return found


def usual_test_of(report: Report) -> NullTest | None:
    """The test of the statistic's own hypothesis; None where there is none."""
    try:
        return Inference(report).test()
    except UmpcError:
        return None


def errors_of(report: Report) -> list[ErrorSource]:
    """The four sources of error; none where the report has no value."""
    try:
        return Inference(report).errors()
    except UmpcError:
        return []


def describe_test(test: NullTest) -> str:
    """A p-value in one sentence."""
    return (
        f"If {test.hypothesis}, a value as far from {test.null:g} has {test.size} "
        f"({test.alternative}; {test.law}, with the noise)"
    )


def promises(report: Report) -> tuple[str, str, str]:
    """The promises in three sentences: to persons, to sites, and to the reader."""
    protocol = find_protocol(report.protocol)
    shown = "its number of complete records"
    if report.first_class_by_node and any(report.first_class_by_node):
        shown += " of each class"
    return (
        f"To every person: whatever your record says, the result would have been almost as likely "
        f"with another record in its place; the odds differ by a factor of at most "
        f"e^{report.epsilon:g}, but for a chance of {report.delta:.2g}.",
        f"To every site: {report.promise}. Of {report.nodes} nodes "
        f"{protocol.describe_collusion(report.max_colluding)}. Beside the result, a site discloses "
        f"{shown}.",
        "To the reader: the intervals count all noise that was added, and in 95 % of such studies "
        "each of them holds the value that it is for.",
    )
