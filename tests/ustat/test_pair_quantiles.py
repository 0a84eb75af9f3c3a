"""Disjoint cells of pairs: their proof, their sensitivity, and intervals of quantiles."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest

from umpc.ustat.error_law import Noise
from umpc.ustat.estimators import PAIR_MEDIAN, estimate
from umpc.ustat.intervals import covering_interval, pair_interval
from umpc.ustat.kernel import Kernel
from umpc.ustat.pair_quantiles import USUAL, cuts_of, ends_of, usual_thresholds
from umpc.ustat.released_means import ReleasedStatistic, ReleasedSum, joint_values
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.statistics import find_statistic
from umpc.ustat.text import from_text

FIELDS = [FieldSchema(name, Fraction(0), Fraction(3), Fraction(1)) for name in "xy"]
SCHEMA = Schema(FIELDS)
CUTS = {
    "hodges_lehmann": ["1/2", "1", "2"],
    "hodges_lehmann_shift": ["-1", "0", "3/2"],
    "theil_sen": ["-1", "0", "1/2"],
}


def kernels_of(name: str, cuts=None, schema=SCHEMA) -> list[Kernel]:
    statistic = find_statistic(name)
    columns = list(statistic.arguments)
    expressions = statistic.expressions(columns, {"thresholds": cuts or CUTS[name]})
    symmetric = statistic.sampling != "two_sample"
    return [Kernel(each, schema, 2, symmetric) for each in expressions]


def on_pairs(kernels: list[Kernel], first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(kernels, pairs) values. first, second: (pairs, columns)."""
    records = [dict(zip("xy", rows.T, strict=False)) for rows in (first, second)]
    return np.stack([kernel.evaluate(records) for kernel in kernels])


@pytest.mark.parametrize("name", CUTS)
def test_every_pair_is_in_exactly_one_cell(name):
    rows = np.array(list(product(range(4), repeat=2)))
    first, second = (index.ravel() for index in np.mgrid[: len(rows), : len(rows)])
    values = on_pairs(kernels_of(name), rows[first], rows[second])
    assert set(np.unique(values)) == {0, 1}
    assert (values.sum(axis=0) == 1).all()


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("records", [2, 3])
def test_every_change_of_one_record_of_every_small_table_is_within_two_cells_an_edge(name, records):
    """Over all pairs of the tables: δ_max = n − 1 edges have the record."""
    kernels = kernels_of(name)
    columns = len(find_statistic(name).arguments)
    values = range(4 if records == 2 or columns == 1 else 3)
    rows = np.array(list(product(values, repeat=columns)))
    largest = 0
    for others in product(range(len(rows)), repeat=records - 1):
        # the pairs of all others do not change
        counts = sum(
            on_pairs(kernels, rows, np.broadcast_to(rows[other], rows.shape)) for other in others
        )
        moved = np.abs(counts[:, :, None] - counts[:, None, :]).sum(axis=0)
        largest = max(largest, int(moved.max()))
    assert largest == 2 * (records - 1)


@pytest.mark.parametrize("name", CUTS)
def test_thresholds_are_read_from_the_kernels_and_ends_from_the_bounds(name):
    kernels = kernels_of(name)
    cuts = tuple(map(Fraction, CUTS[name]))
    assert cuts_of(tuple(kernel.expression for kernel in kernels)) == cuts
    ends = {"hodges_lehmann": (0, 3), "hodges_lehmann_shift": (-3, 3), "theil_sen": (-3, 3)}
    assert ends_of(kernels) == (ends[name][0], *map(float, cuts), ends[name][1])
    # their hull is that of the corners, not what linear programs would search for
    assert np.array_equal(joint_values(kernels), np.eye(len(kernels)))


@pytest.mark.parametrize(
    "texts",
    [
        ["a.x + b.x < 1", "~(a.x + b.x < 2)"],
        ["a.x + b.x < 1", "(a.x + b.x < 1) ^ (a.x + b.x < 2)", "~(a.x + b.x < 1)"],
        ["a.x + b.x < 2", "(a.x + b.x < 2) ^ (a.x + b.x < 1)", "~(a.x + b.x < 1)"],
        ["a.x + b.x < 1", "(a.x + b.x < 1) ^ (a.x + b.x < 1)", "~(a.x + b.x < 1)"],
        ["a.x + b.x < 1", "(a.x + b.x < 1) ^ (a.y + b.y < 2)", "~(a.y + b.y < 2)"],
        ["a.x + b.x < 1", "a.x + b.x < 2", "~(a.x + b.x < 2)"],
        ["a.x + b.x < 1", "(a.x + b.x < 1) ^ (a.x + b.x < 2)"],
        ["a.x + b.x < a.x", "~(a.x + b.x < a.x)"],
        # pairs with equal y count, and are below a slope by x
        [
            "sign(a.x - b.x) * (a.y - b.y) < 1 * abs(a.x - b.x)",
            "(sign(a.x - b.x) * (a.y - b.y) < 1 * abs(a.x - b.x)) ^ (~(a.y == b.y))",
            "~(~(a.y == b.y))",
        ],
        ["a.x + b.x < 1", "(a.x + b.x < 1) ^ (~(a.x == b.x))", "~(~(a.x == b.x))"],
        ["a.x"],
    ],
)
def test_kernels_that_may_overlap_are_no_cells(texts):
    assert cuts_of(tuple(map(from_text, texts))) == ()


def test_usual_thresholds_follow_from_public_bounds():
    wide = FieldSchema("x", Fraction(-10), Fraction(310), Fraction(1, 2))
    found = [Fraction(text) for text in usual_thresholds("hodges_lehmann", [wide])]
    assert found == sorted(found) and len(found) == USUAL
    assert (found[0], found[-1]) == (0, 300)
    few = usual_thresholds("hodges_lehmann", FIELDS)
    assert [Fraction(text) for text in few] == [1, 2]
    shift = [Fraction(text) for text in usual_thresholds("hodges_lehmann_shift", [wide])]
    assert shift[0] == -shift[-1] == -300
    slopes = [Fraction(text) for text in usual_thresholds("theil_sen", FIELDS)]
    assert slopes == sorted(slopes) and 0 in [round(each, 3) for each in slopes]
    assert slopes[0] == -slopes[-1] and 2 < slopes[-1] < 3


@pytest.mark.parametrize("high", [1, 2, 5, 31, 1000])
@pytest.mark.parametrize("name", CUTS)
def test_usual_thresholds_are_inside_the_possible_values(name, high):
    """A field of two values, too: a study that names no thresholds is always accepted."""
    fields = [FieldSchema(each, Fraction(0), Fraction(high), Fraction(1)) for each in "xy"]
    ends = ends_of(kernels_of(name, usual_thresholds(name, fields), Schema(fields)))
    assert len(ends) > 2 and all(one < other for one, other in pairwise(ends))


def released(shares, scale: float, rng=None, sampling: float = 0.0) -> list[ReleasedSum]:
    """Cells with Laplace noise of a scale; without a generator they are exact."""
    noise = Noise(std=scale * 2**0.5)
    drawn = rng.laplace(0, scale, len(shares)) if rng else np.zeros(len(shares))
    means = np.array(shares) + drawn
    return [ReleasedSum(float(mean), noise, 0.0, 1.0, sampling) for mean in means]


def statistic(sums, ends) -> ReleasedStatistic:
    return ReleasedStatistic(sums, np.eye(len(sums)), ends=ends)


def shares_of(values, ends) -> np.ndarray:
    return np.histogram(values, bins=[-np.inf, *ends[1:-1], np.inf])[0] / len(values)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("scale", [0.0005, 0.01, 0.05, 0.5])
def test_the_interval_holds_the_quantile_in_most_runs(share, scale):
    rng = np.random.default_rng(50)
    x = rng.gamma(3, 6, 80)
    values = np.array([(one + other) / 2 for one, other in combinations(x, 2)])
    ends = [0.0, *np.linspace(2, 60, 30), 100.0]
    truth = np.quantile(values, share, method="inverted_cdf")
    exact = shares_of(values, ends)
    runs, inside = 200, 0
    for _ in range(runs):
        low, high = pair_interval(statistic(released(exact, scale, rng), ends), share)
        inside += low <= truth <= high
    assert inside >= 0.9 * runs


def test_the_interval_holds_a_quantile_of_pairs_that_count():
    rng = np.random.default_rng(51)
    values = rng.normal(0, 1, 3000)
    ends = [-9.0, *np.linspace(-2, 2, 17), 9.0]
    exact = np.append(shares_of(values, ends) * 0.7, 0.3)
    truth, inside = np.quantile(values, 0.5, method="inverted_cdf"), 0
    for _ in range(200):
        found = statistic(released(exact, 0.01, rng), ends)
        low, high = covering_interval(PAIR_MEDIAN, found, 1)
        inside += low <= truth <= high
    assert inside >= 180


def test_without_noise_the_interval_is_the_cell_and_the_estimate_is_inside():
    values = np.arange(1000) / 10
    ends = [0.0, *range(10, 100, 10), 100.0]
    found = statistic(released(shares_of(values, ends), 1e-9), ends)
    # half of the values are below 50, so the threshold itself contradicts neither side
    assert covering_interval(PAIR_MEDIAN, found, 1) == (40, 60)
    means = [each.mean for each in found.sums]
    nothing = [0.0] * len(means)
    result = estimate(PAIR_MEDIAN, means, nothing, nothing, 1, ends)
    assert result.value == pytest.approx(50)
    assert (result.noise_std, result.sampling_std_bound) == (0, 0)


def test_the_standard_deviation_of_small_noise_is_that_of_the_estimates():
    rng = np.random.default_rng(52)
    ends = [-9.0, *np.linspace(-2, 2, 17), 9.0]
    exact = shares_of(rng.normal(0.1, 1, 5000), ends)
    stds = [0.003 * 2**0.5] * len(exact)
    found = []
    for _ in range(2000):
        means = [each.mean for each in released(exact, 0.003, rng)]
        found.append(estimate(PAIR_MEDIAN, means, stds, [0.0] * len(means), 1, ends).value)
    expected = estimate(PAIR_MEDIAN, list(exact), stds, [0.0] * len(stds), 1, ends).noise_std
    assert np.std(found) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(
    ("means", "reason"),
    [
        ([0.9, 0.05, 0.05], "below the lowest threshold, 1"),
        ([0.1, 0.1, 0.8], "above the highest threshold, 2"),
    ],
)
def test_a_median_beyond_all_thresholds_is_withheld(means, reason):
    found = estimate(PAIR_MEDIAN, means, [0.01] * 3, [0.0] * 3, 1, [0, 1, 2, 3])
    assert found.value is None and reason in found.note and "take other thresholds" in found.note


def test_pairs_that_hardly_count_are_withheld():
    found = estimate(PAIR_MEDIAN, [0.01, 0.0, 0.01, 0.98], [0.1] * 4, [0.0] * 4, 1, [0, 1, 2, 3])
    assert found.value is None and "cannot be told from zero" in found.note
