"""What a figure is: points, a function that measures one, its theory, the paper's claim, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

Measured = Mapping[str, Sequence[float]]
"""Quantity → one number for each run of a batch, or a single one for all of them."""


@dataclass(frozen=True)
class Point:
    """One place of a figure. batches: how often it is measured, each time from a seed of its own.

    facts: all else that measuring and predicting need, of JSON's types; `runs` says how many runs a batch has.
    """

    series: str
    x: float
    batches: int
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A point with what was measured there. means, errors: of every quantity, with its standard error; runs: of the
    figure's own quantity, and predicted: what theory says of it, None where it says nothing."""

    point: Point
    means: Mapping[str, float]
    errors: Mapping[str, float]
    runs: int
    predicted: float | None

    @property
    def series(self) -> str:
        return self.point.series

    @property
    def x(self) -> float:
        return self.point.x


class Agreement(NamedTuple):
    """verdict: "agrees", "in part" or "disagrees". reason: one sentence with numbers of this run."""

    verdict: str
    reason: str


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper.

    name: such as "003-figure-1", also that of its files. quantity: the measured number that `predict` is about.
    claim: the paper's, in one sentence. points: of the full run, or of a quick one.
    measure, predict: functions of a module, so that other processes can call them; a seed has 32 bytes.
    agreement: from the rows, whether the claim holds here. draw: the picture, into a file.
    needs: a file that has to be given (`given.py`); without it the figure is left out.
    """

    name: str
    title: str
    quantity: str
    claim: str
    points: Callable[[bool], Sequence[Point]]
    measure: Callable[[Point, bytes], Measured]
    predict: Callable[[Point], float | None]
    agreement: Callable[[Sequence[Row]], Agreement]
    draw: Callable[[Sequence[Row], Path], None]
    needs: str = ""


def series_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each series, ascending in x; series in the order of their first row."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.series, []).append(row)
    return {name: sorted(own, key=lambda row: row.x) for name, own in found.items()}


def row_at(rows: Sequence[Row], series: str, x: float) -> Row:
    """The one row at a place."""
    (found,) = (row for row in rows if row.series == series and row.x == x)
    return found
