"""The noise of noisy pairs as whole studies in memory: its law, and the mean squared error that
follows.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from tests.support.bell import (
    EQUAL,
    bell_study,
    clear_values,
    law_p,
    noise_by_place,
    noisy_values,
    signed,
    without_transfers,
)
from tests.support.studies import KENDALL, Entropy, generator, random_tables, table
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import simulate
from umpc_papers.bell_2pc.pair_mechanisms import PairLaplace, theorem_5

pytestmark = pytest.mark.usefixtures("fast")

ALPHA = 1e-6
"""Chance that a chi-square test of right code fails, had its seed been chosen at random."""
REPETITIONS = 200
Z = 3.9
"""Standard errors that a mean, or a mean squared error, may be off: α = 1e-4, on both sides of a
normal law.
"""


LAW = (0.3, 0.7)
"""The law of x, i.i.d.: ζ1 of `EQUAL` is not 0."""
N, P, EPSILON = 20, 2, 2
"""ε0 = 1: the noise is 9 tenths of the error."""


def zetas() -> tuple[float, float, float]:
    """Mean, ζ1 and ζ2 of [x = y]: E[f(x, X)] = P(X = x)."""
    mean = sum(p * p for p in LAW)
    return mean, sum(p * (p - mean) ** 2 for p in LAW), mean * (1 - mean)


@cache
def repeated(
    noise: str = "pair_laplace", epsilon: int = EPSILON
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list]:
    """Errors of REPETITIONS estimates from fresh records, all noise between nodes and inside, and
    released values.
    """
    study = bell_study(EQUAL, 2, epsilon=str(epsilon), edges=f"{P}p", noise=noise)
    rng, entropy = generator(f"records {noise}"), Entropy(f"repeated {noise}")
    errors, between, inside, values = [], [], [], []
    with without_transfers():
        for _ in range(REPETITIONS):
            x = rng.choice(2, N, p=LAW)
            tables = [table(each, each) for each in np.split(x, 2)]
            run = simulate(study, tables, entropy)
            errors.append(run.report.estimate - zetas()[0])
            places = noise_by_place(study, tables, run)
            between.append(places[0])
            inside.append(places[1])
            clear, noisy = clear_values(study, tables, run), noisy_values(run)
            values += [
                (len(set(owners)) == 1, clear[owners][0], noisy[owners][0]) for owners in clear
            ]
    return np.array(errors), np.concatenate(between), np.concatenate(inside), values


def deviation(errors: np.ndarray, claimed: float) -> float:
    """How many standard errors the mean squared error is from the claim.

    That of a squared error is √2 of its mean, and 5 % more for the Laplace tails of the mean of few
    pairs.
    """
    return float((errors**2).mean() / claimed - 1) / (1.05 * np.sqrt(2 / len(errors)))


def test_the_mean_squared_error_is_that_of_theorem_5_with_its_noise_term_corrected():
    errors, *_ = repeated()
    _, one, two = zetas()
    pair = PairLaplace(Fraction(EPSILON, P), 1, 1, P, Fraction(EPSILON)).std ** 2
    claimed = theorem_5(N, P, one, two, pair)
    assert abs(deviation(errors, claimed)) < Z, (claimed, (errors**2).mean())
    for wrong in (0, pair / 2, pair * P):
        assert abs(deviation(errors, theorem_5(N, P, one, two, wrong))) > Z, f"no power: {wrong}"
    assert abs(errors.mean()) < Z * errors.std() / np.sqrt(REPETITIONS)


def test_noise_of_pairs_between_nodes_and_inside_a_node_has_one_law():
    _, *places, _ = repeated()
    for noise in places:
        assert len(noise) > 1500
        p = law_p(noise, EPSILON / P)
        assert p > ALPHA, f"p = {p:.1e}, N = {len(noise)}"
        for scale in (0.7, 1.3):
            assert law_p(noise, EPSILON / P / scale) < ALPHA, (
                f"no power at {scale}, N = {len(noise)}"
            )


def test_noise_of_one_pair_says_nothing_of_anothers():
    """Neighbouring pairs of a cell: a shared coin's correlation would be 1/2 or more."""
    _, *places, _ = repeated()
    for noise in places:
        found = np.corrcoef(noise[:-1], noise[1:])[0, 1]
        assert abs(found) < Z / np.sqrt(len(noise))


def test_responses_are_right_as_often_as_they_should_be():
    """ε0 = 1, both values, between nodes and inside; odds of e^0.5 and e^1.6 are rejected."""
    *_, values = repeated("randomised_response")
    for inside in (False, True):
        clear, noisy = (
            np.concatenate([row[of] for row in values if row[0] == inside]) for of in (1, 2)
        )
        for value in (0, 1):
            right = (noisy == value)[clear == value]
            for odds, fits in ((1.0, True), (0.5, False), (1.6, False)):
                chance = 1 / (1 + np.exp(-odds))
                z = (right.mean() - chance) / np.sqrt(chance * (1 - chance) / len(right))
                assert (abs(z) < Z) == fits, (inside, value, odds, z, len(right))
        assert {*noisy} == {0, 1}


def test_the_released_estimate_of_responses_is_unbiased():
    errors, *_ = repeated("randomised_response")
    assert abs(errors.mean()) < Z * errors.std() / np.sqrt(REPETITIONS)


def test_shares_are_of_the_whole_ring():
    """Values of pairs are signed: read as such they add up to the noisy sum."""
    with without_transfers():
        run = simulate(
            bell_study(KENDALL, x=("0", "3")), random_tables([9, 9], "signed"), Entropy("signed")
        )
    noisy = noisy_values(run)
    assert (
        min(rows.min() for rows in noisy.values()) < 0 < max(rows.max() for rows in noisy.values())
    )
    total = sum(int(rows.sum()) for rows in noisy.values())
    assert noisy_sums(run.transcript.shares, 1, run.attempt.ring) == [total]
    largest = np.array([(1 << 8 * run.attempt.ring.bytes) - 1], dtype=run.attempt.ring.dtype)
    assert signed(run, largest) == -1
