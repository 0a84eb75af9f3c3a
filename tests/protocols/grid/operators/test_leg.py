"""umpc.protocols.grid.operators.leg, factoring and matrix: linear time, little memory, exact."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.protocols.grid.operators.sums import inner, random_words
from tests.support.cores import computed_by
from tests.support.mpc_studies import make_schema
from umpc.protocols.grid.operators import compile_grid, leg
from umpc.protocols.grid.operators.compiler import is_symmetric, symmetric_matrix
from umpc.protocols.grid.operators.leg import Leg, Piece, word
from umpc.protocols.grid.operators.matrix import PairForm, grouped
from umpc.protocols.grid.operators.splitting import terms_of
from umpc.ustat.kernel import Kernel
from umpc.ustat.statistics import find_statistic
from umpc.ustat.tracing import trace

RNG = np.random.default_rng(2)


def dense(pieces: list[Piece], inputs: int, outputs: int) -> np.ndarray:
    """Return the matrix of a leg, from its definition."""
    matrix = np.zeros((outputs, inputs), dtype=np.uint64)
    for piece in pieces:
        low, high = piece.bounds
        outer = np.ones(outputs, np.uint64) if piece.outer is None else piece.outer
        weight = np.ones(inputs, np.uint64) if piece.inner is None else piece.inner
        for row in range(outputs):
            part = slice(low[row], high[row])
            matrix[row, part] += word(piece.coefficient) * outer[row] * weight[part]
    return matrix


def random_piece(inputs: int, outputs: int, width: int) -> Piece:
    low = RNG.integers(0, inputs + 1, outputs)
    high = np.minimum(inputs, low + RNG.integers(0, width + 1, outputs))
    weights = [random_words(RNG, n) if RNG.integers(2) else None for n in (outputs, inputs)]
    return Piece(int(RNG.integers(-3, 4)), (low, high), *weights)


@pytest.mark.parametrize("width", [1, 9])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (2, 2), (7, 7), (5, 9)])
@pytest.mark.parametrize(("outer", "inner_size"), [(3, 1), (1, 4), (2, 300), (0, 2)])
def test_a_leg_is_its_matrix_along_one_axis(width, inputs, outputs, outer, inner_size):
    pieces = [random_piece(inputs, outputs, width) for _ in range(4)]
    whole = (np.zeros(outputs, np.int64), np.full(outputs, inputs))
    for chosen in (pieces, [Piece(2, whole, None, None)], pieces[:1], []):
        leg = Leg(chosen, inputs, outputs)
        source = random_words(RNG, outer * inputs * inner_size).reshape(outer, inputs, inner_size)
        target = np.empty((outer, outputs, inner_size), np.uint64)
        leg.apply(source, target)
        wanted = np.matmul(dense(chosen, inputs, outputs), source)
        assert np.array_equal(target, wanted)
        if inputs == outputs:
            leg.apply(source, source)
            assert np.array_equal(source, wanted)


def test_proportional_products_become_one():
    # (1 − 2·L − E) ⊗ (3 + 6·L) of keys 1, L, E = 0, 1, 2
    first, second = {0: 1, 1: -2, 2: -1}, {0: 3, 1: 6}
    terms = [(f * s, (p, q)) for p, f in first.items() for q, s in second.items()]
    ((left, right),) = grouped(terms, 2)
    scale = dict(left)[0] * dict(right)[0]
    assert scale == 3
    assert [dict(left)[0] * f for f in first.values()] == [dict(left)[key] for key in first]
    assert 2 * dict(right)[0] == dict(right)[1]


def test_terms_that_cancel_leave_no_product():
    assert grouped([(2, (0, 1)), (-2, (0, 1))], 2) == []


def kendall(*sizes: int) -> PairForm:
    schema = make_schema(x=("0", str(sizes[0] - 1)), y=("0", str(sizes[1] - 1)))
    kernel = Kernel(find_statistic("kendall_tau").expression(["x", "y"]), schema)
    (form,) = compile_grid([kernel], schema).forms
    assert isinstance(form, PairForm)
    return form


def test_kendalls_matrix_is_one_product_of_two_legs():
    form = kendall(5, 9)
    assert len(form.matrix.chains) == 1
    assert form.cost < 12 * 5 * 9


@pytest.mark.parametrize("sizes", [(64, 1 << 14), (1 << 10, 1 << 10), (2, 1 << 19)])
def test_a_product_takes_little_more_than_its_result(sizes):
    form = kendall(*sizes)
    vector = random_words(RNG, 1 << 20)
    tracemalloc.start()
    image = form.apply(vector)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < image.nbytes + (20 << 20)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 16, 30, 31])
@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_sums_of_rows_are_those_of_numpy(rows, kind):
    values = random_words(RNG, 40 * rows).astype(kind).reshape(rows, 40)[:, 3:8]
    sums = leg.prefix_sums(values, 0)
    assert not sums[0].any() and (sums[1:] == np.cumsum(values, axis=0, dtype=kind)).all()


@pytest.mark.parametrize("sizes", [(64, 40), (40, 64), (1, 300), (300, 1)])
def test_many_threads_make_the_same_product(limit, sizes):
    form = kendall(*sizes)
    vector = random_words(RNG, sizes[0] * sizes[1])
    alone = form.apply(vector)
    with ThreadPoolExecutor(2) as threads, computed_by(threads, 3):
        limit(leg, CHUNK=100)
        assert (form.apply(vector) == alone).all()


def test_a_diagonal_of_zeros_is_zeros():
    assert not kendall(5, 9).diagonal().any()


def test_a_matrix_that_is_not_symmetric_is_made_so():
    schema = make_schema(x=("0", "3"))
    kernel = Kernel(trace(lambda a, b: 2 * (a.x < b.x)), schema, symmetric=False)
    layout = compile_grid([Kernel(trace(lambda a, b: a.x == b.x), schema)], schema).layout
    twice = kernel.polynomial
    matrix = symmetric_matrix(layout, terms_of(twice, 2))
    assert is_symmetric(matrix)
    v = random_words(RNG, 4)
    order = np.arange(4)
    less = (order[:, None] < order[None, :]).astype(np.uint64)
    assert np.array_equal(matrix.apply(v), (less + less.T) @ v)
    assert inner(v, matrix.apply(v)) == 2 * inner(v, less @ v) % (1 << 64)
