"""Released tables of counts, with or without noise."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from umpc.counts.statistics import Asker
from umpc.counts.table import CountTable
from umpc.study.report import CountedAxis, CountsReport

NO_NOISE = 1e-6
LUNG = Path(__file__).parents[1] / "counts" / "lung.csv"


def whole(field: str, lower: float, upper: float, cuts: Sequence[float]) -> CountedAxis:
    """A field of whole numbers."""
    return CountedAxis(field, lower, upper, 1, [float(cut) for cut in cuts], [])


def flag(field: str) -> CountedAxis:
    """A field that is 0 or 1."""
    return whole(field, 0, 1, [1])


def words(field: str, *names: str) -> CountedAxis:
    """A field of categories."""
    return CountedAxis(field, 0, len(names) - 1, 1, [], list(names))


def cells_of_columns(axes: Sequence[CountedAxis], columns: Sequence[np.ndarray]) -> np.ndarray:
    """The clear table."""
    shape = [len(axis.words) or len(axis.cuts) + 1 for axis in axes]
    found = np.zeros(shape, dtype=np.int64)
    places = [
        np.asarray(column) if axis.words else np.searchsorted(axis.cuts, column, side="right")
        for axis, column in zip(axes, columns, strict=True)
    ]
    np.add.at(found, tuple(places), 1)
    return found


def levels_of(cells: np.ndarray, tree: int) -> list[np.ndarray]:
    """All levels of a dyadic tree over one axis; only the leaves for -1."""
    found = [cells]
    while tree >= 0 and found[-1].shape[tree] > 1:
        starts = np.arange(0, found[-1].shape[tree], 2)
        found.append(np.add.reduceat(found[-1], starts, axis=tree))
    return found


def released(
    axes: Sequence[CountedAxis],
    cells: np.ndarray,
    *,
    scale: float = NO_NOISE,
    rng: np.random.Generator | None = None,
    tree: int = -1,
    statistic: str = "counts",
    shape: float = 1.0,
    noise: str = "laplace",
) -> CountsReport:
    """The table that a study releases. Args: rng: None for no noise."""
    flat = np.concatenate([level.ravel() for level in levels_of(cells, tree)])
    if rng is not None:
        if noise == "gaussian":
            drawn = np.rint(rng.normal(0, np.sqrt(scale), len(flat)))
        else:
            odds = 1 - np.exp(-1 / scale)
            one, other = rng.negative_binomial(shape, odds, (2, len(flat)))
            drawn = one - other
        flat = flat + drawn.astype(np.int64)
    values = [int(value) for value in flat]
    return CountsReport(statistic, list(axes), values, tree, noise, scale, shape, 1)


def asker(axes: Sequence[CountedAxis], cells: np.ndarray, **how) -> Asker:
    """Questions to a released table."""
    return Asker(CountTable.of(released(axes, cells, **how), int(cells.sum())))


def lung() -> dict[str, np.ndarray]:
    """R's lung: time, event (0, 1) and age of 228 patients."""
    with LUNG.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        "time": np.array([int(row["time"]) for row in rows]),
        "event": np.array([int(row["status"]) - 1 for row in rows]),
        "age": np.array([int(row["age"]) for row in rows]),
    }
