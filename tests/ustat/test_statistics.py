"""umpc.ustat.statistics: both kernels of the library against double loops and scipy, with ties and equal values."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from umpc.errors import KernelError
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.statistics import LIBRARY, find_statistic

RESOLUTION = Fraction(1, 2)
SCHEMA = Schema([FieldSchema(name, Fraction(-3), Fraction(3), RESOLUTION) for name in ("x", "y")])


@cache
def kernel(name: str) -> Kernel:
    statistic = LIBRARY[name]
    return Kernel(statistic.expression(["x", "y"][: len(statistic.arguments)]), SCHEMA)


def mean(name: str, rows: list[tuple[int, int]]) -> Fraction:
    """The statistic over all pairs, as umpc computes it in the clear."""
    pairs = np.array(list(combinations(range(len(rows)), 2))).reshape(-1, 2)
    table = np.array(rows, dtype=np.int64)
    sides = [{"x": table[pairs[:, side], 0], "y": table[pairs[:, side], 1]} for side in (0, 1)]
    return int(kernel(name).evaluate(sides).sum()) * kernel(name).unit / len(pairs)


def tau_a(rows: list[tuple[int, int]]) -> Fraction:
    total = 0
    for i in range(len(rows)):
        for j in range(i):
            (x1, y1), (x2, y2) = rows[i], rows[j]
            if (x1 - x2) * (y1 - y2) > 0:
                total += 1
            if (x1 - x2) * (y1 - y2) < 0:
                total -= 1
    return Fraction(total, len(rows) * (len(rows) - 1) // 2)


def gini(rows: list[tuple[int, int]]) -> Fraction:
    n = len(rows)
    return sum(abs(p[0] - q[0]) for p in rows for q in rows) * RESOLUTION / (n * (n - 1))


ORACLES = {"kendall_tau": tau_a, "gini_mean_difference": gini}


@pytest.mark.parametrize("name", ORACLES)
def test_all_tables_of_three_small_records(name):
    for rows in product(product((-1, 0, 1), repeat=2), repeat=3):
        assert mean(name, list(rows)) == ORACLES[name](list(rows))


@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), min_size=2, max_size=25))
def test_random_tables(name, rows):
    assert mean(name, rows) == ORACLES[name](rows)


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(
    "rows",
    [[(2, 2)] * 5, [(-6, -6), (6, 6)], [(-6, 6), (6, -6)], [(i, 3) for i in range(5)], [(0, 0), (0, 0), (6, 6)]],
    ids=["all equal", "both bounds", "opposite bounds", "one column constant", "one tie"],
)
def test_ties_bounds_and_equal_values(name, rows):
    assert mean(name, rows) == ORACLES[name](rows)


@pytest.mark.parametrize("seed", range(5))
def test_without_ties_kendall_is_scipys(seed):
    """scipy computes tau-b and tau-c, which are tau-a where nothing is tied."""
    rng = np.random.default_rng(seed)
    x, y = rng.permutation(13) - 6, rng.permutation(13) - 6
    expected = stats.kendalltau(x, y).statistic
    assert float(mean("kendall_tau", list(zip(x.tolist(), y.tolist(), strict=True)))) == pytest.approx(expected), seed


def test_the_librarys_texts():
    assert kernel("kendall_tau").text == "sign(a.x - b.x) * sign(a.y - b.y)"
    assert kernel("gini_mean_difference").text == "abs(a.x - b.x)"


@pytest.mark.parametrize("name", LIBRARY)
def test_each_statistic_is_cited_and_refuses_a_wrong_number_of_columns(name):
    statistic = find_statistic(name)
    assert statistic.name == name and statistic.title and "Sinh & Ramon 2025" in statistic.citation
    with pytest.raises(KernelError, match=rf"{name} takes {len(statistic.arguments)} field.*got 3: u, v, w"):
        statistic.expression(["u", "v", "w"])


def test_an_unknown_statistic_is_refused_with_the_librarys_names():
    with pytest.raises(KernelError, match=r"no statistic 'mean'; the library has gini_mean_difference, kendall_tau"):
        find_statistic("mean")
