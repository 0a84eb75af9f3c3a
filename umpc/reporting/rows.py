"""A report as rows and blocks, from which the terminal, the page and Markdown are written.

`sections` has all rows of a report, by the title of their section. `blocks_of` is a whole document
of them. A writer decides only how a block looks.

*Markdown.* A report as Markdown, for papers and for issue trackers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from umpc.protocols.registry import find_protocol
from umpc.reporting.words import (
    KIND_WORDS,
    MOST_SUMS,
    describe_ends,
    describe_fields,
    describe_records,
    describe_share,
    describe_test,
    describe_times,
    errors_of,
    evaluated,
    headline,
    intervals_of,
    names_of_parts,
    printable,
    promise_of,
    promises,
    rounded,
    usual_test_of,
)
from umpc.study.interval import SETS
from umpc.study.report import Report
from umpc.study.settings import HONEST

Line = tuple[str, str, str]
"""A row: what it is, its value, a note."""
Extra = Mapping[str, float | None]
"""Values that only the demo knows: exact, exact_over_edges, and quantised where there are bins."""
Block = tuple[str, Any]
"""A kind of block, and its content: a text, or what the kind says."""
TITLE, HEADING, VALUE, TEXT, QUIET = "title", "heading", "value", "text", "quiet"
PICTURE = "picture"
"""The content is a report and its intervals."""
FOLDED = "folded"
"""The content is a title and its rows. Where a reader can unfold it, it is folded away."""
REPLAYED = "replayed: stored shares"


def title_of(report: Report) -> str:
    """The statistic and its study."""
    return f"{report.statistic} of study {report.study}"


def table_rows(report: Report, extra: Extra) -> Iterator[Line]:
    """All rows in one table, the estimate first."""
    yield from _estimate(report)
    yield from _exact(report, extra)
    yield from _errors(report)
    for label, text in describe_times(report):
        yield label, "", text
    promise = promise_of(report)
    yield "promise", "", promise.protected
    yield "disclosed", "", promise.disclosed
    for rows in sections(report).values():
        yield from rows


def sections(report: Report) -> dict[str, list[Line]]:
    """The title of each section that follows the estimate and its errors, and its rows."""
    found = {
        "Privacy and protocol": [*_privacy(report)],
        "What was computed": [*_computed(report)],
    }
    if report.rounds and not report.replayed:
        found["What it cost"] = [*_traffic(report), *_seconds(report)]
    return found


def blocks_of(report: Report) -> Iterator[Block]:
    """A document: the values with their intervals, the promises, then everything else."""
    replayed = f" · {REPLAYED}" if report.replayed else ""
    times = "".join(f"{label} {text} · " for label, text in describe_times(report))
    yield TITLE, title_of(report)
    yield QUIET, f"{times}study {report.study_hash}{replayed}"
    yield from _values(report)
    yield HEADING, "What was promised to whom"
    for sentence in promises(report):
        yield TEXT, sentence
    if sources := [(each.name, each.size, each.about) for each in errors_of(report)]:
        law = find_protocol(report.protocol).describe_noise(report.noise)
        rows = [*sources, ("law of the noise", "", law)]
        yield FOLDED, ("Where the error comes from, as standard deviations", rows)
    kernels = [("kernel", "", entry.kernel) for entry in report.sums[:MOST_SUMS]]
    seed = report.joint_seed or "a replay does not know it"
    parts = sections(report)
    parts["What was computed"] += [*kernels, ("joint seed", "", seed)]
    for title, rows in (*parts.items(), ("Who took part", [*_participants(report)])):
        yield FOLDED, (title, rows)


def _values(report: Report) -> Iterator[Block]:
    """The value, its picture, its intervals in numbers, and the test; or each of several."""
    if report.parts:
        yield TEXT, report.note
        for place, name in enumerate(names_of_parts(report)):
            yield HEADING, name
            yield from _values(report.of_part(place))
            yield QUIET, describe_share(report, place)
        return
    if report.estimate is None:
        yield VALUE, "no value"
        yield TEXT, report.note
        return
    intervals = intervals_of(report)
    yield VALUE, rounded(report.estimate, report.noise_std)
    yield TEXT, headline(report)
    yield PICTURE, (report, intervals)
    if test := usual_test_of(report):
        yield TEXT, f"{describe_test(test)}."
    if report.note:
        yield TEXT, report.note
    rows = [
        (KIND_WORDS[each.kind], describe_ends(report, each.low, each.high), f"for {each.covers}")
        for each in intervals
    ]
    yield FOLDED, ("The intervals of 95 % in numbers", rows)


def _estimate(report: Report) -> Iterator[Line]:
    """The value with its interval; or each of several values, with its test and part of ε."""
    replayed = REPLAYED if report.replayed else ""
    if not report.parts:
        yield from _value(report, "private estimate", replayed)
        return
    yield "private estimates", f"{len(report.parts)}", replayed
    for place, name in enumerate(names_of_parts(report)):
        own = report.of_part(place)
        yield from _value(own, name, describe_share(report, place))
        if own.estimate is not None:
            yield "  noise, standard deviation", f"{own.noise_std:.3g}", ""
        if test := usual_test_of(own):
            yield "  test", "", describe_test(test)
    yield "", "", report.note


def _value(report: Report, label: str, about: str) -> Iterator[Line]:
    value = "none" if report.estimate is None else rounded(report.estimate, report.noise_std)
    yield label, value, about
    if report.low is not None and report.high is not None:
        ends = describe_ends(report, report.low, report.high)
        yield "  95 % interval", ends, f"for {report.interval_covers}"
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
    std = report.noise_std
    deviations = f"{abs(error) / std:.1f} standard deviations" if std else ""
    yield "error from noise", f"{error:+.3g}", deviations


def _errors(report: Report) -> Iterator[Line]:
    """The estimate's errors from noise and from sampling, each by itself."""
    if report.estimate is None:
        return
    protocol, is_all = find_protocol(report.protocol), report.edges == report.sets
    law = protocol.describe_noise(report.noise)
    yield "noise, standard deviation", f"{report.noise_std:.3g}", law
    if report.noise_low is not None and report.noise_high is not None:
        ends = describe_ends(report, report.noise_low, report.noise_high)
        without_noise = protocol.value_without_noise(is_all, _sets(report))
        yield "  noise alone, 95 %", ends, f"for {without_noise}"
    sampling = f"standard deviation, because E {'is' if is_all else 'is not'} all {_sets(report)}"
    yield "sampling, at most", f"{report.sampling_std:.3g}", sampling


def _privacy(report: Report) -> Iterator[Line]:
    """Epsilon and delta, whom they hold against, and by which protocol."""
    protocol = find_protocol(report.protocol)
    size = f"{report.epsilon:g}, {report.delta:.2g}"
    yield "epsilon, delta", size, f"against replacing {report.protected}"
    yield "adversary", report.adversary, promise_of(report).sites
    if report.adversary != HONEST and report.noise_std_if_honest is not None:
        note = "standard deviation of the same noise; the difference is the grade's cost"
        yield "noise if honest", f"{report.noise_std_if_honest:.3g}", note
    if report.missing:
        lost = "lost before the release, and no record of theirs is in"
        yield "missing nodes", f"{len(report.missing)}", f"{', '.join(report.missing)}: {lost}"
    yield "nodes", f"{report.nodes}", protocol.describe_collusion(report.max_colluding)
    if told := protocol.describe_gain(report.noise, report.nodes, report.max_colluding):
        yield "less noise", "", told
    if told := protocol.describe_coins(report.coins):
        yield "coins of the noise", report.coins, told
    yield from protocol.describe_helpers()
    how = f"{report.protocol}, {evaluated(report)}, preprocessing: {report.preprocessing}"
    yield "protocol", "", how
    yield "study hash", report.study_hash[:16], ""


def _computed(report: Report) -> Iterator[Line]:
    """The mean of each sum, and the edges, the records and the fields that it is over."""
    yield "estimator", report.estimator, ""
    for number, entry in enumerate(report.sums[:MOST_SUMS], 1):
        noise = f"± {entry.noise_std:.2g} noise, epsilon {entry.epsilon:.3g}"
        label = f"sum {number}, its mean" if len(report.sums) > 1 else "released mean"
        yield label, rounded(entry.mean, entry.noise_std), noise
    if (more := len(report.sums) - MOST_SUMS) > 0:
        yield f"and {more} more sums", "", "--format json has all of them"
    yield "edges |E|", f"{report.edges:,}", f"of {report.sets:,} {_sets(report)}"
    yield "most edges of a record", f"{report.max_degree:,}", ""
    yield "records", f"{report.records:,}", describe_records(report)
    for name, values in describe_fields(report):
        yield f"field {name}", "", values


def _participants(report: Report) -> Iterator[Line]:
    """Each node's name and number of records. A replay knows no names."""
    names = [moment.node for moment in report.timeline if moment.step == "propose"]
    names = names or [f"node {number}" for number in range(1, len(report.records_by_node) + 1)]
    for name, count in zip(names, report.records_by_node, strict=False):
        yield name, f"{count:,}", "records"


def _traffic(report: Report) -> Iterator[Line]:
    """Rounds and bytes, measured beside predicted."""
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


# --- markdown -------------------------------------------------------------------------------------

SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#~"})
FORMS = {TITLE: "# {}", HEADING: "## {}", VALUE: "**{}**"}
"""Kind of a block → how its text is written; others are paragraphs."""


def markdown(report: Report) -> str:
    """The report: the estimate first, then the promises, the protocol and the cost."""
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    for kind, content in blocks_of(report):
        if kind == FOLDED:
            yield from _table(*content)
        elif kind != PICTURE:
            yield FORMS.get(kind, "{}").format(_plain(content))
            yield ""


def _table(title: str, rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield "| | | |"
    yield "|---|---|---|"
    for row in rows:
        yield f"| {' | '.join(map(_plain, row))} |"
    yield ""


def _plain(text: Any) -> str:
    """Text without meaning in Markdown, on one line."""
    return " ".join(printable(text).split()).translate(SPECIAL)
