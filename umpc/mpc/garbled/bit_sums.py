"""Numbers as weighted sums of bits, on their way to gates: Σ coefficient · bit + constant.

Every number has an interval of its values. Sums, differences and multiples of such numbers are
weighted sums again. This module has everything that needs no gate; `bit_sum_gates.py` makes gates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from umpc.mpc.garbled.circuits import FALSE, TRUE, WireLiteral


@dataclass(frozen=True)
class BitSum:
    """constant + Σ coefficient · bit, a value in [low, high].

    terms: builder's wire → coefficient.
    signs: of a product of signs, the bits [≠ 0] and [< 0].
    factors: of a product, its two factors.
    made: the number of the interpreter's result that this is, if it is one.
    """

    constant: Fraction
    terms: Mapping[int, Fraction]
    low: Fraction
    high: Fraction
    signs: tuple[WireLiteral, WireLiteral] | None = None
    factors: tuple[BitSum, BitSum] | None = None
    made: int | None = None

    def scaled(self, factor: Fraction) -> BitSum:
        """This number times a constant."""
        low, high = sorted((self.low * factor, self.high * factor))
        terms = {wire: coefficient * factor for wire, coefficient in self.terms.items()}
        return bit_sum(self.constant * factor, terms, low, high)

    def plus(self, other: BitSum, factor: int = 1) -> BitSum:
        """This number plus a multiple of another."""
        other = other.scaled(Fraction(factor))
        terms = dict(self.terms)
        for wire, coefficient in other.terms.items():
            terms[wire] = terms.get(wire, Fraction(0)) + coefficient
        low = self.low + other.low
        high = self.high + other.high
        return bit_sum(self.constant + other.constant, terms, low, high)


def bit_sum(
    constant: Fraction, terms: Mapping[int, Fraction], low: Fraction, high: Fraction
) -> BitSum:
    """A number in [low, high], and in a tighter interval where its bits allow it."""
    kept = {wire: coefficient for wire, coefficient in terms.items() if coefficient and wire}
    low = max(low, constant + sum(c for c in kept.values() if c < 0))
    high = min(high, constant + sum(c for c in kept.values() if c > 0))
    return BitSum(constant, kept, low, high) if low < high else BitSum(low, {}, low, low)


def constant_sum(value: Fraction | int) -> BitSum:
    """A constant."""
    return bit_sum(Fraction(value), {}, Fraction(value), Fraction(value))


def weighted(
    bits: Iterable[tuple[WireLiteral, Fraction | int]],
    constant: Fraction | int = 0,
    low: Fraction | int = Fraction(-(1 << 200)),
    high: Fraction | int = Fraction(1 << 200),
) -> BitSum:
    """The number Σ weight · literal + constant."""
    terms: dict[int, Fraction] = {}
    total = Fraction(constant)
    for literal, weight in bits:
        if literal & 1:  # ω(1 − b) = ω − ω·b
            # complement: ω·(1 − b)
            total += weight
            weight = -weight
        terms[literal >> 1] = terms.get(literal >> 1, Fraction(0)) + weight
    return bit_sum(total, terms, Fraction(low), Fraction(high))


@dataclass(frozen=True)
class BinaryNumber:
    """unit · (Σ 2^i · bits[i]), the last bit counted negatively if signed."""

    unit: Fraction
    bits: tuple[WireLiteral, ...]
    signed: bool

    @property
    def weighted_bits(self) -> Iterator[tuple[WireLiteral, Fraction]]:
        """(bit, weight), the lowest first."""
        last = len(self.bits) - 1
        for i, bit in enumerate(self.bits):
            yield bit, self.unit * (-(1 << i) if self.signed and i == last else 1 << i)

    @property
    def digits(self) -> tuple[WireLiteral, ...]:
        """The bits below the sign; all of them if there is no sign bit."""
        return self.bits[:-1] if self.signed else self.bits

    @property
    def sign(self) -> WireLiteral:
        """The bit [number < 0]."""
        return self.bits[-1] if self.signed else FALSE


def modular(weight: Fraction) -> int:
    """An integer weight; for a fraction, the integer that it is modulo 2^64."""
    if weight.denominator == 1:
        return int(weight)
    return weight.numerator * pow(weight.denominator, -1, 1 << 64) % (1 << 64)


def width_of(low: int, high: int) -> int:
    """Bits of the integers in [low, high].

    They are in two's complement if one is negative; else there is no sign bit.
    """
    if low >= 0:
        return high.bit_length()
    return max(high.bit_length() if high > 0 else 0, (-low - 1).bit_length()) + 1


def common_divisor(values: Iterable[Fraction]) -> Fraction:
    """The greatest rational of which all values are integer multiples; 1 for zeros."""
    values = [value for value in values if value]
    if not values:
        return Fraction(1)
    scale = lcm(*(value.denominator for value in values))
    return Fraction(gcd(*(int(value * scale) for value in values)), scale)


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


def columns_of(terms: Mapping[int, int], constant: int, width: int) -> list[list[WireLiteral]]:
    """The literals to add up at each power of two below 2^width: −2^i·b is 2^i·(1 − b) − 2^i."""
    columns: list[list[WireLiteral]] = [[] for _ in range(width)]
    for wire, coefficient in terms.items():
        for i, digit in signed_digits(coefficient):
            if i < width:
                columns[i].append(2 * wire + (digit < 0))
                # −2^i·b = 2^i·(1 − b) − 2^i
                constant -= (digit < 0) << i
    for i in range(width):
        if constant >> i & 1:
            columns[i].append(TRUE)
    return columns


def columns_of_difference(
    terms: Mapping[int, int], constant: int
) -> list[tuple[WireLiteral, WireLiteral]] | None:
    """Pairs of literals that agree exactly if the sum is zero.

    None if the sum is not a difference of two binary numbers.
    """
    digits = [(i, digit, 2 * wire) for wire, c in terms.items() for i, digit in signed_digits(c)]
    sign = 1 if constant > 0 else -1
    size = abs(constant)
    digits += [(i, sign, TRUE) for i in range(size.bit_length()) if size >> i & 1]
    # x = y bit by bit: no adder for an equality
    plus: dict[int, WireLiteral] = {}
    minus: dict[int, WireLiteral] = {}
    for i, digit, literal in digits:
        side = minus if digit < 0 else plus
        if i in side:
            return None
        side[i] = literal
    places = sorted(plus.keys() | minus.keys())
    return [(plus.get(i, FALSE), minus.get(i, FALSE)) for i in places]
