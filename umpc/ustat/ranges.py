"""The interval of a kernel's values, by interval arithmetic over its expression.

From this interval follow the sensitivity Δf = high − low under replace-one adjacency (2 for
Kendall's tau, not 1) and the proof that sums fit the ring.

Interval arithmetic never reports an interval that is too small. It may report one that is too large
where a subexpression occurs twice. Some repetitions are exact nevertheless: squares, minimum and
maximum (hence clamp), and whatever two equal operands decide: x − x, x < x, x = x. Where a kernel
has few points, enumeration gives the exact interval.

*Enumeration.* The exact interval of a kernel with few points, by its value on all of them.

A field is *order-only* if the kernel only compares it between records. Each time the field occurs,
it is inside a comparison that depends on nothing but the order of `x` of one record and `x` of
another, as in `a.x < b.x` or `sign(a.x - b.x)`. Then only the weak order of its values matters.
Every weak order of n values is a weak order of n neighbouring values, so these may replace its
domain. The 65,536 points of two such fields in four records then stand for all records, whatever
the fields' bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.errors import LocalProtocolError
from umpc.ustat.clear import Columns, Exact, evaluate_exact, fits_words
from umpc.ustat.expression import (
    Constant,
    Expression,
    Field,
    Interpreter,
    Rebuild,
    Subtract,
    fields_of,
    interpret,
)
from umpc.ustat.normal_form import Polynomial
from umpc.ustat.polynomial import evaluate_local
from umpc.ustat.schema import Schema


@dataclass(frozen=True)
class Interval:
    """All values lie in [low, high]."""

    low: Fraction
    high: Fraction

    @property
    def width(self) -> Fraction:
        """high − low."""
        return self.high - self.low

    @property
    def magnitude(self) -> Fraction:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))


def interval_of(expression: Expression, schema: Schema) -> Interval:
    """An interval that holds all values of the kernel on records of the schema."""
    folded = interpret(expression, _Fold())
    return interpret(folded, _Intervals(schema))


class _Fold(Rebuild):
    """Writes what two equal operands decide as a number.

    Intervals know which values are possible. They do not know that two values are the same value.
    """

    def subtract(self, left: Expression, right: Expression) -> Expression:
        return _ZERO if left == right else super().subtract(left, right)

    def less(self, left: Expression, right: Expression) -> Expression:
        return _ZERO if left == right else super().less(left, right)

    def equal(self, left: Expression, right: Expression) -> Expression:
        return _ONE if left == right else super().equal(left, right)

    def exclusive(self, left: Expression, right: Expression) -> Expression:
        return _ZERO if left == right else super().exclusive(left, right)

    def select(self, condition: Expression, then: Expression, otherwise: Expression) -> Expression:
        return then if then == otherwise else super().select(condition, then, otherwise)


_ZERO = Constant(Fraction(0))
_ONE = Constant(Fraction(1))


class _Intervals(Interpreter[Interval]):
    def __init__(self, schema: Schema):
        self.schema = schema

    def field(self, record: int, name: str) -> Interval:
        field = self.schema[name]
        return Interval(field.lower, field.upper)

    def constant(self, value: Fraction) -> Interval:
        return Interval(value, value)

    def add(self, left: Interval, right: Interval) -> Interval:
        return Interval(left.low + right.low, left.high + right.high)

    def subtract(self, left: Interval, right: Interval) -> Interval:
        return Interval(left.low - right.high, left.high - right.low)

    def multiply(self, left: Interval, right: Interval) -> Interval:
        corners = [x * y for x in (left.low, left.high) for y in (right.low, right.high)]
        return Interval(min(corners), max(corners))

    def square(self, operand: Interval) -> Interval:
        root = self.absolute(operand)
        return Interval(root.low**2, root.high**2)

    def less(self, left: Interval, right: Interval) -> Interval:
        if left.high < right.low:
            return Interval(Fraction(1), Fraction(1))
        never = left.low >= right.high
        return Interval(Fraction(0), Fraction(0 if never else 1))

    def equal(self, left: Interval, right: Interval) -> Interval:
        if left == right and left.width == 0:
            return Interval(Fraction(1), Fraction(1))
        never = left.high < right.low or right.high < left.low
        return Interval(Fraction(0), Fraction(0 if never else 1))

    def exclusive(self, left: Interval, right: Interval) -> Interval:
        if left.width and right.width:
            return Interval(Fraction(0), Fraction(1))
        # one of the bits is known: it passes or inverts the other
        fixed, other = (right, left) if left.width else (left, right)
        return self.complement(other) if fixed.low == 1 else other

    def absolute(self, operand: Interval) -> Interval:
        if operand.low <= 0 <= operand.high:
            return Interval(Fraction(0), operand.magnitude)
        return Interval(min(abs(operand.low), abs(operand.high)), operand.magnitude)

    def select(self, condition: Interval, then: Interval, otherwise: Interval) -> Interval:
        possible = []
        if condition.high == 1:
            possible.append(then)
        if condition.low == 0:
            possible.append(otherwise)
        low = min(interval.low for interval in possible)
        return Interval(low, max(interval.high for interval in possible))

    def minimum(self, left: Interval, right: Interval) -> Interval:
        return Interval(min(left.low, right.low), min(left.high, right.high))

    def maximum(self, left: Interval, right: Interval) -> Interval:
        return Interval(max(left.low, right.low), max(left.high, right.high))


# --- enumeration ----------------------------------------------------------------------------------

MAX_POINTS = 1 << 20
"""Kernels with more points are not enumerated."""
MAX_WIDE_POINTS = 1 << 12
"""The limit where values inside the kernel do not fit 63 bits."""
CHUNK = 1 << 14
"""Points that are evaluated at once; one column of them has 128 KiB."""


def exact_interval(
    expression: Expression, schema: Schema, normal: Polynomial | None = None
) -> Interval | None:
    """The least and the greatest value of a kernel on records of the schema.

    Args: normal: the kernel's normal form, from which shares are computed. It must have the
    kernel's value on every point, because noise covers this interval.

    Returns: None where the kernel has too many points.
    Raises: LocalProtocolError where the normal form has another value than the kernel.
    """
    domains = domains_of(expression, schema)
    most = MAX_POINTS if fits_words(expression, schema) else MAX_WIDE_POINTS
    if prod(len(domain) for domain in domains.values()) > most:
        return None
    lows: list[Fraction] = []
    highs: list[Fraction] = []
    for records in points_of(domains):
        value = evaluate_exact(expression, schema, records)
        if normal is not None:
            _require_equal(value, normal, records)
        lows.append(int(np.min(value.units)) * value.unit)
        highs.append(int(np.max(value.units)) * value.unit)
    return Interval(min(lows), max(highs))


def _require_equal(value: Exact, normal: Polynomial, records: Sequence[Columns]) -> None:
    count = max((len(column) for columns in records for column in columns.values()), default=1)
    shared = evaluate_local(normal.scaled(1 / normal.unit), dict(enumerate(records)), count)
    if not np.all(shared == value.rescaled(normal.unit)):
        raise LocalProtocolError(
            "a kernel's normal form differs from the kernel: this is a fault of umpc; report it"
        )


def always_equal(left: Expression, right: Expression, schema: Schema) -> bool | None:
    """Whether two kernels agree on all records of the schema; None if they have too many points."""
    difference = exact_interval(Subtract(left, right), schema)
    return None if difference is None else difference == Interval(Fraction(0), Fraction(0))


def domains_of(expression: Expression, schema: Schema) -> dict[Field, range]:
    """The values that each field of each record must take, in steps of the field's resolution."""
    occurring = sorted(fields_of(expression), key=lambda field: (field.record, field.name))
    whole = beyond_order(expression)
    domains = {}
    for field in occurring:
        bounds = schema[field.name]
        domain = range(bounds.lower_units, bounds.upper_units + 1)
        # n neighbouring values have every weak order of n values
        records = sum(other.name == field.name for other in occurring)
        domains[field] = domain if field.name in whole else domain[:records]
    return domains


def beyond_order(expression: Expression) -> frozenset[str]:
    """The fields of which a value depends on more than their order between two records."""
    return interpret(expression, _Uses()).beyond_order


def points_of(domains: Mapping[Field, range]) -> Iterator[list[Columns]]:
    """All points, in chunks: one Columns per record; row j of each is point j."""
    points = prod(len(domain) for domain in domains.values())
    size = 1 + max((field.record for field in domains), default=-1)
    for start in range(0, points, CHUNK):
        rest = np.arange(start, min(start + CHUNK, points))
        records: list[dict[str, NDArray[np.int64]]] = [{} for _ in range(size)]
        # a point's number in mixed radix: one digit for each field
        for field, domain in domains.items():
            rest, digit = np.divmod(rest, len(domain))
            records[field.record][field.name] = digit + domain.start
        yield list(records)


Linear: TypeAlias = Mapping[Field | None, Fraction]
"""The coefficients of a linear combination of fields; None stands for the constant."""


@dataclass(frozen=True)
class _Use:
    """How a value depends on fields.

    linear: the value as a linear combination of fields; None if it is none.
    beyond_order: the names of the fields of which the value depends on more than their order among
    the records.
    """

    linear: Linear | None
    beyond_order: frozenset[str]

    @property
    def is_order(self) -> bool:
        """Whether its sign depends at most on the order of two records' values of one field."""
        if self.linear is None:
            return False
        terms = {field: c for field, c in self.linear.items() if field is not None and c}
        if not terms:
            return True
        if self.linear.get(None):
            return False
        names = {field.name for field in terms}
        return len(terms) == 2 and len(names) == 1 and sum(terms.values()) == 0


class _Uses(Interpreter[_Use]):
    def field(self, record: int, name: str) -> _Use:
        return _Use({Field(record, name): Fraction(1)}, frozenset((name,)))

    def constant(self, value: Fraction) -> _Use:
        return _Use({None: value}, frozenset())

    def add(self, left: _Use, right: _Use) -> _Use:
        return _Use(_added(left.linear, right.linear), left.beyond_order | right.beyond_order)

    def multiply(self, left: _Use, right: _Use) -> _Use:
        linear = _scaled(left.linear, right.linear) or _scaled(right.linear, left.linear)
        return _Use(linear, left.beyond_order | right.beyond_order)

    def sign(self, operand: _Use) -> _Use:
        return _Use(None, frozenset() if operand.is_order else operand.beyond_order)

    def less(self, left: _Use, right: _Use) -> _Use:
        return self.sign(self.subtract(left, right))

    equal = less


def _added(left: Linear | None, right: Linear | None) -> Linear | None:
    """The sum of two linear combinations; None if one of the values is none."""
    if left is None or right is None:
        return None
    zero = Fraction(0)
    return {term: left.get(term, zero) + right.get(term, zero) for term in left.keys() | right}


def _scaled(linear: Linear | None, factor: Linear | None) -> Linear | None:
    """A linear combination times a constant; None if the factor is no constant."""
    if linear is None or factor is None or factor.keys() != {None}:
        return None
    return {term: coefficient * factor[None] for term, coefficient in linear.items()}
