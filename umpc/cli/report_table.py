"""A report as a table for people, on standard output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich import markup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from umpc.protocols.registry import find_protocol
from umpc.reporting.printable import printable
from umpc.reporting.words import (
    MOST_SUMS,
    describe_fields,
    describe_records,
    describe_share,
    describe_test,
    describe_times,
    evaluated,
    names_of_parts,
    promise_of,
    rounded,
    usual_test_of,
)
from umpc.study.grades import HONEST
from umpc.study.interval import SETS
from umpc.study.report import Report

Line = tuple[str, str, str]
"""A row of the table: what it is, its value, a note."""
Extra = Mapping[str, float | None]
"""Values that only the demo knows: exact, exact_over_edges, and quantised where there are bins."""


def print_table(report: Report, extra: Extra, console: Console) -> None:
    """Print the report as a table."""
    table = Table(
        title=markup.escape(printable(f"{report.statistic} of study {report.study!r}")),
        show_header=False,
        title_justify="left",
    )
    table.add_column(style="bold", overflow="fold")
    table.add_column(justify="right", overflow="fold")
    table.add_column(overflow="fold")
    for row in _rows(report, extra):
        table.add_row(*(Text(printable(cell)) for cell in row))  # no markup: a study names fields
    console.print(table)


def _rows(report: Report, extra: Extra) -> Iterator[Line]:
    yield from _estimate(report)
    yield from _exact(report, extra)
    yield from _errors(report)
    yield from _sums(report)
    yield from _facts(report)
    if report.rounds and not report.replayed:
        yield from _traffic(report)
        yield from _seconds(report)


def _parts(report: Report) -> Iterator[Line]:
    """Each of several values with its interval, its test and its part of ε."""
    replayed = "replayed: stored shares" if report.replayed else ""
    yield "private estimates", f"{len(report.parts)}", replayed
    for place, name in enumerate(names_of_parts(report)):
        own = report.of_part(place)
        value = "none" if own.estimate is None else rounded(own.estimate, own.noise_std)
        yield name, value, describe_share(report, place)
        if own.low is not None and own.high is not None:
            ends = (rounded(end, own.noise_std) for end in (own.low, own.high))
            interval = " … ".join(ends)
            yield "  95 % interval", interval, f"for {own.interval_covers}"
            yield "  noise, standard deviation", f"{own.noise_std:.3g}", ""
        if own.note:
            yield "", "", own.note
        if test := usual_test_of(own):
            yield "  test", "", describe_test(test)
    yield "", "", report.note


def _estimate(report: Report) -> Iterator[Line]:
    if report.parts:
        yield from _parts(report)
        return
    replayed = "replayed: stored shares" if report.replayed else ""
    value = "none" if report.estimate is None else rounded(report.estimate, report.noise_std)
    yield "private estimate", value, replayed
    if report.estimate is None:
        yield "no value, because", "", report.note
    if report.low is not None and report.high is not None:
        ends = (rounded(end, report.noise_std) for end in (report.low, report.high))
        interval = " … ".join(ends)
        yield "95 % interval", interval, f"for {report.interval_covers}"
        if report.note:
            yield "", "", report.note


def _exact(report: Report, extra: Extra) -> Iterator[Line]:
    """The exact values, which only the demo knows, and the error of the estimate."""
    if "exact" not in extra:
        return
    exact = extra["exact"]
    shown = "not computed" if exact is None else f"{exact:.6g}"
    yield f"exact, all {_sets(report)}", shown, "only the demo can know it"
    without_noise = extra["quantised"] if "quantised" in extra else extra["exact_over_edges"]
    if without_noise is None or report.estimate is None:
        return
    where = "records' bins" if "quantised" in extra else "same E"
    yield f"exact, {where}", f"{without_noise:.6g}", "pooled records, no noise"
    error = report.estimate - without_noise
    yield "error from noise", f"{error:+.3g}", _deviations(error, report.noise_std)


def _errors(report: Report) -> Iterator[Line]:
    """The estimate's errors from noise and from sampling, each by itself."""
    if report.estimate is None:
        return
    protocol = find_protocol(report.protocol)
    yield (
        "noise, standard deviation",
        f"{report.noise_std:.3g}",
        protocol.describe_noise(report.noise),
    )
    without_noise = protocol.value_without_noise(report.edges == report.sets, _sets(report))
    if report.noise_low is not None and report.noise_high is not None:
        ends = (rounded(end, report.noise_std) for end in (report.noise_low, report.noise_high))
        interval = " … ".join(ends)
        yield "  noise alone, 95 %", interval, f"for {without_noise}"
    share = "is" if report.edges == report.sets else "is not"
    sampling = f"standard deviation, because E {share} all {_sets(report)}"
    yield "sampling, at most", f"{report.sampling_std:.3g}", sampling


def _sums(report: Report) -> Iterator[Line]:
    """The mean of each sum, if the statistic has several."""
    if len(report.sums) == 1:
        return
    for number, entry in enumerate(report.sums[:MOST_SUMS], 1):
        noise = f"± {entry.noise_std:.2g} noise, epsilon {entry.epsilon:.3g}"
        yield f"sum {number}, its mean", rounded(entry.mean, entry.noise_std), noise
    if (more := len(report.sums) - MOST_SUMS) > 0:
        yield f"and {more} more sums", "", "--format json has all of them"


def _facts(report: Report) -> Iterator[Line]:
    """The promise of privacy, and the numbers of edges, records and nodes."""
    for label, text in describe_times(report):
        yield label, "", text
    size = f"{report.epsilon:g}, {report.delta:.2g}"
    yield "epsilon, delta", size, f"against replacing {report.protected}"
    yield "edges |E|", f"{report.edges:,}", f"of {report.sets:,} {_sets(report)}"
    yield "records", f"{report.records:,}", describe_records(report)
    for name, values in describe_fields(report):
        yield f"field {name}", "", values
    yield "most edges of a record", f"{report.max_degree:,}", ""
    promise = promise_of(report)
    yield "promise", "", promise.protected
    yield "adversary", report.adversary, promise.sites
    yield "disclosed", "", promise.disclosed
    if report.adversary != HONEST and report.noise_std_if_honest is not None:
        note = "standard deviation of the same noise; the difference is the grade's cost"
        yield "noise if honest", f"{report.noise_std_if_honest:.3g}", note
    protocol = find_protocol(report.protocol)
    if report.missing:
        lost = (
            f"{', '.join(report.missing)}: lost before the release, and no record of theirs is in"
        )
        yield "missing nodes", f"{len(report.missing)}", lost
    yield "nodes", f"{report.nodes}", protocol.describe_collusion(report.max_colluding)
    if told := protocol.describe_gain(report.noise, report.nodes, report.max_colluding):
        yield "less noise", "", told
    if told := protocol.describe_coins(report.coins):
        yield "coins of the noise", report.coins, told
    yield from protocol.describe_helpers()
    yield "study hash", report.study_hash[:16], ""


def _traffic(report: Report) -> Iterator[Line]:
    """Rounds and bytes, measured beside predicted."""
    yield "edges of several owners", report.backend, evaluated(report)
    yield "rounds", f"{report.rounds}", f"predicted {report.rounds_predicted}"
    predicted = f"predicted {report.bytes_online_predicted:,}"
    yield "bytes online", f"{report.bytes_online:,}", predicted
    yield from _senders(report)
    predicted = f"predicted {report.bytes_offline_predicted:,}"
    yield "bytes offline", f"{report.bytes_offline:,}", predicted


def _senders(report: Report) -> Iterator[Line]:
    """The bytes online by sender and by step."""
    nodes = report.bytes_online_by_node
    steps = report.bytes_online_by_step
    is_predicted = (
        nodes == report.bytes_online_by_node_predicted
        and steps == report.bytes_online_by_step_predicted
    )
    note = "by node and by step as predicted"
    if not is_predicted:
        note = "by node or by step not as predicted: see --format json"
    fewest = f"{min(nodes, default=0):,}"
    most = f"{max(nodes, default=0):,}"
    yield "  of each node", most if fewest == most else f"{fewest} to {most}", note
    heaps = report.bytes_online_by_shuffler
    if heaps:
        yield "  of each shuffler", f"{max(heaps):,}", "to the coordinator"
    by_step = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in steps.items())
    yield "  of each step", "", by_step


def _seconds(report: Report) -> Iterator[Line]:
    online = "first message on data to last share, with the charge"
    offline = "for the joint seed, E, and material or transfers"
    if report.prepared:
        offline = "of this run; the rest was prepared before"
    yield "seconds online", f"{report.seconds_online:.3f}", online
    yield "seconds offline", f"{report.seconds_offline:.3f}", offline
    in_all = "of the study, without the start of its processes"
    yield "seconds in all", f"{report.seconds_total:.3f}", in_all


def _sets(report: Report) -> str:
    """The plural name of the sets that the kernel takes, such as pairs."""
    return SETS.get(report.degree, "sets")


def _deviations(error: float, std: float | None) -> str:
    return f"{abs(error) / std:.1f} standard deviations" if std else ""
