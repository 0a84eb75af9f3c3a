"""A report as Markdown, for papers and for issue trackers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from umpc.errors import ConfigError
from umpc.reporting.printable import printable
from umpc.reporting.words import (
    KIND_WORDS,
    MOST_SUMS,
    describe_fields,
    describe_records,
    describe_share,
    describe_test,
    describe_times,
    evaluated,
    headline,
    intervals_of,
    names_of_parts,
    promises,
    rounded,
    usual_test_of,
)
from umpc.study.report import Report

SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#~"})


def markdown(report: Report) -> str:
    """The report: the estimate first, then the promises, the protocol and the cost."""
    return "\n".join(_lines(report)) + "\n"


def save_markdown(report: Report, path: Path) -> None:
    """Write the report as Markdown. Raises: ConfigError if the file cannot be written."""
    try:
        path.write_text(markdown(report), encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{path}: the report cannot be written ({error.strerror}): make room, or check the "
            "folder, its owner and its mode. The report is printed above"
        ) from error


def _lines(report: Report) -> Iterator[str]:
    yield f"# {_plain(report.statistic)} of study {_plain(report.study)}"
    yield ""
    yield from _estimate(report)
    yield "## What was promised to whom"
    yield ""
    for sentence in promises(report):
        yield f"- {_plain(sentence)}"
    yield ""
    yield "## What was computed"
    yield ""
    yield from (f"    {entry.kernel}" for entry in report.sums[:MOST_SUMS])
    yield ""
    yield from _table(("", ""), _facts(report))
    if report.rounds and not report.replayed:
        yield "## What it cost"
        yield ""
        yield from _table(("", "measured", "predicted"), _costs(report))


def _estimate(report: Report) -> Iterator[str]:
    if report.parts:
        for place, name in enumerate(names_of_parts(report)):
            yield f"## {_plain(name)}"
            yield ""
            yield from _estimate(report.of_part(place))
            yield f"{_plain(describe_share(report, place))}."
            yield ""
        yield _plain(report.note)
        yield ""
        return
    if report.estimate is None:
        yield f"**No value.** {_plain(report.note)}"
        yield ""
        return
    yield f"**{rounded(report.estimate, report.noise_std)}**"
    yield ""
    yield _plain(headline(report))
    yield ""
    rows = [
        (
            KIND_WORDS[each.kind],
            rounded(each.low, report.noise_std),
            rounded(each.high, report.noise_std),
            each.covers,
        )
        for each in intervals_of(report)
    ]
    yield from _table(("95 % interval", "low", "high", "for"), rows)
    if test := usual_test_of(report):
        yield f"{_plain(describe_test(test))}."
        yield ""
    if report.note:
        yield _plain(report.note)
        yield ""


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    yield "epsilon, delta", f"{report.epsilon:g}, {report.delta:.2g}"
    yield "records", f"{report.records:,} at {report.nodes} sites"
    yield "sets", f"{report.edges:,} of {report.sets:,}"
    yield "protocol", f"{report.protocol}, {evaluated(report)}"
    yield "records counted", describe_records(report)
    yield from describe_times(report)
    yield "study hash", report.study_hash
    for name, values in describe_fields(report):
        yield f"field {name}", values


def _costs(report: Report) -> Iterator[tuple[str, str, str]]:
    yield "rounds", f"{report.rounds}", f"{report.rounds_predicted}"
    yield "bytes online", f"{report.bytes_online:,}", f"{report.bytes_online_predicted:,}"
    yield "bytes offline", f"{report.bytes_offline:,}", f"{report.bytes_offline_predicted:,}"
    yield "seconds in all", f"{report.seconds_total:.2f}", ""


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield _row(head)
    yield "|" + "---|" * len(head)
    yield from (_row(row) for row in rows)
    yield ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    """Text without meaning in Markdown, on one line."""
    return " ".join(printable(text).split()).translate(SPECIAL)
