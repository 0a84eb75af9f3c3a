"""A report as one HTML file without scripts, pictures or fonts from elsewhere.

The estimate with its intervals comes first, then what was promised to whom. Everything else is
folded away, and unfolded on paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as escaped
from pathlib import Path

from umpc.errors import ConfigError
from umpc.protocols.registry import find_protocol
from umpc.reporting.page_style import STYLE
from umpc.reporting.picture import picture_of
from umpc.reporting.printable import printable
from umpc.reporting.words import (
    KIND_WORDS,
    MOST_SUMS,
    describe_fields,
    describe_records,
    describe_share,
    describe_test,
    describe_times,
    described_ends,
    errors_of,
    evaluated,
    headline,
    intervals_of,
    names_of_parts,
    promises,
    rounded,
    usual_test_of,
)
from umpc.study.grades import HONEST
from umpc.study.measured import Moment
from umpc.study.report import Report

WIDTH, ROW, MARGIN = 720, 22, 170
"""Pixels: a picture's width, a row's height, and the space at the left."""
LONGEST_NAME = 16
"""Characters of a node's name in the timeline."""
COLORS = {
    "connect": "#7b8794",
    "propose": "#5c86b0",
    "agree": "#4676b8",
    "prepare": "#b57d14",
    "evaluate": "#3f8a61",
    "release": "#c25050",
    "ask": "#8a68ad",
}
"""Step → its color in the timeline, which has a contrast of 3 with light and with dark paper."""


def save_page(report: Report, path: Path) -> None:
    """Write the report's page. Raises: ConfigError if the file cannot be written."""
    try:
        path.write_text(page(report), encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{path}: the report's page cannot be written ({error.strerror}): make room, or check "
            "the folder, its owner and its mode. The report is printed above"
        ) from error


def page(report: Report) -> str:
    """The report as HTML. All text from outside is escaped."""
    title = f"{report.statistic} of study {report.study}"
    return _document(title, body_of(report))


def body_of(report: Report) -> list[str]:
    """The page's content, which a notebook shows as well."""
    title = f"{report.statistic} of study {report.study}"
    replayed = " · replayed from stored shares" if report.replayed else ""
    times = "".join(f"{label} {text} · " for label, text in describe_times(report))
    computed = [
        *(f"<p><code>{escape(entry.kernel)}</code></p>" for entry in report.sums[:MOST_SUMS]),
        _table(_sets(report)),
    ]
    took_part = _table([(name, f"{count:,} records") for name, count in _participants(report)])
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="quiet">{escape(times)}study {report.study_hash}{replayed}</p>',
        *_estimate(report),
        "<h2>What was promised to whom</h2>",
        *(f"<p>{escape(sentence)}</p>" for sentence in promises(report)),
        *_folded("Where the error comes from", _errors(report)),
        *_folded("Privacy and protocol", [_table(_privacy(report))]),
        *_folded("What was computed", computed),
        *_folded("Who took part", [took_part]),
    ]
    if report.rounds and not report.replayed:
        body += _folded("What it cost", [_costs(report), *_timeline(report.timeline)])
    return body


def escape(text: str) -> str:
    """Return a text for HTML, in which no character turns the direction of others."""
    return escaped(printable(text))


def _folded(title: str, content: Sequence[str]) -> list[str]:
    """A part that opens on demand; nothing where it has no content."""
    if not content:
        return []
    inside = "".join(content)
    return [
        f'<details><summary>{escape(title)}</summary><div class="wide">{inside}</div></details>'
    ]


def _document(title: str, body: Sequence[str]) -> str:
    about = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f"{about}<title>{escape(title)}</title><style>{STYLE}</style>"
    shown = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{shown}\n</body></html>\n'
    )


def _estimate(report: Report) -> list[str]:
    """The value, its picture, its intervals in numbers, and the test; or each of several."""
    if report.parts:
        found = [f"<p>{escape(report.note)}</p>"]
        for place, name in enumerate(names_of_parts(report)):
            share = f'<p class="quiet">{escape(describe_share(report, place))}</p>'
            found += [f"<h2>{escape(name)}</h2>", *_estimate(report.of_part(place)), share]
        return found
    if report.estimate is None:
        return ['<p class="value">no value</p>', f"<p>{escape(report.note)}</p>"]
    intervals = intervals_of(report)
    rows = [
        (f"95 %, {KIND_WORDS[each.kind]}", f"{described_ends(report, each)}, for {each.covers}")
        for each in intervals
    ]
    test = usual_test_of(report)
    return [
        f'<p class="value">{rounded(report.estimate, report.noise_std)}</p>',
        f"<p>{escape(headline(report))}</p>",
        picture_of(report, intervals).svg,
        *([f"<p>{escape(describe_test(test))}.</p>"] if test else []),
        *([f"<p>{escape(report.note)}</p>"] if report.note else []),
        *_folded("The intervals in numbers", [_table(rows)]),
    ]


def _errors(report: Report) -> list[str]:
    """The four sources of error, each with its standard deviation."""
    if not (sources := errors_of(report)):
        return []
    noise = find_protocol(report.protocol).describe_noise(report.noise)
    rows = []
    for source in sources:
        rows.append((source.name, f"{source.size}; {source.about}"))
    return ["<p>Standard deviations:</p>", _table([*rows, ("law of the noise", noise)])]


def _privacy(report: Report) -> list[tuple[str, str]]:
    protocol = find_protocol(report.protocol)
    cost = ""
    if report.adversary != HONEST and report.noise_std_if_honest is not None:
        cost = (
            f"; the noise's standard deviation would be {report.noise_std_if_honest:.3g} in grade "
            f"{HONEST}"
        )
    coins = protocol.describe_coins(report.coins)
    return [
        (
            "epsilon, delta",
            f"{report.epsilon:g}, {report.delta:.3g}, against replacing {report.protected}",
        ),
        ("adversary", f"{report.adversary}{cost}"),
        (f"of {report.nodes} nodes", protocol.describe_collusion(report.max_colluding)),
        ("most sets of a record", f"{report.max_degree:,}"),
        *([("coins of the noise", f"{report.coins}, {coins}")] if coins else []),
        (
            "protocol",
            f"{report.protocol}, {evaluated(report)}, preprocessing: {report.preprocessing}",
        ),
    ]


def _sets(report: Report) -> list[tuple[str, str]]:
    rows = [
        ("estimator", report.estimator),
        ("joint seed", report.joint_seed or "a replay does not know it"),
    ]
    for number, entry in enumerate(report.sums[:MOST_SUMS], 1):
        mean = rounded(entry.mean, entry.noise_std)
        shown = f"{mean} ± {entry.noise_std:.2g} noise, epsilon {entry.epsilon:.3g}"
        rows.append((f"mean of sum {number}" if len(report.sums) > 1 else "released mean", shown))
    rows.append(("records", describe_records(report)))
    return rows + [(f"field {name}", values) for name, values in describe_fields(report)]


def _participants(report: Report) -> list[tuple[str, int]]:
    """Each node's name and number of records. A replay knows no names."""
    names = [moment.node for moment in report.timeline if moment.step == "propose"]
    names = names or [f"node {number}" for number in range(1, len(report.records_by_node) + 1)]
    return list(zip(names, report.records_by_node, strict=False))


def _costs(report: Report) -> str:
    rows = [
        ("rounds", f"{report.rounds}", f"{report.rounds_predicted}"),
        ("bytes online", f"{report.bytes_online:,}", f"{report.bytes_online_predicted:,}"),
        ("bytes offline", f"{report.bytes_offline:,}", f"{report.bytes_offline_predicted:,}"),
        ("seconds online", f"{report.seconds_online:.3f}", ""),
        ("seconds offline", f"{report.seconds_offline:.3f}", ""),
        ("seconds in all", f"{report.seconds_total:.3f}", ""),
    ]
    number = '<td class="number">'
    cells = "".join(
        f"<tr><td>{name}</td>{number}{measured}</td>{number}{predicted}</td></tr>"
        for name, measured, predicted in rows
    )
    return f"<table><tr><th></th><th>measured</th><th>predicted</th></tr>{cells}</table>"


def _timeline(moments: Sequence[Moment]) -> list[str]:
    """When the coordinator asked each node, and when it answered: a row a node, a bar a step."""
    if not moments:
        return []
    nodes = list(dict.fromkeys(moment.node for moment in moments))
    end = max(moment.answered for moment in moments) or 1.0
    parts = []
    for row, node in enumerate(nodes):
        y = row * ROW + 16
        parts.append(f'<text x="0" y="{y + 11}" font-size="12">{escape(_short(node))}</text>')
        parts += [_bar(moment, y, end) for moment in moments if moment.node == node]
    bottom = len(nodes) * ROW + 16
    small = f'y="{bottom + 18}" font-size="12"'
    parts.append(f'<text x="{MARGIN}" {small}>0 s</text>')
    parts.append(f'<text x="{WIDTH - 10}" {small} text-anchor="end">{end:.2f} s</text>')
    size = f"0 0 {WIDTH} {bottom + 26}"
    about = f'class="timeline" viewBox="{size}" role="img" aria-label="steps over time"'
    drawn = f"<svg {about}>{''.join(parts)}</svg>"
    return ["<h2>Steps over time</h2>", f"<p>{_legend(moments)}</p>", drawn]


def _short(name: str) -> str:
    """A name that fits into the timeline's margin. The page lists the nodes' whole names."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _bar(moment: Moment, y: int, end: float) -> str:
    """One step at one node, from the question to the answer. end: the timeline's last second."""
    scale = (WIDTH - MARGIN - 10) / end
    x = MARGIN + moment.asked * scale
    width = max(1.0, (moment.answered - moment.asked) * scale)
    about = f"{moment.step}: {moment.asked:.3f} s to {moment.answered:.3f} s"
    place = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 8}"'
    return f'<rect {place} fill="{_color(moment.step)}"><title>{escape(about)}</title></rect>'


def _legend(moments: Sequence[Moment]) -> str:
    steps = dict.fromkeys(moment.step for moment in moments)
    return " ".join(
        f'<span class="step"><span style="color:{_color(step)}">■</span> {escape(step)}</span>'
        for step in steps
    )


def _color(step: str) -> str:
    return COLORS.get(step, "#888888")


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = (f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in rows)
    return f"<table>{''.join(lines)}</table>"
