"""From a Python function over records to an expression.

    trace(lambda a, b: sign(a.age - b.age) * sign(a.balance - b.balance))

The function runs once, here, on stand-ins that record what is done to them. It never travels: only the
expression does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from umpc.errors import KernelError
from umpc.ustat import expression as ex

Number = int | float | Decimal | Fraction


class Traced:
    """A value inside a kernel while it is traced."""

    __hash__ = None  # type: ignore[assignment]  # `==` builds an expression, so hashing would lie

    def __init__(self, node: ex.Expression):
        self.node = node

    def __repr__(self) -> str:
        from umpc.ustat.text import to_text

        return f"Traced({to_text(self.node)})"

    def __bool__(self) -> bool:
        raise KernelError(
            f"a kernel may not branch on data: {self!r} was used as a condition (if, and, or, not, a chained "
            f"comparison); write select(condition, then, otherwise), or combine bits with &, | and ~"
        )

    def __add__(self, other: Any) -> Traced:
        return Traced(ex.Add(self.node, lift(other)))

    def __radd__(self, other: Any) -> Traced:
        return Traced(ex.Add(lift(other), self.node))

    def __neg__(self) -> Traced:
        return Traced(ex.Subtract(ex.Constant(Fraction(0)), self.node))

    def __sub__(self, other: Any) -> Traced:
        return Traced(ex.Subtract(self.node, lift(other)))

    def __rsub__(self, other: Any) -> Traced:
        return Traced(ex.Subtract(lift(other), self.node))

    def __mul__(self, other: Any) -> Traced:
        return Traced(ex.Multiply(self.node, lift(other)))

    def __rmul__(self, other: Any) -> Traced:
        return Traced(ex.Multiply(lift(other), self.node))

    def __truediv__(self, other: Any) -> Traced:
        divisor = lift(other)
        if not isinstance(divisor, ex.Constant) or divisor.value == 0:
            raise KernelError(
                f"a kernel divides by numbers other than 0 only, not by {other!r}; divide after the release"
            )
        return Traced(ex.Multiply(self.node, ex.Constant(1 / divisor.value)))

    def __rtruediv__(self, other: Any) -> Traced:
        raise KernelError(f"a kernel cannot divide by data: {other!r} / {self!r}; divide after the release")

    def __pow__(self, power: Any) -> Traced:
        if not isinstance(power, int) or not 1 <= power <= 8:
            raise KernelError(f"a kernel's powers are whole numbers from 1 to 8, got {power!r}")
        product = self.node
        for _ in range(power - 1):
            product = ex.Multiply(product, self.node)
        return Traced(product)

    def __abs__(self) -> Traced:
        return Traced(ex.Absolute(self.node))

    def __lt__(self, other: Any) -> Traced:
        return Traced(ex.Less(self.node, lift(other)))

    def __gt__(self, other: Any) -> Traced:
        return Traced(ex.Less(lift(other), self.node))

    def __le__(self, other: Any) -> Traced:
        return Traced(ex.Not(ex.Less(lift(other), self.node)))

    def __ge__(self, other: Any) -> Traced:
        return Traced(ex.Not(ex.Less(self.node, lift(other))))

    def __eq__(self, other: Any) -> Traced:  # type: ignore[override]
        return Traced(ex.Equal(self.node, lift(other)))

    def __ne__(self, other: Any) -> Traced:  # type: ignore[override]
        return Traced(ex.Not(ex.Equal(self.node, lift(other))))

    def __and__(self, other: Any) -> Traced:
        return Traced(ex.And(bit(self, "&"), bit(other, "&")))

    def __or__(self, other: Any) -> Traced:
        return Traced(ex.Or(bit(self, "|"), bit(other, "|")))

    def __invert__(self) -> Traced:
        return Traced(ex.Not(bit(self, "~")))


class Record:
    """The stand-in for one record: `a.age`, or `a["mean radius"]` where a name is no identifier."""

    def __init__(self, index: int):
        self.__index = index

    def __getattr__(self, name: str) -> Traced:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Traced:
        if not isinstance(name, str):
            raise KernelError(f'a field is named by text, as in a["age"], got {name!r}')
        return Traced(ex.Field(self.__index, name))


def lift(value: Any) -> ex.Expression:
    """A constant or traced value as an expression."""
    if isinstance(value, Traced):
        return value.node
    if isinstance(value, float | Decimal) and not isfinite(value):
        raise KernelError(f"a kernel combines fields and finite numbers, got {value}")
    if isinstance(value, bool | int | Fraction | Decimal):
        return ex.Constant(Fraction(value))
    if isinstance(value, float):
        return ex.Constant(Fraction(repr(float(value))))
    raise KernelError(f"a kernel combines fields and numbers, got {type(value).__name__} {value!r}")


def bit(value: Any, operator: str) -> ex.Expression:
    node = lift(value)
    if not node.is_bit:
        raise KernelError(f"{operator} combines conditions such as a.x < b.x, got {Traced(node)!r}")
    return node


def sign(of: Traced) -> Traced:
    """−1, 0 or 1."""
    return Traced(ex.Sign(lift(of)))


def select(condition: Traced, then: Any, otherwise: Any) -> Traced:
    """`then` where the condition holds, else `otherwise`; both are always computed."""
    return Traced(ex.Select(bit(condition, "select"), lift(then), lift(otherwise)))


def minimum(left: Any, right: Any) -> Traced:
    return Traced(ex.Select(ex.Less(lift(left), lift(right)), lift(left), lift(right)))


def maximum(left: Any, right: Any) -> Traced:
    return Traced(ex.Select(ex.Less(lift(left), lift(right)), lift(right), lift(left)))


def trace(kernel: Callable[..., Any]) -> ex.Expression:
    """The expression that a kernel function computes; its arguments are the k records of an edge."""
    arity = len(inspect.signature(kernel).parameters)
    if not 1 <= arity <= len(ex.RECORD_NAMES):
        raise KernelError(f"a kernel takes 1 to {len(ex.RECORD_NAMES)} records, this one takes {arity}")
    return lift(kernel(*(Record(index) for index in range(arity))))
