"""`DistributedLaplace`: the noise of all nodes, the guarantee of honest nodes, the tail."""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.support.statistical import WRONG_SCALES, N, SeededBits, accept, reject
from umpc.dp.calibration import LN2_ABOVE, DiscreteLaplace, DistributedLaplace
from umpc.errors import InvalidEpsilon, LocalProtocolError, StudyError

NOISE = DistributedLaplace(Fraction(1, 2), sensitivity=3, nodes=3, honest=2)
REACH = 600


def difference_pmf(shape: float, log_ratio: float, reach: int = REACH) -> np.ndarray:
    """P(A - B = x) for x in -reach..reach, A and B Polya(shape): the sum of shares of this total
    shape."""
    one = stats.nbinom.pmf(np.arange(reach + 1), shape, -math.expm1(-log_ratio))
    return np.convolve(one, one[::-1])


def all_shares_cdf(noise: DistributedLaplace):
    table = np.cumsum(difference_pmf(noise.nodes / noise.honest, float(noise.log_ratio)))
    return lambda x: float(table[min(max(x, -REACH), REACH) + REACH])


def totals(noise: DistributedLaplace, shares: int, bits: SeededBits) -> list[int]:
    return [sum(noise.draw(bits) for _ in range(shares)) for _ in range(N)]


# --- what is added --------------------------------------------------------------------------------


def test_all_shares_sum_to_the_wider_law():
    bits = SeededBits("all shares")
    drawn = totals(NOISE, NOISE.nodes, bits)
    accept(drawn, all_shares_cdf(NOISE), -REACH, REACH, bits)
    assert max(map(abs, drawn)) <= NOISE.tail_bound(64)


def test_the_shares_of_the_honest_nodes_alone_are_discrete_laplace():
    bits = SeededBits("honest shares")
    law = DiscreteLaplace(Fraction(1, 6))  # epsilon / sensitivity, whatever the number of nodes
    accept(totals(NOISE, NOISE.honest, bits), law.cdf, -REACH, REACH, bits)


@pytest.mark.parametrize("wrong", WRONG_SCALES, ids=str)
def test_power_a_wrong_epsilon_is_found(wrong):
    bits = SeededBits(f"wrong epsilon {wrong}")
    other = dataclasses.replace(NOISE, epsilon=NOISE.epsilon / wrong)
    reject(totals(other, other.nodes, bits), all_shares_cdf(NOISE), -REACH, REACH, bits)


def test_power_a_wrong_number_of_honest_nodes_is_found():
    bits = SeededBits("wrong honest")
    other = dataclasses.replace(NOISE, honest=3)
    reject(totals(other, other.nodes, bits), all_shares_cdf(NOISE), -REACH, REACH, bits)


@pytest.mark.parametrize(("nodes", "honest"), [(1, 1), (3, 2), (16, 8), (5, 1)])
def test_variance_is_that_of_all_shares(nodes, honest):
    noise = DistributedLaplace(Fraction(1), sensitivity=4, nodes=nodes, honest=honest)
    pmf = difference_pmf(nodes / honest, float(noise.log_ratio))
    assert noise.variance == pytest.approx(
        (pmf * np.arange(-REACH, REACH + 1) ** 2).sum(), rel=1e-9
    )
    alone = DiscreteLaplace(Fraction(1, 4)).variance
    assert noise.variance == pytest.approx(nodes / honest * alone, rel=1e-12)
    assert noise.std == pytest.approx(math.sqrt(noise.variance), rel=1e-12)


def test_the_same_stream_gives_the_same_share():
    bits = SeededBits("calibrated vector")
    noise = DistributedLaplace(Fraction(1, 10), sensitivity=40 * 2**14, nodes=4, honest=3)
    assert [noise.draw(bits) for _ in range(5)] == [5515495, -4417479, -2143385, -66774, -404355]


# --- what is guaranteed ---------------------------------------------------------------------------


def epsilon_of(pmf: np.ndarray, shift: int) -> float:
    """The largest log ratio of a law and its shift, over the middle where floats still have
    digits."""
    reach = len(pmf) // 2
    middle = pmf[reach - 60 : reach + 61]
    return float(np.abs(np.log(middle[shift:]) - np.log(middle[:-shift])).max())


@pytest.mark.parametrize(("nodes", "honest", "sensitivity"), [(2, 1, 1), (3, 2, 3), (16, 8, 2)])
def test_epsilon_holds_for_exactly_the_honest_shares(nodes, honest, sensitivity):
    """Colluders subtract what they added: h shares of shape 1/h remain."""
    noise = DistributedLaplace(Fraction(1), sensitivity, nodes, honest)
    left = difference_pmf(honest * (1 / noise.honest), float(noise.log_ratio))
    assert epsilon_of(left, sensitivity) == pytest.approx(1, abs=1e-6)


def test_epsilon_fails_if_fewer_are_honest_than_assumed():
    """Why h is not n: with one of two nodes honest, noise made for two gives 1.68 where 1 was
    promised."""
    noise = DistributedLaplace(Fraction(1), sensitivity=1, nodes=2, honest=2)
    left = difference_pmf(1 * (1 / noise.honest), float(noise.log_ratio))
    assert epsilon_of(left, 1) == pytest.approx(1.68, abs=0.01)


@pytest.mark.parametrize(("honest", "epsilon"), [(2, 3.1), (4, 1.60), (8, 1.25), (32, 1.06)])
def test_one_liar_more_than_assumed_costs_less_the_more_nodes_are_honest(honest, epsilon):
    """docs/verified_grid.md, part 7: a node that checks for itself loses no more than this."""
    sensitivity = 20
    noise = DistributedLaplace(Fraction(1), sensitivity, honest, honest)
    left = difference_pmf((honest - 1) / honest, float(noise.log_ratio))
    assert 1.04 < epsilon_of(left, sensitivity) < epsilon


def test_it_costs_more_of_a_smaller_epsilon():
    noise = DistributedLaplace(Fraction(1, 10), 20, 8, 8)
    left = difference_pmf(7 / 8, float(noise.log_ratio), 8000)
    assert epsilon_of(left, 20) == pytest.approx(0.18, abs=0.005)


# --- how far it reaches ---------------------------------------------------------------------------


def tail(noise: DistributedLaplace, bound: int) -> float:
    """P(|A - B| > bound), all terms positive so that small values keep their digits."""
    shape, success = noise.nodes / noise.honest, -math.expm1(-float(noise.log_ratio))
    b = np.arange(int((40 + 8 * shape) / float(noise.log_ratio)) + 50)
    return float(
        2 * (stats.nbinom.pmf(b, shape, success) * stats.nbinom.sf(bound + b, shape, success)).sum()
    )


@settings(max_examples=100)
@given(
    epsilon=st.fractions(Fraction(1, 50), 20, max_denominator=100),
    sensitivity=st.integers(1, 20),
    counts=st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))),
    bits=st.integers(1, 100),
)
def test_the_tail_is_bounded(epsilon, sensitivity, counts, bits):
    noise = DistributedLaplace(epsilon, sensitivity, *counts)
    assert tail(noise, noise.tail_bound(bits)) <= 2.0**-bits


@pytest.mark.parametrize(
    ("nodes", "honest", "waste"),
    [(1, 1, 1.14), (3, 2, 1.14), (16, 8, 1.14), (16, 1, 1.26), (256, 1, 2.1)],
)
def test_the_tail_bound_is_near_the_quantile(nodes, honest, waste):
    """The docstring's percentages; and power: this much less and the bound would be false."""
    noise = DistributedLaplace(Fraction(1, 100), 1, nodes, honest)
    assert tail(noise, int(noise.tail_bound(64) / waste)) > 2.0**-64


def test_the_tail_bound_scales_exactly():
    """Fractions throughout: no float limits it at 2^200 units."""
    small = DistributedLaplace(Fraction(1), 1, 3, 2).tail_bound()
    large = DistributedLaplace(Fraction(1), 2**200, 3, 2).tail_bound()
    assert (small * 2**200) <= large < (small + 1) * 2**200


def test_the_tail_bound_grows_with_certainty_and_with_nodes():
    by_bits = [NOISE.tail_bound(bits) for bits in (1, 2, 40, 64, 1000)]
    by_nodes = [dataclasses.replace(NOISE, nodes=nodes).tail_bound() for nodes in (2, 3, 8, 1000)]
    for bounds in (by_bits, by_nodes):
        assert bounds == sorted(set(bounds))


def test_ln2_above_is_above():
    getcontext().prec = 40
    assert 0 < LN2_ABOVE - Fraction(Decimal(2).ln()) < Fraction(1, 10**17)


# --- the ends of the range, and refusals ----------------------------------------------------------


def test_sensitivity_zero_is_no_noise():
    noise = DistributedLaplace(Fraction(1), sensitivity=0, nodes=3, honest=2)

    def no_bits(count: int) -> int:
        raise AssertionError("a constant needs no randomness")

    assert (noise.draw(no_bits), noise.variance, noise.std, noise.tail_bound()) == (0, 0, 0, 0)
    with pytest.raises(LocalProtocolError, match="sensitivity 0"):
        _ = noise.log_ratio


def test_a_huge_epsilon_is_no_noise():
    noise = DistributedLaplace(Fraction(10**9), sensitivity=1, nodes=3, honest=1)
    assert noise.tail_bound() == 0
    assert {noise.draw(SeededBits(f"huge {i}")) for i in range(100)} == {0}


@pytest.mark.parametrize(
    "epsilon",
    [
        Fraction(0),
        Fraction(-1, 2),
        0,
        -1,
        0.5,
        float("nan"),
        float("inf"),
        True,
        "1/2",
        None,
        Decimal("0.5"),
    ],
    ids=repr,
)
def test_epsilon_is_exact_and_positive(epsilon):
    with pytest.raises(InvalidEpsilon, match="exact number above 0") as failure:
        DistributedLaplace(epsilon, 1, 3, 2)
    assert str(epsilon) in failure.value.message


def test_epsilon_too_small_to_draw_is_refused():
    with pytest.raises(InvalidEpsilon, match="larger epsilon"):
        DistributedLaplace(Fraction(1, 2**200), 2**60, 3, 2)


@pytest.mark.parametrize("epsilon", [Fraction(3), 3])
def test_log_ratio_is_exact(epsilon):
    noise = DistributedLaplace(epsilon, 7, 3, 2)
    assert noise.log_ratio == Fraction(3, 7) and isinstance(noise.epsilon, Fraction)


@pytest.mark.parametrize(
    ("nodes", "honest"), [(3, 0), (3, 4), (0, 0), (3, -1), (3, 2.0), (True, True)]
)
def test_honest_is_between_one_and_all(nodes, honest):
    with pytest.raises(StudyError, match="at least 1 and at most all nodes"):
        DistributedLaplace(Fraction(1), 1, nodes, honest)


@pytest.mark.parametrize("sensitivity", [-1, 1.5, Fraction(1, 2), True])
def test_sensitivity_is_a_whole_number(sensitivity):
    with pytest.raises(StudyError, match="sensitivity"):
        DistributedLaplace(Fraction(1), sensitivity, 3, 2)


@pytest.mark.parametrize("log2_probability", [0, -64])
def test_a_tail_of_one_or_more_is_refused(log2_probability):
    with pytest.raises(LocalProtocolError, match="tail"):
        NOISE.tail_bound(log2_probability)
