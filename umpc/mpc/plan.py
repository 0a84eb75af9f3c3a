"""From a kernel's normal form to what two owners of a pair do: wires, comparisons, terms.

    kernel = first_local(a) + second_local(b) + constant + Σ terms
    term   = coefficient · Π opened bits · Π linear forms of masked wires

A wire is a polynomial of one record, so its owner evaluates it in the clear and sends it masked, once per record.
A comparison is of a sum of two wires. Everything after the comparisons is a polynomial in values
whose masks the dealer knows, so it costs no communication: the dealer deals shares of the products of masks
(`elements`) and both owners expand. Beaver's product and the table lookup of a few bits are special cases:
a·b needs a share of r_a·r_b, sign·sign needs the 8 products of its 4 bits' masks instead of a 16-row table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations

from umpc.errors import KernelError
from umpc.mpc import comparison
from umpc.mpc.ring import Ring
from umpc.ustat import polynomial as poly
from umpc.ustat.kernel import Kernel
from umpc.ustat.local import bound, rename
from umpc.ustat.polynomial import BitAtom, Monomial, Polynomial

MATERIAL_BYTES = 1_000_000
"""A chunk's material fits one frame."""
MAX_CHUNK = 1 << 15
"""Edges in a chunk, at most."""
MAX_EXPANSIONS = 1 << 13
"""Products of masks that the terms of a kernel expand into, at most: they double with every factor."""


@dataclass(frozen=True)
class Wire:
    """A value of one record, sent masked: `of` over record 0, `width` bits (the ring's if it enters products)."""

    of: Polynomial
    width: int


Scaled = tuple[int, int]
"""(wire, integer coefficient)"""


@dataclass(frozen=True)
class Linear:
    """constant + Σ coefficient·wire of the first record + Σ coefficient·wire of the second."""

    first: tuple[Scaled, ...] = ()
    second: tuple[Scaled, ...] = ()
    constant: int = 0


@dataclass(frozen=True)
class Comparison:
    """[difference < 0] and [difference = 0], opened as the bits of these numbers (None: not needed)."""

    difference: Linear
    width: int
    less: int | None
    equal: int | None


@dataclass(frozen=True)
class Term:
    coefficient: int
    bits: tuple[int, ...]
    factors: tuple[Linear, ...] = ()


Element = tuple[tuple[int, ...], tuple[Linear, ...]]
"""Π of the masks of these bits · Π of the masks of these linear forms: dealt as additive shares."""


@dataclass(frozen=True)
class PairPlan:
    """What the two owners of a cell compute for each of its edges."""

    ring: Ring
    wires: tuple[Wire, ...]
    comparisons: tuple[Comparison, ...]
    bits: int
    terms: tuple[Term, ...]
    first_local: Polynomial
    second_local: Polynomial
    constant: int

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """The dealt products, in the order of the material; masks that one owner knows are not dealt."""
        found = {element for term in self.terms for element in expansions(term)}
        dealt = (e for e in found if e[0] or len(e[1]) > 1)
        return tuple(sorted(dealt, key=repr))

    @property
    def key_bytes(self) -> int:
        """Bytes per edge that both owners get."""
        return sum(comparison.key_bytes(c.width) for c in self.comparisons)

    @property
    def element_bytes(self) -> int:
        """Bytes per edge that only the second owner gets; the first expands a seed."""
        return len(self.elements) * self.ring.bytes

    @property
    def chunk_edges(self) -> int:
        """Edges of a chunk: as many as fit a frame, a multiple of 8 so that bits fill bytes."""
        per_edge = self.key_bytes + self.element_bytes
        fitting = MATERIAL_BYTES // per_edge if per_edge else MAX_CHUNK
        return max(8, min(fitting, MAX_CHUNK) // 8 * 8)

    @property
    def needs_dealer(self) -> bool:
        return self.key_bytes + self.element_bytes > 0

    @property
    def rounds(self) -> int:
        """Masked fields, opened bits: the rounds before the reveal."""
        return (1 if self.wires else 0) + (1 if self.bits else 0)


def expansions(term: Term) -> Iterator[Element]:
    """Every subset of a term's bits with every subset of its factors, the empty pair left out."""
    for bits in _subsets(term.bits):
        for factors in _subsets(term.factors):
            if bits or factors:
                yield bits, factors


def _subsets(items: tuple) -> Iterator[tuple]:
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))


def compile_pair(kernel: Kernel, ring: Ring) -> PairPlan:
    """The plan of a kernel over pairs.

    Raises: KernelError where a comparison mixes records in a product, or where the material of 8 edges would not fit
    a frame; RangeError where a value is too wide.
    """
    return _Compiler(kernel, ring).compile()


class _Compiler:
    def __init__(self, kernel: Kernel, ring: Ring):
        self.kernel, self.ring = kernel, ring
        self.wire_numbers: dict[Polynomial, int] = {}
        self.widths: list[int] = []
        self.forms: dict[Polynomial, tuple[Linear, int]] = {}
        self.bit_numbers: dict[BitAtom, int] = {}

    def compile(self) -> PairPlan:
        local: tuple[dict, dict] = ({}, {})
        constant = 0
        linear: dict[tuple[int, ...], Linear] = {}
        products: list[Term] = []
        for monomial, coefficient in self.kernel.polynomial.scaled(1 / self.kernel.unit).terms:
            number = int(coefficient)
            sides, bits = self._split(monomial)
            if bits or (sides[0] and sides[1]):
                if sides[0] and sides[1]:
                    products.append(Term(number, bits, (self._single(0, sides[0]), self._single(1, sides[1]))))
                else:
                    linear[bits] = self._extend(linear.get(bits, Linear()), sides, number)
            elif sides[0] or sides[1]:
                local[0 if sides[0] else 1][monomial] = coefficient
            else:
                constant = number
        terms = tuple(_bits_term(bits, form) for bits, form in linear.items()) + tuple(products)
        plan = PairPlan(
            ring=self.ring,
            wires=tuple(Wire(of, self.widths[number]) for of, number in self.wire_numbers.items()),
            comparisons=self._comparisons(),
            bits=len(self.bit_numbers),
            terms=terms,
            first_local=self._local(local[0]),
            second_local=rename(self._local(local[1]), 0),
            constant=constant,
        )
        expanded = sum(1 << len(term.bits) + len(term.factors) for term in terms)
        if expanded > MAX_EXPANSIONS or 8 * (plan.key_bytes + plan.element_bytes) > MATERIAL_BYTES:
            raise KernelError(
                f"the kernel multiplies so many comparisons that 8 edges need more than {MATERIAL_BYTES} bytes of "
                f"material, or more than {MAX_EXPANSIONS} products of masks; multiply fewer comparisons"
            )
        return plan

    def _split(self, monomial: Monomial) -> tuple[tuple[Monomial, Monomial], tuple[int, ...]]:
        """A monomial as (part of the first record, part of the second), numbers of its opened bits."""
        sides: tuple[list, list] = ([], [])
        bits = []
        for atom, power in monomial:
            if len(atom.records) == 1:
                sides[min(atom.records)].append((atom, power))
            else:
                bits.append(self._bit(atom))
        return (tuple(sides[0]), tuple(sides[1])), tuple(sorted(bits))

    def _bit(self, atom: BitAtom) -> int:
        if atom.form not in self.forms:
            self.forms[atom.form] = self._difference(atom.form)
        return self.bit_numbers.setdefault(atom, len(self.bit_numbers))

    def _difference(self, form: Polynomial) -> tuple[Linear, int]:
        """A compared polynomial as a sum of one wire of either record, and the bits that it needs."""
        parts: tuple[dict, dict] = ({}, {})
        for monomial, coefficient in form.terms:
            owners = {record for atom, _ in monomial for record in atom.records}
            if len(owners) > 1:
                raise KernelError(
                    "a comparison of what mixes two records in a product, an abs or a select is not supported yet; "
                    "compare sums of each record's own values: abs(a.x - b.x) < 5 is (a.x - b.x < 5) & (b.x - a.x < 5)"
                )
            if owners:
                parts[min(owners)][monomial] = coefficient
        low, high = bound(form, self.kernel.schema)
        width = max(2, (max(high, -low - 1)).bit_length() + 1)
        first, second = (self._wire(poly.build(part), width) for part in parts)
        return Linear((first,), (second,), int(form.constant_term)), width

    def _wire(self, of: Polynomial, width: int) -> Scaled:
        """The wire of a polynomial of one record, and the factor that it is used with."""
        form, flipped = poly.orient(of)
        form = rename(form, 0)
        number = self.wire_numbers.setdefault(form, len(self.wire_numbers))
        if number == len(self.widths):
            self.widths.append(0)
        self.widths[number] = max(self.widths[number], width)
        return number, int(of.unit) * (-1 if flipped else 1)

    def _single(self, side: int, part: Monomial) -> Linear:
        wire = self._wire(Polynomial(((part, Fraction(1)),)), self.ring.bits)
        return Linear(first=(wire,)) if side == 0 else Linear(second=(wire,))

    def _extend(self, form: Linear, sides: tuple[Monomial, Monomial], number: int) -> Linear:
        if not (sides[0] or sides[1]):
            return Linear(form.first, form.second, form.constant + number)
        side = 0 if sides[0] else 1
        wire, factor = self._wire(Polynomial(((sides[side], Fraction(1)),)), self.ring.bits)
        entry = ((wire, factor * number),)
        if side == 0:
            return Linear(form.first + entry, form.second, form.constant)
        return Linear(form.first, form.second + entry, form.constant)

    def _comparisons(self) -> tuple[Comparison, ...]:
        number = self.bit_numbers.get
        return tuple(
            Comparison(difference, width, number(BitAtom("less", form)), number(BitAtom("equal", form)))
            for form, (difference, width) in self.forms.items()
        )

    def _local(self, terms: dict[Monomial, Fraction]) -> Polynomial:
        of = poly.build(terms)
        bound(of, self.kernel.schema)
        return of


def _bits_term(bits: tuple[int, ...], form: Linear) -> Term:
    if form.first or form.second:
        return Term(1, bits, (form,))
    return Term(form.constant, bits)
