"""A report as one HTML file without scripts, pictures or fonts from elsewhere.

The estimate with its intervals comes first, then what was promised to whom. Everything else is
folded away, and unfolded on paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from umpc.reporting.page_style import STYLE, document, escape
from umpc.reporting.picture import picture_of
from umpc.reporting.rows import (
    FOLDED,
    HEADING,
    PICTURE,
    QUIET,
    TEXT,
    TITLE,
    VALUE,
    Line,
    blocks_of,
    title_of,
)
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


FORMS = {
    TITLE: "<h1>{}</h1>",
    HEADING: "<h2>{}</h2>",
    VALUE: '<p class="value">{}</p>',
    TEXT: "<p>{}</p>",
    QUIET: '<p class="quiet">{}</p>',
}
"""Kind of a block → the HTML around its text."""


def page(report: Report) -> str:
    """The report as HTML. All text from outside is escaped."""
    return document(title_of(report), STYLE, body_of(report))


def body_of(report: Report) -> list[str]:
    """The page's content, which a notebook shows as well."""
    body = []
    for kind, content in blocks_of(report):
        if kind == FOLDED:
            title, rows = content
            body += _folded(title, [_table(rows)] if rows else [])
        elif kind == PICTURE:
            body.append(picture_of(*content).svg)
        else:
            body.append(FORMS[kind].format(escape(content)))
    if report.rounds and not report.replayed:
        body += _folded("Steps over time", _timeline(report.timeline))
    return body


def _folded(title: str, content: Sequence[str]) -> list[str]:
    """A part that opens on demand; nothing where it has no content."""
    if not content:
        return []
    inside = "".join(content)
    return [
        f'<details><summary>{escape(title)}</summary><div class="wide">{inside}</div></details>'
    ]


def _table(rows: Iterable[Line]) -> str:
    cells = '<tr><td>{}</td><td class="number">{}</td><td>{}</td></tr>'
    return f"<table>{''.join(cells.format(*map(escape, row)) for row in rows)}</table>"


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
    return [f"<p>{_legend(moments)}</p>", drawn]


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
