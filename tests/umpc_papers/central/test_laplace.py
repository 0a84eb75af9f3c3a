"""Laplace noise at one trusted place: its law, also on grids, and its guarantee."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.support.statistical import N, SeededBits, accept_only
from umpc.errors import InvalidEpsilon, StudyError
from umpc_papers.central.laplace import discrete_laplace, grid_sensitivity, laplace, on_grid

EPSILON = Fraction(1, 2)


def test_discrete_laplace_adds_the_law_to_the_value():
    bits = SeededBits("mechanism laplace")
    drawn = [discrete_laplace(1000, 3, EPSILON, bits) - 1000 for _ in range(4 * N)]
    accept_only(drawn, lambda wrong: stats.dlaplace(1 / (6 * wrong)).cdf, -300, 300, bits)


def test_laplace_is_near_the_continuous_law():
    """On a grid of 1/1000 no test of this size can tell; in steps, shifted by the half that
    rounding hides."""
    bits, grid = SeededBits("laplace"), Fraction(1, 1000)
    drawn = [laplace(Fraction(1, 3), Fraction(2), EPSILON, bits, grid) for _ in range(4 * N)]
    assert all((value / grid).denominator == 1 for value in drawn)
    steps = [int((value - Fraction(333, 1000)) / grid) for value in drawn]
    law = lambda wrong: lambda x: stats.laplace(scale=4000 * wrong).cdf(x + 0.5)  # noqa: E731
    accept_only(steps, law, -200_000, 200_000, bits)


@settings(max_examples=60)
@given(
    value=st.fractions(-100, 100, max_denominator=1000),
    change=st.fractions(0, 10, max_denominator=1000),
    part=st.fractions(-1, 1, max_denominator=100),
    grid=st.fractions(Fraction(1, 100), 3, max_denominator=100),
)
def test_rounding_to_the_grid_keeps_the_sensitivity(value, change, part, grid):
    """Two values that differ by at most the sensitivity differ by at most its steps; and rounding
    is to nearest."""
    here, there = on_grid(value, grid), on_grid(value + part * change, grid)
    assert abs(here - there) <= grid_sensitivity(change, grid)
    assert abs(here * grid - value) <= grid / 2


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda bits: laplace(0.5, Fraction(1), EPSILON, bits),
        lambda bits: laplace(Fraction(1), 0.5, EPSILON, bits),
        lambda bits: laplace(Fraction(1), Fraction(-1), EPSILON, bits),
        lambda bits: laplace(Fraction(1), Fraction(1), EPSILON, bits, Fraction(0)),
        lambda bits: laplace(Fraction(1), Fraction(1), EPSILON, bits, 0.5),
    ],
)
def test_inexact_or_impossible_arguments_are_refused(call):
    with pytest.raises(StudyError):
        call(SeededBits("unused"))


def test_epsilon_is_exact():
    with pytest.raises(InvalidEpsilon):
        discrete_laplace(0, 1, 0.5, SeededBits("unused"))
