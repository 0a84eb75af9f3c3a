"""Tables of two fields: counts, the chi-squared test with the noise, and Cramér's V.

*Test*. The statistic is Σ (count − expected)²/(expected + v); without noise it is that of Pearson
1900. v is the variance of a count's noise, as in Kifer & Rogers 2017, times a factor of each field.
It bounds what a margin near 0 can change: with Pearson's denominators, margins that noise made too
small would reject true hypotheses too often. With shares p of R cells, the noise of counts less
their part p of its total has the mean variance v·(1 − 2/R + Σp²). A field's factor is this over
that of even shares, v·(1 − 1/R). With it the noise's part of the statistic has one mean for all
margins. Without it, tables of many sparse rows reject true hypotheses too often. The simulated
tables have independent fields with the released margins.

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
from umpc.counts.simulated import simulated_test
from umpc.counts.table import (
    RUNS,
    CountTable,
    Floats,
    as_counts,
    names_of_cells,
    order_of,
)

LEAST_EXPECTED = 1.0
"""In Cramér's V, expected counts below it and the noise's deviation count as the smaller one."""
TINY = 1e-9


def contingency(table: CountTable, first: int, second: int, level: float) -> CountsAnswer:
    """The table of two fields, the test of independence, and Cramér's V."""
    axes, n = table.report.axes, table.records
    counts = table.onto(first, second)
    one, two = (names_of_cells(axes[axis]) for axis in (first, second))
    labels = [f"{a}, {b}" for a in one for b in two]
    series = cells(counts, n, level, f"{axes[first].field}, {axes[second].field}", labels)
    value, size = simulated_test(
        table,
        "independent",
        (first, second),
        _expected(counts.value, n),
        lambda tables, variance: _chi_squared(tables, n, variance),
    )
    numbers = [
        value,
        Number("degrees of freedom", float((len(one) - 1) * (len(two) - 1))),
        size,
        _cramer(table, counts.value, counts.errors, level),
    ]
    title = f"table of {axes[first].field} and {axes[second].field}"
    notes = ["the noise's variance is added to expected counts of chi-squared"]
    return CountsAnswer(
        "contingency", title, level, series.name, "records", [series], numbers, notes, form=BARS
    )


def _expected(counts: Floats, n: float) -> Floats:
    """Expected counts of independent fields, from the nearest margins that are not negative."""
    rows, columns = _nearest(counts.sum(axis=-1), n), _nearest(counts.sum(axis=-2), n)
    return np.asarray(rows[..., :, None] * columns[..., None, :] / n)


def _nearest(margins: Floats, n: float) -> Floats:
    """The nearest numbers that are not negative and have the sum n, in the last axis.

    They are the numbers less a threshold, where that is positive (Held, Wolfe & Crowder 1974).
    Negative numbers set to 0 would leave the noise of many empty cells, all of it upwards.
    """
    sizes = np.sort(margins, axis=-1)[..., ::-1]
    excess = (np.cumsum(sizes, axis=-1) - n) / np.arange(1, sizes.shape[-1] + 1)
    return np.asarray(np.maximum(margins - excess.max(axis=-1, keepdims=True), 0))


def _chi_squared(counts: Floats, n: float, variance: float) -> Floats:
    """The test's statistic of each table: (...) float64. Args: variance: of a count's noise."""
    expected = _expected(counts, n)
    for axis in (-1, -2):
        shares = expected.sum(axis=-3 - axis, keepdims=True) / n
        even = 1 / shares.shape[axis]
        uneven = (shares**2).sum(axis=axis, keepdims=True) - even
        variance = variance * (1 + uneven / max(1 - even, TINY))
    gaps = (counts - expected) ** 2 / np.maximum(expected + variance, TINY)
    return np.asarray(gaps.sum(axis=(-1, -2)))


def _cramer(table: CountTable, value: Floats, errors: Floats, level: float) -> Number:
    """Cramér's V with its intervals."""
    n, least = table.records, min(value.shape) - 1
    if not least:
        return Number("Cramér's V", None, note="a field has one cell only")
    floor = min(LEAST_EXPECTED, max(float(np.std(errors)), TINY))
    expected = _expected(value, n)
    scale = np.sqrt(np.maximum(expected, floor))
    # with the margins as released: a negative one would count as association otherwise
    seen = (_interaction(value[None], expected, n)[0] / scale).ravel()
    sampled = table.drawn(as_counts(value, n, 2), "association")
    sampled = sampled - sampled.mean(axis=0)
    most = sqrt(n * least)
    length = float(np.linalg.norm(seen))
    direction = seen / length if length else np.full(len(seen), len(seen) ** -0.5)
    outside = RUNS - 1 - order_of((1 + level) / 2)
    intervals: dict[str, tuple[float, float]] = {}
    bias = 0.0
    for kind, moved in ((RECORDS, errors), (POPULATION, errors + sampled)):
        rows = _interaction(moved, expected, n) / scale
        rows = rows.reshape(len(rows), -1)
        squares, along = (rows**2).sum(axis=1), rows @ direction
        if kind == RECORDS:
            bias = float(squares.mean())
        # |s·direction + error| is the released length at the true length s = root
        inside = along**2 - squares + length**2
        root = np.where(inside >= 0, np.sqrt(np.maximum(inside, 0)) - along, -np.inf)
        low = np.sort(np.where(squares > length**2, -np.inf, root))[outside]
        high = np.sort(root)[-1 - outside]
        if high < 0:  # the released length is shorter than noise makes any
            high = most
        intervals[kind] = float(max(low, 0) / most), float(min(high, most) / most)
    least_v, most_v = intervals[RECORDS]
    # the bias is a mean over the noise, which may lie beyond what the interval leaves
    without_bias = sqrt(max(length**2 - bias, 0)) / most
    return Number("Cramér's V", min(max(without_bias, least_v), most_v), {**intervals})


def _interaction(errors: Floats, expected: Floats, n: float) -> Floats:
    """How counts or their errors change count − expected, to first order: (…, rows, columns)."""
    rows, columns = (expected.sum(axis=axis) / n for axis in (1, 0))
    by_row = errors.sum(axis=2)[:, :, None] * columns
    by_column = errors.sum(axis=1)[:, None, :] * rows[:, None]
    whole = errors.sum(axis=(1, 2))[:, None, None] * rows[:, None] * columns
    return np.asarray(errors - by_row - by_column + whole)
