"""The lowering of kernel expressions to Boolean circuits with few AND gates.

A number is kept as a *weighted sum of bits*, Σ coefficient · bit + constant, with an interval of
its values. Sums, differences and multiples of numbers are such sums again and need no gate. Gates
arise only where bits are needed:

| operation | AND gates, for numbers of w bits |
|---|---|
| two's complement of x ± y | w: one full adder per column, none in the last |
| of a sum of n numbers | about (n − 1)·w, all of them added at once |
| x < y | the carries of x − y; far fewer of the owners' own numbers (`pieces.py`) |
| x = y | w − 1: a tree over the bits of x ⊕ y |
| sign(x) | two's complement, and w − 1 for x ≠ 0; products of signs 2 more |
| abs(x) | two's complement: (x ⊕ s) + s is a weighted sum |
| select(c, x, y) | one for each pair of bits of the same weight; c·(x·y) is (c·x)·y |
| x · y | one for each pair of bits, no adder: a product is a weighted sum. Squares half as many |
| minimum, maximum | x < y and the select; against a constant, two's complement and w − 1 |
| & \\| | 1; ^ and ~ none |

Widths follow from intervals, modulo 2^w: a column above the width of the value is not computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Protocol

from umpc.crypto.ring import RINGS
from umpc.mpc.arrays import IntArray, WordArray
from umpc.mpc.garbled.bit_sum_gates import BitSumGates
from umpc.mpc.garbled.bit_sums import (
    BinaryNumber,
    BitSum,
    bit_sum,
    constant_sum,
    modular,
    weighted,
    width_of,
)
from umpc.mpc.garbled.circuits import FALSE, LABEL_BITS, Circuit, InputBit, WireLiteral, outputs_of
from umpc.ustat.expression import Expression, Interpreter, interpret
from umpc.ustat.schema import Schema

NOBODYS = 2
"""The record of an input bit that belongs to no record: it is a bit of a random number."""


class PairNoise(Protocol):
    """The noise of one sum's values."""

    @property
    def bits(self) -> int:
        """Bits of a random number."""
        ...

    @property
    def numbers(self) -> int:
        """Random numbers that a pair needs."""
        ...

    def circuit(
        self, number: BitSum, random: Sequence[Sequence[WireLiteral]], gates: BitSumGates
    ) -> BitSum:
        """The noisy number.

        number: in units. random: for each random number its bits, the lowest first.
        """
        ...

    def apply(self, values: IntArray, random: WordArray) -> IntArray:
        """The noisy values: (n,) int64.

        values: (n,) int64 in units. random: (numbers, n) uint64.
        """
        ...


def circuit_of_all(
    expressions: Sequence[Expression],
    schema: Schema,
    units: Sequence[Fraction],
    noises: Sequence[PairNoise] = (),
    *,
    in_pieces: bool = False,
) -> Circuit:
    """One circuit for several kernels of the same records, with their common gates once.

    noises: of each kernel's value, if they are added inside the circuit.
    in_pieces: whether the owners look up pieces of comparisons (`pieces.py`).

    Two choices show their worth only in the end: whether to add up a sum when it is made if
    something else will need that, and whether to split outputs (`CircuitBuilder.split`). So all
    four circuits are made, and the one with the fewest bits to send is taken.
    """
    given = (expressions, schema, units, noises, in_pieces)
    # lower four ways and keep the cheapest
    first, used = _lower(*given, frozenset(), split=False)
    others = [(frozenset[int](), True)]
    if used:
        others += [(used, False), (used, True)]
    choices = [_lower(*given, *other)[0] for other in others]
    return min([first, *choices], key=_cost)


def noisy(
    numbers: Sequence[BitSum], noises: Sequence[PairNoise], gates: BitSumGates
) -> list[BitSum]:
    """The circuit's numbers, each with its noise, from input bits of their own."""
    results = []
    for place, (number, noise) in enumerate(zip(numbers, noises, strict=True)):
        names = (f"{place:02}.{draw:06}" for draw in range(noise.numbers))
        random = [
            [gates.gates.input(InputBit(NOBODYS, name, bit)) for bit in range(noise.bits)]
            for name in names
        ]
        results.append(noise.circuit(number, random, gates))
    return results


def _cost(circuit: Circuit) -> int:
    """Bits to send an edge, in the largest ring, as the ring is not known here."""
    outputs = outputs_of(circuit)
    # Zahur, Rosulek & Evans 2015: two labels an AND
    return 2 * LABEL_BITS * outputs.and_count + RINGS[-1].bits * len(outputs.elements)


def _lower(
    expressions: Sequence[Expression],
    schema: Schema,
    units: Sequence[Fraction],
    noises: Sequence[PairNoise],
    in_pieces: bool,
    at_once: frozenset[int],
    split: bool,
) -> tuple[Circuit, frozenset[int]]:
    """The circuit, and the numbers of the interpreter's results that were added up for it."""
    lowering = _Lowering(schema, at_once, in_pieces)
    numbers = [
        interpret(each, lowering).scaled(1 / unit)
        for each, unit in zip(expressions, units, strict=True)
    ]
    if noises:
        numbers = noisy(numbers, noises, lowering.numbers)
    sums = [lowering.output(number) for number in numbers]
    builder = lowering.gates
    if split:
        # x(1 ⊕ y) = x − xy: the product moves to the outputs
        sums = [(constant, builder.split(terms)) for constant, terms in sums]
    return builder.finish(sums), frozenset(lowering.numbers.added_up)


class _Lowering(Interpreter[BitSum]):
    """The meaning of each node of an expression, as a number whose bits are wires.

    at_once: the numbers of the results that are added up as soon as they are made.
    """

    def __init__(self, schema: Schema, at_once: frozenset[int], in_pieces: bool):
        self.schema = schema
        self.at_once = at_once
        self.numbers = BitSumGates(in_pieces)
        self.gates = self.numbers.gates
        self._results = 0

    def _made(self, number: BitSum) -> BitSum:
        """A result of the interpreter, with its number."""
        self._results += 1
        if self._results in self.at_once:
            number = self.numbers.digits(number, always=True)
        return replace(number, made=self._results)

    def field(self, record: int, name: str) -> BitSum:
        field = self.schema[name]
        low, high, unit = field.lower_units, field.upper_units, field.resolution
        width = width_of(low, high)
        bits = tuple(self.gates.input(InputBit(record, name, i)) for i in range(width))
        binary = BinaryNumber(unit, bits, low < 0)
        return self._made(weighted(binary.weighted_bits, 0, low * unit, high * unit))

    def constant(self, value: Fraction) -> BitSum:
        return self._made(constant_sum(value))

    def add(self, left: BitSum, right: BitSum) -> BitSum:
        return self._made(left.plus(right))

    def subtract(self, left: BitSum, right: BitSum) -> BitSum:
        return self._made(left.plus(right, -1))

    def multiply(self, left: BitSum, right: BitSum) -> BitSum:
        if left.signs and right.signs:
            # product of two signs: two ANDs
            nonzero = self.gates.conjunction(left.signs[0], right.signs[0])
            differ = self.gates.xor(left.signs[1], right.signs[1])
            return self._made(_signed(nonzero, self.gates.conjunction(nonzero, differ)))
        corners = [x * y for x in (left.low, left.high) for y in (right.low, right.high)]
        return self._made(self.numbers.product(left, right, min(corners), max(corners)))

    def square(self, number: BitSum) -> BitSum:
        if number.signs:
            return self._bit(number.signs[0])
        ends = (number.low**2, number.high**2)
        low = Fraction(0) if number.low <= 0 <= number.high else min(ends)
        return self._made(self.numbers.product(number, number, low, max(ends)))

    def less(self, left: BitSum, right: BitSum) -> BitSum:
        return self._bit(self.numbers.less_than_zero(left.plus(right, -1)))

    def equal(self, left: BitSum, right: BitSum) -> BitSum:
        return self._bit(self.numbers.is_zero(left.plus(right, -1)))

    def sign(self, number: BitSum) -> BitSum:
        nonzero = self.numbers.is_zero(number) ^ 1
        return self._made(_signed(nonzero, self.numbers.less_than_zero(number)))

    def absolute(self, number: BitSum) -> BitSum:
        if number.low >= 0 or number.high <= 0:
            return self._made(number if number.low >= 0 else number.scaled(Fraction(-1)))
        binary = self.numbers.add_up(number)
        # |x| = (x ⊕ sign) + sign
        flipped = [
            (self.gates.xor(bit, binary.sign), binary.unit * 2**i)
            for i, bit in enumerate(binary.digits)
        ]
        high = max(-number.low, number.high)
        return self._made(weighted([*flipped, (binary.sign, binary.unit)], 0, 0, high))

    def select(self, condition: BitSum, then: BitSum, otherwise: BitSum) -> BitSum:
        return self._made(self.numbers.select(self.numbers.literal(condition), then, otherwise))

    def minimum(self, left: BitSum, right: BitSum) -> BitSum:
        if not (left.terms and right.terms):
            minus = Fraction(-1)
            negated = self.numbers.clipped(left.scaled(minus), right.scaled(minus))
            return self._made(negated.scaled(minus))
        is_less = self.numbers.less_than_zero(left.plus(right, -1))
        chosen = self.numbers.select(is_less, left, right)
        high = min(left.high, right.high)
        return self._made(bit_sum(chosen.constant, chosen.terms, chosen.low, high))

    def maximum(self, left: BitSum, right: BitSum) -> BitSum:
        if not (left.terms and right.terms):
            return self._made(self.numbers.clipped(left, right))
        is_less = self.numbers.less_than_zero(left.plus(right, -1))
        chosen = self.numbers.select(is_less, right, left)
        low = max(left.low, right.low)
        return self._made(bit_sum(chosen.constant, chosen.terms, low, chosen.high))

    def complement(self, bit: BitSum) -> BitSum:
        return self._bit(self.numbers.literal(bit) ^ 1)

    def both(self, left: BitSum, right: BitSum) -> BitSum:
        x = self.numbers.literal(left)
        return self._bit(self.gates.conjunction(x, self.numbers.literal(right)))

    def either(self, left: BitSum, right: BitSum) -> BitSum:
        x = self.numbers.literal(left)
        return self._bit(self.gates.disjunction(x, self.numbers.literal(right)))

    def exclusive(self, left: BitSum, right: BitSum) -> BitSum:
        x = self.numbers.literal(left)
        return self._bit(self.gates.xor(x, self.numbers.literal(right)))

    def _bit(self, literal: WireLiteral) -> BitSum:
        return self._made(weighted([(literal, 1)]))

    def output(self, number: BitSum) -> tuple[int, dict[int, int]]:
        """Constant and weights of a number that is whole, as integers.

        It may be whole where its weights are not: x + |x| is even. Then it is added up, and the
        bits below 1, which are always 0, are left out. Odd denominators have inverses modulo 2^64,
        and so in every ring.
        """
        weights = (number.constant, *number.terms.values())
        if any(weight.denominator % 2 == 0 for weight in weights):
            # weights with even denominators: add up first
            number = self.numbers.digits(number, always=True)
            terms = {wire: c for wire, c in number.terms.items() if c.denominator % 2}
            number = replace(number, constant=Fraction(floor(number.constant)), terms=terms)
        terms_modular = {wire: modular(weight) for wire, weight in number.terms.items()}
        return modular(number.constant), terms_modular


def _signed(nonzero: WireLiteral, negative: WireLiteral) -> BitSum:
    """−1, 0 or 1; `negative` implies `nonzero`."""
    low = Fraction(0 if negative == FALSE else -1)
    high = Fraction(0 if nonzero == negative else 1)
    number = weighted([(nonzero, 1), (negative, -2)], 0, low, high)
    return replace(number, signs=(nonzero, negative))
