"""umpc.ustat.sampling: all small sizes, every edge equally likely, and the rules for |E|."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb

import numpy as np
import pytest
from scipy import stats

from umpc.crypto.prg import Stream
from umpc.errors import RangeError, StudyError, TooFewRecords
from umpc.testing import lying
from umpc.ustat import edge_blocks as levelling
from umpc.ustat import sampling
from umpc.ustat.cell_rows import every_subset
from umpc.ustat.edge_blocks import biregular_pattern, circulant, edge_keys
from umpc.ustat.sampling import (
    balanced,
    below,
    biregular,
    edge_count,
    max_degree,
)

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
    assert all(edge == tuple(sorted(set(edge))) for edge in rows), (
        f"a record twice in an edge: {where}"
    )
    occurrences = np.bincount(edges.ravel().astype(np.int64), minlength=records)
    assert len(occurrences) == records and occurrences.max(initial=0) <= max_degree(
        count, records, degree
    ), where
    assert occurrences.max() - occurrences.min() <= 1, f"degrees {occurrences}: {where}"


NUMBERINGS = [np.array(order) for order in permutations(range(6))]
SIZES = [(n, m, k) for k in range(1, 5) for n in range(k, 13) for m in range(1, comb(n, k) + 1)]


@pytest.mark.parametrize("degree", range(1, 5))
@pytest.mark.parametrize("seed", range(4))
def test_every_small_size_is_distinct_and_balanced(seed, degree):
    for records, count, _ in (size for size in SIZES if size[2] == degree):
        check(balanced(records, count, stream(seed), degree), records, count, degree, seed)


LARGER = [
    (1000, 2000, 2),
    (101, 2525, 2),
    (101, 4000, 2),
    (500, 1, 2),
    (3000, 2_000_000, 2),
    (1000, 300, 1),
]
LARGER += [(60, 500, 3), (60, 17_110, 3), (60, 34_219, 3), (10_000, 20_001, 3)]
LARGER += [(40, 30_000, 4), (1000, 3001, 4), (9, 4, 8), (20, 40_000, 8)]


@pytest.mark.parametrize(("records", "count", "degree"), LARGER)
def test_larger_sizes_are_distinct_and_balanced(records, count, degree):
    check(balanced(records, count, stream(7), degree), records, count, degree, 7)


@pytest.mark.parametrize("degree", range(1, 5))
def test_no_edges_are_an_empty_set(degree):
    assert balanced(5, 0, stream(0), degree).shape == (0, degree)


@pytest.mark.parametrize(("records", "degree"), [(6, 3), (7, 3), (7, 4)])
def test_single_sure_steps_level_even_the_most_uneven_set(records, degree):
    """The first edges in colexicographic order crowd on the first records.

    Only single steps are allowed here.
    """
    steps = []

    def single(honest, edges, keys, place, *rest):
        steps.append(len(place) == 1 and honest(edges, keys, place, *rest))
        return steps[-1]

    for count in range(1, comb(records, degree)):
        steps.clear()
        edges = every_subset(records, degree)[:count]
        with lying("everybody", carry_out=single):
            levelled = np.sort(levelling.level(edges.copy(), records, stream(count)), axis=1)
        check(levelled, records, count, degree, count)
        assert sum(steps) <= degree * count, "more steps than places"


def test_the_same_stream_gives_the_same_edges_and_another_stream_others():
    first, again, other = (balanced(50, 100, stream(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("records", "degree", "most"), [(1 << 32, 2, 31), ((1 << 21) + 1, 3, 21), (55_109, 4, 15)]
)
def test_too_many_records_for_the_keys_are_refused(records, degree, most):
    with pytest.raises(RangeError, match=f"at most 2\\^{most}"):
        balanced(records, 10, stream(0), degree)


def test_any_balanced_graph_under_a_random_numbering_gives_the_same_variance():
    """docs/papers.md, exactly: a hexagon (the graph in use), two triangles, and a star."""
    value = np.random.default_rng(5).integers(0, 100, (6, 6))
    value = value + value.T
    hexagon = circulant(6, 6).T
    triangles = np.array([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])
    star = np.array([(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 2)])

    def moments(edges: np.ndarray) -> tuple[int, int]:
        sums = [int(value[order[edges[:, 0]], order[edges[:, 1]]].sum()) for order in NUMBERINGS]
        return sum(sums), sum(total * total for total in sums)

    assert moments(hexagon) == moments(triangles)
    assert moments(hexagon)[0] == moments(star)[0] and moments(hexagon)[1] < moments(star)[1]


# --- two samples ----------------------------------------------------------------------------------


def check_biregular(edges: np.ndarray, sizes: tuple[int, int], where: str) -> None:
    assert len(set(map(tuple, edges.tolist()))) == len(edges), f"not distinct: {where}"
    for side, size in enumerate(sizes):
        degrees = np.bincount(edges[:, side], minlength=size)
        assert len(degrees) == size and degrees.max() - degrees.min() <= 1, (
            f"degrees {degrees}: {where}"
        )
        assert degrees.max() <= sampling.two_sample_max_degree(len(edges), *sizes), where
    largest = max(np.bincount(edges[:, side]).max() for side in (0, 1))
    assert largest == sampling.two_sample_max_degree(len(edges), *sizes), (
        f"the bound is not reached: {where}"
    )


@pytest.mark.parametrize("sizes", list(product(range(1, 9), repeat=2)), ids=str)
def test_every_small_two_sample_size_is_distinct_and_balanced(sizes):
    for count in range(1, sizes[0] * sizes[1] + 1):
        where = f"classes {sizes}, edges {count}"
        check_biregular(biregular_pattern(*sizes, count), sizes, where)
        check_biregular(biregular(*sizes, count, stream(count)), sizes, where)


def test_larger_two_sample_sizes_are_distinct_and_balanced():
    for sizes, count in (((1000, 1500), 5001), ((999, 1), 500), ((600, 600), 359_999)):
        check_biregular(
            biregular(*sizes, count, stream(3)), sizes, f"classes {sizes}, edges {count}"
        )


def test_any_biregular_graph_under_two_random_numberings_gives_the_same_variance():
    """docs/papers.md, exactly: a cycle of eight (in use), two of four, an irregular graph."""
    value = np.random.default_rng(6).integers(0, 100, (4, 4))
    used = biregular_pattern(4, 4, 8)
    squares = np.array([(x, y) for x in range(4) for y in range(4) if x // 2 == y // 2])
    uneven = np.array([(x, y) for x in range(2) for y in range(4)])
    numberings = [np.array(order) for order in permutations(range(4))]

    def moments(edges: np.ndarray) -> tuple[int, int]:
        sums = [
            int(value[p[edges[:, 0]], q[edges[:, 1]]].sum()) for p in numberings for q in numberings
        ]
        return sum(sums), sum(total * total for total in sums)

    assert moments(used) == moments(squares)
    assert moments(used)[0] == moments(uneven)[0] and moments(used)[1] != moments(uneven)[1]


# --- every edge is equally likely -----------------------------------------------------------------


def uniformity(draw, every: list[tuple[int, ...]], count: int) -> float:
    """The p-value of "each of these edges is in E with the same probability".

    It is computed from N sets drawn by `draw`. Edges of one balanced set depend on each other, so
    their counts are compared in the coordinates in which they do not (Hotelling's T²). The
    statistic is chi-square with as many degrees of freedom as there are such coordinates.
    """
    lookup = np.zeros((10,) * len(every[0]), dtype=np.int64)
    lookup[tuple(np.array(every).T)] = np.arange(len(every))
    seen = np.zeros((N, len(every)))
    for row in range(N):
        seen[row, lookup[tuple(draw().T)]] = 1
    deviation = seen.mean(axis=0) - count / len(every)
    covariance = np.cov(seen, rowvar=False) / N
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9
    assert np.allclose(vectors[:, ~kept].T @ deviation, 0, atol=1e-9), (
        "a sum that never varies is off"
    )
    along = vectors[:, kept].T @ deviation
    return float(stats.chi2.sf((along**2 / values[kept]).sum(), kept.sum()))


def sets(records: int, degree: int = 2) -> list[tuple[int, ...]]:
    return list(combinations(range(records), degree))


CASES = [(6, 6, 2, 11), (5, 3, 2, 12), (5, 2, 1, 16), (5, 4, 3, 17)]


@pytest.mark.parametrize(("records", "count", "degree", "seed"), CASES)
def test_every_edge_is_equally_likely(records, count, degree, seed):
    words = stream(seed)
    p = uniformity(lambda: balanced(records, count, words, degree), sets(records, degree), count)
    assert p > ALPHA, f"edges are not equally likely: p = {p:.2e} with seed {seed}, N = {N}"


def test_the_numbering_alone_makes_larger_edges_equally_likely():
    """Here the search always hands out the first edges in colexicographic order."""

    def first(honest, records, count, words, degree):
        return every_subset(records, degree)[:count]

    words = stream(18)
    with lying("everybody", random_edges=first, level=lambda honest, edges, *_: edges):
        p = uniformity(lambda: balanced(6, 7, words, 3), sets(6, 3), 7)
    assert p > ALPHA, f"edges are not equally likely: p = {p:.2e} with seed 18, N = {N}"


def test_every_pair_of_two_samples_is_equally_likely():
    words = stream(19)
    p = uniformity(lambda: biregular(3, 4, 5, words), list(product(range(3), range(4))), 5)
    assert p > ALPHA, f"pairs are not equally likely: p = {p:.2e} with seed 19, N = {N}"


def test_power_a_sampler_that_prefers_an_edge_is_rejected():
    """One set in thirty is exchanged for a fixed one: still distinct, still balanced."""
    words, favourite, turn = stream(14), balanced(6, 6, stream(15)), iter(range(N))
    p = uniformity(lambda: favourite if next(turn) % 30 == 0 else balanced(6, 6, words), sets(6), 6)
    assert p < ALPHA, f"no power: a biased sampler passes with p = {p:.2e}, N = {N}, seed 14"


def test_power_one_numbering_for_both_classes_is_rejected():
    words = stream(20)

    def draw():
        order = np.argsort(words(3))
        return order[biregular_pattern(3, 3, 3)]

    with pytest.raises(AssertionError, match="never varies"):
        uniformity(draw, list(product(range(3), range(3))), 3)


# --- |E| and δ_max --------------------------------------------------------------------------------


RULES = [
    ("all", 10, 45),
    ("2n", 10, 20),
    ("1n", 2, 1),
    ("4n", 10, 40),
    ("5n", 10, 45),
    ("999999n", 10, 45),
]
RULES += [("45", 10, 45), ("1", 2, 1), ("007", 10, 7), ("02n", 10, 20)]


@pytest.mark.parametrize(("rule", "records", "count"), RULES)
def test_the_rule_gives_this_many_edges(rule, records, count):
    assert edge_count(rule, records) == count


UNREADABLE = [
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
]
UNREADABLE += ["1e3", "٣", "²", "1_0", "9" * 19, "9" * 5000, "9" * 5000 + "n"]


@pytest.mark.parametrize("rule", UNREADABLE)
def test_an_unreadable_rule_is_refused(rule):
    with pytest.raises(StudyError, match='edges must be "all", a multiple of n'):
        edge_count(rule, 10)


def test_more_edges_than_there_are_is_refused_with_both_numbers():
    with pytest.raises(StudyError, match="edges = 46, but 10 records have only 45 sets of 2"):
        edge_count("46", 10)


@pytest.mark.parametrize(("records", "degree"), [(0, 1), (0, 2), (1, 2), (2, 3)])
def test_too_few_records_are_refused(records, degree):
    with pytest.raises(
        TooFewRecords, match=f"at least {degree} records in all, the nodes have {records}"
    ):
        edge_count("all", records, degree)


@pytest.mark.parametrize(
    ("rule", "classes", "count"),
    [
        ("all", (3, 5), 15),
        ("1n", (3, 5), 8),
        ("2n", (3, 5), 15),
        ("2n", (30, 50), 160),
        ("15", (3, 5), 15),
    ],
)
def test_a_two_sample_rule_counts_the_records_of_both_classes(rule, classes, count):
    assert sampling.two_sample_edge_count(rule, *classes) == count


def test_more_pairs_than_there_are_or_an_unreadable_rule_are_refused():
    with pytest.raises(
        StudyError, match="edges = 16, but 3 records of class 0 and 5 of class 1 have only 15 pairs"
    ):
        sampling.two_sample_edge_count("16", 3, 5)
    with pytest.raises(StudyError, match='edges must be "all", a multiple of n'):
        sampling.two_sample_edge_count("n", 3, 5)


@pytest.mark.parametrize("classes", [(0, 5), (5, 0), (0, 0)])
def test_a_class_without_records_is_refused(classes):
    with pytest.raises(
        TooFewRecords, match="the nodes have {} of class 0 and {} of class 1".format(*classes)
    ):
        sampling.two_sample_edge_count("all", *classes)


def test_the_degree_bound_is_the_papers():
    for records, count, degree in SIZES:
        bound = max_degree(count, records, degree)
        assert bound - 1 < Fraction(degree * count, records) <= bound
    assert (
        sampling.two_sample_max_degree(7, 3, 5) == 3
        and sampling.two_sample_max_degree(7, 5, 3) == 3
    )


def test_below_takes_the_upper_half_of_each_word():
    words = np.array([0, (1 << 32) - 1, 1 << 63, (1 << 64) - 1], dtype=np.uint64)
    assert below(10, words).tolist() == [0, 0, 5, 9]
    assert below(1 << 32, words).tolist() == [0, 0, 1 << 31, (1 << 32) - 1]


def test_keys_do_not_depend_on_the_order_in_an_edge_and_sort_as_edges_do():
    edges = np.array(list(combinations(range(7), 3)))
    assert np.array_equal(edge_keys(edges, 7), edge_keys(edges[:, ::-1], 7))
    assert (np.diff(edge_keys(edges, 7)) > 0).all()


@pytest.mark.parametrize("size", [0, 1, 2, 17, 1000])
@pytest.mark.parametrize("values", [1, 3, 1 << 63])
def test_a_random_order_is_that_of_a_stable_sort(size, values):
    """Equal words, of which the stream hardly ever has any, keep their order at every process."""
    words = np.random.default_rng(size).integers(0, values, size, dtype=np.uint64)
    order = sampling.random_order(size, lambda count: words[:count])
    assert order.dtype == np.int64
    assert order.tolist() == sorted(range(size), key=words.tolist().__getitem__)
