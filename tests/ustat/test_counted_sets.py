"""umpc.ustat.released_means: the law of a count against exact hypergeometric laws."""

from __future__ import annotations

from math import comb, factorial, prod, sqrt

import numpy as np
import pytest
from scipy import stats

from umpc.ustat.design import largest_factor
from umpc.ustat.error_law import ErrorLaw, Noise
from umpc.ustat.intervals import covering_interval, is_covered
from umpc.ustat.released_means import EXCESS, CountedSets, ReleasedStatistic, ReleasedSum

LEAST = 0.95
PARITY = 0.01
"""The number of unequal pairs is even or odd for all matchings, so its law has half the points."""
SHARE = np.array([[0.0], [1.0]])
TIMES = np.linspace(0, 300, 400)


def statistic(hits: int, edges: int, sets: int) -> ReleasedStatistic:
    """A share of `sets` sets, of which `edges` were taken at random, nearly without noise."""
    sampling = sqrt((sets - edges) / (sets - 1) / edges) / 2
    released = ReleasedSum(hits / edges, Noise(1e-9), 0.0, 1.0, sampling)
    return ReleasedStatistic([released], SHARE, edges=edges)


def coverage(special: int, edges: int, sets: int) -> float:
    """How often the interval holds the share of special sets, exactly."""
    law = stats.hypergeom(sets, special, edges)
    counts = [hits for hits in range(edges + 1) if law.pmf(hits) > 1e-6]
    value = special / sets
    held = [hits for hits in counts if is_covered("mean", statistic(hits, edges, sets), 1, value)]
    return float(law.pmf(held).sum() / law.pmf(counts).sum())


@pytest.mark.parametrize("special", [1, 2, 3, 4, 5, 12, 60, 95, 189])
@pytest.mark.parametrize("part", [0.05, 0.14, 0.21, 0.235, 0.5, 0.8, 0.9, 0.95])
def test_a_share_is_held_in_95_percent_of_all_samples(special, part):
    """Independent draws hold one special set of 190 in 79 % at E = 40, and in 80 % at E = 152."""
    assert coverage(special, int(190 * part), 190) >= LEAST


@pytest.mark.parametrize("edges", [10, 40, 152])
def test_one_special_set_is_held_by_the_ends_too(edges):
    for hits in (0, 1):
        low, high = covering_interval("mean", statistic(hits, edges, 190), 1)
        assert low <= 1 / 190 <= high


def test_one_special_set_is_taken_or_not():
    sets, edges = 190, 40
    law = CountedSets(-1 / sets, 1 - 1 / sets, edges, (sets - edges) / (sets - 1))
    (part,) = law.parts
    assert part.count == 1 and part.high - part.low == pytest.approx(1 / edges)
    assert -part.low / (part.high - part.low) == pytest.approx(edges / sets), "it is taken"


@pytest.mark.parametrize("share", [0.004, 0.1, 0.47, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("edges, factor", [(1, 1.0), (30, 0.9), (600, 0.2), (50_000, 0.5)])
def test_the_variance_is_the_bound_or_a_little_more(share, edges, factor):
    law = CountedSets(-share * 2, (1 - share) * 2, edges, factor)
    bound = factor * 4 * share * (1 - share) / edges
    rarer = min(share, 1 - share)
    assert bound * (1 - 1e-9) <= law.std**2 <= (1 + 2 * EXCESS) * bound + (2 / edges) ** 2
    if rarer * edges > 1000:
        assert len(law.parts) == 1 and law.std**2 <= (1 + EXCESS) * bound


def test_a_small_part_of_all_sets_has_the_law_of_independent_draws():
    law = ErrorLaw([Noise(1e-9)], [1.0], CountedSets(-0.3, 0.7, 200, 1.0))
    exact = stats.binom.ppf([0.025, 0.975], 200, 0.3) / 200 - 0.3
    low, high = law.central(0.025)
    assert low <= exact[0] and exact[1] <= high
    assert high - low <= exact[1] - exact[0] + 0.08 * law.std


@pytest.mark.parametrize("share", [0.004, 0.3, 0.8])
@pytest.mark.parametrize("edges, factor", [(7, 0.4), (40, 0.8)])
def test_the_characteristic_function_is_that_of_both_parts(share, edges, factor):
    law = CountedSets(-share, 1 - share, edges, factor)
    rarer = min(share, 1 - share)
    chance = 1 - factor * (1 - rarer)
    whole, rest = divmod(edges * rarer / chance, 1)
    sign = 1 if share <= 0.5 else -1
    turn = np.exp(sign * 1j * TIMES / edges)
    exact = (1 - chance + chance * turn) ** whole * (1 - rest * chance + rest * chance * turn)
    exact = exact * np.exp(-sign * 1j * TIMES * rarer)
    own = law.modulus(TIMES) * np.exp(1j * law.angle(TIMES))
    assert np.allclose(own, exact, rtol=0, atol=1e-9)


def pairs_of_a_matching(ones: int, zeros: int, left_out: int) -> dict[int, float]:
    """Return P(so many equal pairs) if all but `left_out` records are paired at random."""
    chances: dict[int, float] = {}
    for ones_left in range(left_out + 1):
        a, b = ones - ones_left, zeros - left_out + ones_left
        outside = comb(ones, ones_left) * comb(zeros, left_out - ones_left)
        weight = outside / comb(ones + zeros, left_out)
        for unequal in range(a % 2, min(a, b) + 1, 2):
            ways = comb(a, unequal) * comb(b, unequal) * factorial(unequal)
            ways *= pairings(a - unequal) * pairings(b - unequal)
            equal = (a + b) // 2 - unequal
            chances[equal] = chances.get(equal, 0.0) + weight * ways / pairings(a + b)
    return chances


def pairings(count: int) -> int:
    return prod(range(1, count, 2))


@pytest.mark.parametrize("ones, zeros", [(10, 10), (8, 12), (10, 11), (22, 23), (4, 16)])
def test_equal_pairs_of_a_matching_are_held_though_its_factor_is_above_1(ones, zeros):
    """Independent draws are fewer than the pairs here, and hold the share in 83 % at worst."""
    records = ones + zeros
    edges, sets = records // 2, comb(records, 2)
    factor = largest_factor(edges, records, 2)
    assert factor > 1
    value = (comb(ones, 2) + comb(zeros, 2)) / sets
    held = 0.0
    for hits, chance in pairs_of_a_matching(ones, zeros, records % 2).items():
        released = ReleasedSum(hits / edges, Noise(1e-9), 0.0, 1.0, sqrt(factor / edges) / 2)
        given = ReleasedStatistic([released], SHARE, edges=edges)
        held += chance * is_covered("mean", given, 1, value)
    assert held >= LEAST - PARITY


@pytest.mark.parametrize("share", [0.004, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("edges, factor", [(10, 1.06), (3, 1.5), (40, 3.0)])
def test_the_variance_of_a_factor_above_1_is_the_bound_on_the_grid_of_the_sets(
    share, edges, factor
):
    law = CountedSets(-share, 1 - share, edges, factor)
    assert law.std**2 == pytest.approx(factor * share * (1 - share) / edges)
    count, more = law.parts
    assert count.count == edges and more.high == -more.low
    assert more.high * edges / more.count == pytest.approx(1), "one set more or less"


def test_a_share_that_is_lost_in_rounding_divides_by_nothing():
    assert 0 <= CountedSets(-2.0, 1.1e-16, 100, 1.0).std < 1e-6
