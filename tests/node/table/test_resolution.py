"""umpc.node.table.resolution: the step that holds every value, or all ranks."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umpc.node.table.resolution import CHEAP_STEPS, count_merged, find_resolution, is_held
from umpc.ustat.schema import MAX_UNITS


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ("1 2 300", "1"),
        ("1.0 2.50", "0.1"),
        ("17.99 10.38", "0.01"),
        ("1e3 1e-3", "0.001"),
        ("-0.25 1000000", "0.01"),
        ("0", "1"),
    ],
)
def test_a_column_of_measured_values_takes_its_digits(values, text):
    found = find_resolution(map(Decimal, values.split()))
    assert (found.text, found.is_exact, found.merged) == (text, True, 0)
    assert found.keeps == "holds every value"


def test_bounds_are_decimals_without_needless_zeros():
    found = find_resolution([Decimal("-0.050"), Decimal("12.25"), Decimal("1200")])
    assert found.bounds(Fraction("-0.05"), Fraction(1200)) == ("-0.05", "1200")
    assert found.bounds(Fraction("-12.255"), Fraction("0.001")) == ("-12.26", "0.01")


def test_a_column_of_long_doubles_keeps_its_ranks_with_few_steps():
    values = [Decimal(repr(value / 7)) for value in range(1, 50)]
    found = find_resolution(values)
    assert not found.is_exact and found.merged == 0 and found.step >= Fraction(1, 100)
    assert "so ranks stay" in found.keeps


def test_what_no_resolution_can_hold_is_said():
    found = find_resolution([Decimal("1e-20"), Decimal("2e-20"), Decimal("3e6")])
    assert found.merged == 1 and "makes 1 different values equal" in found.keeps
    assert 3e6 / found.step <= MAX_UNITS


@given(st.lists(st.decimals(-(10**6), 10**6, places=3), min_size=1, max_size=40))
def test_a_resolution_holds_values_or_their_ranks(values):
    found = find_resolution(values)
    exact = set(map(Fraction, values))
    assert found.is_exact == is_held(exact, found.step)
    assert found.merged == count_merged(exact, found.step) == 0
    low, high = map(Fraction, found.bounds(min(exact), max(exact)))
    assert low <= min(exact) and high >= max(exact)
    assert min(exact) - low < found.step > high - max(exact)
    assert (low / found.step).denominator == (high / found.step).denominator == 1
    assert not found.is_exact or abs(high / found.step) <= 10 * CHEAP_STEPS
