"""Tables of two fields: counts, the chi-squared test with the noise, and Cramér's V.

*Test* (Gaboardi, Lim, Rogers & Vadhan 2016, algorithm 3). The statistic is that of Pearson 1900 on
the released table. Its p-value is the share of simulated tables with a statistic as large: they
have independent fields with the released margins, n records and the noise of the table.

*Cramér's V* (Cramér 1946) is √(χ²/(n·(k − 1))), and √χ² is the length of the vector of all
(count − expected)/√expected. The noise adds a vector of known law, whose mean square is taken off
the estimate. A true length is in the interval unless the released length is outside of what noise
makes of it, in the direction that was released.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from umpc.counts.answers import BARS, POPULATION, RECORDS, CountsAnswer, Number
from umpc.counts.curves import cells
from umpc.counts.table import (
    RUNS,
    CountTable,
    Floats,
    as_counts,
    names_of_cells,
    order_of,
)

LEAST_EXPECTED = 1.0
"""Expected counts below it, and below the noise's deviation, are taken for the smaller of both."""
TINY = 1e-9
LENGTHS = 401
"""Lengths that are tested for Cramér's V."""


def contingency(table: CountTable, first: int, second: int, level: float) -> CountsAnswer:
    """The table of two fields, the test of independence, and Cramér's V."""
    axes, n = table.report.axes, table.records
    counts = table.onto(first, second)
    one, two = (names_of_cells(axes[axis]) for axis in (first, second))
    labels = [f"{a}, {b}" for a in one for b in two]
    series = cells(counts, n, level, f"{axes[first].field}, {axes[second].field}", labels)
    least = min(LEAST_EXPECTED, max(float(np.std(counts.errors)), TINY))
    value = float(_chi_squared(counts.value[None], n, least)[0])
    expected = _expected(counts.value[None], n, least)[0]
    rest = tuple(axis for axis in range(len(axes)) if axis not in (first, second))
    errors = table.fresh_errors("independent")
    errors = errors.sum(axis=tuple(axis + 1 for axis in rest))
    if first > second:
        errors = errors.swapaxes(1, 2)
    simulated = table.drawn(expected, "independent") + errors
    exceeding = int(np.sum(_chi_squared(simulated, n, least) >= value * (1 - 1e-12)))
    size = (1 + exceeding) / (RUNS + 1)
    numbers = [
        Number("chi-squared", value),
        Number("degrees of freedom", float((len(one) - 1) * (len(two) - 1))),
        Number("p-value", size, note=f"with the noise, by {RUNS} simulated tables"),
        _cramer(table, counts.value, counts.errors, expected, level),
    ]
    title = f"table of {axes[first].field} and {axes[second].field}"
    notes = []
    if np.any(expected <= least) and least > TINY:
        notes = [f"expected counts below {least:.2g} count as {least:.2g}"]
    return CountsAnswer(
        "contingency", title, level, series.name, "records", [series], numbers, notes, form=BARS
    )


def _expected(counts: Floats, n: float, least: float) -> Floats:
    """Expected counts of independent fields, from margins that are not negative."""
    rows = as_counts(counts.sum(axis=-1), n, 1)
    columns = as_counts(counts.sum(axis=-2), n, 1)
    found = rows[..., :, None] * columns[..., None, :] / n
    return np.asarray(np.maximum(found, least))


def _chi_squared(counts: Floats, n: float, least: float) -> Floats:
    """Pearson's statistic of each table: (runs,) float64."""
    expected = _expected(counts, n, least)
    return np.asarray(((counts - expected) ** 2 / expected).sum(axis=(-1, -2)))


def _cramer(
    table: CountTable, value: Floats, errors: Floats, expected: Floats, level: float
) -> Number:
    """Cramér's V with its intervals."""
    n, least = table.records, min(value.shape) - 1
    if not least:
        return Number("Cramér's V", None, note="a field has one cell only")
    scale = np.sqrt(expected)
    seen = ((value - expected) / scale).ravel()
    sampled = table.drawn(as_counts(value, n, 2), "association")
    sampled = sampled - sampled.mean(axis=0)
    most = sqrt(n * least)
    length = float(np.linalg.norm(seen))
    direction = seen / length if length else np.full(len(seen), len(seen) ** -0.5)
    lengths = np.union1d(np.linspace(0, most, LENGTHS), min(length, most))
    intervals: dict[str, tuple[float | None, float | None]] = {}
    bias = 0.0
    for kind, moved in ((RECORDS, errors), (POPULATION, errors + sampled)):
        rows = _interaction(moved, expected, n) / scale
        rows = rows.reshape(len(rows), -1)
        squares, along = (rows**2).sum(axis=1), rows @ direction
        if kind == RECORDS:
            bias = float(squares.mean())
        # |s·direction + error|² at each length s
        found = lengths[None] ** 2 + 2 * lengths[None] * along[:, None] + squares[:, None]
        outside = RUNS - 1 - order_of((1 + level) / 2)
        found = np.partition(found, (outside, RUNS - 1 - outside), axis=0)
        is_in = (found[outside] <= length**2 + 1e-9) & (length**2 <= found[-1 - outside] + 1e-9)
        held = lengths[is_in]
        ends = (held[0], held[-1]) if len(held) else (0.0, most)
        step = most / LENGTHS if len(held) > 1 else 0.0
        intervals[kind] = (
            float(max(ends[0] - step, 0) / most),
            float(min(ends[1] + step, most) / most),
        )
    return Number("Cramér's V", sqrt(max(length**2 - bias, 0)) / most, intervals)


def _interaction(errors: Floats, expected: Floats, n: float) -> Floats:
    """How errors of the counts change count − expected, to first order."""
    rows, columns = (expected.sum(axis=axis) / n for axis in (1, 0))
    by_row = errors.sum(axis=2)[:, :, None] * columns
    by_column = errors.sum(axis=1)[:, None, :] * rows[:, None]
    whole = errors.sum(axis=(1, 2))[:, None, None] * rows[:, None] * columns
    return np.asarray(errors - by_row - by_column + whole)
