"""umpc.ustat.sampling: laws of sizes and degrees, and edges that are all equally likely."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import stats

from tests.support.studies import generator
from tests.ustat.test_design import by_eigenvalues, overlaps
from umpc.crypto.prg import Stream
from umpc.errors import RangeError
from umpc.ustat.design import largest_factor
from umpc.ustat.sampling import (
    bernoulli_count,
    greatest_degree,
    largest_random_factor,
    uniform,
)

ALPHA = 1e-6
"""Chance that a test of a right sampler fails, had its seed been chosen at random."""


def stream(seed: int):
    return Stream(seed.to_bytes(32, "little")).words


@pytest.mark.parametrize("records, degree", [(6, 2), (40, 2), (9, 3), (834, 3), (4521, 2)])
def test_the_bound_of_degrees_is_the_least_that_half_of_all_edge_sets_keep(records, degree):
    sets, own = comb(records, degree), comb(records - 1, degree - 1)
    for count in {1, 2, records // 2, 2 * records, sets // 3, sets - 1} & set(range(1, 200_000)):
        bound = greatest_degree(count, records, degree)
        law = stats.hypergeom(sets, own, count)
        assert records * law.sf(bound) <= 0.5 + 1e-9, (count, bound)
        assert bound == 0 or records * law.sf(bound - 1) > 0.5 - 1e-9, (count, bound)


def test_the_size_of_a_bernoulli_set_is_binomial():
    rng = generator("sizes")
    found = np.array([bernoulli_count(12, 45, rng.bytes(32)) for _ in range(2500)])
    law = stats.binom(45, 12 / 45)
    edges = [0, *range(7, 18), 46]
    seen = np.histogram(found, edges)[0]
    due = np.diff(law.cdf(np.array(edges) - 1)) * len(found)
    assert stats.chisquare(seen, due).pvalue > ALPHA
    wrong = np.diff(stats.binom(45, 13 / 45).cdf(np.array(edges) - 1)) * len(found)
    assert stats.chisquare(seen, wrong).pvalue < ALPHA, "the test has no power"
    assert bernoulli_count(1, 10**15, bytes(32)) >= 1


def test_all_edge_sets_within_the_bound_are_equally_likely():
    records, count, most, draws = 5, 3, 2, 3000
    words = stream(3)
    every = list(combinations(range(records), 2))
    within = {
        chosen
        for chosen in combinations(every, count)
        if max(Counter(record for edge in chosen for record in edge).values()) <= most
    }
    seen = Counter(
        tuple(sorted(map(tuple, uniform(records, count, most, words).tolist())))
        for _ in range(draws)
    )
    assert set(seen) == within
    assert stats.chisquare([seen[chosen] for chosen in sorted(within)]).pvalue > ALPHA


@pytest.mark.parametrize("records, degree, count", [(9, 2, 6), (9, 2, 20), (8, 3, 10), (8, 3, 40)])
def test_the_factor_covers_what_is_drawn_within_the_bound(records, degree, count):
    every = np.array(list(combinations(range(records), degree)))
    words, most = stream(count), greatest_degree(count, records, degree)
    drawn = [uniform(records, count, most, words, degree) for _ in range(60)]
    own = np.stack([overlaps(edges, edges) for edges in drawn])
    found = by_eigenvalues(drawn[0], overlaps(every, every), own)
    balanced = largest_factor(count, records, degree)
    bound = float(largest_random_factor(count, records, degree, balanced))
    assert found <= bound * 1.05 and bound <= 1.35 * found


def test_all_sets_and_impossible_bounds():
    assert largest_random_factor(45, 10, 2, largest_factor(45, 10, 2)) == 0
    with pytest.raises(RangeError, match='take sampling = "balanced"'):
        uniform(6, 10, 2, stream(1))
    with pytest.raises(RangeError, match="too many for edges of 4"):
        uniform(1 << 16, 10, 2, stream(1), 4)
