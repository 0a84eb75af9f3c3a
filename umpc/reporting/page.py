"""A report as one HTML file without scripts, pictures or fonts from elsewhere.

The estimate with its intervals comes first, then what was promised to whom. Everything else is
folded away, and unfolded on paper.

*Page style.* The frame of an HTML page, and the style of a report's: light, dark, wide, narrow, on
paper.

The estimate with its intervals, as an SVG picture that needs no library and no network.

It is dark on light, or light on dark where the reader prefers that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from umpc.counts.answers import Picture, ticks
from umpc.inference.matrix import CorrelationMatrix
from umpc.inference.report_inference import Inference, ReportInterval
from umpc.reporting.rows import (
    CURVE,
    FOLDED,
    HEADING,
    HEAT,
    KIND_WORDS,
    PICTURE,
    QUIET,
    TABLE,
    TEXT,
    TITLE,
    VALUE,
    Line,
    blocks_of,
    intervals_of,
    title_of,
)
from umpc.study.cost import Moment
from umpc.study.report import Report
from umpc.text_file import escape

PICTURE_WIDTH, LEFT, RIGHT, PICTURE_ROW, TOP = 720, 240, 30, 44, 14
Place = Callable[[float], float]


def picture(report: Report, level: float = 0.95) -> Picture:
    """The estimate and its interval of each kind; the null value is a dashed line."""
    return picture_of(report, intervals_of(report, level))


def picture_of(report: Report, intervals: Sequence[ReportInterval]) -> Picture:
    """The picture of intervals that are known already."""
    if report.estimate is None or not intervals:
        shown = ['<text x="10" y="24">no value</text>']
        return Picture.of("interval", PICTURE_WIDTH, 40, shown, "no value")
    hypothesis = Inference(report).hypothesis
    null = hypothesis.value if hypothesis and report.estimator != "total" else None
    return _draw(report.estimate, intervals, null)


def _draw(value: float, intervals: Sequence[ReportInterval], null: float | None) -> Picture:
    low, high = _range(value, intervals, null)

    def x(at: float) -> float:
        return LEFT + (PICTURE_WIDTH - LEFT - RIGHT) * (at - low) / (high - low)

    bottom = TOP + PICTURE_ROW * len(intervals)
    parts = [_axis(x, ticks(low, high), bottom)]
    if null is not None and low <= null <= high:
        line = f'x1="{x(null):.1f}" x2="{x(null):.1f}" y1="{TOP}" y2="{bottom}"'
        parts.append(f'<line {line} stroke="var(--quiet)" stroke-dasharray="4 4"/>')
    for place, interval in enumerate(intervals):
        parts += _row(x, value, interval, TOP + PICTURE_ROW * place + PICTURE_ROW / 2)
    label = f"estimate {value:.4g} with its intervals"
    return Picture.of("interval", PICTURE_WIDTH, bottom + 26, parts, label)


def _range(
    value: float, intervals: Sequence[ReportInterval], null: float | None
) -> tuple[float, float]:
    """The axis: all intervals, and the null value if it is not far away."""
    low = min(value, *(each.low for each in intervals))
    high = max(value, *(each.high for each in intervals))
    width = (high - low) or abs(value) or 1.0
    if null is not None and low - width <= null <= high + width:
        low, high = min(low, null), max(high, null)
    return low - width / 20, high + width / 20


def _row(x: Place, value: float, interval: ReportInterval, y: float) -> list[str]:
    words = f"{interval.level:.0%}, {KIND_WORDS[interval.kind]}".replace("%", " %")
    about = escape(f"{interval.low:.5g} to {interval.high:.5g}, for {interval.covers}")
    start, end = x(interval.low), x(interval.high)
    return [
        f'<text class="kind" x="{LEFT - 14}" y="{y + 4}" text-anchor="end">{escape(words)}</text>',
        f'<line class="mark" x1="{start:.1f}" x2="{end:.1f}" y1="{y}" y2="{y}" '
        'stroke="var(--bar)" stroke-width="7" stroke-linecap="round">'
        f"<title>{about}</title></line>",
        f'<circle class="mark" cx="{x(value):.1f}" cy="{y}" r="5.5" fill="var(--dot)"/>',
    ]


def _axis(x: Place, places: Sequence[float], bottom: float) -> str:
    parts = []
    for at in places:
        line = f'x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{TOP}" y2="{bottom}"'
        parts.append(f'<line {line} stroke="var(--line)"/>')
        style = f'y="{bottom + 18}" text-anchor="middle" class="quiet"'
        parts.append(f'<text x="{x(at):.1f}" {style}>{at:.6g}</text>')
    return "".join(parts)


# --- a matrix -------------------------------------------------------------------------------------

CELL, HEAD, TILTED = 70, 150, 75
WIDEST_HEAD = 12
"""Characters of a column's name in the picture."""
NUMBERS_UP_TO = 9
"""With more columns the cells are too small for numbers, and a title has each of them."""
STRONGEST = 0.8
"""The opacity of a cell of 1 or -1, on which its number is read."""
KEY = "blue: above 0; orange with −: below 0; the stronger, the farther"


def heat_map(matrix: CorrelationMatrix) -> Picture:
    """A square of cells: orange with a minus for values below 0, blue for those above."""
    count = len(matrix.columns)
    size = min(CELL, (PICTURE_WIDTH - HEAD - TILTED) / count)
    parts = []
    for row, name in enumerate(matrix.columns):
        short = escape(name if len(name) <= WIDEST_HEAD else f"{name[: WIDEST_HEAD - 1]}…")
        y = HEAD + size * row
        middle = f"{y + size / 2 + 4:.1f}"
        for place in (
            f'x="{HEAD - 8}" y="{middle}" text-anchor="end"',
            f'transform="translate({middle} {HEAD - 8}) rotate(-60)"',
        ):
            parts.append(f"<text {place}>{short}</text>")
        for column, other in enumerate(matrix.columns):
            parts.append(_cell(matrix, row, column, size, f"{name}, {other}"))
    label = f"{matrix.statistic} of {count} columns, as a heat map"
    bottom = HEAD + size * count
    parts.append(f'<text x="4" y="{bottom + 24:.1f}">{KEY}</text>')
    return Picture.of("heat", PICTURE_WIDTH, bottom + 34, parts, label)


def _cell(matrix: CorrelationMatrix, row: int, column: int, size: float, pair: str) -> str:
    value = matrix.values[row][column]
    x, y = HEAD + size * column, HEAD + size * row
    color = "var(--bar)" if (value or 0) >= 0 else "var(--low)"
    strength = 0.0 if value is None else STRONGEST * min(1.0, abs(value))
    shown = "none" if value is None else f"{value:.2f}".replace("-", "−")
    written = shown if len(matrix.columns) <= NUMBERS_UP_TO else "−" if (value or 0) < 0 else ""
    number = (
        f'<text x="{x + size / 2:.1f}" y="{y + size / 2 + 5:.1f}" '
        f'text-anchor="middle">{written}</text>'
    )
    return (
        f'<rect class="heat" x="{x:.1f}" y="{y:.1f}" width="{size - 1:.1f}" '
        f'height="{size - 1:.1f}" '
        f'fill="{color}" fill-opacity="{strength:.3f}" stroke="var(--line)">'
        f"<title>{escape(pair)}: {shown}</title></rect>{number}"
    )


# --- the page -------------------------------------------------------------------------------------


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
        elif kind == HEAT:
            body.append(heat_map(content).svg)
        elif kind == TABLE:
            body += [f'<div class="wide">{_table(content[1], content[0])}</div>']
        elif kind == PICTURE:
            body.append(picture_of(*content).svg)
        elif kind == CURVE:
            body.append(content.plot().svg)
        else:
            body.append(FORMS[kind].format(escape(content)))
    if report.rounds and report.timeline and not report.replayed:
        body += _folded("Steps over time", [_table(map(_step, report.timeline))])
    return body


def _folded(title: str, content: Sequence[str]) -> list[str]:
    """A part that opens on demand; nothing where it has no content."""
    if not content:
        return []
    inside = "".join(content)
    return [
        f'<details><summary>{escape(title)}</summary><div class="wide">{inside}</div></details>'
    ]


def _table(rows: Iterable[Line], title: str = "") -> str:
    cells = '<tr><td>{}</td><td class="number">{}</td><td>{}</td></tr>'
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return f"<table>{caption}{''.join(cells.format(*map(escape, row)) for row in rows)}</table>"


def _step(moment: Moment) -> Line:
    """A step at one node: its seconds from the beginning of the run."""
    return moment.step, f"{moment.asked:.1f} s to {moment.answered:.1f} s", moment.node


# --- page style -----------------------------------------------------------------------------------


def document(title: str, style: str, body: Iterable[str]) -> str:
    """Return a whole page that asks for nothing. Args: body: lines of HTML, escaped."""
    about = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f"{about}<title>{escape(title)}</title><style>{style}</style>"
    shown = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{shown}\n</body></html>\n'
    )


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
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.quiet { color: var(--quiet); overflow-wrap: anywhere; }
"""
"""The frame that every page has."""
OWN = """
summary { font-size: 1.1rem; font-weight: 600; margin: 1.5rem 0 .3rem; cursor: pointer; }
.value { font-size: 1.4rem; line-height: 1.3; font-weight: 600; margin: .8rem 0;
  overflow-wrap: anywhere; }
@media (max-width: 600px) { .value { font-size: 1.2rem; } }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
td, th { padding: .25rem .75rem .25rem 0; overflow-wrap: anywhere; }
td { min-width: 6em; }
th { text-align: right; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
@media screen and (max-width: 600px) { td.number { white-space: normal; } }
tr { border-bottom: 1px solid var(--line); }
svg { width: 100%; height: auto; }
svg text { fill: var(--ink); }
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
