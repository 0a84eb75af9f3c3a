"""umpc.protocols.grid.operators.axis: the places for which a comparison holds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from umpc.protocols.grid.operators.axis import (
    Axis,
    BilinearBit,
    DoesNotFactor,
    bilinear_of,
    intersection,
)
from umpc.ustat import polynomial as poly
from umpc.ustat.normal_form import BitAtom, FieldAtom

X, Y = (poly.atom(FieldAtom(0, name)) for name in "xy")
FIRST, SECOND = Axis(X, -3, 6), Axis(Y, -2, 5)


def holds(link: BilinearBit) -> np.ndarray:
    """Return for each pair of places whether the comparison holds, from its definition."""
    u, w = FIRST.values[:, None], SECOND.values[None, :]
    number = link.alpha * u + link.beta * w + link.gamma * u * w + link.constant
    return number < 0 if link.kind == "less" else number == 0


def inside(bounds: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    low, high = (ends[:, None] for ends in bounds)
    place = np.arange(SECOND.size)[None, :]
    return (low <= place) & (place < high)


@pytest.mark.parametrize("kind", ["less", "equal"])
def test_an_interval_holds_the_places_of_the_comparison(kind):
    for numbers in product((-3, -1, 0, 1, 2), (-3, -1, 0, 1, 2), (-1, 0, 2), (-4, -1, 0, 3)):
        link = BilinearBit(kind, X, Y, *numbers)
        bounds = link.interval(FIRST, SECOND)
        assert np.array_equal(inside(bounds), holds(link)), link


def test_several_comparisons_are_the_intersection_of_their_intervals():
    band = [BilinearBit("less", X, Y, 1, -1, 0, -2), BilinearBit("less", X, Y, -1, 1, 0, -1)]
    bounds = intersection(band, FIRST, SECOND)
    assert np.array_equal(inside(bounds), holds(band[0]) & holds(band[1]))
    never = [BilinearBit("less", X, Y, 1, -1, 0, 0), BilinearBit("less", X, Y, -1, 1, 0, 0)]
    assert not inside(intersection(never, FIRST, SECOND)).any()


def bit(*terms: tuple[int, tuple[tuple[int, str], ...]]) -> BitAtom:
    """Return the bit [Σ coefficient · Π fields < 0]."""
    total = poly.constant(0)
    for coefficient, factors in terms:
        product_ = poly.constant(coefficient)
        for record, name in factors:
            product_ = poly.multiply(product_, poly.atom(FieldAtom(record, name)))
        total = poly.add(total, product_)
    return BitAtom("less", total)


def test_a_link_names_both_numbers_and_their_factors():
    linear = bit((2, ((0, "x"),)), (-3, ((1, "y"),)), (5, ()))
    assert bilinear_of(linear, 0, 1) == BilinearBit("less", X, Y, 2, -3, 0, 5)
    assert bilinear_of(linear, 1, 0) == BilinearBit("less", Y, X, -3, 2, 0, 5)
    products = bit((1, ((0, "x"), (1, "y"))), (-4, ((0, "x"),)))
    assert bilinear_of(products, 0, 1) == BilinearBit("less", X, Y, -4, 0, 1, 0)


def test_a_comparison_of_more_than_one_number_of_a_record_has_no_link():
    with pytest.raises(DoesNotFactor):
        bilinear_of(bit((1, ((0, "x"), (1, "y"))), (1, ((0, "y"), (1, "x")))), 0, 1)
