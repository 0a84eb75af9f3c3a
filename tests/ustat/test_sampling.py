"""umpc.ustat.sampling: all small sizes exhaustively, every edge equally likely, the rules for |E|."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations
from math import comb

import numpy as np
import pytest
from scipy import stats

from umpc.errors import RangeError, StudyError, TooFewRecords
from umpc.mpc.prg import Stream
from umpc.ustat.sampling import _circulant, balanced, below, edge_count, edge_keys, max_degree

ALPHA = 1e-6
"""Chance that a test of a right sampler fails, had its seed been chosen at random."""
N = 20_000
"""Draws of a whole edge set per test."""


def stream(seed: int):
    return Stream(seed.to_bytes(32, "little")).words


def check(edges: np.ndarray, records: int, count: int, degree: int, seed: int) -> None:
    where = f"records {records}, edges {count}, degree {degree}, seed {seed}"
    assert edges.shape == (count, degree), where
    rows = [tuple(edge) for edge in edges.tolist()]
    assert len(set(rows)) == len(rows), f"not distinct: {where}"
    assert all(edge == tuple(sorted(set(edge))) for edge in rows), f"a record twice in an edge: {where}"
    occurrences = np.bincount(edges.ravel().astype(np.int64), minlength=records)
    assert len(occurrences) == records and occurrences.max(initial=0) <= max_degree(count, records, degree), where
    assert occurrences.max() - occurrences.min() <= 1, f"degrees {occurrences}: {where}"


NUMBERINGS = [np.array(order) for order in permutations(range(6))]
SIZES = [(n, m, 2) for n in range(2, 13) for m in range(1, comb(n, 2) + 1)]
SIZES += [(n, m, 3) for n in range(3, 7) for m in range(1, comb(n, 3) + 1)]


@pytest.mark.parametrize("seed", range(4))
def test_every_small_size_is_distinct_and_balanced(seed):
    for records, count, degree in SIZES:
        check(balanced(records, count, stream(seed), degree), records, count, degree, seed)


@pytest.mark.parametrize(
    ("records", "count", "degree"),
    [(1000, 2000, 2), (101, 2525, 2), (101, 4000, 2), (60, 500, 3), (500, 1, 2), (3000, 2_000_000, 2)],
)
def test_larger_sizes_are_distinct_and_balanced(records, count, degree):
    check(balanced(records, count, stream(7), degree), records, count, degree, 7)


def test_no_edges_are_an_empty_set():
    assert balanced(5, 0, stream(0)).shape == (0, 2)


def test_the_same_stream_gives_the_same_edges_and_another_stream_others():
    first, again, other = (balanced(50, 100, stream(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_too_many_records_for_the_keys_are_refused():
    with pytest.raises(RangeError, match="at most 2\\^31"):
        balanced(1 << 32, 10, stream(0))


def test_any_balanced_graph_under_a_random_numbering_gives_the_same_variance():
    """docs/decisions/0006, exactly: a hexagon (what is used), two triangles, a path with a chord's worth of edges."""
    value = np.random.default_rng(5).integers(0, 100, (6, 6))
    value = value + value.T
    hexagon = _circulant(6, 6)
    triangles = np.array([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])
    star = np.array([(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 2)])

    def moments(edges: np.ndarray) -> tuple[int, int]:
        sums = [int(value[order[edges[:, 0]], order[edges[:, 1]]].sum()) for order in NUMBERINGS]
        return sum(sums), sum(total * total for total in sums)

    assert moments(hexagon) == moments(triangles)
    assert moments(hexagon)[0] == moments(star)[0] and moments(hexagon)[1] < moments(star)[1]


# --- every edge is equally likely -----------------------------------------------------------------------------


def uniformity(draw, records: int, count: int) -> float:
    """p-value of 'each edge is in E with probability |E|/C(n,k)', from N sets drawn by `draw`.

    Edges of one balanced set depend on each other, so their counts are compared in the coordinates in which they do
    not (Hotelling's T²): chi-square with as many degrees of freedom as there are such coordinates.
    """
    keys = {edge: i for i, edge in enumerate(combinations(range(records), 2))}
    lookup = np.zeros(records**2, dtype=np.int64)
    lookup[edge_keys(np.array(list(keys)), records)] = np.arange(len(keys))
    seen = np.zeros((N, len(keys)))
    for row in range(N):
        seen[row, lookup[edge_keys(draw(), records)]] = 1
    deviation = seen.mean(axis=0) - count / len(keys)
    covariance = np.cov(seen, rowvar=False) / N
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9
    assert np.allclose(vectors[:, ~kept].T @ deviation, 0, atol=1e-9), "a sum that never varies is off"
    along = vectors[:, kept].T @ deviation
    return float(stats.chi2.sf((along**2 / values[kept]).sum(), kept.sum()))


@pytest.mark.parametrize(("records", "count", "seed"), [(6, 6, 11), (5, 3, 12)])
def test_every_edge_is_equally_likely(records, count, seed):
    words = stream(seed)
    p = uniformity(lambda: balanced(records, count, words), records, count)
    assert p > ALPHA, f"edges are not equally likely: p = {p:.2e} with seed {seed}, N = {N}"


def test_power_a_sampler_that_prefers_an_edge_is_rejected():
    """One set in thirty is exchanged for a fixed one: still distinct, still balanced."""
    words, favourite, turn = stream(14), balanced(6, 6, stream(15)), iter(range(N))
    p = uniformity(lambda: favourite if next(turn) % 30 == 0 else balanced(6, 6, words), 6, 6)
    assert p < ALPHA, f"no power: a biased sampler passes with p = {p:.2e}, N = {N}, seed 14"


# --- |E| and δ_max --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "records", "count"),
    [
        ("all", 10, 45),
        ("2n", 10, 20),
        ("1n", 2, 1),
        ("4n", 10, 40),
        ("5n", 10, 45),
        ("999999n", 10, 45),
        ("45", 10, 45),
        ("1", 2, 1),
        ("007", 10, 7),
        ("02n", 10, 20),
    ],
)
def test_the_rule_gives_this_many_edges(rule, records, count):
    assert edge_count(rule, records) == count


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "n",
        "0",
        "0n",
        "-1",
        "+1",
        "1.5",
        "2 n",
        " 2n",
        "2n ",
        "2n\n",
        "2N",
        "n2",
        "2nn",
        "ALL",
        "alln",
        "1e3",
        "٣",
        "²",
        "1_0",
        "9" * 19,
        "9" * 5000,
        "9" * 5000 + "n",
    ],
)
def test_an_unreadable_rule_is_refused(rule):
    with pytest.raises(StudyError, match='edges must be "all", a multiple of n'):
        edge_count(rule, 10)


def test_more_edges_than_there_are_is_refused_with_both_numbers():
    with pytest.raises(StudyError, match="edges = 46, but 10 records have only 45 sets of 2"):
        edge_count("46", 10)


@pytest.mark.parametrize(("records", "degree"), [(0, 2), (1, 2), (2, 3)])
def test_too_few_records_are_refused(records, degree):
    with pytest.raises(TooFewRecords, match=f"at least {degree} records in all, the nodes have {records}"):
        edge_count("all", records, degree)


def test_the_degree_bound_is_the_papers():
    for records, count, degree in SIZES:
        bound = max_degree(count, records, degree)
        assert bound - 1 < Fraction(degree * count, records) <= bound


def test_below_takes_the_upper_half_of_each_word():
    words = np.array([0, (1 << 32) - 1, 1 << 63, (1 << 64) - 1], dtype=np.uint64)
    assert below(10, words).tolist() == [0, 0, 5, 9]
    assert below(1 << 32, words).tolist() == [0, 0, 1 << 31, (1 << 32) - 1]


def test_keys_do_not_depend_on_the_order_in_an_edge_and_sort_as_edges_do():
    edges = np.array(list(combinations(range(7), 3)))
    assert np.array_equal(edge_keys(edges, 7), edge_keys(edges[:, ::-1], 7))
    assert (np.diff(edge_keys(edges, 7)) > 0).all()
