"""From kernel expressions to Boolean circuits with few AND gates.

A number is kept as a *weighted sum of bits*, Σ coefficient · bit + constant, with an interval of its values. Sums,
differences and multiples of numbers are such sums again and need no gate. Gates arise only where bits are needed:

| operation | AND gates, for numbers of w bits |
|---|---|
| two's complement of x ± y | w: one full adder per column, none in the last |
| of a sum of n numbers | about (n − 1)·w, all of them added at once |
| x < y | the carries of x − y |
| x = y | w − 1: a tree over the bits of x ⊕ y |
| sign(x) | two's complement, and w − 1 for x ≠ 0; products of signs 2 more |
| abs(x) | two's complement: (x ⊕ s) + s is a weighted sum |
| select(c, x, y) | one for each pair of bits of the same weight; c·(x·y) is (c·x)·y |
| x · y | one for each pair of bits; no adder: a product is a weighted sum. Squares half as many |
| minimum, maximum | x < y and the select; against a constant, two's complement of the difference and w − 1 |
| & \\| | 1; ^ and ~ none |

Widths follow from intervals, modulo 2^w: a column above the width of the value is not computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil, floor

from umpc.crypto.ring import RINGS
from umpc.mpc.garbled.bit_sums import (
    Binary,
    Number,
    columns_of,
    columns_of_difference,
    common_divisor,
    constant_number,
    modular,
    number,
    weighted,
    width_of,
)
from umpc.mpc.garbled.circuits import FALSE, TRUE, Circuit, CircuitBuilder, InputBit, Literal
from umpc.mpc.garbled.outputs import LABEL_BITS, outputs_of
from umpc.mpc.garbled.pair_noise import PairNoise, noisy
from umpc.ustat.expression import Expression, Interpreter, interpret
from umpc.ustat.schema import Schema


def circuit_of(expression: Expression, schema: Schema, unit: Fraction) -> Circuit:
    """The circuit of one kernel; its sum counts `unit`, of which every value is a multiple.

    Raises: KernelError where it needs too many gates.
    """
    return circuit_of_all([expression], schema, [unit])


def circuit_of_all(
    expressions: Sequence[Expression],
    schema: Schema,
    units: Sequence[Fraction],
    noises: Sequence[PairNoise] = (),
) -> Circuit:
    """One circuit for several kernels of the same records, with their common gates once.

    noises: of each kernel's value, if they are added inside the circuit.

    Two choices show their worth only in the end, so all four circuits are made and the one with the fewest bits to send
    is taken: to add up a sum when it is made if something else will ask for that; to split outputs (`CircuitBuilder`).
    """
    kernels = expressions, schema, units, noises
    _, used = _lower(*kernels, frozenset(), False)
    choices = [_lower(*kernels, *each)[0] for each in product((frozenset(), used), (False, True))]
    return min(choices, key=_cost)


def _cost(circuit: Circuit) -> int:
    """Bits to send an edge; the ring is not known here."""
    outputs = outputs_of(circuit)
    return 2 * LABEL_BITS * outputs.and_count + RINGS[-1].bits * len(outputs.elements)


def _lower(
    expressions: Sequence[Expression],
    schema: Schema,
    units: Sequence[Fraction],
    noises: Sequence[PairNoise],
    at_once: frozenset[int],
    split: bool,
) -> tuple[Circuit, frozenset[int]]:
    lowering = _Lowering(schema, at_once)
    numbers = [
        interpret(each, lowering).scaled(1 / unit)
        for each, unit in zip(expressions, units, strict=True)
    ]
    sums = [
        lowering.output(each) for each in (noisy(numbers, noises, lowering) if noises else numbers)
    ]
    sums = [(constant, lowering.gates.split(terms) if split else terms) for constant, terms in sums]
    return lowering.gates.finish(sums), frozenset(lowering.added_up)


class _Lowering(Interpreter[Number]):
    def __init__(self, schema: Schema, at_once: frozenset[int]):
        self.schema, self.at_once = schema, at_once
        self.gates = CircuitBuilder()
        self.added_up: set[int] = set()
        self._results = 0
        self._binary: dict[tuple, Binary] = {}

    def _made(self, of: Number) -> Number:
        self._results += 1
        if self._results in self.at_once:
            of = self._digits(of, always=True)
        return replace(of, made=self._results)

    # --- the nodes of an expression ---

    def field(self, record: int, name: str) -> Number:
        field = self.schema[name]
        low, high, unit = field.lower_units, field.upper_units, field.resolution
        bits = tuple(
            self.gates.input(InputBit(record, name, i)) for i in range(width_of(low, high))
        )
        return self._made(
            weighted(Binary(unit, bits, low < 0).weighted_bits, 0, low * unit, high * unit)
        )

    def constant(self, value: Fraction) -> Number:
        return self._made(constant_number(value))

    def add(self, left: Number, right: Number) -> Number:
        return self._made(left.plus(right))

    def subtract(self, left: Number, right: Number) -> Number:
        return self._made(left.plus(right, -1))

    def multiply(self, left: Number, right: Number) -> Number:
        if left.signs and right.signs:
            nonzero = self.gates.conjunction(left.signs[0], right.signs[0])
            negative = self.gates.conjunction(
                nonzero, self.gates.xor(left.signs[1], right.signs[1])
            )
            return self._made(_signed(nonzero, negative))
        corners = [x * y for x in (left.low, left.high) for y in (right.low, right.high)]
        return self._made(self._product(left, right, min(corners), max(corners)))

    def square(self, of: Number) -> Number:
        if of.signs:
            return self._bit(of.signs[0])
        low = Fraction(0) if of.low <= 0 <= of.high else min(of.low**2, of.high**2)
        return self._made(self._product(of, of, low, max(of.low**2, of.high**2)))

    def less(self, left: Number, right: Number) -> Number:
        return self._bit(self.less_than_zero(left.plus(right, -1)))

    def equal(self, left: Number, right: Number) -> Number:
        return self._bit(self._zero(left.plus(right, -1)))

    def sign(self, of: Number) -> Number:
        return self._made(_signed(self._zero(of) ^ 1, self.less_than_zero(of)))

    def absolute(self, of: Number) -> Number:
        if of.low >= 0 or of.high <= 0:
            return self._made(of if of.low >= 0 else of.scaled(Fraction(-1)))
        binary = self._add_up(of)
        flipped = [
            (self.gates.xor(bit, binary.sign), binary.unit * 2**i)
            for i, bit in enumerate(binary.bits[:-1])
        ]
        return self._made(
            weighted([*flipped, (binary.sign, binary.unit)], 0, 0, max(-of.low, of.high))
        )

    def select(self, condition: Number, then: Number, otherwise: Number) -> Number:
        return self._made(self._select(self._literal(condition), then, otherwise))

    def minimum(self, left: Number, right: Number) -> Number:
        if not (left.terms and right.terms):
            return self._made(
                self._clipped(left.scaled(Fraction(-1)), right.scaled(Fraction(-1))).scaled(
                    Fraction(-1)
                )
            )
        of = self._select(self.less_than_zero(left.plus(right, -1)), left, right)
        return self._made(number(of.constant, of.terms, of.low, min(left.high, right.high)))

    def maximum(self, left: Number, right: Number) -> Number:
        if not (left.terms and right.terms):
            return self._made(self._clipped(left, right))
        of = self._select(self.less_than_zero(left.plus(right, -1)), right, left)
        return self._made(number(of.constant, of.terms, max(left.low, right.low), of.high))

    def complement(self, bit: Number) -> Number:
        return self._bit(self._literal(bit) ^ 1)

    def both(self, left: Number, right: Number) -> Number:
        return self._bit(self.gates.conjunction(self._literal(left), self._literal(right)))

    def either(self, left: Number, right: Number) -> Number:
        return self._bit(self.gates.disjunction(self._literal(left), self._literal(right)))

    def exclusive(self, left: Number, right: Number) -> Number:
        return self._bit(self.gates.xor(self._literal(left), self._literal(right)))

    def output(self, of: Number) -> tuple[int, dict[int, int]]:
        """Constant and weights of a number that is whole, as integers.

        It may be whole where its weights are not: x + |x| is even. Then it is added up, and the bits below 1, which are
        always 0, are left out. Odd denominators have inverses modulo 2^64, and so in every ring.
        """
        if any(weight.denominator % 2 == 0 for weight in (of.constant, *of.terms.values())):
            of = self._digits(of, always=True)
            terms = {wire: weight for wire, weight in of.terms.items() if weight.denominator % 2}
            of = replace(of, constant=Fraction(floor(of.constant)), terms=terms)
        return modular(of.constant), {wire: modular(weight) for wire, weight in of.terms.items()}

    def less_than_zero(self, of: Number) -> Literal:
        """[of < 0]. With g the terms' divisor and h = Σ/g: g·h + c < 0 exactly if h + ⌊c/g⌋ < 0."""
        if of.high < 0 or of.low >= 0:
            return TRUE if of.high < 0 else FALSE
        divisor = common_divisor(of.terms.values())
        shift = floor(of.constant / divisor)
        low, high = ((end - of.constant) / divisor + shift for end in (of.low, of.high))
        whole = number(Fraction(shift), {w: c / divisor for w, c in of.terms.items()}, low, high)
        if whole.low < 0 <= whole.high:
            return self._add_up(replace(whole, made=of.made)).sign
        return self.less_than_zero(whole)

    # --- what they are made of ---

    def _bit(self, literal: Literal) -> Number:
        return self._made(weighted([(literal, 1)]))

    def _literal(self, bit: Number) -> Literal:
        """The bit that a number of value 0 or 1 is."""
        return self._zero(bit) ^ 1

    def _zero(self, of: Number) -> Literal:
        if of.low > 0 or of.high < 0 or not of.terms:
            return TRUE if of.low == of.high == 0 else FALSE
        divisor = common_divisor(of.terms.values())
        if (of.constant / divisor).denominator != 1:
            return FALSE
        pairs = columns_of_difference(
            {w: int(c / divisor) for w, c in of.terms.items()}, int(of.constant / divisor)
        )
        if pairs is not None:
            return self.gates.all_of(self.gates.xor(x, y) ^ 1 for x, y in pairs)
        if next(iter(of.terms.values())) < 0:
            of = replace(of.scaled(Fraction(-1)), made=of.made)
        binary = self._add_up(of)
        least = -binary.unit * (1 << len(binary.bits)) / 2
        bits = binary.bits[:-1] if binary.signed and of.low > least else binary.bits
        return self.gates.all_of(bit ^ 1 for bit in bits)

    def _product(self, left: Number, right: Number, low: Fraction, high: Fraction) -> Number:
        if not left.terms or not right.terms:
            return left.scaled(right.constant) if not right.terms else right.scaled(left.constant)
        x, y = self._digits(left), self._digits(right)
        bits = [(2 * wire, c * y.constant) for wire, c in x.terms.items()]
        bits += [(2 * wire, c * x.constant) for wire, c in y.terms.items()]
        bits += [
            (self.gates.conjunction(2 * u, 2 * v), c * d)
            for u, c in x.terms.items()
            for v, d in y.terms.items()
        ]
        return replace(weighted(bits, x.constant * y.constant, low, high), factors=(left, right))

    def _select(self, condition: Literal, then: Number, otherwise: Number) -> Number:
        """y + c·(x − y), with bits of one weight in x and y sharing a multiplexer."""
        if condition < 2:
            return then if condition else otherwise
        for of, other, chosen in ((then, otherwise, condition), (otherwise, then, condition ^ 1)):
            if of.factors and self._is_long(of):
                return self._select_product(chosen, of, other)
        x, y = self._digits(then), self._digits(otherwise)
        bits: list[tuple[Literal, Fraction]] = []
        rest = dict(y.terms)
        base, step = y.constant, x.constant - y.constant
        for wire, weight in x.terms.items():
            partner = _partner(rest, wire, weight)
            literal = FALSE
            if partner is not None:
                literal = 2 * partner + (rest[partner] != weight)
                base, step = (base - weight, step + weight) if literal & 1 else (base, step)
                del rest[partner]
            bits.append((self.gates.multiplexer(condition, 2 * wire, literal), weight))
        bits += [
            (self.gates.multiplexer(condition, FALSE, 2 * wire), weight)
            for wire, weight in rest.items()
        ]
        low, high = min(then.low, otherwise.low), max(then.high, otherwise.high)
        return weighted([*bits, (condition, step)], base, low, high)

    def _select_product(self, chosen: Literal, of: Number, other: Number) -> Number:
        """c·(x·y) is (c·x)·y: so a product stays a sum of ANDs of two bits, which need no garbled gate at an output."""
        x, y = of.factors
        zero = constant_number(0)
        x_or_0 = self._select(chosen, x, zero)
        ends = (of.low, of.high, Fraction(0))
        masked = self._product(x_or_0, x_or_0 if x is y else y, min(ends), max(ends))
        return (
            masked.plus(self._select(chosen, zero, other))
            if other.terms or other.constant
            else masked
        )

    def _clipped(self, left: Number, right: Number) -> Number:
        """The larger of a number and a constant, in either order: constant + max(0, number − constant)."""
        of, bound = (right, left) if right.terms else (left, right)
        excess = of.plus(bound, -1)
        if excess.low >= 0 or excess.high <= 0:
            return of if excess.low >= 0 else bound
        binary = self._add_up(excess)
        keep = binary.sign ^ 1
        bits = [
            (self.gates.conjunction(bit, keep), binary.unit * 2**i)
            for i, bit in enumerate(binary.bits[:-1])
        ]
        return weighted(bits, bound.constant, bound.low, of.high)

    def _digits(self, of: Number, always: bool = False) -> Number:
        """The same number of no more bits than its width asks for."""
        if not of.terms or not (always or self._is_long(of)):
            return of
        return replace(weighted(self._add_up(of).weighted_bits, 0, of.low, of.high), signs=of.signs)

    def _is_long(self, of: Number) -> bool:
        """Whether a number has more bits than its width asks for."""
        divisor = common_divisor((*of.terms.values(), of.constant))
        return len(of.terms) > width_of(ceil(of.low / divisor), floor(of.high / divisor))

    def _add_up(self, of: Number) -> Binary:
        """Two's complement of a weighted sum of bits: its columns are added up by full adders, lowest first."""
        if of.made:
            self.added_up.add(of.made)
        unit = common_divisor((*of.terms.values(), of.constant))
        key = (of.constant / unit, frozenset((w, c / unit) for w, c in of.terms.items()))
        if key not in self._binary:
            low, high = ceil(of.low / unit), floor(of.high / unit)
            terms = {wire: int(c / unit) for wire, c in of.terms.items()}
            columns = columns_of(terms, int(of.constant / unit), width_of(low, high))
            self._binary[key] = Binary(Fraction(1), self._compress(columns), low < 0)
        return replace(self._binary[key], unit=unit)

    def _compress(self, columns: list[list[Literal]]) -> tuple[Literal, ...]:
        bits = []
        for column, bucket in enumerate(columns):
            carries = columns[column + 1] if column + 1 < len(columns) else None
            while len(bucket) > 1:
                bucket.sort(
                    key=lambda literal: (literal < 2, self.gates.depths[literal >> 1], literal)
                )
                a, b, c = (*bucket[:3], FALSE)[:3]
                del bucket[:3]
                if carries is not None:
                    carry = self.gates.majority(a, b, c) if c else self.gates.conjunction(a, b)
                    carries += [carry] if carry else []
                total = self.gates.xor(self.gates.xor(a, b), c)
                bucket += [total] if total else []
            bits.append(bucket[0] if bucket else FALSE)
        return tuple(bits)


def _signed(nonzero: Literal, negative: Literal) -> Number:
    """−1, 0 or 1; `negative` implies `nonzero`."""
    low = Fraction(0 if negative == FALSE else -1)
    of = weighted([(nonzero, 1), (negative, -2)], 0, low, Fraction(0 if nonzero == negative else 1))
    return replace(of, signs=(nonzero, negative))


def _partner(terms: Mapping[int, Fraction], wire: int, weight: Fraction) -> int | None:
    """A bit of the same weight, up to its sign: the same bit if possible."""
    if terms.get(wire) == weight:
        return wire
    return next((other for other, c in terms.items() if abs(c) == abs(weight)), None)
