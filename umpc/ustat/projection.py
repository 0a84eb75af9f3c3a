"""A pair kernel over triples, with a second kernel from which the variance of its mean follows.

For a symmetric kernel f of pairs with mean θ,

    first(a, b, c)  = (f(a, b) + f(a, c) + f(b, c)) / 3
    second(a, b, c) = (f(a, b)·f(a, c) + f(a, b)·f(b, c) + f(a, c)·f(b, c)) / 3

have the means θ and ζ₁ + θ², where ζ₁ is the variance of the projection E f(a, ·) (Hoeffding 1948,
section 5). The mean of `first` over all triples is the mean of f over all pairs. So both sums have
one degree and one E.
"""

from __future__ import annotations

from fractions import Fraction

from umpc.ustat.expression import (
    Add,
    Constant,
    Expression,
    Multiply,
    permute_records,
    records_of,
)

PAIR, TRIPLE = 2, 3
THIRD = Constant(Fraction(1, 3))


def over_triples(pair: Expression) -> tuple[Expression, Expression]:
    """(first, second) of a kernel of two records."""
    ab = pair
    ac = permute_records(pair, (0, 2, 1))
    bc = permute_records(pair, (1, 2, 0))
    first = Add(Add(ab, ac), bc)
    second = Add(Add(Multiply(ab, ac), Multiply(ab, bc)), Multiply(ac, bc))
    return Multiply(first, THIRD), Multiply(second, THIRD)


def is_over_triples(first: Expression, second: Expression) -> bool:
    """Whether two kernels are those of some kernel of pairs."""
    outer = first.left if isinstance(first, Multiply) else None
    inner = outer.left if isinstance(outer, Add) else None
    pair = inner.left if isinstance(inner, Add) else None
    if pair is None or not records_of(pair) <= set(range(PAIR)):
        return False
    return over_triples(pair) == (first, second)
