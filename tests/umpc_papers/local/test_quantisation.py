"""Quantisation: bins, points, their laws, and the kernel's matrix."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from tests.support.moments import (
    GINI,
    KENDALL,
    SCHEMA,
    gini_points,
    kendall_cells,
    make_cells,
    records,
)
from umpc.errors import KernelError, OutOfBounds, StudyError
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc_papers.exact_sampling import ShakeStream
from umpc_papers.local.quantisation import MOST_CELLS, Bins, Points, Quantiser

WIDE = FieldSchema("x", Fraction(0), Fraction(MOST_CELLS), Fraction(1))
X, Y, KIND = SCHEMA["x"], SCHEMA["y"], SCHEMA["kind"]


def stream() -> ShakeStream:
    return ShakeStream(bytes(32), "cells")


def exact(cells: Quantiser, columns: dict[str, np.ndarray]) -> float:
    """The U-statistic, pair by pair."""
    first, second = map(list, zip(*combinations(range(len(columns["x"])), 2), strict=True))
    sides = [{name: column[index] for name, column in columns.items()} for index in (first, second)]
    return float(cells.kernel.evaluate(sides).mean() * cells.kernel.unit)


def test_bins_stand_for_their_middles():
    bins = Bins(X, (4, 10, 20))
    assert bins.values.tolist() == [1, 6, 14, 25] and bins.size == 4
    assert bins.law(np.array([0, 3, 4, 19, 31]))[0].tolist() == [0, 0, 1, 2, 3]
    assert Bins.equal(X, 4).cuts == (8, 16, 24) and Bins.equal(KIND, 3).values.tolist() == [0, 1, 2]


def test_points_are_right_on_average_and_exactly_so_at_points():
    points = Points(Y, (-8, -2, 1, 8))
    values = np.arange(-8, 9)
    number, above, whole = points.law(values)
    mean = points.values[number] + above / whole * (
        points.values[number + 1] - points.values[number]
    )
    assert np.allclose(mean, values) and np.all(above <= whole) and number.max() == 2
    cells = make_cells("(a.y + b.y)*(1/2)", points)
    drawn = points.values[cells.draw({"y": np.repeat(values, 4000)}, stream())].reshape(17, 4000)
    assert np.abs(drawn.mean(axis=1) - values).max() < 5 * 4 / 4000**0.5 and np.all(
        drawn[[0, -1]] == [[-8], [8]]
    )


def test_randomised_rounding_has_no_bias_for_sums_and_products_and_a_small_one_for_gini():
    """Remark 2: "In the case of sum, and possibly of the Gini coefficient, it would be more
    accurate if randomized rounding were used". Two records round independently, so a kernel that is
    linear in each keeps its mean. |x - y| is convex: only pairs between the same two points gain,
    w (u (1 - v) + v (1 - u) - |u - v|), at most w/2 for points at distance w.
    """
    columns = records(60)
    for k in (2, 3, 5):
        points, simple = Points.equal(X, k), Bins.equal(X, k)
        for text in ("(a.x + b.x)*(1/2)", "a.x * b.x"):
            cells = make_cells(text, points)
            assert cells.quantised(columns) == pytest.approx(exact(cells, columns), rel=1e-12)
            # Simple rounding is off, as bins stand for their middles.
            coarse = make_cells(text, simple)
            assert abs(coarse.quantised(columns) / exact(coarse, columns) - 1) > 1e-4
        cells, number = make_cells(GINI, points), points.law(columns["x"])[0]
        low = points.values[number]
        width = points.values[number + 1] - low
        place = (columns["x"] - low) / width
        gains = [
            width[i] * (u * (1 - v) + v * (1 - u) - abs(u - v)) if number[i] == number[j] else 0.0
            for (i, u), (j, v) in combinations(enumerate(place), 2)
        ]
        assert min(gains) >= 0 and max(gains) <= width.max() / 2
        assert cells.quantised(columns) - exact(cells, columns) == pytest.approx(np.mean(gains))
    # All records at one place between two points: the worst case of Gini, w/2.
    middle = {"x": np.full(40, 16)}
    gini = make_cells(GINI, Points(X, (0, 1, 31)))
    assert gini.quantised(middle) == pytest.approx(15) and exact(gini, middle) == 0


def test_on_uniform_records_the_bias_of_gini_falls_with_the_square_of_the_number_of_points():
    """It is 1/(6 (k - 1)²) of the range, and that of simple rounding at middles -1/(3 k²)."""
    fine = Schema([FieldSchema("x", Fraction(0), Fraction(960), Fraction(1))])
    kernel = Kernel.from_text(GINI, fine)
    columns = {"x": np.arange(961)}
    for k in (3, 5, 9):
        points = Quantiser(kernel, (Points.equal(fine["x"], k),)).quantised(columns)
        middles = Quantiser(kernel, (Bins.equal(fine["x"], k),)).quantised(columns)
        truth = 962 / 3  # of 961 whole numbers in a row
        assert (points - truth) / 960 == pytest.approx(1 / (6 * (k - 1) ** 2), rel=0.05)
        assert (middles - truth) / 960 == pytest.approx(-1 / (3 * k**2), rel=0.15)


def test_the_matrix_is_the_kernel_between_middles():
    cells = kendall_cells(2, 3)
    sign = lambda size: np.sign(np.subtract.outer(np.arange(size), np.arange(size)))  # noqa: E731
    assert np.array_equal(cells.matrix, np.kron(sign(2), sign(3)))
    assert make_cells(GINI, Bins(X, (4, 10))).matrix.tolist() == [
        [0, 5, 19],
        [5, 0, 14],
        [19, 14, 0],
    ]


def test_fine_bins_lose_nothing():
    columns = records(40)
    cells = make_cells(KENDALL, Bins.equal(X, 32), Bins.equal(Y, 17))
    assert cells.quantised(columns) == pytest.approx(exact(cells, columns))
    assert make_cells("a.kind == b.kind", Bins.equal(KIND, 3)).quantised(columns) == pytest.approx(
        np.mean([a == b for a, b in combinations(columns["kind"], 2)])
    )


def test_the_laws_of_rounding_say_what_is_drawn():
    columns = records(30)
    for cells in (
        kendall_cells(),
        gini_points(),
        make_cells(KENDALL, Points.equal(X, 3), Bins.equal(Y, 4)),
    ):
        rows, weights = cells.laws(columns)
        assert (
            np.allclose(rows.sum(axis=1), 1) and weights.sum() == 30 and rows.shape[1] == cells.size
        )
        many = {name: np.tile(column, 2000) for name, column in columns.items()}
        seen = np.bincount(cells.draw(many, stream()), minlength=cells.size) / 2000
        assert np.abs(seen - weights @ rows).max() < 5 * (30 / 4 / 2000) ** 0.5


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: Bins(X, (4, 4)), "ascend"),
        (lambda: Bins(X, (0,)), "ascend"),
        (lambda: Bins(X, (32,)), "above the upper bound"),
        (lambda: Bins.equal(X, 33), "32 values"),
        (lambda: Points(X, (0, 30)), "lower to the upper"),
        (lambda: Points.equal(X, 1), "cannot have 1"),
        (lambda: Points.equal(KIND, 3), "categories"),
        (lambda: make_cells(KENDALL, Bins.equal(X, 2)), "bins came for"),
        (lambda: make_cells(GINI, Bins.equal(X, 1)), "1 cells"),
        (lambda: make_cells(GINI, Bins.equal(WIDE, MOST_CELLS + 1)), "possible"),
        (
            lambda: kendall_cells().draw({"x": np.zeros(2, dtype=np.int64)}, stream()),
            "columns of one length",
        ),
    ],
)
def test_what_cannot_be_quantised_is_refused(make, error):
    with pytest.raises(StudyError, match=error):
        make()


def test_other_kernels_and_values_out_of_bounds_are_refused():
    with pytest.raises(KernelError, match="two records"):
        Quantiser(Kernel.from_text("a.x", SCHEMA, degree=1), (Bins.equal(X, 2),))
    with pytest.raises(KernelError, match="two records"):
        Quantiser(Kernel.from_text("a.x < b.x", SCHEMA, symmetric=False), (Bins.equal(X, 2),))
    with pytest.raises(OutOfBounds):
        gini_points().draw({"x": np.array([5, 32])}, stream())
