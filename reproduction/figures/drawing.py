"""Pictures: panels of measured points over predicted lines, and tables of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reproduction.figures.figure import Row, series_of

COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7a4b9a", "#b8860b", "#444444", "#d16ba5", "#2aa198")
MARKERS = "os^Dv*XP"
Draw = Callable[[Sequence[Row], Path, str], None]
"""Draws rows into a file. The last argument stands before the title, unless it is empty."""
Cells = Callable[[Sequence[Row]], Sequence[Sequence[str]]]


@dataclass(frozen=True)
class Panel:
    """One panel. quantity: drawn on the y axis. x: "x", or another quantity.

    only: the series to draw; all if empty.
    """

    quantity: str
    xlabel: str
    ylabel: str
    x: str = "x"
    only: tuple[str, ...] = ()
    xscale: str = "log"
    yscale: str = "log"


def panels(*drawn: Panel, quantity: str, columns: int = 2, title: str = "") -> Draw:
    """A picture of panels: measured means with two standard errors, and theory as lines.

    quantity: the figure's own quantity, whose theory is drawn.
    """

    def draw(rows: Sequence[Row], path: Path, note: str = "") -> None:
        from matplotlib import pyplot

        lines = -(-len(drawn) // columns)
        size = (4.7 * columns, 3.5 * lines)
        figure, axes = pyplot.subplots(
            lines, columns, figsize=size, layout="constrained", squeeze=False
        )
        for panel, each in zip(drawn, axes.flat, strict=False):
            _panel(each, panel, rows, quantity)
        shown = (zip(*each.get_legend_handles_labels(), strict=True) for each in axes.flat)
        handles = {label: handle for each in shown for handle, label in each}
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=4,
            fontsize=8,
            frameon=False,
        )
        figure.suptitle(titled(note, title), fontsize=10)
        _save(figure, path)

    return draw


def _panel(axes, panel: Panel, rows: Sequence[Row], quantity: str) -> None:
    found = series_of(rows)
    bases = list(dict.fromkeys(map(_base, found)))
    for name, own in found.items():
        own = [row for row in own if {panel.quantity, panel.x} <= {"x", *row.means}]
        if not own or (panel.only and name not in panel.only):
            continue
        number = bases.index(_base(name))
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        is_first = next(each for each in found if _base(each) == _base(name)) == name
        filled = {} if is_first else {"markerfacecolor": "white"}
        xs = [row.x if panel.x == "x" else row.means[panel.x] for row in own]
        means = [row.means[panel.quantity] for row in own]
        errors = [
            min(2 * row.errors[panel.quantity], 0.95 * mean)
            for row, mean in zip(own, means, strict=True)
        ]
        theory = [row.predicted for row in own]
        is_told = panel.quantity == quantity and None not in theory and panel.x == "x"
        axes.plot(xs, theory if is_told else means, color=colour, linewidth=1, alpha=0.8)
        axes.errorbar(
            xs,
            means,
            errors,
            fmt=marker,
            color=colour,
            markersize=4,
            linewidth=1,
            label=name,
            **filled,
        )
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel, xscale=panel.xscale, yscale=panel.yscale)
    if panel.x == "x":
        places = sorted({row.x for row in rows})
        axes.set_xticks(places, list(map(tick_label, places)))
        axes.set_xticks([], minor=True)
    axes.grid(alpha=0.3)


def tick_label(place: float) -> str:
    """A place on an axis in words: 0.1, 0.5, 20, 1,000, 1.0e+05."""
    if place >= 1e5:
        return f"{place:.1e}"
    return f"{place:,.0f}" if place == int(place) else f"{place:g}"


def _base(series: str) -> str:
    """The series' name without its ε. Series with one such name share a colour."""
    return series.split(", ε")[0]


def facets(panel: Panel, title: str, below: Callable[[Row], str] = lambda row: "") -> Draw:
    """A picture with one panel for each data set, side by side. Series are named "data: curve".

    panel: shows the figure's own quantity. note: a second line below the data's name, from one of
    its rows.
    """

    def draw(rows: Sequence[Row], path: Path, note: str = "") -> None:
        from matplotlib import pyplot

        found: dict[str, list[Row]] = {}
        for row in rows:
            data, _, curve = row.series.partition(": ")
            found.setdefault(data, []).append(replace(row, point=replace(row.point, series=curve)))
        size = (max(6.5, 3.6 * len(found)), 3.9)
        figure, axes = pyplot.subplots(
            1, len(found), figsize=size, layout="constrained", squeeze=False
        )
        for each, (data, own) in zip(axes[0], found.items(), strict=True):
            _panel(each, panel, own, panel.quantity)
            each.set_title("\n".join(filter(None, (data, below(own[0])))), fontsize=9)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False
        )
        figure.suptitle(titled(note, title), fontsize=10)
        _save(figure, path)

    return draw


def bars(quantity: str, label: str, title: str) -> Draw:
    """A picture with a bar for each series: theory is the bar, the measured mean is a point.

    Points have two standard errors.
    """

    def draw(rows: Sequence[Row], path: Path, note: str = "") -> None:
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(9.4, 0.9 + 0.26 * len(rows)), layout="constrained")
        places, means = [-row.x for row in rows], [row.means[quantity] for row in rows]
        errors = [2 * row.errors[quantity] for row in rows]
        axes.barh(
            places, [row.predicted for row in rows], height=0.6, color="#cfd8dc", label="predicted"
        )
        axes.errorbar(
            means, places, xerr=errors, fmt="o", color=COLOURS[0], markersize=4, label="measured"
        )
        axes.set(
            xscale="log", xlabel=label, yticks=places, yticklabels=[row.series for row in rows]
        )
        axes.legend(fontsize=8, frameon=False)
        axes.grid(alpha=0.3, axis="x")
        axes.set_title(titled(note, title), fontsize=10)
        _save(figure, path)

    return draw


def table(columns: Callable[[Sequence[Row]], Sequence[str]], cells: Cells, title: str = "") -> Draw:
    """A picture of a table of text, made from the rows."""

    def draw(rows: Sequence[Row], path: Path, note: str = "") -> None:
        from matplotlib import pyplot

        text = cells(rows)
        figure, axes = pyplot.subplots(
            figsize=(10.5, 0.4 + 0.24 * (len(text) + 1)), layout="constrained"
        )
        axes.axis("off")
        drawn = axes.table(
            text, colLabels=columns(rows), cellLoc="right", edges="horizontal", bbox=(0, 0, 1, 1)
        )
        drawn.auto_set_font_size(False)
        drawn.set_fontsize(8)
        drawn.auto_set_column_width(range(len(text[0])))
        axes.set_title(titled(note, title), fontsize=10)
        _save(figure, path)

    return draw


def titled(note: str, title: str) -> str:
    """A picture's title, below a note where there is one."""
    return "\n".join(filter(None, (note, title)))


def _save(figure, path: Path) -> None:
    from matplotlib import pyplot
    from PIL import Image

    figure.savefig(path, dpi=90, metadata={"Software": None})
    pyplot.close(figure)
    with Image.open(
        path
    ) as image:  # 160 colours suffice for lines and save two thirds of the bytes
        few = image.convert("RGB").quantize(160)
    few.save(path, optimize=True)
