"""Partners that every record draws alone (appendix C.1): the stated error, and what caps cost."""

from __future__ import annotations

import numpy as np
import pytest

from umpc.ustat.design import Moments
from umpc_papers.bell_2pc.drawn_alone import REFUSED, DrawnAlone
from umpc_papers.bell_2pc.pair_mechanisms import theorem_5


def parts_of(values: np.ndarray) -> tuple[float, Moments]:
    """The mean over all pairs, and the variances of the kernel's two parts."""
    n = len(values)
    upper = np.triu_indices(n, 1)
    mean = values[upper].mean()
    own = (values.sum(axis=1) - (n - 1) * mean) / (n - 2)
    linear = (own[:, None] + own)[upper]
    rest = values[upper] - mean - linear
    return float(mean), Moments((float(np.var(linear)),), float(np.var(rest)))


@pytest.mark.parametrize("partners", [1, 3])
def test_the_error_is_that_of_many_draws(partners):
    rng, n = np.random.default_rng(7), 24
    x = rng.normal(size=n)
    values = np.sign(x[:, None] - 0.3 * x) + x[:, None] + x
    values = (values + values.T) / 2
    np.fill_diagonal(values, 0)
    mean, moments = parts_of(values)
    assert min(moments.linear[0], moments.rest) > 0.05, "both parts are there"
    picks = rng.random((6000, n, n))
    picks[:, np.arange(n), np.arange(n)] = 2
    chosen = np.argsort(picks, axis=2)[:, :, :partners]
    drawn = np.take_along_axis(np.broadcast_to(values, picks.shape), chosen, axis=2)
    errors = drawn.mean(axis=(1, 2)) - mean
    stated = DrawnAlone(n, partners).sampling_std(moments)
    assert np.std(errors) == pytest.approx(stated, rel=0.05)


def test_more_variance_than_pairings_and_far_more_noise():
    """P = 2m pairings have as many pairs; ζ₁ = 1/8, ζ₂ = 1/2 with as much in either part."""
    n, m = 2000, 1
    alone = DrawnAlone(n, m)
    finite = Moments((0.25,), 0.25)
    assert alone.pairs == n and alone.degree == m + alone.most_asked > 2 * m
    pairings = theorem_5(n, 2 * m, 0.0, 0.25, 0.0)
    assert alone.sampling_std(finite) ** 2 > pairings
    assert alone.noise_std(1.0, 1.0) > 1.5 * theorem_5(n, 2, 0.0, 0.0, 2 * 2**2) ** 0.5


def test_at_most_one_pick_in_a_hundred_is_refused():
    rng = np.random.default_rng(3)
    for records, partners in ((50, 1), (400, 3)):
        alone = DrawnAlone(records, partners)
        asked = rng.binomial(records - 1, partners / (records - 1), 40_000)
        for cap, is_enough in ((alone.most_asked, True), (alone.most_asked - 1, False)):
            refused = np.maximum(0, asked - cap).mean() / partners
            assert (refused < REFUSED * 1.2) == is_enough
