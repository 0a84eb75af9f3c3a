"""Sums of products over axes, with as few products as grouping by proportional parts finds.

sign(x − x′)·sign(y − y′) has nine products of bits. Grouped, it is one product: the sign along one
axis times the sign along the other. Coefficients stay integers, so all is exact modulo 2^64.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd
from typing import TypeAlias

Combination: TypeAlias = tuple[tuple[int, int], ...]
"""(key, coefficient) of the operators along one axis, by ascending key."""
Product: TypeAlias = tuple[Combination, ...]
"""One combination for each axis."""


def grouped(terms: Iterable[tuple[int, tuple[int, ...]]], axes: int) -> list[Product]:
    """Σ coefficient · Π keys as a sum of products of combinations.

    Args: terms: (coefficient, one key per axis). axes: the number of axes, at least 1.
    """
    products: list[Product] = []
    for coefficient, keys in terms:
        first, *others = keys
        products.append((((first, coefficient),), *(((key, 1),) for key in others)))
    while True:
        before = len(products)
        for axis in range(axes):
            products = _merged(products, axis)
        if len(products) == before:
            return products


def _merged(products: Sequence[Product], axis: int) -> list[Product]:
    """The products, with those that differ along one axis only as one."""
    sums: dict[tuple[Combination, ...], dict[int, int]] = {}
    for product in products:
        scale = 1
        rest = []
        for place, combination in enumerate(product):
            if place != axis:
                factor, primitive = _primitive(combination)
                scale *= factor
                rest.append(primitive)
        total = sums.setdefault(tuple(rest), {})
        for key, coefficient in product[axis]:
            total[key] = total.get(key, 0) + scale * coefficient
    found = []
    for rest_of, total in sums.items():
        kept = tuple(sorted((key, c) for key, c in total.items() if c))
        if kept:
            found.append((*rest_of[:axis], kept, *rest_of[axis:]))
    return found


def _primitive(combination: Combination) -> tuple[int, Combination]:
    """A factor, and the combination divided by it, of which the first coefficient is positive."""
    factor = gcd(*(coefficient for _, coefficient in combination))
    if combination[0][1] < 0:
        factor = -factor
    return factor, tuple((key, coefficient // factor) for key, coefficient in combination)
