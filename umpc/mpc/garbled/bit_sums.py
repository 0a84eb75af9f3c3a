"""Numbers as weighted sums of bits, on their way to gates: Σ coefficient · bit + constant, in an interval.

Sums, differences and multiples of them are weighted sums again. Here is all that needs no gate; `arithmetic.py` makes
the gates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from umpc.mpc.garbled.circuits import FALSE, TRUE, Literal


@dataclass(frozen=True)
class Number:
    """constant + Σ coefficient · bit, a value in [low, high].

    terms: builder's wire → coefficient. signs: of a product of signs, the bits [≠ 0] and [< 0]. factors: of a product.
    made: which result of the interpreter it is, if it is one.
    """

    constant: Fraction
    terms: Mapping[int, Fraction]
    low: Fraction
    high: Fraction
    signs: tuple[Literal, Literal] | None = None
    factors: tuple[Number, Number] | None = None
    made: int | None = None

    def scaled(self, factor: Fraction) -> Number:
        low, high = sorted((self.low * factor, self.high * factor))
        return number(
            self.constant * factor, {w: c * factor for w, c in self.terms.items()}, low, high
        )

    def plus(self, other: Number, factor: int = 1) -> Number:
        other = other.scaled(Fraction(factor))
        terms = dict(self.terms)
        for wire, coefficient in other.terms.items():
            terms[wire] = terms.get(wire, Fraction(0)) + coefficient
        return number(
            self.constant + other.constant, terms, self.low + other.low, self.high + other.high
        )


def number(
    constant: Fraction, terms: Mapping[int, Fraction], low: Fraction, high: Fraction
) -> Number:
    """A number in [low, high], and in whatever tighter interval its bits allow."""
    kept = {wire: coefficient for wire, coefficient in terms.items() if coefficient and wire}
    low = max(low, constant + sum(c for c in kept.values() if c < 0))
    high = min(high, constant + sum(c for c in kept.values() if c > 0))
    return Number(constant, kept, low, high) if low < high else Number(low, {}, low, low)


def constant_number(value: Fraction | int) -> Number:
    return number(Fraction(value), {}, Fraction(value), Fraction(value))


def weighted(
    bits: Iterable[tuple[Literal, Fraction | int]],
    constant: Fraction | int = 0,
    low: Fraction | float = Fraction(-(1 << 200)),
    high: Fraction | float = Fraction(1 << 200),
) -> Number:
    """The number Σ weight · literal + constant."""
    terms: dict[int, Fraction] = {}
    total = Fraction(constant)
    for literal, weight in bits:
        if literal & 1:  # ω(1 − b)
            total, weight = total + weight, -weight
        terms[literal >> 1] = terms.get(literal >> 1, Fraction(0)) + weight
    return number(total, terms, Fraction(low), Fraction(high))


@dataclass(frozen=True)
class Binary:
    """unit · (Σ 2^i · bits[i]), the last bit counted negatively if signed."""

    unit: Fraction
    bits: tuple[Literal, ...]
    signed: bool

    @property
    def weighted_bits(self) -> Iterator[tuple[Literal, Fraction]]:
        last = len(self.bits) - 1
        for i, bit in enumerate(self.bits):
            yield bit, self.unit * (-(1 << i) if self.signed and i == last else 1 << i)

    @property
    def sign(self) -> Literal:
        return self.bits[-1] if self.signed else FALSE


def modular(weight: Fraction) -> int:
    """An integer weight; of a fraction, the integer that it is modulo 2^64."""
    return (
        weight.numerator * pow(weight.denominator, -1, 1 << 64) % (1 << 64)
        if weight.denominator > 1
        else int(weight)
    )


def width_of(low: int, high: int) -> int:
    """Bits of the integers in [low, high]: two's complement if one is negative, else without a sign bit."""
    return (
        high.bit_length()
        if low >= 0
        else max(high.bit_length() if high > 0 else 0, (-low - 1).bit_length()) + 1
    )


def common_divisor(values: Iterable[Fraction]) -> Fraction:
    """The greatest rational of which all are integer multiples; 1 for zeros."""
    values = [value for value in values if value]
    scale = lcm(*(value.denominator for value in values))
    return (
        Fraction(gcd(*(int(value * scale) for value in values)), scale) if values else Fraction(1)
    )


def signed_digits(value: int) -> Iterator[tuple[int, int]]:
    """(i, ±1) with value = Σ ±2^i, as few as possible (non-adjacent form)."""
    i = 0
    while value:
        if value & 1:
            digit = 2 - (value & 3)
            yield i, digit
            value -= digit
        value >>= 1
        i += 1


def columns_of(terms: Mapping[int, int], constant: int, width: int) -> list[list[Literal]]:
    """The literals to add up at each power of two below 2^width: −2^i·b is 2^i·(1 − b) − 2^i."""
    columns: list[list[Literal]] = [[] for _ in range(width)]
    for wire, coefficient in terms.items():
        for i, digit in signed_digits(coefficient):
            if i < width:
                columns[i].append(2 * wire + (digit < 0))
                constant -= (digit < 0) << i
    for i in range(width):
        if constant >> i & 1:
            columns[i].append(TRUE)
    return columns


def columns_of_difference(
    terms: Mapping[int, int], constant: int
) -> list[tuple[Literal, Literal]] | None:
    """Pairs of literals that agree exactly if the sum is zero; None if it is not a difference of two binary numbers."""
    sides: tuple[dict[int, Literal], dict[int, Literal]] = ({}, {})
    digits = [(i, digit, 2 * wire) for wire, c in terms.items() for i, digit in signed_digits(c)]
    size = abs(constant)
    digits += [
        (i, 1 if constant > 0 else -1, TRUE) for i in range(size.bit_length()) if size >> i & 1
    ]
    for i, digit, literal in digits:
        side = sides[digit < 0]
        if i in side:
            return None
        side[i] = literal
    return [
        (sides[0].get(i, FALSE), sides[1].get(i, FALSE))
        for i in sorted(sides[0].keys() | sides[1].keys())
    ]
