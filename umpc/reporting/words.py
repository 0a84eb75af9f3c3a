"""Sentences about a report, of which its rows consist.

*Printable.* Text from outside as one line that a terminal, a browser and an editor show as it is.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from math import floor, isfinite, log10

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
from umpc.protocols.base.promise import Promise, PromiseTerms
from umpc.protocols.registry import find_protocol
from umpc.study.parts import FieldText, describe_complete
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


def rounded(value: float, noise_std: float | None) -> str:
    """A value with the digits that its noise leaves: to the second digit of the noise's deviation.

    Args: noise_std: its standard deviation; six digits without any, and never more.
    """
    most = f"{value:.6g}"
    if not noise_std or not isfinite(noise_std) or not isfinite(value):
        return most
    places = 1 - floor(log10(noise_std))
    if value:
        places = min(places, 5 - floor(log10(abs(value))))
    found = round(value, places) + 0.0  # no negative zero
    if found and not 1e-5 <= abs(found) < 1e15:
        return f"{found:.6g}"
    return f"{found:.{max(0, places)}f}"


def describe_ends(report: Report, low: float, high: float) -> str:
    """An interval's ends with the digits that the noise leaves."""
    return f"{rounded(low, report.noise_std)} … {rounded(high, report.noise_std)}"


def headline(report: Report) -> str:
    """The sentences beside the estimate: its kind, its noise and its interval."""
    noise = "" if report.noise_std is None else f"{report.noise_std:.2g}"
    told = f"The private estimate. Its noise has a standard deviation of {noise}." if noise else ""
    if report.low is not None and report.high is not None:
        low, high = (rounded(end, report.noise_std) for end in (report.low, report.high))
        told += f" The 95 % interval is {low} to {high}, for {report.interval_covers}."
    return told.strip()


def describe_times(report: Report) -> Iterator[tuple[str, str]]:
    """When the result was made or shown, and when its records were read; a label and a text."""
    if report.finished:
        yield "shown again" if report.replayed else "finished", _minute(report.finished)
    if report.prepared:
        when = _minute(report.prepared_at) if report.prepared_at else "before this run"
        yield "prepared", f"{when}; the records are those of the tables at that time"


def _minute(time: str) -> str:
    """An ISO time in UTC, to the minute, for people."""
    return f"{time[:16].replace('T', ' ')} UTC"


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
    """Which records counted, in words."""
    columns = len(report.fields) + bool(report.person)
    told = [describe_complete(columns, report.where, several=bool(report.parts))]
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


def promise_of(report: Report) -> Promise:
    """The promise of a report's run, as its protocol writes it."""
    return find_protocol(report.protocol).promise(PromiseTerms.of_report(report))


def promises(report: Report) -> tuple[str, ...]:
    """The promise, and what the reader may rely on."""
    return (
        *promise_of(report).lines,
        "To the reader: the intervals count all noise that was added, and in 95 % of such studies "
        "each of them holds the value that it is for.",
    )


# --- printable ------------------------------------------------------------------------------------


def printable(text: str) -> str:
    """Return a text without the characters that steer a terminal or turn the direction of letters.

    A study's name is its coordinator's. With a line feed it could forge a line of the output, and
    with other characters it could hide what stands beside it. Every kind of blank becomes a space,
    and any other character that cannot be printed a question mark.
    """
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else "?"
