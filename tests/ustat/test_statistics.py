"""umpc.ustat.statistics: every kernel of the library against a direct formula and other libraries, with ties."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import rand_score

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


def covariance(rows: list[tuple[int, int]], x: int = 0, y: int = 1) -> Fraction:
    n = len(rows)
    centre = [Fraction(sum(row[i] for row in rows), n) for i in (0, 1)]
    return sum((row[x] - centre[x]) * (row[y] - centre[y]) for row in rows) * RESOLUTION**2 / (n - 1)


def variance(rows: list[tuple[int, int]]) -> Fraction:
    return covariance(rows, 0, 0)


def duplicates(rows: list[tuple[int, int]]) -> Fraction:
    counts = Counter(row[0] for row in rows)
    return Fraction(sum(c * (c - 1) for c in counts.values()), len(rows) * (len(rows) - 1))


def rand_index(rows: list[tuple[int, int]]) -> Fraction:
    pairs = list(combinations(rows, 2))
    return Fraction(sum((p[0] == q[0]) == (p[1] == q[1]) for p, q in pairs), len(pairs))


def signed_rank(rows: list[tuple[int, int]]) -> Fraction:
    sums = [p[0] + q[0] for p, q in combinations(rows, 2)]
    return Fraction(2 * sum(s > 0 for s in sums) + sum(s == 0 for s in sums), 2 * len(sums))


ORACLES = {
    "kendall_tau": tau_a,
    "gini_mean_difference": gini,
    "variance": variance,
    "covariance": covariance,
    "duplicate_pair_ratio": duplicates,
    "rand_index": rand_index,
    "wilcoxon_signed_rank": signed_rank,
}


def test_every_statistic_of_the_library_has_an_oracle():
    assert ORACLES.keys() == LIBRARY.keys()


def test_libraries_of_others_agree():
    table = np.random.default_rng(7).integers(-6, 7, (40, 2))
    rows = [tuple(row) for row in table.tolist()]
    scaled = table * float(RESOLUTION)
    assert float(mean("variance", rows)) == pytest.approx(np.var(scaled[:, 0], ddof=1))
    assert float(mean("covariance", rows)) == pytest.approx(np.cov(scaled.T)[0, 1])
    assert float(mean("rand_index", rows)) == pytest.approx(rand_score(table[:, 0], table[:, 1]))


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("variance", 0, 18), ("covariance", -18, 18), ("rand_index", 0, 1), ("wilcoxon_signed_rank", 0, 1)],
)
def test_ranges_are_tight(name, low, high):
    assert (kernel(name).interval.low, kernel(name).interval.high) == (low, high)


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
    assert statistic.name == name and statistic.title and re.search(r"[0-9]{4}", statistic.citation)
    with pytest.raises(KernelError, match=rf"{name} takes {len(statistic.arguments)} field.*got 3: u, v, w"):
        statistic.expression(["u", "v", "w"])


def test_an_unknown_statistic_is_refused_with_the_librarys_names():
    with pytest.raises(
        KernelError, match=r"no statistic 'mean'; the library has covariance, duplicate_pair_ratio, gini"
    ):
        find_statistic("mean")
