"""The interval of the noise alone, for each law that a report can have: by exact enumeration.

All probabilities of a law are added up whose values the interval holds. Small scales count most:
there few values have nearly all of the probability, and a quantile of another law misses one.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import comb, exp, expm1, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import signal, stats

from tests.support.reports import GINI_STUDY, statistic_of
from umpc.dp.calibration import NORMAL_SHAPE, DistributedLaplace
from umpc.dp.committee import CommitteeBinomial, CommitteeLaplace
from umpc.dp.distributed_gaussian import LEAST_SHARE, GaussianShare
from umpc.dp.skellam import SkellamShare
from umpc.protocols.base.one_message_protocol import sum_report
from umpc.protocols.u_mpc.settings import Law, sum_reports
from umpc.study.making_report import estimated
from umpc.study.report import SumReport
from umpc.study.sizes import Sizes
from umpc.ustat.intervals import TAIL
from umpc_papers.bell_2pc.group_mechanism import GroupLaplace
from umpc_papers.bell_2pc.pair_mechanisms import PairLaplace, PairResponse
from umpc_papers.central.messages import CuratedEstimate
from umpc_papers.local.estimate import LocalEstimate

Floats = NDArray[np.float64]
LEVEL = 0.95
ROUNDING = 1e-9
"""Probabilities are added up as exactly as this."""
LOG_RATIOS = (0.1, 0.3, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0, 3.3, 3.7, 4.0, 4.6, 5.0, 8.0, 20.0)
"""From smooth laws to those of which nearly all of the probability is at 0."""
SIZES = Sizes(GINI_STUDY, 10)
UNIT = 0.5 / SIZES.edges
"""A unit of the sum, as a part of the mean."""


def sums_of(log_ratio: float, shape: float) -> tuple[Floats, Floats]:
    """(values, probabilities) of a difference of two negative binomials: `shape` discrete Laplace
    laws of ratio e^-log_ratio.
    """
    most = int(60 * max(1.0, shape) ** 0.5 / log_ratio + 8 * shape / log_ratio) + 40
    one = stats.nbinom.pmf(np.arange(most + 1), shape, -expm1(-log_ratio))
    law = np.maximum(signal.convolve(one, one[::-1]), 0.0)
    return np.arange(-most, most + 1.0), law / law.sum()


def held_by(law: Law, values: Floats, chances: Floats) -> float:
    """How often the interval of the noise alone holds the value. Args: values: in units."""
    (entry,) = sum_reports(SIZES, [0], [law])
    return covered(entry, values * UNIT, chances)


def covered(entry: SumReport, noise: Floats, chances: Floats) -> float:
    """How often the quantiles of the error hold the noise: the interval before it is cut."""
    low, high = statistic_of(GINI_STUDY, [entry]).law([1.0], 0.0).central(TAIL)
    assert low < high
    return float(chances[(low <= noise) & (noise <= high)].sum())


def laws() -> Iterator[tuple[str, Law, Floats, Floats]]:
    """Each law's name, the law, its values in units, and their probabilities."""
    for log_ratio in LOG_RATIOS:
        exact = Fraction(log_ratio)
        for nodes, honest in ((2, 2), (2, 1), (3, 2), (5, 1), (64, 63)):
            law = DistributedLaplace(exact, 1, nodes, honest)
            yield f"laplace {nodes}/{honest}", law, *sums_of(log_ratio, nodes / honest)
        yield "in_mpc", CommitteeLaplace(exact, 1), *sums_of(log_ratio, 1)
        for pairs in (1, 2, 7, 40):
            yield "pair_laplace", PairLaplace(exact, 1, pairs, 1, exact), *sums_of(log_ratio, pairs)
        groups = GroupLaplace(exact, 1, 12, 1, 4, 3)
        # from three groups of one owner each to the most that E can have, of two owners each
        for owners in (3, 4, 6, 2 * groups.most_groups):
            yield "group_laplace", groups, *sums_of(log_ratio, owners)
    for variance in (0.0533, *np.geomspace(1e-3, 1e4, 60)):
        exact, most = Fraction(variance), int(12 * sqrt(variance)) + 40
        values = np.arange(-most, most + 1.0)
        chances = stats.skellam.pmf(values, variance / 2, variance / 2)
        yield "skellam", SkellamShare(exact, 3, 3), values, chances
    for parameter in (LEAST_SHARE, 20, 100, 1000):
        values = np.arange(-400, 401.0)
        chances = np.exp(-(values**2) / (2 * parameter))
        yield "gaussian", GaussianShare(Fraction(parameter), 1, 1), values, chances / chances.sum()
    for epsilon, delta in ((16, 0.6), (16, 0.3), (16, 0.1), (4, 0.01), (1, 0.001), (0.3, 1e-6)):
        law = CommitteeBinomial(Fraction(epsilon), Fraction(delta), 1)
        counts = np.arange(law.count + 1.0)
        chances = stats.binom.pmf(counts, law.count, 0.5)
        yield f"binomial {law.count}", law, counts - law.count / 2, chances


def test_the_interval_of_noise_alone_holds_the_value_in_95_percent_of_each_law():
    found: dict[str, list[float]] = {}
    for name, law, values, chances in laws():
        found.setdefault(name, []).append(held_by(law, values, chances))
    short = {name: min(shares) for name, shares in found.items() if min(shares) < LEVEL - ROUNDING}
    assert not short
    assert len({int(name.split()[1]) for name in found if name.startswith("binomial")}) > 4
    exact = found["laplace 2/2"] + found["skellam"]
    assert min(exact) < LEVEL + 0.01, "the intervals are no longer than they must be"


def answers(law: PairResponse, values: tuple[int, ...]) -> tuple[Floats, Floats]:
    """(noise of the unbiased sum, probabilities), if so many pairs have each value.

    Args: values: how many pairs have the least value, the next one and so on.
    """
    wrong, contrast = float(law.wrong), float(law.contrast)
    total, mean = np.ones(1), 0.0
    places = np.arange(law.width + 1)
    for value, pairs in enumerate(values):
        one = np.where(places == value, wrong + contrast, wrong)
        mean += pairs * float(one @ places)
        for _ in range(pairs):
            total = np.convolve(total, one)
    return (np.arange(len(total)) - mean) / contrast, total


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("pairs", [1, 2, 5, 20, 60])
def test_intervals_of_randomised_response_hold_the_value_whatever_the_records_are(width, pairs):
    """Its noise lies on a grid that the values shift, which nobody knows."""
    for epsilon in (0.05, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20):
        law = PairResponse(Fraction(epsilon), 0, width, pairs)
        for least in {0, pairs // 4, pairs // 2, pairs}:
            of_values = (least, *[0] * (width - 1), pairs - least)
            noise, chances = answers(law, of_values)
            assert held_by(law, noise, chances) >= LEVEL, (epsilon, of_values)
        noise, chances = answers(law, (*[0] * (width // 2), pairs, *[0] * (width - width // 2)))
        assert held_by(law, noise, chances) >= LEVEL, (epsilon, "the same value")


@pytest.mark.parametrize("log_ratio", LOG_RATIOS)
def test_a_curator_s_interval_counts_the_grid_of_its_noise(log_ratio):
    """Without the grid it would hold a value of a sum that is nearly right too rarely."""
    values, chances = sums_of(log_ratio, 1)
    sets = comb(10, 2)
    std = sqrt(2 * exp(-log_ratio)) / -expm1(-log_ratio) / sets
    estimate = CuratedEstimate(0.5, std, 10, 0.0, sets, 9, step=1 / sets)
    held = covered(sum_report(GINI_STUDY, estimate), values / sets, chances)
    assert held >= LEVEL - ROUNDING


def test_an_interval_is_cut_to_the_possible_values_and_a_note_says_what_noise_did():
    for mean, note in ((5.0, ""), (10.4, "0 to 10"), (-0.2, "0 to 10")):
        entry = sum_report(GINI_STUDY, LocalEstimate(mean, 0.8, 10))
        result, found = estimated(GINI_STUDY, [entry], SIZES.sets)
        assert result.value == mean, "the estimate is shown as it was released"
        ends = (found.low, found.noise_low, found.noise_high, found.high)
        assert all(0 <= end <= 10 for end in ends) and found.low < found.high
        assert (note in result.note) and bool(result.note) == bool(note)


def test_normal_noise_has_the_normal_interval_and_unknown_noise_a_longer_one():
    """Local protocols only know the standard deviation of their noise, and take Laplace's law."""
    halves = []
    for shape in (NORMAL_SHAPE, 1.0):
        entry = sum_report(GINI_STUDY, LocalEstimate(0.5, 0.01, 10, shape=shape))
        _, found = estimated(GINI_STUDY, [entry], SIZES.sets)
        halves.append((found.noise_high - found.noise_low) / 2 / 0.01)
    assert halves == pytest.approx([1.96, 2.118], rel=0.02)
    assert halves[0] >= stats.norm.ppf(0.975) and halves[1] >= stats.laplace.ppf(0.975) / sqrt(2)
