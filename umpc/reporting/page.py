"""A report as one HTML file without scripts, pictures or fonts from elsewhere.

The estimate with its intervals comes first, then what was promised to whom. Everything else is
folded away, and unfolded on paper.

*Page style.* The frame of an HTML page, and the style of a report's: light, dark, wide, narrow, on
paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as escaped

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
from umpc.reporting.words import printable
from umpc.study.cost import Moment
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


# --- page style -----------------------------------------------------------------------------------


def document(title: str, style: str, body: Iterable[str]) -> str:
    """Return a whole page that asks for nothing. Args: body: lines of HTML, escaped."""
    about = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f"{about}<title>{escape(title)}</title><style>{style}</style>"
    shown = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{shown}\n</body></html>\n'
    )


def escape(text: str) -> str:
    """Return a text for HTML, in which no character turns the direction of others."""
    return escaped(printable(text))


BASE = """
:root {
  color-scheme: light dark;
  --ink: #1d2733; --quiet: #566573; --paper: #fff; --line: #d9e0e6;
}
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6ebf0; --quiet: #a3b3c2; --paper: #14191f; --line: #323c47;
} }
body {
  font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
}
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.quiet { color: var(--quiet); overflow-wrap: anywhere; }
"""
"""The frame that every page has."""
OWN = """
summary { font-size: 1.1rem; font-weight: 600; margin: 1.5rem 0 .3rem; cursor: pointer; }
.value { font-size: 2.4rem; font-weight: 600; margin: .5rem 0 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
td, th { padding: .25rem .75rem .25rem 0; overflow-wrap: anywhere; }
td { min-width: 6em; }
th { text-align: right; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr { border-bottom: 1px solid var(--line); }
svg { width: 100%; height: auto; }
svg text { fill: var(--ink); }
.step { white-space: nowrap; }
@media screen and (max-width: 600px) { .timeline text { font-size: 18px; } }
@media print {
  :root {
    color-scheme: light;
    --ink: #000; --quiet: #444; --paper: #fff; --line: #bbb;
  }
  body { max-width: none; margin: 0; font-size: 10.5pt; }
  details::details-content { content-visibility: visible; display: block; }
  summary { list-style: none; }
  h2, summary { break-after: avoid; }
  tr, svg, p { break-inside: avoid; }
}
"""
"""The report's own."""
STYLE = BASE + OWN
