"""Pictures of paper 001: one panel for each data set, and in it one curve for each ε or protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.figures import drawing
from bench.figures.drawing import Draw, Panel
from bench.figures.figure import Row

QUANTITY = "absolute_error"


def of_data(title: str, xlabel: str, xscale: str = "linear") -> Draw:
    """Series are called "data: curve". Means with two standard errors, and theory as lines."""

    def draw(rows: Sequence[Row], path: Path) -> None:
        from matplotlib import pyplot

        names = list(dict.fromkeys(_data_of(row) for row in rows))
        size = (max(6.5, 3.6 * len(names)), 3.9)
        figure, axes = pyplot.subplots(1, len(names), figsize=size, layout="constrained", squeeze=False)
        for each, name in zip(axes[0], names, strict=True):
            panel = Panel(QUANTITY, xlabel, "mean absolute error", xscale=xscale)
            own = [row for row in rows if _data_of(row) == name]
            drawing._panel(each, panel, [_curve(row) for row in own], QUANTITY)
            each.set_title(name + _sizes(own[0]), fontsize=9)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
        figure.suptitle(title, fontsize=10)
        drawing._save(figure, path)

    return draw


def _data_of(row: Row) -> str:
    return row.series.partition(": ")[0]


def _sizes(row: Row) -> str:
    minus, plus = (row.means.get(quantity) for quantity in ("negatives", "positives"))
    return f"\n{minus:,.0f} negatives, {plus:,.0f} positives" if minus else ""


def _curve(row: Row) -> Row:
    return replace(row, point=replace(row.point, series=row.series.partition(": ")[2]))
