"""A curve, a table or a test that was computed from counts: numbers, intervals and a picture.

Every interval names what it is for. "records" is the value of these records, so it counts the
noise alone. "population" is the value behind them, so it counts the noise and that the records are
a sample. "records_band" and "population_band" hold the whole curve at once.

The picture is one SVG without scripts, fonts or colors from elsewhere. It is dark on light, or
light on dark where the reader prefers that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import floor, isfinite, isinf, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from umpc.counts.table import Floats
from umpc.errors import ConfigError, StudyError
from umpc.text_file import escape, write_text

RECORDS, POPULATION = "records", "population"
BAND, POPULATION_BAND = "records_band", "population_band"
WORDS = {
    RECORDS: "these records",
    BAND: "these records, all at once",
    POPULATION: "the population",
    POPULATION_BAND: "the population, all at once",
}
"""Kind of an interval → what it is for."""
STEPS, BARS, PATH = "steps", "bars", "path"
MOST_ROWS = 24
"""Rows of a series that a table shows, at most; the JSON document has all points."""


# JSON cannot write an infinite end: a document, whose schema follows from these types, has null.
if TYPE_CHECKING:
    End: TypeAlias = float
else:
    End = float | None


@dataclass(frozen=True)
class Bounds:
    """Both ends of an interval at each point; infinite, or null in a document, for no end."""

    low: list[End]
    high: list[End]

    @classmethod
    def within(cls, low: Floats, high: Floats, least: float, most: float) -> Bounds:
        """Ends that are cut at the least and the largest possible value."""
        return cls(np.clip(low, least, most).tolist(), np.clip(high, least, most).tolist())


@dataclass(frozen=True)
class Series:
    """One curve, or one row of bars. x: the places, or numbers of cells that `labels` names."""

    name: str
    x: list[float]
    value: list[float]
    intervals: dict[str, Bounds]
    labels: list[str] = field(default_factory=list)


Ends: TypeAlias = tuple[float | None, float | None]


@dataclass(frozen=True)
class Number:
    """One number. value: None where it has none; an end is None where it has no end."""

    name: str
    value: float | None
    intervals: dict[str, Ends] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class CountsAnswer:
    """Something computed from a table of counts. It takes no further ε.

    kind: "ecdf", "histogram", "quantiles", "roc", "kaplan_meier", "nelson_aalen", "contingency",
        "logrank", "gehan" or "qq". level: of all intervals. form: how the series are drawn; of
        those of a path only the first one is, and the second one tells of its x.
    """

    kind: str
    title: str
    level: float
    x_name: str
    y_name: str
    series: list[Series]
    numbers: list[Number]
    notes: list[str]
    form: str = STEPS

    def number(self, name: str) -> Number:
        """One of the numbers by its name. Raises: StudyError for an unknown name."""
        for each in self.numbers:
            if each.name == name:
                return each
        names = ", ".join(repr(each.name) for each in self.numbers)
        raise StudyError(f"{self.title} has the numbers {names or 'none'}, got {name!r}")

    def to_dict(self) -> dict[str, Any]:
        """All entries as plain values, with None for what JSON cannot write."""
        found: dict[str, Any] = finite(asdict(self))
        return found

    def plot(self) -> Picture:
        """The series with their intervals, as a picture that a notebook shows."""
        return _Drawing(self).picture() if self.series else Picture("")

    def rows(self) -> list[tuple[str, str, str]]:
        """The numbers as rows of a report: a name, a value, its intervals."""
        return [(each.name, _shown(each.value), _told(each)) for each in self.numbers]

    def series_rows(self) -> list[tuple[str, str, str]]:
        """Points of all series as rows: all of them, or about MOST_ROWS evenly over each."""
        found = []
        for series in self.series:
            for at in range(0, len(series.value), -(-len(series.value) // MOST_ROWS)):
                value = series.value[at]
                x = series.labels[at] if series.labels else f"{series.x[at]:.6g}"
                ends = [
                    f"{_ends(bounds.low[at], bounds.high[at])} for {WORDS[kind]}"
                    for kind, bounds in series.intervals.items()
                    if kind in (RECORDS, POPULATION)
                ]
                name = f"{series.name}, {x}" if len(self.series) > 1 else x
                found.append((name, f"{value:.4g}", "; ".join(ends)))
        return found

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows()
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<h3>{escape(self.title)}</h3>{self.plot().svg}<table>{rows}</table>{notes}"

    def __repr__(self) -> str:
        told = ", ".join(f"{each.name} = {_shown(each.value)}" for each in self.numbers)
        return f"<umpc {self.kind}: {self.title}{': ' if told else ''}{told}>"


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def _ends(*ends: float | None) -> str:
    return " … ".join("no end" if x is None or isinf(x) else f"{x:.4g}" for x in ends)


def _told(number: Number) -> str:
    """The intervals of a number in words."""
    found = [f"{_ends(*ends)} for {WORDS[kind]}" for kind, ends in number.intervals.items()]
    return "; ".join([*found, *([number.note] if number.note else [])])


def finite(value: Any) -> Any:
    """The value with None for numbers that JSON cannot write."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value


# --- the picture ----------------------------------------------------------------------------------


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 370, 66, 16, 16, 66
LINE = 24
"""The height of a line of the legend."""
TILTED, MOST_TILTED, LETTERS = 7, 12, 42
"""Height of a letter of tilted names, most bars that have them, letters that fit level."""
COLORS = 4
"""Colors of the series, after which they begin again."""
_LIGHT = """--bar: #5b8fc9; --dot: #5c1010; --low: #d9814f;
  --c0: #2463a6; --c1: #b3440a; --c2: #25724a; --c3: #7a3fa0"""
STYLE = f"""
.umpc-picture {{ --ink: #1d2733; --quiet: #4d5b69; --line: #d5dde4; {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ .umpc-picture {{
  --ink: #e6ebf0; --quiet: #b0bfcd; --line: #3a4652; --bar: #3f78b5; --dot: #ffd0cb; --low: #a8511f;
  --c0: #7db4ec; --c1: #f2a06b; --c2: #7dcea0; --c3: #cfa3ea }} }}
@media print {{ .umpc-picture {{ --ink: #000; --quiet: #333; --line: #bbb; {_LIGHT} }} }}
.umpc-picture text {{ font: 13px system-ui, sans-serif; fill: var(--ink) }}
.umpc-picture .quiet {{ fill: var(--quiet) }}
.umpc-curve {{ max-width: 760px }}
@media (max-width: 600px) {{
  .umpc-picture text {{ font-size: 20.5px }}
  .umpc-picture .kind {{ text-anchor: start; transform: translate(-226px, -7px) }}
  .umpc-interval .mark {{ transform: translateY(11px) }}
  .umpc-curve text {{ font-size: 18px }}
}}
"""
"""Colors, and larger text on a narrow screen, where each interval's name is above its bar. Series
also differ by the dashes of their lines."""
WIDEST = 18
"""Letters of a bar's name, at most."""
DASHES = ("", "7 4", "2 3", "9 3 2 3")


@dataclass(frozen=True)
class Picture:
    """A picture. A notebook shows it."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Write it to a file. Raises: ConfigError if that is not possible."""
        return write_text(Path(path), self.svg, "the picture", ConfigError)

    @classmethod
    def of(
        cls, kind: str, width: float, height: float, parts: Sequence[str], label: str
    ) -> Picture:
        """A picture of SVG parts. Args: kind: "curve", "interval" or "heat"."""
        size = f'viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{escape(label)}"'
        return cls(
            f'<svg xmlns="http://www.w3.org/2000/svg" class="umpc-picture umpc-{kind}" {size}>'
            f"<style>{STYLE}</style>{''.join(parts)}</svg>"
        )


class _Drawing:
    """The picture of one answer."""

    def __init__(self, answer: CountsAnswer):
        self.answer = answer
        self.drawn = answer.series[:1] if answer.form == PATH else answer.series
        self.band = next(
            (kind for kind in (BAND, RECORDS) if kind in answer.series[0].intervals), None
        )
        all_x = [place for series in answer.series for place in series.x]
        all_y = [0.0]
        for series in answer.series:
            all_y += series.value
            if self.band:
                all_y += series.intervals[self.band].high + series.intervals[self.band].low
        bars = answer.form == BARS
        labels = answer.series[0].labels
        is_wide = sum(len(word) + 2 for word in labels) > LETTERS
        self.is_tilted = bars and is_wide and len(labels) <= MOST_TILTED
        longest = max(map(len, labels), default=0)
        self.bottom = HEIGHT + TILTED * min(longest, WIDEST) * self.is_tilted
        self.low_x, self.high_x = (-0.6, max(all_x) + 0.6) if bars else (min(all_x), max(all_x))
        if answer.form == STEPS:
            self.low_x = min(0.0, self.low_x)
        finite = [value for value in all_y if isfinite(value)]
        self.low_y, self.high_y = (min(finite), max(finite)) if answer.kind == "qq" else (0.0, 1.0)
        if answer.form == BARS:
            self.high_y = max(finite) or 1.0
        if answer.kind == "nelson_aalen":  # where few are left, its interval ends far above
            self.high_y = 2 * max(max(series.value) for series in answer.series) or 1.0
        self.high_x += self.high_x == self.low_x
        self.high_y += self.high_y == self.low_y

    def x(self, at: float) -> float:
        share = (at - self.low_x) / (self.high_x - self.low_x)
        return LEFT + (WIDTH - LEFT - RIGHT) * share

    def y(self, at: float) -> float:
        at = min(max(at, self.low_y), self.high_y) if isfinite(at) else self.high_y
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high_y - at) / (self.high_y - self.low_y)

    def picture(self) -> Picture:
        answer = self.answer
        height = self.bottom + LINE * len(self.drawn)
        parts = [self._frame()]
        for number, series in enumerate(self.drawn):
            parts.append(self._bars(series) if answer.form == BARS else self._curve(number, series))
            parts.append(self._legend(number, series))
        return Picture.of("curve", WIDTH, height, parts, answer.title)

    def _frame(self) -> str:
        answer, bottom = self.answer, HEIGHT - BOTTOM
        parts = []
        for at in ticks(self.low_y, self.high_y):
            y = f"{self.y(at):.1f}"
            parts.append(
                f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="var(--line)"/>'
                f'<text class="quiet" x="{LEFT - 6}" y="{self.y(at) + 4:.1f}" '
                f'text-anchor="end">{at:.5g}</text>'
            )
        for place, word in self._marks():
            where = f'x="{self.x(place):.1f}" y="{bottom + 19}" text-anchor="middle"'
            if self.is_tilted:
                turned = f"translate({self.x(place) + 5:.1f} {bottom + 14}) rotate(-60)"
                where = f'transform="{turned}" text-anchor="end"'
            parts.append(f'<text class="quiet" {where}>{escape(word)}</text>')
        if answer.kind in ("roc", "qq"):
            low, high = max(self.low_x, self.low_y), min(self.high_x, self.high_y)
            parts.append(
                f'<line x1="{self.x(low):.1f}" x2="{self.x(high):.1f}" y1="{self.y(low):.1f}" '
                f'y2="{self.y(high):.1f}" stroke="var(--quiet)" stroke-dasharray="3 5"/>'
            )
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}" '
            'stroke="var(--quiet)"/>'
            f'<text x="{WIDTH - RIGHT}" y="{self.bottom - 22}" text-anchor="end">'
            f"{escape(answer.x_name)} →  ↑ {escape(answer.y_name)}</text>"
        )
        return "".join(parts)

    def _marks(self) -> list[tuple[float, str]]:
        labels = self.answer.series[0].labels
        if self.answer.form != BARS:
            return [(at, f"{at:.6g}") for at in ticks(self.low_x, self.high_x)]
        letters = sum(len(word) + 2 for word in labels)
        every = 1 if self.is_tilted else max(1, -(-letters // LETTERS))
        shown = [word if len(word) <= WIDEST else f"{word[:9]}…{word[-8:]}" for word in labels]
        return [(float(at), word) for at, word in enumerate(shown) if at % every == 0]

    def _bars(self, series: Series) -> str:
        parts, wide = [], self.x(0.4) - self.x(-0.4)
        for at, value in zip(series.x, series.value, strict=True):
            top, about = self.y(value), f"{series.labels[int(at)]}: {value:.4g}"
            parts.append(
                f'<rect class="mark" x="{self.x(at) - wide / 2:.1f}" y="{top:.1f}" '
                f'width="{wide:.1f}" height="{self.y(0) - top:.1f}" fill="var(--c0)" '
                'fill-opacity="0.35" stroke="var(--c0)">'
                f"<title>{escape(about)}</title></rect>"
            )
        bounds = series.intervals.get(self.band or "")
        for at, low, high in zip(series.x, bounds.low, bounds.high, strict=True) if bounds else ():
            parts.append(self._span(at, low, high, 'stroke="var(--ink)" stroke-width="1.5"'))
        return "".join(parts)

    def _curve(self, number: int, series: Series) -> str:
        color, parts = f"var(--c{number % COLORS})", []
        bounds = series.intervals.get(self.band or "")
        if bounds and self.answer.form != PATH:
            there = self._points(series.x, bounds.high)
            back = self._points(series.x, bounds.low)[::-1]
            area = " ".join([*there, *back])
            edge = f'stroke="{color}" stroke-dasharray="{DASHES[number % COLORS]}"'
            area = f'<polygon class="mark" points="{area}" {edge} stroke-width="0.8" '
            parts.append(f'{area}fill="{color}" fill-opacity="0.12"/>')
        line = " ".join(self._points(series.x, series.value))
        parts.append(
            f'<polyline class="mark" points="{line}" fill="none" stroke="{color}" '
            'stroke-width="2.5" '
            f'stroke-dasharray="{DASHES[number % COLORS]}"/>'
        )
        if bounds and self.answer.form == PATH:
            ends = list(zip(series.x, bounds.low, bounds.high, strict=True))
            for at, low, high in ends[:: -(-len(ends) // MOST_ROWS)]:
                parts.append(self._span(at, low, high, f'stroke="{color}"'))
        return "".join(parts)

    def _span(self, at: float, low: float, high: float, style: str) -> str:
        """The interval of one point."""
        ends = f'y1="{self.y(low):.1f}" y2="{self.y(high):.1f}"'
        return f'<line class="mark" x1="{self.x(at):.1f}" x2="{self.x(at):.1f}" {ends} {style}/>'

    def _points(self, places: Sequence[float], values: Sequence[float]) -> list[str]:
        """Corners of a line; of a curve of steps, each value holds until the next place."""
        if self.answer.form == PATH:
            return [f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in zip(places, values, strict=True)]
        before = 1.0 if self.answer.kind == "kaplan_meier" else 0.0
        found = [f"{self.x(self.low_x):.1f},{self.y(before):.1f}"]
        for at, value in zip(places, values, strict=True):
            x = f"{self.x(at):.1f}"
            found += [f"{x},{self.y(before):.1f}", f"{x},{self.y(value):.1f}"]
            before = value
        return found

    def _legend(self, number: int, series: Series) -> str:
        y = self.bottom + LINE * number
        about = series.name
        if self.band:
            about += f"; {self.answer.level * 100:.3g} % for {WORDS[self.band]}"
        color = f"var(--c{number % COLORS})"
        return (
            f'<line x1="{LEFT}" x2="{LEFT + 34}" y1="{y}" y2="{y}" stroke="{color}" '
            f'stroke-width="3" stroke-dasharray="{DASHES[number % COLORS]}"/>'
            f'<text x="{LEFT + 42}" y="{y + 5}">{escape(about)}</text>'
        )


def ticks(low: float, high: float) -> list[float]:
    """Round numbers between two ends, about five of them."""
    rough = (high - low) / 5
    size = 10.0 ** floor(log10(rough))
    step = next(size * many for many in (1, 2, 5, 10) if size * many >= rough * 0.7)
    first, last = -floor(-low / step + 1e-9), floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]
