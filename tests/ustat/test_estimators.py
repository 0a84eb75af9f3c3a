"""umpc.ustat.estimators: values and errors against formulas and Monte Carlo."""

from __future__ import annotations

from math import log, nan, sqrt

import numpy as np
import pytest

from umpc.errors import KernelError
from umpc.ustat.estimators import (
    ANY,
    ESTIMATORS,
    PAIR_MEDIAN,
    QUANTILE,
    VECTOR,
    Estimate,
    estimate,
    find_estimator,
)

RUNS = 8000
SEED = 20250

MEANS = {"mean": [0.3], "total": [0.3], "ratio": [0.3, 0.6], "geometric_ratio": [0.3, 0.6, 0.4]}
MEANS |= {"difference": [0.3, 0.1], "difference_ratio": [0.3, 0.1, 0.4]}
MEANS |= {"mean_with_variance": [0.3, 0.2]}
MEANS |= {"collision_entropy": [0.3], "collision_entropy_nats": [0.3]}
VALUES = {
    "mean": lambda s: s[0],
    "mean_with_variance": lambda s: s[0],
    "total": lambda s: s[0] * 1000,
    "ratio": lambda s: s[0] / s[1],
    "geometric_ratio": lambda s: s[0] / np.sqrt(s[1] * s[2]),
    "difference": lambda s: s[0] - s[1],
    "difference_ratio": lambda s: (s[0] - s[1]) / s[2],
    "collision_entropy": lambda s: -np.log2(s[0]),
    "collision_entropy_nats": lambda s: -np.log(s[0]),
}


def run(name: str, means, noise, sampling=None) -> Estimate:
    return estimate(name, means, noise, sampling or [0.0] * len(means), 1000)


def draw(rng: np.random.Generator, shape: float, std: float) -> np.ndarray:
    """The noise of N nodes of which N/shape suffice, without its grid: Laplace for shape 1."""
    return std * (rng.gamma(shape, size=RUNS) - rng.gamma(shape, size=RUNS)) / sqrt(2 * shape)


def test_every_estimator_is_tested_and_takes_as_many_sums():
    """A median of pairs has its own tests in `test_pair_quantiles.py`."""
    assert ESTIMATORS.keys() - {VECTOR, PAIR_MEDIAN} == MEANS.keys() == VALUES.keys()
    assert {name: len(means) for name, means in MEANS.items()} == {
        n: e.sums for n, e in ESTIMATORS.items() if n not in (VECTOR, PAIR_MEDIAN)
    }


def test_a_vector_of_any_length_has_no_single_value():
    assert ESTIMATORS[VECTOR].sums == ANY
    for count in (1, 5):
        found = run(VECTOR, [0.5] * count, [0.1] * count)
        assert found.value is None and f"{count} mean(s)" in found.note
    assert all(
        name == estimator.name and estimator.formula for name, estimator in ESTIMATORS.items()
    )


@pytest.mark.parametrize("name", MEANS)
def test_without_noise_the_value_is_the_formula(name):
    means = MEANS[name]
    result = run(name, means, [0.0] * len(means))
    assert result.value == pytest.approx(VALUES[name](means))
    assert (result.noise_std, result.sampling_std_bound, result.note) == (0, 0, "")


@pytest.mark.parametrize("name", MEANS)
def test_the_delta_method_gives_the_standard_deviation_of_small_noise(name):
    means = np.array(MEANS[name])
    noise = 0.01 * means * np.arange(1, len(means) + 1)
    rng = np.random.default_rng(SEED)
    drawn = VALUES[name]([mean + draw(rng, 1, std) for mean, std in zip(means, noise, strict=True)])
    assert run(name, means, noise).noise_std == pytest.approx(np.std(drawn), rel=0.05), SEED


@pytest.mark.parametrize("name", MEANS)
def test_the_sampling_bound_adds_the_absolute_effects_of_all_sums(name):
    means, bounds = np.array(MEANS[name]), np.array([0.02, 0.05, 0.03])[: len(MEANS[name])]
    step, expected = 1e-6, 0.0
    for number, bound in enumerate(bounds):
        shift = step * (np.arange(len(means)) == number)
        expected += (
            abs(VALUES[name](means + shift) - VALUES[name](means - shift)) / (2 * step) * bound
        )
    assert run(name, means, [0.0] * len(means), list(bounds)).sampling_std_bound == pytest.approx(
        expected
    )


def test_the_mean_and_the_total_have_their_sums_errors():
    assert run("mean", [0.25], [0.1], [0.02]) == Estimate(0.25, 0.1, 0.02)
    total = estimate("total", [0.25], [0.1], [0.02], 12)
    assert (total.value, total.noise_std, total.sampling_std_bound) == pytest.approx((3, 1.2, 0.24))


def test_the_entropy_of_a_fair_coin_is_one_bit():
    result = run("collision_entropy", [0.5], [0.05])
    assert result.value == 1 and result.noise_std == pytest.approx(0.1 / log(2))
    assert str(run("collision_entropy", [1.0], [0.0]).value) == "0.0"
    nats = run("collision_entropy_nats", [0.5], [0.05])
    assert (nats.value, nats.noise_std) == pytest.approx((log(2), 0.1))


@pytest.mark.parametrize(
    ("name", "means", "noise", "which", "cure"),
    [
        ("ratio", [0.3, 0.1], [0.01, 0.05], "sum 2, 0.1 ± 0.05", "more epsilon"),
        ("ratio", [0.3, -0.6], [0.01, 0.01], "sum 2, -0.6 ± 0.01", "more epsilon"),
        ("ratio", [0.3, QUANTILE], [0.01, 1.0], "sum 2, 2.12 ± 1", "more epsilon"),
        (
            "geometric_ratio",
            [0.3, 0.6, 0.1],
            [0.01, 0.01, 0.05],
            "sum 3, 0.1 ± 0.05",
            "more epsilon",
        ),
        (
            "geometric_ratio",
            [0.3, -0.6, -0.4],
            [0.01, 0.01, 0.01],
            "sum 2, -0.6 ± 0.01",
            "more epsilon",
        ),
        ("collision_entropy", [0.001], [0.002], "sum 1, 0.001 ± 0.002", "more epsilon"),
        ("ratio", [0.0, 0.0], [0.0, 0.0], "sum 2, 0,", "more edges"),
    ],
)
def test_a_denominator_that_drowns_withholds_the_value_and_says_what_to_do(
    name, means, noise, which, cure
):
    result = run(name, means, noise)
    assert (result.value, result.noise_std, result.sampling_std_bound) == (None,) * 3
    assert (
        which in result.note and "cannot be told from zero" in result.note and cure in result.note
    ), result.note


def test_a_denominator_just_above_its_noise_is_enough():
    result = run("ratio", [0.3, QUANTILE * 1.001], [0.01, 1.0])
    assert result.value is not None


@pytest.mark.parametrize(
    ("name", "means", "noise", "words"),
    [
        (
            "median",
            [0.1],
            [0.1],
            "no estimator 'median'; there are collision_entropy, collision_entropy_nats, "
            "difference, difference_ratio, geometric_ratio, mean",
        ),
        ("mean", [0.1, 0.2], [0.1, 0.1], r"of 1 sum\(s\); got 2"),
        ("ratio", [0.1], [0.1], r"sum 1 / sum 2, of 2 sum\(s\); got 1"),
        ("ratio", [0.1, 0.2], [0.1], "got 2"),
        ("mean", [nan], [0.1], "finite means"),
        ("mean", [0.1], [-0.1], "finite means"),
    ],
)
def test_wrong_calls_are_refused(name, means, noise, words):
    with pytest.raises(KernelError, match=words):
        run(name, means, noise)


def test_estimators_are_found_by_name():
    assert find_estimator("ratio").sums == 2
