"""Gates for numbers that are weighted sums of bits: comparisons, products, choices, binary forms.

`kernel_to_circuit.py` lists the AND gates of each operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from umpc.mpc.garbled.bit_sums import (
    BinaryNumber,
    BitSum,
    bit_sum,
    columns_of,
    columns_of_difference,
    common_divisor,
    constant_sum,
    weighted,
    width_of,
)
from umpc.mpc.garbled.circuits import FALSE, TRUE, CircuitBuilder, WireLiteral
from umpc.mpc.garbled.pieces import Comparisons

BinaryKey = tuple[Fraction, frozenset[tuple[int, Fraction]]]


class BitSumGates:
    """The gates of one circuit, made for numbers.

    added_up: the interpreter's results (`BitSum.made`) whose binary form was asked for.
    in_pieces: whether the owners look up pieces of comparisons of their own numbers.
    """

    def __init__(self, in_pieces: bool = False) -> None:
        self.gates = CircuitBuilder()
        self._comparisons = Comparisons(self.gates) if in_pieces else None
        self.added_up: set[int] = set()
        self._binary: dict[BinaryKey, BinaryNumber] = {}

    def less_than_zero(self, number: BitSum) -> WireLiteral:
        """[number < 0].

        With g the terms' divisor and h = Σ/g: g·h + c < 0 exactly if h + ⌊c/g⌋ < 0.
        """
        if number.high < 0 or number.low >= 0:
            return TRUE if number.high < 0 else FALSE
        if (looked_up := self._looked_up(number)) is not None:
            return looked_up[0]
        divisor = common_divisor(number.terms.values())
        shift = floor(number.constant / divisor)
        low = (number.low - number.constant) / divisor + shift
        high = (number.high - number.constant) / divisor + shift
        terms = {wire: weight / divisor for wire, weight in number.terms.items()}
        whole = bit_sum(Fraction(shift), terms, low, high)
        if whole.low < 0 <= whole.high:
            # sign of the two's complement sum
            return self.add_up(replace(whole, made=number.made)).sign
        return self.less_than_zero(whole)

    def is_zero(self, number: BitSum) -> WireLiteral:
        """[number = 0]."""
        if number.low > 0 or number.high < 0 or not number.terms:
            return TRUE if number.low == number.high == 0 else FALSE
        if (looked_up := self._looked_up(number)) is not None:
            return looked_up[1]
        divisor = common_divisor(number.terms.values())
        if (number.constant / divisor).denominator != 1:
            return FALSE
        terms = {wire: int(weight / divisor) for wire, weight in number.terms.items()}
        # compare bit by bit where both sides are binary
        pairs = columns_of_difference(terms, int(number.constant / divisor))
        if pairs is not None:
            return self.gates.all_of(self.gates.xor(x, y) ^ 1 for x, y in pairs)
        if next(iter(number.terms.values())) < 0:
            number = replace(number.scaled(Fraction(-1)), made=number.made)
        binary = self.add_up(number)
        least = -binary.unit * (1 << len(binary.bits)) / 2
        bits = binary.digits if number.low > least else binary.bits
        return self.gates.all_of(bit ^ 1 for bit in bits)

    def _looked_up(self, number: BitSum) -> tuple[WireLiteral, WireLiteral] | None:
        """[number < 0] and [number = 0] from pieces that the owners look up, where they can."""
        return self._comparisons.below_and_zero(number) if self._comparisons else None

    def literal(self, bit: BitSum) -> WireLiteral:
        """The bit that a number of value 0 or 1 is."""
        return self.is_zero(bit) ^ 1

    def product(self, left: BitSum, right: BitSum, low: Fraction, high: Fraction) -> BitSum:
        """left · right, in [low, high]: one AND for each pair of bits."""
        if not left.terms or not right.terms:
            return left.scaled(right.constant) if not right.terms else right.scaled(left.constant)
        x = self.digits(left)
        y = self.digits(right)
        bits = [(2 * wire, weight * y.constant) for wire, weight in x.terms.items()]
        bits += [(2 * wire, weight * x.constant) for wire, weight in y.terms.items()]
        bits += [
            # one AND for each pair of bits
            (self.gates.conjunction(2 * u, 2 * v), c * d)
            for u, c in x.terms.items()
            for v, d in y.terms.items()
        ]
        result = weighted(bits, x.constant * y.constant, low, high)
        return replace(result, factors=(left, right))

    def select(self, condition: WireLiteral, then: BitSum, otherwise: BitSum) -> BitSum:
        """y + c·(x − y); bits of one weight in x and y share a multiplexer."""
        if condition < 2:
            return then if condition else otherwise
        if then.factors and self._is_long(then):
            return self._select_product(condition, then, then.factors, otherwise)
        if otherwise.factors and self._is_long(otherwise):
            return self._select_product(condition ^ 1, otherwise, otherwise.factors, then)
        x = self.digits(then)
        y = self.digits(otherwise)
        bits: list[tuple[WireLiteral, Fraction]] = []
        rest = dict(y.terms)
        base = y.constant
        step = x.constant - y.constant
        for wire, weight in x.terms.items():
            partner = _partner(rest, wire, weight)
            literal = FALSE
            if partner is not None:
                literal = 2 * partner + (rest.pop(partner) != weight)
            if literal & 1:
                base -= weight
                step += weight
            # y + c·(x − y): bits of one weight share an AND
            bits.append((self.gates.multiplexer(condition, 2 * wire, literal), weight))
        for wire, weight in rest.items():
            bits.append((self.gates.multiplexer(condition, FALSE, 2 * wire), weight))
        low = min(then.low, otherwise.low)
        high = max(then.high, otherwise.high)
        return weighted([*bits, (condition, step)], base, low, high)

    def _select_product(
        self,
        chosen: WireLiteral,
        number: BitSum,
        factors: tuple[BitSum, BitSum],
        other: BitSum,
    ) -> BitSum:
        """The choice of a product: c·(x·y) is (c·x)·y.

        So a product stays a sum of ANDs of two bits, which need no garbled gate at an output.
        """
        x, y = factors
        zero = constant_sum(0)
        # c·(x·y) = (c·x)·y
        x_or_0 = self.select(chosen, x, zero)
        ends = (number.low, number.high, Fraction(0))
        masked = self.product(x_or_0, x_or_0 if x is y else y, min(ends), max(ends))
        if not (other.terms or other.constant):
            return masked
        return masked.plus(self.select(chosen, zero, other))

    def clipped(self, left: BitSum, right: BitSum) -> BitSum:
        """The larger of a number and a constant, in either order.

        It is constant + max(0, number − constant).
        """
        number, bound = (right, left) if right.terms else (left, right)
        excess = number.plus(bound, -1)
        if excess.low >= 0 or excess.high <= 0:
            return number if excess.low >= 0 else bound
        binary = self.add_up(excess)
        # max(0, x): bits of x where x is not negative
        keep = binary.sign ^ 1
        bits = [
            (self.gates.conjunction(bit, keep), binary.unit * 2**i)
            for i, bit in enumerate(binary.digits)
        ]
        return weighted(bits, bound.constant, bound.low, number.high)

    def digits(self, number: BitSum, always: bool = False) -> BitSum:
        """An equal number with no more bits than its width needs."""
        if not number.terms or not (always or self._is_long(number)):
            return number
        bits = self.add_up(number).weighted_bits
        return replace(weighted(bits, 0, number.low, number.high), signs=number.signs)

    def _is_long(self, number: BitSum) -> bool:
        """Whether a number has more bits than its width needs."""
        divisor = common_divisor((*number.terms.values(), number.constant))
        width = width_of(ceil(number.low / divisor), floor(number.high / divisor))
        return len(number.terms) > width

    def add_up(self, number: BitSum) -> BinaryNumber:
        """The binary form of a weighted sum of bits, by full adders, the lowest column first."""
        if number.made:
            self.added_up.add(number.made)
        unit = common_divisor((*number.terms.values(), number.constant))
        weights = {wire: weight / unit for wire, weight in number.terms.items()}
        key = (number.constant / unit, frozenset(weights.items()))
        if key not in self._binary:
            low = ceil(number.low / unit)
            high = floor(number.high / unit)
            terms = {wire: int(weight) for wire, weight in weights.items()}
            columns = columns_of(terms, int(number.constant / unit), width_of(low, high))
            self._binary[key] = BinaryNumber(Fraction(1), self._compress(columns), low < 0)
        return replace(self._binary[key], unit=unit)

    def _compress(self, columns: list[list[WireLiteral]]) -> tuple[WireLiteral, ...]:
        """One literal for each column: three of a column become one of it and a carry."""
        bits = []
        for column, bucket in enumerate(columns):
            carries = columns[column + 1] if column + 1 < len(columns) else None
            while len(bucket) > 1:
                bucket.sort(key=self._place)
                a, b, c = (*bucket[:3], FALSE)[:3]
                del bucket[:3]
                if carries is not None:
                    # full adder: one AND for the carry
                    carry = self.gates.majority(a, b, c) if c else self.gates.conjunction(a, b)
                    carries += [carry] if carry else []
                total = self.gates.xor(self.gates.xor(a, b), c)
                bucket += [total] if total else []
            bits.append(bucket[0] if bucket else FALSE)
        return tuple(bits)

    def _place(self, literal: WireLiteral) -> tuple[bool, int, WireLiteral]:
        """The order of a column's literals: the least deep first, constants last."""
        return literal < 2, self.gates.depths[literal >> 1], literal


def _partner(terms: Mapping[int, Fraction], wire: int, weight: Fraction) -> int | None:
    """A bit of the same weight, up to its sign: the same bit if possible."""
    if terms.get(wire) == weight:
        return wire
    return next((other for other, c in terms.items() if abs(c) == abs(weight)), None)
