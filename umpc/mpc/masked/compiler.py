"""From the kernels' normal forms to the plan of each pattern of owners.

Each monomial is split by who owns what: what one party's records make, it computes alone and sends masked; what mixes
parties becomes opened bits. A comparison of a number made by two parties goes to a comparison key of these two. A
number that three or more made must not: two of them together could read its mask off their keys. There
the mask's bits are dealt as shares among all owners (`tables.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from umpc.crypto.ring import Ring
from umpc.errors import KernelError
from umpc.mpc.masked import lookup_comparison as tables
from umpc.mpc.masked.literals import conjunctions_of
from umpc.mpc.masked.plan import (
    MATERIAL_BYTES,
    Bit,
    Compared,
    Comparison,
    EdgePlace,
    Layer,
    Linear,
    Literal,
    Local,
    Logic,
    LookupBit,
    Pattern,
    Place,
    Plan,
    Program,
    RecordPlace,
    SharedPolynomial,
    Table,
    Term,
    Wire,
    WordPlace,
)
from umpc.ustat import polynomial as poly
from umpc.ustat.kernel import Kernel
from umpc.ustat.local import bound, relabel
from umpc.ustat.polynomial import BitAtom, FieldAtom, LogicAtom, Monomial, Polynomial

MAX_EXPANSIONS = 1 << 13
"""Products of masks that the terms of a kernel expand into, at most: they double with every factor."""
LONGEST = 8
"""Literals of a conjunction; a longer one is made of conjunctions, in one more round."""


def compile_program(kernels: Sequence[Kernel], ring: Ring, patterns: Iterable[Pattern]) -> Program:
    """The plans of these patterns for kernels over one schema.

    Raises: KernelError where the material of 8 edges would not fit a frame; RangeError where a value is too wide.
    """
    wires = _Wires()
    plans = {
        pattern: _Compiler(kernels, ring, pattern, wires).compile()
        for pattern in sorted(set(patterns))
    }
    return Program(ring, wires.finished(), plans)


class _Wires:
    """The wires of a program, each once."""

    def __init__(self) -> None:
        self.numbers: dict[Polynomial, int] = {}
        self.widths: list[int] = []

    def number(self, of: Polynomial, width: int) -> int:
        number = self.numbers.setdefault(of, len(self.numbers))
        if number == len(self.widths):
            self.widths.append(0)
        self.widths[number] = max(self.widths[number], width)
        return number

    def finished(self) -> tuple[Wire, ...]:
        return tuple(Wire(of, self.widths[number]) for of, number in self.numbers.items())


class _Compiler:
    def __init__(self, kernels: Sequence[Kernel], ring: Ring, pattern: Pattern, wires: _Wires):
        self.kernels, self.ring, self.pattern, self.wires = kernels, ring, pattern, wires
        self.schema = kernels[0].schema
        self.parties = max(pattern) + 1
        self.place_layers: dict[Place, int] = {}
        self.bit_layers: dict[Bit, int] = {}
        self.numbers: dict[Place | Bit | Comparison | Table, int] = {}
        self.differences: dict[Polynomial, tuple[Linear, int]] = {}
        self.comparisons: list[Comparison] = []
        self.tables: list[Table] = []

    def compile(self) -> Plan:
        outputs = tuple(
            self._shared(kernel.polynomial.scaled(1 / kernel.unit)) for kernel in self.kernels
        )
        layers = max([*self.place_layers.values(), *self.bit_layers.values()], default=0)
        plan = Plan(
            pattern=self.pattern,
            ring=self.ring,
            places=tuple(self.place_layers),
            comparisons=tuple(self.comparisons),
            tables=tuple(self.tables),
            bits=tuple(self.bit_layers),
            layers=tuple(self._layer(number) for number in range(1, layers + 1)),
            outputs=outputs,
        )
        if (
            _expanded(plan) > MAX_EXPANSIONS
            or max(map(plan.dealt_bits, plan.everybody)) > MATERIAL_BYTES
        ):
            raise KernelError(
                f"the kernel multiplies so many comparisons that 8 edges need more than {MATERIAL_BYTES} bytes of "
                f"material, or more than {MAX_EXPANSIONS} products of masks; multiply fewer comparisons"
            )
        return plan

    def _layer(self, number: int) -> Layer:
        """What round `number` opens; places of records, layer 0, are sent once per record."""
        bits = (self.numbers[bit] for bit, layer in self.bit_layers.items() if layer == number)
        places = (
            self.numbers[place] for place, layer in self.place_layers.items() if layer == number
        )
        return Layer(tuple(bits), tuple(places))

    def _shared(self, of: Polynomial) -> SharedPolynomial:
        """An integer polynomial of the edge's records, sorted by who can compute which part."""
        local: list[dict[Monomial, Fraction]] = [{} for _ in range(self.parties)]
        constant = 0
        linear: dict[tuple[int, ...], Linear] = {}
        products: list[Term] = []
        for monomial, coefficient in of.terms:
            number = int(coefficient)
            owners = {party for factor, _ in monomial for party in self._owners(factor)}
            if not owners:
                constant = number
            elif len(owners) == 1:
                local[owners.pop()][monomial] = coefficient
            else:
                bits, words = self._split(monomial)
                if len(words) > 1:
                    products.append(Term(number, bits, tuple(Linear((word,)) for word in words)))
                else:
                    form = linear.get(bits, Linear())
                    scaled = tuple((place, factor * number) for place, factor in words)
                    linear[bits] = Linear(
                        form.terms + scaled, form.constant + (0 if words else number)
                    )
        terms = tuple(_bits_term(bits, form) for bits, form in linear.items()) + tuple(products)
        return SharedPolynomial(terms, tuple(self._checked(part) for part in local), constant)

    def _owners(self, factor: poly.Atom) -> frozenset[int]:
        return frozenset(self.pattern[record] for record in factor.records)

    def _checked(self, terms: dict[Monomial, Fraction]) -> Polynomial:
        of = poly.build(terms)
        bound(of, self.schema)
        return of

    def _split(self, monomial: Monomial) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
        """A monomial as numbers of bits, and one scaled place per party that has a number in it."""
        own: dict[int, list] = {}
        bits = []
        for factor, power in monomial:
            owners = self._owners(factor)
            if len(owners) == 1:
                own.setdefault(min(owners), []).append((factor, power))
            else:
                bits.append(self._bit(factor))
        words = []
        for party, part in sorted(own.items()):
            of = Polynomial(((tuple(part), Fraction(1)),))
            if any(isinstance(factor, FieldAtom) for factor, _ in part):
                words += self._numbers(party, of, self.ring.bits)
            else:
                bits.append(self._add_bit(Local(party, of), 1))
        return tuple(
            sorted(set(bits))
        ), words  # different functions may be one bit once a party's part is merged

    def _numbers(self, party: int, of: Polynomial, width: int) -> list[tuple[int, int]]:
        """A party's number as scaled places: one per record, and one for what mixes its records."""
        parts: dict[int | None, dict[Monomial, Fraction]] = {}
        for monomial, coefficient in of.terms:
            records = {record for factor, _ in monomial for record in factor.records}
            parts.setdefault(min(records) if len(records) == 1 else None, {})[monomial] = (
                coefficient
            )
        scaled = []
        for slot, terms in sorted(
            parts.items(), key=lambda item: -1 if item[0] is None else item[0]
        ):
            part = self._checked(terms)
            if slot is None:
                scaled.append((self._add_place(EdgePlace(party, part, width), 1), 1))
                continue
            form, flipped = poly.orient(part)
            wire = self.wires.number(relabel(form, {slot: 0}), width)
            place = self._add_place(RecordPlace(slot, wire), 0)
            scaled.append((place, int(part.unit) * (-1 if flipped else 1)))
        return scaled

    def _bit(self, factor: BitAtom | LogicAtom) -> int:
        """The number of a bit that mixes parties."""
        if isinstance(factor, LogicAtom):
            conjunctions, constant = conjunctions_of(factor.function)
            literals = tuple(self._conjunction(conjunction) for conjunction in conjunctions)
            return self._add_logic(Logic(literals, constant))
        if factor.form not in self.differences:
            self.differences[factor.form] = self._difference(factor.form)
        difference, width = self.differences[factor.form]
        holders = sorted(
            {owner for place, _ in difference.terms for owner in self._place_owners(place)}
        )
        layer = 1 + max(list(self.place_layers.values())[place] for place, _ in difference.terms)
        if len(holders) == 2:
            gate = Comparison(difference, width, (holders[0], holders[1]))
            return self._add_bit(Compared(self._number(gate, self.comparisons), factor.kind), layer)
        return tables.compare(self, difference, width, factor.kind, layer)

    def _conjunction(self, literals: Iterable[tuple[Polynomial, str]]) -> tuple[Literal, ...]:
        """Literals of one party are one bit of its own."""
        own: dict[int, Polynomial] = {}
        found = []
        for form, kind in literals:
            owners = {self.pattern[record] for record in form.records}
            if len(owners) == 1:
                party = owners.pop()
                own[party] = poly.multiply(own.get(party, poly.constant(1)), _literal(form, kind))
            elif kind == "above":
                found.append(
                    Literal(
                        tuple(self._bit(BitAtom(k, form)) for k in ("less", "equal")), inverted=True
                    )
                )
            else:
                found.append(Literal((self._bit(BitAtom(kind, form)),)))
        found += [
            Literal((self._add_bit(Local(party, of), 1),)) for party, of in sorted(own.items())
        ]
        while len(found) > LONGEST:
            groups = [
                tuple(found[start : start + LONGEST]) for start in range(0, len(found), LONGEST)
            ]
            found = [
                Literal((self._add_logic(Logic((group,), constant=False)),)) for group in groups
            ]
        return tuple(found)

    def _difference(self, form: Polynomial) -> tuple[Linear, int]:
        """A compared polynomial as a sum of places, and the bits that it needs."""
        low, high = bound(form, self.schema)
        width = max(2, (max(high, -low - 1)).bit_length() + 1)
        parts: dict[int, dict[Monomial, Fraction]] = {}
        for monomial, coefficient in form.terms:
            owners = {party for factor, _ in monomial for party in self._owners(factor)}
            if len(owners) > 1:
                return self._word(form, width), width
            if owners:
                parts.setdefault(owners.pop(), {})[monomial] = coefficient
        terms = [
            term
            for party, part in sorted(parts.items())
            for term in self._numbers(party, poly.build(part), width)
        ]
        return Linear(tuple(terms), int(form.constant_term)), width

    def _word(self, form: Polynomial, width: int) -> Linear:
        """A number that products of several parties' values make, opened under a mask of its own."""
        of = self._shared(form)
        places = list(self.place_layers.values())
        bits = list(self.bit_layers.values())
        needed = [
            places[place]
            for term in of.terms
            for factor in term.factors
            for place, _ in factor.terms
        ]
        needed += [bits[bit] for term in of.terms for bit in term.bits]
        return Linear(((self._add_place(WordPlace(of, width), 1 + max(needed, default=0)), 1),))

    def _place_owners(self, number: int) -> Iterable[int]:
        match list(self.place_layers)[number]:
            case RecordPlace(slot):
                return (self.pattern[slot],)
            case EdgePlace(party):
                return (party,)
            case _:
                return range(self.parties)

    def look(self, table: Table, kind: str, layer: int) -> int:
        """The bit of a table."""
        return self._add_bit(LookupBit(self._number(table, self.tables), kind), layer)

    def add_logic(self, conjunctions: Iterable[tuple[int, ...]], *, constant: bool = False) -> int:
        """The bit of a Boolean function of bits."""
        literals = tuple(
            tuple(Literal((bit,)) for bit in conjunction) for conjunction in conjunctions
        )
        return self._add_logic(Logic(literals, constant))

    def _add_logic(self, bit: Logic) -> int:
        layers = list(self.bit_layers.values())
        needed = (
            layers[b]
            for conjunction in bit.conjunctions
            for literal in conjunction
            for b in literal.bits
        )
        return self._add_bit(bit, 1 + max(needed))

    def _add_bit(self, bit: Bit, layer: int) -> int:
        self.bit_layers.setdefault(bit, layer)
        return self.numbers.setdefault(bit, len(self.bit_layers) - 1)

    def _add_place(self, place: Place, layer: int) -> int:
        self.place_layers.setdefault(place, layer)
        return self.numbers.setdefault(place, len(self.place_layers) - 1)

    def _number(self, gate: Comparison | Table, known: list) -> int:
        if gate not in self.numbers:
            self.numbers[gate] = len(known)
            known.append(gate)
        return self.numbers[gate]


def _expanded(plan: Plan) -> int:
    """Products of masks that all terms and functions expand into."""
    words = (place.of for place in plan.places if isinstance(place, WordPlace))
    ring = sum(
        1 << len(term.bits) + len(term.factors)
        for of in (*plan.outputs, *words)
        for term in of.terms
    )
    functions = (bit for bit in plan.bits if isinstance(bit, Logic))
    return ring + sum(1 << len(conjunction) for of in functions for conjunction in of.conjunctions)


def _literal(form: Polynomial, kind: str) -> Polynomial:
    less, equal = poly.atom(BitAtom("less", form)), poly.atom(BitAtom("equal", form))
    if kind == "above":
        return poly.add(poly.constant(1), less.scaled(Fraction(-1)), equal.scaled(Fraction(-1)))
    return less if kind == "less" else equal


def _bits_term(bits: tuple[int, ...], form: Linear) -> Term:
    return Term(1, bits, (form,)) if form.terms else Term(form.constant, bits)
