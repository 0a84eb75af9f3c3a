"""An axis of the grid: a number that one record makes, and its place among the axis's values.

*Intervals.* A comparison of two records' numbers as an interval: for each value of one, the other's
places.

With u the value that the first record makes and w that of the second, a compared number here is
α·u + β·w + γ·u·w + c. For fixed u it is linear in w, so the w at which it is negative, or zero, are
an interval of places. The product of several comparisons of one pair of axes is the intersection.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import Flags, Integers
from umpc.protocols.grid.operators.splitting import own_factors
from umpc.ustat import polynomial as poly
from umpc.ustat.clear import Columns
from umpc.ustat.normal_form import Atom, BitAtom, FieldAtom, LogicAtom, Monomial, Polynomial, build
from umpc.ustat.polynomial import atom, bound, constant, evaluate_local, relabel
from umpc.ustat.schema import Schema


@dataclass(frozen=True)
class Axis:
    """A number that one record makes: a field, a sum of fields, or any polynomial of them.

    Args:
        form: the number, as a polynomial of record 0 in steps of the fields' resolutions.
        low: the least value. size: the number of integers up to the largest value.
    """

    form: Polynomial
    low: int
    size: int

    @property
    def name(self) -> str:
        """The name under which polynomials refer to the axis's value."""
        return self.field or f"[{self.text}]"

    @cached_property
    def field(self) -> str:
        """The field that the axis is; empty if it is another number."""
        ((monomial, coefficient), *others) = self.form.terms
        if others or coefficient != 1 or len(monomial) != 1:
            return ""
        ((factor, power),) = monomial
        return factor.name if isinstance(factor, FieldAtom) and power == 1 else ""

    @cached_property
    def text(self) -> str:
        """The number in words, for reports."""
        terms = " + ".join(_text(monomial, c) for monomial, c in self.form.terms)
        return terms.replace("+ -", "- ")

    @property
    def values(self) -> Integers:
        """(size,) int64: the value of every place."""
        return np.arange(self.low, self.low + self.size, dtype=np.int64)

    def place_of(self, columns: Columns, count: int) -> Integers:
        """(count,) int64 in [0, size): each record's place, for fields within their bounds."""
        # places count from the least value
        return evaluate_local(self.form, {0: columns}, count) - self.low

    def inside(self, columns: Columns, count: int) -> Integers:
        """(count,) int64 in [0, size): each record's place.

        Raises: LocalProtocolError where a field is outside its bounds.
        """
        place = self.place_of(columns, count)
        if count and (place.min() < 0 or place.max() >= self.size):
            raise LocalProtocolError(
                f"a record's value of {self.text} is outside the bounds; values are clipped "
                f"before they are tabulated"
            )
        return place


ONE = Axis(constant(1), 1, 1)
"""The axis of a table that needs none: one place."""


def axis_of(form: Polynomial, schema: Schema) -> Axis:
    """The axis of a number. Raises: RangeError where it may not fit 62 bits."""
    # public bounds make the axis: no record is looked at
    low, high = bound(form, schema)
    return Axis(form, low, high - low + 1)


def field_axis(name: str, schema: Schema) -> Axis:
    """The axis of a field. Raises: UnknownField."""
    return axis_of(atom(FieldAtom(0, name)), schema)


def _text(monomial: Monomial, coefficient: Fraction) -> str:
    parts = [] if abs(coefficient) == 1 else [str(abs(coefficient))]
    for factor, power in monomial:
        match factor:
            case FieldAtom(_, name):
                part = name
            case BitAtom(kind, form):
                part = f"[{kind} {' '.join(sorted(form.fields))}]"
            case LogicAtom():
                part = "[logic]"
        parts.append(part if power == 1 else f"{part}^{power}")
    return ("-" if coefficient < 0 else "") + "·".join(parts)


# --- intervals ------------------------------------------------------------------------------------

Bounds = tuple[Integers, Integers]
"""(lo, hi), each (size of the first record's axis,) int64: the places lo ≤ place < hi."""


KEPT = 256
"""The most comparisons that a process keeps."""


class DoesNotFactor(Exception):
    """A kernel or comparison that is no product over axes. It never leaves this folder."""


@dataclass(frozen=True)
class BilinearBit:
    """The bit [α·u + β·w + γ·u·w + c < 0], or [… = 0], of the numbers of two records.

    Args: kind: "less" or "equal". first, second: the axes' numbers u and w, as polynomials of
    record 0. alpha, beta, gamma, constant: as above.
    """

    kind: str
    first: Polynomial
    second: Polynomial
    alpha: int
    beta: int
    gamma: int
    constant: int

    def interval(self, first: Axis, second: Axis) -> Bounds:
        """For each place of the first record's axis, the places of the second for which it holds.

        All numbers fit 62 bits, because `bound` accepted the kernel.
        """
        u = first.values
        # α·u + β·w + γ·u·w + c is linear in w for a fixed u
        slope = self.beta + self.gamma * u
        level = self.alpha * u + self.constant
        # level + slope·w < 0, or = 0, for w = second.low + place
        root, exact = _quotient(-level, slope)
        if self.kind == "equal":
            low, high = root, np.where(exact, root + 1, root)
        else:
            least = np.full_like(root, second.low)
            most = np.full_like(root, second.low + second.size)
            # w < −level/slope, rounded up; or w > −level/slope, rounded down
            # dividing by a negative slope turns the comparison
            low = np.where(slope > 0, least, root + 1)
            high = np.where(slope > 0, np.where(exact, root, root + 1), most)
        # slope 0: all places or none
        flat = level < 0 if self.kind == "less" else level == 0
        low = np.where(slope == 0, second.low, low)
        high = np.where(slope == 0, second.low + np.where(flat, second.size, 0), high)
        places = [np.clip(end - second.low, 0, second.size) for end in (low, high)]
        return places[0], np.maximum(places[0], places[1])


def _quotient(numbers: Integers, divisors: Integers) -> tuple[Integers, Flags]:
    """numbers // divisors, and whether nothing remains; a divisor 0 is taken as 1."""
    if np.all(np.abs(divisors) <= 1):
        # most comparisons are of plain values, and a division takes long
        return np.where(divisors < 0, -numbers, numbers), np.ones(len(numbers), dtype=np.bool_)
    steep = np.where(divisors == 0, 1, divisors)
    root = numbers // steep
    return root, root * steep == numbers


@lru_cache(maxsize=KEPT)
def bilinear_of(bit: BitAtom, first: int, second: int) -> BilinearBit:
    """A comparison of records `first` and `second`. Raises: DoesNotFactor."""
    own: dict[int, list[Polynomial]] = {first: [], second: []}
    parts: dict[int, dict[tuple[tuple[Atom, int], ...], Fraction]] = {first: {}, second: {}}
    mixed: list[tuple[Polynomial, Polynomial, Fraction]] = []
    for monomial, coefficient in bit.form.terms:
        records = {record for factor, _ in monomial for record in factor.records}
        if len(records) == 1:
            parts[min(records)][monomial] = coefficient
        # a product across both records gives γ
        elif records:
            mixed.append((*_halves(monomial, first, second), coefficient))
    for record, terms in parts.items():
        if terms:
            own[record].append(relabel(build(terms), {record: 0}))
    # all parts of one record must be multiples of one number
    u, alpha = _number([*own[first], *(left for left, _, _ in mixed)], bool(own[first]))
    w, beta = _number([*own[second], *(right for _, right, _ in mixed)], bool(own[second]))
    gamma = sum(int(coefficient) for _, _, coefficient in mixed)
    return BilinearBit(bit.kind, u, w, alpha, beta, gamma, int(bit.form.constant_term))


def _halves(
    monomial: tuple[tuple[Atom, int], ...], first: int, second: int
) -> tuple[Polynomial, Polynomial]:
    sides: dict[int, list[tuple[Atom, int]]] = {first: [], second: []}
    for factor, power in monomial:
        if len(factor.records) > 1:
            raise DoesNotFactor
        sides[min(factor.records)].append((factor, power))
    left, right = (
        Polynomial(((own_factors(factors, record), Fraction(1)),))
        for record, factors in sides.items()
    )
    return left, right


def _number(parts: list[Polynomial], scaled: bool) -> tuple[Polynomial, int]:
    """The one number of which all parts are multiples, and the multiple that the first part is.

    Args: scaled: whether the first part is an addend; otherwise the multiple is 0.
    """
    oriented = [(*poly.orient(part), part.unit) for part in parts]
    (form, flipped, unit), *others = oriented
    # two numbers of one record: no single axis orders them
    if any(other != form for other, _, _ in others):
        raise DoesNotFactor
    return form, (-1 if flipped else 1) * int(unit) if scaled else 0


def intersection(links: Iterable[BilinearBit], first: Axis, second: Axis) -> Bounds:
    """For each place of the first axis, the places of the second for which all bits hold."""
    low = np.zeros(first.size, dtype=np.int64)
    high = np.full(first.size, second.size, dtype=np.int64)
    for link in links:
        least, most = link.interval(first, second)
        # intervals intersect in an interval
        low, high = np.maximum(low, least), np.minimum(high, most)
    return low, np.maximum(low, high)
