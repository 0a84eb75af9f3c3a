"""umpc.ustat.intervals: what an interval holds, against exact intervals and linear programs."""

from __future__ import annotations

from math import inf, log, log2, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

import umpc
from umpc.ustat.error_law import Noise
from umpc.ustat.estimators import ESTIMATORS, PAIR_MEDIAN, VECTOR, WITH_VARIANCE, estimate
from umpc.ustat.intervals import (
    covering_interval,
    is_covered,
    possible_values,
    sampling_std,
    statistic_range,
)
from umpc.ustat.released_means import ReleasedStatistic, ReleasedSum, largest_square

SHARE = np.array([[0.0], [1.0]])
GAMMA = np.array([[-1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
TAU_B = np.array([[-1, 1, 1], [0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 1, 1]], dtype=float)
MCNEMAR = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1]], dtype=float)
CASES = {
    "mean": ([0.3], SHARE),
    "total": ([0.3], SHARE),
    "collision_entropy": ([0.3], SHARE),
    "collision_entropy_nats": ([0.3], SHARE),
    "ratio": ([0.2, 0.6], GAMMA),
    "geometric_ratio": ([0.2, 0.6, 0.5], TAU_B),
    "difference": ([0.3, 0.1], MCNEMAR[:, :2]),
    "difference_ratio": ([0.3, 0.1, 0.6], MCNEMAR),
}
SETS = 1770
RUNS = 400
LEAST_COVERAGE = 0.9
"""A true coverage of 95 %, measured in RUNS drawn intervals, is below this once in 10^4 tests."""
SEED = 20250


def statistic(name: str, noise: float = 0.01, edges: float = 600) -> ReleasedStatistic:
    means, points = CASES[name]
    sums = []
    for mean, column in zip(means, points.T, strict=True):
        low, high = float(column.min()), float(column.max())
        bound = (high - low) / 2 / sqrt(edges) if edges else 0.0
        sums.append(ReleasedSum(mean, Noise(noise), low, high, bound))
    return ReleasedStatistic(sums, points)


def test_every_estimator_is_tested():
    """A vector has no single number, so it has no interval.

    A mean with a private variance has that of its first sum: see `test_private_variance.py`.
    A median of pairs has its own tests in `test_pair_quantiles.py`.
    """
    assert CASES.keys() == ESTIMATORS.keys() - {VECTOR, WITH_VARIANCE, PAIR_MEDIAN}


@pytest.mark.parametrize("hits", [0, 1, 3, 60, 300, 600])
def test_without_noise_a_share_has_clopper_and_pearsons_interval(hits):
    one = ReleasedStatistic(
        [ReleasedSum(hits / 600, Noise(1e-9), 0.0, 1.0, 0.5 / sqrt(600))], SHARE
    )
    low, high = covering_interval("mean", one, SETS)
    exact = stats.beta.ppf([0.025, 0.975], [hits or 1, hits + 1], [601 - hits, 600 - hits or 1])
    below, above = (0.0 if hits == 0 else exact[0]), (1.0 if hits == 600 else exact[1])
    width = above - below
    assert low <= below + 1e-3 * width and above - 1e-3 * width <= high
    assert high - low <= 1.06 * width


@pytest.mark.parametrize("name", CASES)
def test_the_interval_holds_the_estimate_and_both_errors(name):
    """It is wider than each error's own, and narrower than their sum."""
    both = covering_interval(name, statistic(name), SETS)
    noise = covering_interval(name, statistic(name, edges=0), SETS)
    sampling = covering_interval(name, statistic(name, noise=1e-9), SETS)
    widths = [high - low for low, high in (both, noise, sampling)]
    assert max(widths[1:]) < widths[0] < sum(widths[1:])
    assert both[0] < noise[0] < noise[1] < both[1]
    std = sampling_std(name, statistic(name), SETS)
    assert widths[2] == pytest.approx(2 * 1.96 * std, rel=0.1)
    assert sampling_std(name, statistic(name, edges=0), SETS) == 0


@pytest.mark.parametrize("name", CASES)
def test_covered_values_are_those_between_the_ends(name):
    found = statistic(name)
    low, high = covering_interval(name, found, SETS)
    for value, inside in ((low, True), (high, True), (low, False), (high, False)):
        inward = 0.01 * (high - low) * (1 if value == low else -1)
        shift = inward if inside else -inward
        assert is_covered(name, found, SETS, value + shift) == inside, (value, inside)


def drawn_around(name: str, relative: float, shape: float, told: float = 1.0) -> float:
    """How often the interval of the noise alone holds the value, among the values that are shown.

    Args: relative: of the noise to each mean. told: the noise that is told, to that which is drawn.
    """
    rng = np.random.default_rng(SEED)
    means, points = CASES[name]
    stds = [relative * mean for mean in means]
    draws = [rng.gamma(shape, size=(2, RUNS)) / sqrt(2 * shape) for _ in means]
    value = estimate(name, means, [0.0] * len(means), [0.0] * len(means), SETS).value
    held, shown = 0, 0
    for run in range(RUNS):
        noisy = [
            mean + std * (up[run] - down[run])
            for mean, std, (up, down) in zip(means, stds, draws, strict=True)
        ]
        noises = [Noise(told * std, shape=shape) for std in stds]
        if estimate(name, noisy, [each.std for each in noises], stds, SETS).value is None:
            continue
        ranges = zip(noisy, noises, points.min(axis=0), points.max(axis=0), strict=True)
        sums = [ReleasedSum(*each, sampling=0.0) for each in ranges]
        held += is_covered(name, ReleasedStatistic(sums, points), SETS, value)
        shown += 1
    assert shown > 0.75 * RUNS
    return held / shown


@pytest.mark.parametrize("shape", [1, 8], ids="N/h = {}".format)
@pytest.mark.parametrize("relative", [0.02, 0.3], ids="noise {}".format)
@pytest.mark.parametrize("name", CASES)
def test_intervals_of_noise_alone_hold_the_value_without_noise(name, relative, shape):
    assert drawn_around(name, relative, shape) >= LEAST_COVERAGE, SEED


def test_coverage_is_not_bought_by_width():
    """Power: intervals from noise said to be 0.6 times what it is miss the value too often."""
    assert drawn_around("ratio", 0.1, 1, told=0.6) < LEAST_COVERAGE, SEED


def test_without_sampling_only_the_noise_is_left():
    found = statistic("ratio")
    assert sampling_std("ratio", found, SETS) > 0 == sampling_std("ratio", found.noise_alone, SETS)
    alone = covering_interval("ratio", found.noise_alone, SETS)
    assert alone == covering_interval("ratio", statistic("ratio", edges=0), SETS)


def test_transformed_means_have_transformed_intervals():
    low, high = covering_interval("mean", statistic("mean"), SETS)
    assert covering_interval("total", statistic("total"), SETS) == (low * SETS, high * SETS)
    found = covering_interval("collision_entropy", statistic("collision_entropy"), SETS)
    assert found == (-log2(high), -log2(low))
    nats = covering_interval("collision_entropy_nats", statistic("collision_entropy_nats"), SETS)
    assert nats == (-log(high), -log(low))


def test_a_denominator_of_either_sign_may_not_bound_the_ratio():
    sums = [
        ReleasedSum(0.5, Noise(0.001), -1, 1, 0.3),
        ReleasedSum(0.1, Noise(0.001), -1, 1, 0.3),
    ]
    corners = np.array([[-1.0, -1], [-1, 1], [1, -1], [1, 1]])
    assert inf in map(abs, covering_interval("ratio", ReleasedStatistic(sums, corners), SETS))


def by_program(values, others, boxes) -> float | None:
    equal = np.array([np.ones(len(values)), values])
    less = np.concatenate([others.T, -others.T])
    limits = [high for _, high in boxes] + [-low for low, _ in boxes]
    found = optimize.linprog(-(values**2), less, limits, equal, [1, 0])
    return -found.fun if found.status == 0 else None


@settings(max_examples=60, deadline=None)
@given(st.floats(-0.9, 0.9), st.floats(0.05, 1), st.floats(0.05, 1), st.floats(0, 0.3))
def test_the_largest_variance_is_that_of_a_linear_program(theta, first, second, near):
    values = TAU_B @ np.array([1.0, -theta / 2, -theta / 2])
    boxes = [(max(0.0, mean - near), min(1.0, mean + near)) for mean in (first, second)]
    expected = by_program(values, TAU_B[:, 1:], boxes)
    found = largest_square(values, TAU_B[:, 1:], boxes, 99.0)
    assert found == pytest.approx(99.0 if expected is None else expected, abs=1e-6)


def test_known_ties_narrow_the_interval_of_gamma():
    """Given the share of untied pairs s, the variance is at most s·(1 − γ²)."""
    found = statistic("ratio", noise=1e-6)
    assert sampling_std("ratio", found, SETS) == pytest.approx(
        sqrt(0.6 * (1 - 1 / 9) / 600) / 0.6, rel=0.08
    )


def test_a_ratio_that_was_barely_shown_has_a_wider_interval_within_its_range():
    """Denominators are shown only above a limit, so those just above it are too large."""
    widths = []
    for noise in (0.6 / 20, 0.6 / 2.2):
        sums = [
            ReleasedSum(0.2, Noise(0.01), -1.0, 1.0, 0.0),
            ReleasedSum(0.6, Noise(noise), 0.0, 1.0, 0.0),
        ]
        found = ReleasedStatistic(sums, GAMMA)
        assert (found.shown("ratio") > 0.999) == (noise < 0.1) and found.shown("mean") == 1
        low, high = covering_interval("ratio", found, SETS)
        assert -1 <= low < 1 / 3 < high <= 1
        widths.append(high - low)
    assert found.shown("ratio") < 0.3 and widths[1] > 0.9, "or a barely shown value counts as any"


def test_the_range_of_a_ratio_follows_from_its_kernels():
    assert possible_values("ratio", GAMMA) == possible_values("geometric_ratio", TAU_B) == (-1, 1)
    halves = np.array([[0.0, 0.0], [0.0, 1.0], [0.5, 1.0], [1.0, 1.0]])
    assert possible_values("ratio", halves) == (0, 1)
    assert possible_values("ratio", np.array([[0.0, -1.0], [1.0, 1.0]])) == (-inf, inf)
    assert possible_values("ratio", np.array([[1.0, 0.0], [1.0, 1.0]])) == (1, inf)
    assert possible_values("ratio", np.array([[-1.0, 0.0], [1.0, 1.0]])) == (-inf, 1)
    assert possible_values("mean", SHARE) == (-inf, inf)


@pytest.mark.parametrize("kind", ["sampling", "population"])
@pytest.mark.parametrize("name, end", [("mean", 0.0), ("mean", 1.0), ("ratio", 1.0)])
def test_an_interval_at_the_end_of_the_range_reaches_all_values_not_contradicted(kind, name, end):
    """No table beyond has any spread there, and the search must not stop for it."""
    _, points = CASES[name]
    means = [end] if name == "mean" else [0.6 * end, 0.6]
    noise, sampling = Noise(1e-12), 0.05 if kind == "sampling" else 0.0
    sums = [
        ReleasedSum(mean, noise, float(column.min()), float(column.max()), sampling)
        for mean, column in zip(means, points.T, strict=True)
    ]
    found = ReleasedStatistic(sums, points, 0.05 if kind == "population" else 0.0)
    low, high = covering_interval(name, found, SETS)
    inner = low if end > 0 else high
    assert abs(inner - end) > 0.03
    for part, inside in ((0.02, True), (0.3, True), (0.98, True), (1.02, False)):
        assert is_covered(name, found, SETS, end + part * (inner - end)) == inside, part


def test_all_equal_records_leave_a_share_of_the_population_open():
    """Twenty zeros: the test's inversion is θ² <= 1.96²·θ(1 − θ)/20."""
    found = ReleasedStatistic([ReleasedSum(0.0, Noise(0.0), 0.0, 1.0, 0.0)], SHARE, 1 / 20)
    low, high = covering_interval("mean", found, SETS)
    assert low == 0 and high == pytest.approx(1.96**2 / (20 + 1.96**2), rel=0.03)


@pytest.mark.parametrize("beyond", [0.01, 0.2, 5.0])
def test_an_impossible_released_value_counts_as_the_nearest_possible_one(beyond):
    """The interval once lay above the largest value of gamma, so it held no possible value."""
    sums = [
        ReleasedSum(0.6 * (1 + beyond), Noise(0.02), -1.0, 1.0, 0.05),
        ReleasedSum(0.6, Noise(0.02), 0.0, 1.0, 0.05),
    ]
    found = ReleasedStatistic(sums, GAMMA, 0.05)
    low, high = covering_interval("ratio", found, SETS)
    assert low < 0.8 and high == 1
    for value in np.linspace(low + 0.01, 1, 20):
        assert is_covered("ratio", found, SETS, value), value
    share = ReleasedStatistic([ReleasedSum(-beyond, Noise(1e-6), 0, 1, 0.1)], SHARE)
    low, high = covering_interval("mean", share, SETS)
    assert low == 0 < 0.05 < high
    alone = covering_interval("mean", share.noise_alone, SETS)
    assert alone == pytest.approx((0, 0), abs=1e-5)


@pytest.mark.parametrize("kind", ["noise", "sampling", "population"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_no_interval_leaves_the_range_of_its_statistic(name, kind):
    _, points = CASES[name]
    least, most = statistic_range(name, points, SETS)
    for noise in (0.01, 0.2, 3.0):
        means = [0.9, *([0.95] * (points.shape[1] - 1))]
        sums = [
            ReleasedSum(mean, Noise(noise / 10 ** bool(place)), *_ends(column), _sampling(kind))
            for place, (mean, column) in enumerate(zip(means, points.T, strict=True))
        ]
        found = ReleasedStatistic(sums, points, 0.05 if kind == "population" else 0.0)
        low, high = covering_interval(name, found, SETS)
        assert least <= low <= high <= most, noise


def _ends(column) -> tuple[float, float]:
    return float(column.min()), float(column.max())


def _sampling(kind: str) -> float:
    return 0.05 if kind == "sampling" else 0.0


@pytest.mark.parametrize("std", [1.3521963967592244e-18, 1.8e-16, 1e-12])
def test_noise_that_a_double_hardly_tells_from_the_mean_has_an_interval(std):
    """The search for its ends divided by zero: distance covariance at an epsilon of 1e9."""
    for mean in (0.007361561807496939, 0.13840774964442448, -0.4, 0.0):
        share = ReleasedStatistic([ReleasedSum(mean, Noise(std), -1.0, 1.0, 0.0)], SHARE * 2 - 1)
        low, high = covering_interval("mean", share, SETS)
        assert low <= mean <= high and high - low == pytest.approx(0, abs=10 * std + 1e-16)


@pytest.mark.parametrize("unit", [1e-30, 1e-12, 1e12, 1e18, 1e30])
@pytest.mark.parametrize("noise", [1e-15, 1e-3, 1.0])
@pytest.mark.parametrize("kind", ["noise", "sampling", "population"])
@pytest.mark.parametrize("name", ["mean", "total", "ratio", "geometric_ratio"])
def test_an_interval_is_the_same_in_any_unit_of_the_values(name, kind, noise, unit):
    """A double does not tell a mean of 10^18 from the next number: the search divided by zero."""
    means, points = CASES[name]

    def interval(units) -> np.ndarray:
        sums = [
            ReleasedSum(mean * each, Noise(noise * each), *_ends(column), _sampling(kind) * each)
            for mean, each, column in zip(means, units, (points * units).T, strict=True)
        ]
        found = ReleasedStatistic(sums, points * units, 0.05 if kind == "population" else 0.0)
        return np.array(covering_interval(name, found, SETS))

    expected = interval(np.ones(len(means)))
    for units in (np.full(len(means), unit), np.array([unit, *[1.0] * (len(means) - 1)])):
        found = interval(units) / (units[0] / (units[1] if len(means) > 1 else 1.0))
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_a_kernel_of_large_values_and_next_to_no_noise_has_an_interval():
    @umpc.kernel
    def product(a, b):
        return a.x * b.x

    most = 10**9
    tables = [{"x": [most // 3, most // 2, most]}, {"x": [most // 7, most - 1]}]
    facts = {"bounds": {"x": (0, most)}, "epsilon": 10**12, "edges": "9"}
    found = umpc.estimate(product, tables, **facts)
    low, high = found.interval()
    assert low <= found.estimate <= high < most**2
