"""A figure: its points, how one is measured and predicted, the paper's claim, its picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

Measured = Mapping[str, Sequence[float]]
"""Quantity → one number for each run of a batch, or a single number for all runs."""


@dataclass(frozen=True)
class Point:
    """One place of a figure.

    batches: the number of measurements, each from a seed of its own.
    facts: everything else that measuring and predicting need, in JSON's types; `runs` is the number
        of runs of a batch.
    """

    series: str
    x: float
    batches: int
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A point and its measurements.

    means, errors: each quantity's mean and standard error.
    runs: the number of runs of the figure's own quantity.
    predicted: theory for that quantity; None without a theory.
    """

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
    """Whether a claim holds here. verdict: "agrees", "in part" or "disagrees".

    reason: sentences with this run's numbers.
    """

    verdict: str
    reason: str


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper.

    name: such as "003-figure-1"; its files have this name too.
    quantity: the measured number that `predict` predicts.
    claim: the paper's claim in one sentence.
    points: the points of the full run, or of a quick one.
    measure, predict: functions of a module, so that other processes can call them. A seed has 32
        bytes.
    agreement: decides from the rows whether the claim holds here.
    draw: draws the picture into a file. Its last argument stands before the picture's title.
    data: the name of the table that is measured (`given.py`); empty where records are generated.
    """

    name: str
    title: str
    quantity: str
    claim: str
    points: Callable[[bool], Sequence[Point]]
    measure: Callable[[Point, bytes], Measured]
    predict: Callable[[Point], float | None]
    agreement: Callable[[Sequence[Row]], Agreement]
    draw: Callable[[Sequence[Row], Path, str], None]
    data: str = ""


def series_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Each series' rows in ascending x. The series are in the order of their first row."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.series, []).append(row)
    return {name: sorted(own, key=lambda row: row.x) for name, own in found.items()}


def row_at(rows: Sequence[Row], series: str, x: float) -> Row:
    """The only row of a series at x."""
    (found,) = (row for row in rows if row.series == series and row.x == x)
    return found
