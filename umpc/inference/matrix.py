"""A matrix of one statistic over all pairs of columns, from a report of several values.

*Holm.* A p-value of m, the i-th smallest, is multiplied by m − i + 1, and is at least as large as
the one before it (Holm 1979). So the probability to reject any true hypothesis is at most the
level, whatever the dependence of the tests.

*Nearest.* Noise may leave values that no correlations have: the matrix then has a negative
eigenvalue. The nearest correlation matrix, in the sum of squares, is found by projections onto
positive semidefinite matrices and onto those with ones on the diagonal, in turn, with Dykstra's
correction (Higham 2002). It is post-processing, and costs no ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations, permutations

import numpy as np

from umpc.inference.report_inference import Inference
from umpc.study.report import Report
from umpc.ustat.error_law import Floats
from umpc.ustat.statistics.dependence import SYMMETRIC

PROJECTIONS = 1000
ACCURACY = 1e-10
"""The largest change of an entry in the last projection."""
NEGLIGIBLE = 1e-6
"""A matrix that is nearer than this to a correlation matrix counts as one."""
Rows = list[list[float | None]]


@dataclass(frozen=True)
class CorrelationMatrix:
    """The statistic of every pair of columns: rows of numbers, in the order of the columns.

    statistic: its name. columns: the columns of the rows.
    values: as released; null where one is withheld. The diagonal is 1.
    low, high: the 95 % interval of each value, for what the report's interval is for.
    p_values: of each pair's own test; null where the statistic has no hypothesis.
    holm: the same, corrected for the number of pairs by Holm's method.
    nearest: the nearest correlation matrix (Higham 2002); empty where a value is withheld.
    moved: the most by which a value differs there; 0 where the values are a correlation matrix.
    """

    statistic: str
    columns: list[str]
    values: Rows
    low: Rows
    high: Rows
    p_values: Rows
    holm: Rows
    nearest: list[list[float]]
    moved: float

    @property
    def about(self) -> str:
        """Sentences on p-values and on the repair."""
        pairs = len(self.columns) * (len(self.columns) - 1) // 2
        told = f"p-values are corrected for {pairs} pairs by Holm's method; "
        if not self.nearest:
            return told + "a value is withheld, so there is no nearest correlation matrix"
        if not self.moved:
            return told + "the values are a correlation matrix as they were released"
        return told + (
            f"noise left values that no correlations have: the nearest correlation matrix (Higham "
            f"2002) differs by up to {self.moved:.2g}, and JSON has it as nearest"
        )


def matrix_of(report: Report) -> CorrelationMatrix | None:
    """The matrix, where a report has a statistic of every pair of 3 columns or more."""
    statistic = report.parts[0].statistic.partition("(")[0] if report.parts else ""
    if statistic not in SYMMETRIC or report.strata:
        return None
    names = [field["name"] for field in report.fields]
    known = {f"{statistic}({', '.join(pair)})": pair for pair in permutations(names, 2)}
    pairs = [known[part.statistic] for part in report.parts if part.statistic in known]
    columns = list(dict.fromkeys(chain.from_iterable(pairs)))
    if (
        len(pairs) < len(report.parts)
        or len(columns) < 3
        or pairs != list(combinations(columns, 2))
    ):
        return None

    def rows(values: Sequence[float | None], diagonal: float | None) -> Rows:
        found = {**dict(zip(pairs, values, strict=True))}
        found |= {(y, x): value for (x, y), value in found.items()}
        return [[diagonal if x == y else found[x, y] for y in columns] for x in columns]

    own = (Inference(report.of_part(place)).usual_test() for place in range(len(pairs)))
    tests = [test.p_value if test else None for test in own]
    values = rows([part.estimate for part in report.parts], 1.0)
    nearest: list[list[float]] = []
    moved = 0.0
    if all(part.estimate is not None for part in report.parts):
        released = np.array(values, dtype=float)
        repaired = nearest_correlations(released)
        difference = float(np.abs(repaired - released).max())
        moved = difference if difference > NEGLIGIBLE else 0.0
        nearest = repaired.tolist()
    return CorrelationMatrix(
        statistic,
        columns,
        values,
        rows([part.low for part in report.parts], 1.0),
        rows([part.high for part in report.parts], 1.0),
        rows(tests, None),
        rows(holm(tests), None),
        nearest,
        moved,
    )


def holm(values: Sequence[float | None]) -> list[float | None]:
    """P-values corrected for their number; None stays None."""
    order = sorted((value, place) for place, value in enumerate(values) if value is not None)
    found: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, (value, place) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * value))
        found[place] = largest
    return found


def nearest_correlations(matrix: Floats) -> Floats:
    """The nearest correlation matrix. Args: matrix: (d, d) float64, symmetric."""
    ones, correction = matrix.copy(), np.zeros_like(matrix)
    for _ in range(PROJECTIONS):
        moved = ones - correction
        values, vectors = np.linalg.eigh(moved)
        positive = (vectors * np.maximum(values, 0)) @ vectors.T
        correction = positive - moved
        ones = positive.copy()
        np.fill_diagonal(ones, 1.0)
        if float(np.abs(ones - positive).max()) < ACCURACY:
            break
    # the scaled projection is a correlation matrix exactly, wherever the search ended
    scale = np.sqrt(np.diagonal(positive))
    found: Floats = positive / np.outer(scale, scale)
    np.fill_diagonal(found, 1.0)
    return found
