"""The estimate with its intervals, as an SVG picture that needs no library and no network.

It is dark on light, or light on dark where the reader prefers that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10
from pathlib import Path

from umpc.errors import ConfigError
from umpc.inference.report_inference import Inference, ReportInterval
from umpc.reporting.words import KIND_WORDS, intervals_of
from umpc.study.report import Report
from umpc.text_file import write_text

WIDTH, LEFT, RIGHT, ROW, TOP = 720, 240, 30, 34, 14
TICKS = 5
Place = Callable[[float], float]
STYLE = """
.umpc-picture { --ink: #1d2733; --quiet: #5b6b7b; --line: #d5dde4; --bar: #5b8fc9; --dot: #5c1010 }
@media (prefers-color-scheme: dark) { .umpc-picture {
  --ink: #e6ebf0; --quiet: #9fb0c0; --line: #3a4652; --bar: #3f78b5; --dot: #ffd0cb } }
@media print { .umpc-picture {
  --ink: #000; --quiet: #444; --line: #bbb; --bar: #5b8fc9; --dot: #5c1010 } }
.umpc-picture text { font: 13px system-ui, sans-serif; fill: var(--ink) }
.umpc-picture .quiet { fill: var(--quiet); font-size: 11.5px }
@media (max-width: 600px) {
  .umpc-picture .kind { font-size: 21px; text-anchor: start; transform: translate(-226px, -5px) }
  .umpc-picture .quiet { font-size: 19px }
  .umpc-picture .mark { transform: translateY(8px) }
}
"""
"""Colors, and larger text on a narrow screen: each bar's name is above the bar there."""


@dataclass(frozen=True)
class IntervalPicture:
    """A picture. A notebook shows it."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Write it to a file. Raises: ConfigError if that is not possible."""
        return write_text(Path(path), self.svg, "the picture", ConfigError)


def picture(report: Report, level: float = 0.95) -> IntervalPicture:
    """The estimate and its interval of each kind; the null value is a dashed line."""
    return picture_of(report, intervals_of(report, level))


def picture_of(report: Report, intervals: Sequence[ReportInterval]) -> IntervalPicture:
    """The picture of intervals that are known already."""
    if report.estimate is None or not intervals:
        return IntervalPicture(_svg(40, ['<text x="10" y="24">no value</text>'], "no value"))
    hypothesis = Inference(report).hypothesis
    null = hypothesis.value if hypothesis and report.estimator != "total" else None
    return IntervalPicture(_draw(report.estimate, intervals, null))


def _draw(value: float, intervals: Sequence[ReportInterval], null: float | None) -> str:
    low, high = _range(value, intervals, null)

    def x(at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - low) / (high - low)

    bottom = TOP + ROW * len(intervals)
    parts = [_axis(x, ticks(low, high), bottom)]
    if null is not None and low <= null <= high:
        line = f'x1="{x(null):.1f}" x2="{x(null):.1f}" y1="{TOP}" y2="{bottom}"'
        parts.append(f'<line {line} stroke="var(--quiet)" stroke-dasharray="4 4"/>')
    for place, interval in enumerate(intervals):
        parts += _row(x, value, interval, TOP + ROW * place + ROW / 2)
    label = f"estimate {value:.4g} with its intervals"
    return _svg(bottom + 26, parts, label)


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


def ticks(low: float, high: float) -> list[float]:
    """Round numbers between two ends, about TICKS of them."""
    rough = (high - low) / TICKS
    size = 10.0 ** floor(log10(rough))
    step = next(size * many for many in (1, 2, 5, 10) if size * many >= rough)
    first = floor(low / step) + 1
    last = floor(high / step)
    return [number * step for number in range(first, last + 1)]


def _svg(height: float, parts: Sequence[str], label: str) -> str:
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="umpc-picture" {size}>'
        f"<style>{STYLE}</style>{''.join(parts)}</svg>"
    )
