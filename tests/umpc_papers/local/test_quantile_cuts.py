"""Cut points at quantiles of shares in a tree, against least squares and against sorting."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from umpc_papers.local.bin_search import consistent, measure_of_values, quantile_cuts

LEVELS = 3


def exact_levels(mass: np.ndarray) -> list[np.ndarray]:
    """The shares of all levels of a tree with these leaves."""
    levels = [mass]
    while len(levels[0]) > 2:
        levels.insert(0, levels[0][0::2] + levels[0][1::2])
    return levels


def test_the_masses_are_the_least_squares_solution_of_all_levels():
    """Hay et al. 2010, theorem 3: the consistent tree nearest to all estimates, of mass 1.

    Estimates near a positive tree, so that no mass is cut off at 0.
    """
    rng = np.random.default_rng(1)
    leaves = 1 << LEVELS
    rows = np.concatenate(
        [np.kron(np.eye(1 << level), np.ones(leaves >> level)) for level in range(1, LEVELS + 1)]
    )
    for _ in range(20):
        mass = rng.dirichlet(np.full(leaves, 50.0))
        levels = [each + rng.normal(0, 0.005, len(each)) for each in exact_levels(mass)]
        # The sum of all leaves is known: minimise with a multiplier.
        system = np.block([[rows.T @ rows, np.ones((leaves, 1))], [np.ones((1, leaves)), 0.0]])
        right = np.concatenate([rows.T @ np.concatenate(levels), [1.0]])
        nearest = np.linalg.solve(system, right)[:leaves]
        assert consistent(levels) == pytest.approx(nearest, abs=1e-12)


def test_a_half_within_the_noise_is_empty_and_two_such_halves_are_equal():
    """All records are in the first of eight leaves: the far half is empty but for 2.3 %."""
    exact = exact_levels(np.eye(8)[0])
    rng = np.random.default_rng(3)
    filled = {0.0: 0, 0.05**2: 0}
    for _ in range(400):
        noisy = [each + rng.normal(0, 0.05, len(each)) for each in exact]
        for variance in filled:
            filled[variance] += consistent(noisy, variance)[4:].sum() > 0
    assert filled[0.0] > 150, "without a limit noise fills the empty parts"
    assert filled[0.05**2] <= 20
    flat = [np.full(1 << level, 1 / (1 << level)) for level in range(1, 4)]
    flat[2] = flat[2] + 0.02 * np.array([1, -1] * 4)
    assert consistent(flat, 0.2**2) == pytest.approx(np.full(8, 1 / 8))
    assert consistent(flat)[0] > 1 / 8


def test_the_measure_of_values_follows_the_masses_and_is_nowhere_zero():
    measure = measure_of_values(np.array([0.5, 0.5, 0.0, 0.0]), 3, 10)
    assert len(measure) == 10 and measure.min() > 0
    assert measure[:6] == pytest.approx(np.full(6, 1 / 6)) and measure[6:].sum() < 1e-6


def test_masses_are_never_negative_and_add_up_whatever_the_noise():
    rng = np.random.default_rng(2)
    for scale in (0.01, 0.3, 10.0):
        noisy = [rng.normal(0, scale, 1 << level) for level in range(1, 7)]
        mass = consistent(noisy)
        assert mass.min() >= 0 and mass.sum() == pytest.approx(1)
        for bins in (2, 3, 8, 64):
            cuts = quantile_cuts(mass, bins, 1, 64)
            assert len(cuts) == bins - 1
            assert np.all(np.diff([0, *cuts, 64]) > 0)


def test_without_noise_bins_of_single_values_are_even_up_to_one_value():
    """Every histogram of 6 records over 5 values: no bin is further from an even part of the rest
    than half of the records of one value.
    """
    for counts in product(range(7), repeat=5):
        if sum(counts) != 6:
            continue
        mass = np.array([*counts, 0, 0, 0]) / 6
        assert consistent(exact_levels(mass)) == pytest.approx(mass, abs=1e-12)
        for bins in (2, 3, 5):
            cuts = quantile_cuts(mass, bins, 1, 5)
            ends = [0, *cuts, 5]
            assert all(low < high for low, high in pairwise(ends))
            done = 0.0
            for left, (low, high) in zip(
                range(bins, 1, -1), zip(ends, cuts, strict=False), strict=False
            ):
                even = (1 - done) / left
                inside = mass[low:high].sum()
                near = max(mass[max(high - 1, 0)], mass[min(high, 7)])
                is_forced = high == low + 1 or high == 5 - left + 1
                assert is_forced or abs(inside - even) <= near / 2 + 1e-9
                done += inside


def test_a_value_that_many_share_takes_one_bin():
    """Plain quantiles would put three of the four cut points at the same value."""
    mass = np.array([0.7, 0.1, 0.0, 0.0, 0.1, 0.0, 0.0, 0.1])
    assert quantile_cuts(mass, 4, 1, 8)[0] == 1
    assert quantile_cuts(mass, 4, 1, 8)[1:] == (2, 5)


def test_uniform_masses_give_equal_bins_in_wide_leaves():
    assert quantile_cuts(np.full(16, 1 / 16), 4, 1000, 16_000) == (4000, 8000, 12_000)
    assert quantile_cuts(np.full(16, 1 / 16), 3, 3, 48) == (16, 32)
