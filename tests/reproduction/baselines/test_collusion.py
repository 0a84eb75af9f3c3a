"""The epsilon that is left with fewer honest nodes: the closed form against the convolution."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from reproduction.baselines.collusion import remaining_epsilon
from umpc.errors import InvalidEpsilon, StudyError


def log_pmf(shape: float, log_ratio: float, reach: int) -> np.ndarray:
    """log P(A - B = x), x = 0..reach, of two Polya variables: the convolution, summed term by
    term."""
    k = np.arange(int(60 / log_ratio) + 2 * reach + 50)
    one = (
        special.gammaln(k + shape) - special.gammaln(k + 1) - special.gammaln(shape) - log_ratio * k
    )
    one += shape * np.log(-np.expm1(-log_ratio))
    return np.array([special.logsumexp(one[x:] + one[: len(k) - x]) for x in range(reach + 1)])


@pytest.mark.parametrize("sensitivity", [1, 2, 7, 40])
@pytest.mark.parametrize(("honest", "now"), [(2, 1), (10, 9), (4, 3), (4, 1), (10, 1)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(5)], ids=str)
def test_it_is_the_worst_loss_of_the_convolution(epsilon, honest, now, sensitivity):
    """The maximum over every x and every change up to the sensitivity, not only the pair the
    formula names."""
    reach = 4 * sensitivity + 20
    table = log_pmf(now / honest, float(epsilon) / sensitivity, reach)
    both = np.concatenate([table[:0:-1], table])
    worst = max(
        float((both[change:] - both[:-change]).max()) for change in range(1, sensitivity + 1)
    )
    ours = remaining_epsilon(epsilon, sensitivity, honest, now)
    assert worst - 1e-9 <= ours <= worst + 1e-8


def test_with_half_of_the_nodes_honest_one_becomes_three_point_four():
    """For a sum in units of 2^-16 (s = 65,536); with s = 1 one becomes 1.68."""
    for nodes in (2, 16):
        assert float(remaining_epsilon(Fraction(1), 65_536, nodes, nodes // 2)) == pytest.approx(
            3.44, abs=0.005
        )
        assert float(remaining_epsilon(Fraction(1), 1, nodes, nodes // 2)) == pytest.approx(
            1.68, abs=0.005
        )
    by_sensitivity = [
        round(float(remaining_epsilon(Fraction(1), 10**k, 2, 1)), 2) for k in range(0, 7)
    ]
    assert by_sensitivity == [1.68, 2.34, 2.76, 3.06, 3.29, 3.47, 3.63]


@pytest.mark.parametrize(("tenths", "one", "many"), [(9, 1.10, 1.19), (1, 3.30, 12.25)])
def test_other_shares_of_honest_nodes(tenths, one, many):
    """Values computed with another library."""
    assert float(remaining_epsilon(Fraction(1), 1, 10, tenths)) == pytest.approx(one, abs=0.005)
    assert float(remaining_epsilon(Fraction(1), 65_536, 10, tenths)) == pytest.approx(
        many, abs=0.005
    )


@settings(max_examples=100)
@given(
    epsilon=st.fractions(Fraction(1, 100), 20, max_denominator=100),
    sensitivity=st.integers(1, 10**15),
    honest=st.integers(2, 40),
    data=st.data(),
)
def test_fewer_honest_nodes_never_help(epsilon, sensitivity, honest, data):
    now = data.draw(st.integers(1, honest - 1))
    slack = Fraction(1, 2**20)
    left = remaining_epsilon(epsilon, sensitivity, honest, now)
    assert epsilon <= left + slack
    assert remaining_epsilon(epsilon, sensitivity, honest, now + 1) <= left + slack
    assert (
        left <= remaining_epsilon(epsilon, sensitivity + 1, honest, now) * (1 + slack) + slack
        or sensitivity > 10**6
    )


@pytest.mark.parametrize("now", [3, 4, 100])
def test_enough_honest_nodes_keep_the_promise_exactly(now):
    assert remaining_epsilon(Fraction(1, 3), 5, 3, now) == Fraction(1, 3)


def test_a_public_sum_has_nothing_to_lose():
    assert remaining_epsilon(Fraction(1), 0, 3, 1) == 0


@pytest.mark.parametrize(("honest", "now"), [(3, 0), (0, 1), (3, -1), (3, 1.5), (True, True)])
def test_numbers_of_nodes_are_checked(honest, now):
    with pytest.raises(StudyError, match="at least 1 honest"):
        remaining_epsilon(Fraction(1), 1, honest, now)


def test_epsilon_and_sensitivity_are_checked():
    with pytest.raises(InvalidEpsilon):
        remaining_epsilon(0.5, 1, 2, 1)
    with pytest.raises(StudyError):
        remaining_epsilon(Fraction(1), -1, 2, 1)
