"""The bound of the local sensitivity: true for every neighbour of every small table, and tight."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import isqrt

import numpy as np
import pytest

from umpc.errors import RangeError
from umpc_papers.hajek_grid import binding as module
from umpc_papers.hajek_grid.binding import MatrixForm, Projections
from umpc_papers.testing import lying

RECORDS = 4


def kernels() -> list[np.ndarray]:
    """Return symmetric matrices of three cells: equality, order-like ones, and random ones."""
    draw = np.random.default_rng(49)
    made = [np.eye(3, dtype=np.int64), 3 * np.eye(3, dtype=np.int64) - 1]
    made += [np.array([[0, -1, 1], [-1, 0, -1], [1, -1, 0]]), np.ones((3, 3), dtype=np.int64)]
    for _ in range(12):
        half = draw.integers(-3, 4, (3, 3))
        made.append(half + half.T)
    return made


def pairs_of(matrix: np.ndarray, cells: tuple[int, ...]) -> int:
    """Return the sum of the matrix over all pairs of records in these cells."""
    whole = matrix[np.ix_(cells, cells)]
    return int(whole.sum() - whole.trace()) // 2


def changes(matrix: np.ndarray) -> list[tuple[int, int]]:
    """Return for each table of RECORDS records: its largest change of S, and its bound."""
    found = []
    of = Projections(matrix)
    for cells in combinations_with_replacement(range(3), RECORDS):
        total = pairs_of(matrix, cells)
        largest = max(
            abs(total - pairs_of(matrix, (*cells[:place], other, *cells[place + 1 :])))
            for place in range(RECORDS)
            for other in range(3)
        )
        found.append((largest, of.bound(pairs_of(of.gram, cells), RECORDS)))
    return found


def test_no_neighbour_of_any_table_is_further_than_the_bound():
    assert all(largest <= bound for each in kernels() for largest, bound in changes(each))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("own_width", lambda _, of: 0),
        ("bound", lambda _, of, pairs, records: isqrt(2 * max(0, 2 * pairs) // 3) + of.own_width),
        ("bound", lambda _, of, pairs, n: isqrt(max(0, 2 * pairs + n * of.top) // 3) // 2),
    ],
    ids=["without W", "without the squares of single records", "a quarter of the squares"],
)
def test_a_bound_that_leaves_something_out_is_exceeded(name, wrong):
    with lying("everybody", **{name: wrong}):
        assert any(largest > bound for each in kernels() for largest, bound in changes(each))


def test_the_squares_are_a_sum_over_pairs_and_one_record_moves_it_by_no_more_than_said():
    """Q = D ‖g - ḡ‖² = divisor · (2P + Σ B(i, i))."""
    for matrix in kernels():
        of = Projections(matrix)
        sums = {}
        for cells in combinations_with_replacement(range(3), RECORDS):
            at_cells = matrix @ np.bincount(cells, minlength=3)
            squares = 3 * int((at_cells**2).sum()) - int(at_cells.sum()) ** 2
            sums[cells] = pairs_of(of.gram, cells)
            own = int(of.gram.diagonal()[list(cells)].sum())
            assert squares == of.divisor * (2 * sums[cells] + own)
            assert own <= RECORDS * of.top
        largest = max(
            abs(sums[cells] - sums[tuple(sorted((*cells[:place], other, *cells[place + 1 :])))])
            for cells in sums
            for place in range(RECORDS)
            for other in range(3)
        )
        assert largest <= of.sensitivity_of_squares(RECORDS)


def test_a_degenerate_kernel_has_a_bound_of_the_order_of_the_root():
    """Uniform records in 4 cells: about √n, where the sensitivity for all tables is n - 1."""
    of = Projections(np.eye(4, dtype=np.int64))
    counts = np.full(4, 2_500)
    pairs = int(counts @ of.gram @ counts - of.gram.diagonal() @ counts) // 2
    assert of.bound(pairs, 10_000) == 1, "all projections are alike"
    assert of.bound(0, 10_000) == isqrt(2 * 10_000 * 3 // 4) + 1 < 9_999 / 50


def test_a_form_is_the_matrix_in_both_rings_and_too_large_squares_are_refused():
    matrix = kernels()[-1]
    form = MatrixForm(matrix)
    for kind in (np.uint32, np.uint64):
        vector = np.array([5, 2**31, 7], dtype=kind)
        expected = (matrix.astype(object) @ vector.astype(object)) % (1 << 8 * kind().itemsize)
        assert form.apply(vector).tolist() == expected.tolist()
        assert form.apply(vector).dtype == kind
    assert form.diagonal().view(np.int64).tolist() == matrix.diagonal().tolist()
    with pytest.raises(RangeError, match="do not fit 62 bits; take coarser fields"):
        _ = Projections(matrix << 32).gram


def test_squares_by_integers_are_those_by_floats(monkeypatch, limit):
    matrix = kernels()[-1]
    limit(module, EXACT_FLOATS=0)
    slow = Projections(matrix).gram
    monkeypatch.undo()
    assert (slow == Projections(matrix).gram).all()
