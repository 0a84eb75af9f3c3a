"""The compiler: from the kernels' normal forms to the plan of each pattern of owners.

Each monomial is split by who owns its records. One party's records make a factor that this party
computes alone and sends masked. A factor that mixes parties becomes an opened bit. Numbers are
compared by tables of their masks, which are shared among all owners (`plan_items.py`). In a
study of few edges, a wide number that two parties make goes to a comparison key of these two, which
saves a round. A number that three or more parties make must not: two of them together could read
its mask off their keys.

*Literals.* A Boolean function in the literals that make it short: below, equal or above zero.

The three bits of one comparison sum to 1 over GF(2). So any two of them span the third, and all
three are known once two are opened. "All below or all above" over four comparisons takes 80
conjunctions of below and equal, and two conjunctions of below and above.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from umpc.crypto.ring import Ring
from umpc.errors import KernelError, LocalProtocolError
from umpc.mpc.chunks import Pattern
from umpc.mpc.masked import plan_items as tables
from umpc.mpc.masked.plan import MATERIAL_BYTES, Plan, Program, expanded
from umpc.mpc.masked.plan_items import (
    Compared,
    Comparison,
    EdgePlace,
    Linear,
    Literal,
    Local,
    Logic,
    PlanBuilder,
    RecordPlace,
    SharedPolynomial,
    Term,
    Wire,
    WordPlace,
)
from umpc.ustat import normal_form as logic
from umpc.ustat import polynomial as poly
from umpc.ustat.kernel import Kernel
from umpc.ustat.normal_form import (
    Atom,
    BitAtom,
    FieldAtom,
    Function,
    LogicAtom,
    Monomial,
    Polynomial,
    build,
)
from umpc.ustat.polynomial import bound, relabel

MAX_EXPANSIONS = 1 << 13
"""The most products of masks that the terms of a kernel expand into; every factor doubles them."""
EXPANSIONS_OF_A_SUM = 8
"""The products of masks for each sum of a vector: those of two or three factors."""
FEW_EDGES = 1000
"""Up to this number of a study's edges, the bytes of comparison keys cost less than a round.

Keys for 18 bits take 400 bytes an edge more than tables. A line of 100 megabits a second sends 400
kB in 32 ms, and the delay between distant sites is about 20 ms."""
LONGEST = 8
"""The most literals of a conjunction. A longer one is made of conjunctions, in one more round."""

Coefficients: TypeAlias = dict[Monomial, Fraction]
"""A polynomial in the making."""
ScaledPlace: TypeAlias = tuple[int, int]
"""(place, coefficient)"""


def compile_program(
    kernels: Sequence[Kernel], ring: Ring, patterns: Iterable[Pattern], *, few: bool = False
) -> Program:
    """The plans of these patterns for kernels over one schema.

    A process keeps its last programs, because attempts and plans ask for the same ones again.

    Args: few: whether the study has FEW_EDGES or fewer.

    Raises: KernelError where the material of 8 edges would not fit a frame; RangeError where a
        value is too wide.
    """
    return program_of(tuple(kernels), ring, tuple(sorted(set(patterns))), few)


@lru_cache(maxsize=64)
def program_of(
    kernels: tuple[Kernel, ...], ring: Ring, patterns: tuple[Pattern, ...], few: bool
) -> Program:
    """Compile, unless it is one of the last programs. Args: patterns: sorted, each once."""
    # spec/masked_plan.py, `plan_of`
    wires = _Wires()
    plans = {
        pattern: _Compiler(kernels, ring, pattern, wires, few).compile() for pattern in patterns
    }
    return Program(ring, wires.finished(), plans)


class _Wires:
    """The wires of a program, each once."""

    def __init__(self) -> None:
        self.numbers: dict[Polynomial, int] = {}
        self.widths: list[int] = []

    def number(self, polynomial: Polynomial, width: int) -> int:
        """The wire that carries a polynomial of record 0, with `width` bits or more."""
        number = self.numbers.setdefault(polynomial, len(self.numbers))
        if number == len(self.widths):
            self.widths.append(0)
        self.widths[number] = max(self.widths[number], width)
        return number

    def finished(self) -> tuple[Wire, ...]:
        """The wires in the order of their numbers."""
        return tuple(Wire(each, self.widths[number]) for each, number in self.numbers.items())


class _Compiler:
    """The compilation of the kernels for one pattern of owners."""

    def __init__(
        self, kernels: Sequence[Kernel], ring: Ring, pattern: Pattern, wires: _Wires, few: bool
    ):
        self.few = few
        self.kernels = kernels
        self.ring = ring
        self.pattern = pattern
        self.wires = wires
        self.schema = kernels[0].schema
        self.parties = max(pattern) + 1
        self.items = PlanBuilder()
        self.differences: dict[Polynomial, tuple[Linear, int]] = {}

    def compile(self) -> Plan:
        """The plan. Raises: KernelError where it is too large."""
        outputs = tuple(
            # in units of the kernel, so coefficients are integers
            self._shared(kernel.polynomial.scaled(1 / kernel.unit))
            for kernel in self.kernels
        )
        plan = Plan(
            pattern=self.pattern,
            ring=self.ring,
            places=tuple(self.items.places),
            comparisons=tuple(self.items.comparisons),
            tables=tuple(self.items.tables),
            bits=tuple(self.items.bits),
            layers=self.items.layers(),
            outputs=outputs,
        )
        # a frame must hold the material of eight edges
        most_dealt = max(plan.dealt_bits(party) for party in plan.everybody)
        most_expanded = max(MAX_EXPANSIONS, EXPANSIONS_OF_A_SUM * len(outputs))
        if (
            expanded(plan.outputs, plan.places, plan.bits) > most_expanded
            or most_dealt > MATERIAL_BYTES
        ):
            raise KernelError(
                "the kernel multiplies so many comparisons that 8 edges need more than "
                f"{MATERIAL_BYTES} bytes of material, or more than {MAX_EXPANSIONS} products of "
                "masks; multiply fewer comparisons"
            )
        return plan

    def _shared(self, polynomial: Polynomial) -> SharedPolynomial:
        """An integer polynomial of the edge's records, sorted by who can compute which part."""
        local: list[Coefficients] = [{} for _ in range(self.parties)]
        constant = 0
        linear: dict[tuple[int, ...], Linear] = {}
        products: list[Term] = []
        for monomial, coefficient in polynomial.terms:
            number = int(coefficient)
            # sort monomials by who can compute them
            owners = {party for factor, _ in monomial for party in self._owners(factor)}
            # no record: a public constant
            if not owners:
                constant = number
                continue
            # one owner: it adds the value itself, in the clear
            if len(owners) == 1:
                local[owners.pop()][monomial] = coefficient
                continue
            # several owners: bits to open, numbers to mask
            bits, words = self._split(monomial)
            # numbers of several owners: Beaver 1991, by dealt products
            if len(words) > 1:
                products.append(Term(number, bits, tuple(Linear((word,)) for word in words)))
            else:
                # one number at most: forms with equal bits add up
                linear[bits] = _plus(linear.get(bits, Linear()), words, number)
        terms = tuple(_bits_term(bits, form) for bits, form in linear.items()) + tuple(products)
        return SharedPolynomial(terms, tuple(self._checked(part) for part in local), constant)

    def _owners(self, factor: Atom) -> frozenset[int]:
        return frozenset(self.pattern[record] for record in factor.records)

    def _checked(self, terms: Coefficients) -> Polynomial:
        """The polynomial of these terms. Raises: RangeError where its values are too wide."""
        polynomial = build(terms)
        bound(polynomial, self.schema)
        return polynomial

    def _split(self, monomial: Monomial) -> tuple[tuple[int, ...], list[ScaledPlace]]:
        """A monomial as numbers of bits, and one scaled place per party that has a number in it."""
        own: dict[int, list[tuple[Atom, int]]] = {}
        bits: list[int] = []
        for factor, power in monomial:
            owners = self._owners(factor)
            # a factor of one owner waits for that owner's others
            if len(owners) == 1:
                own.setdefault(min(owners), []).append((factor, power))
            else:
                # a comparison across owners becomes an opened bit
                bits.append(self._bit(factor))
        words: list[ScaledPlace] = []
        for party, part in sorted(own.items()):
            product = Polynomial(((tuple(part), Fraction(1)),))
            if any(isinstance(factor, FieldAtom) for factor, _ in part):
                # the owner's product of fields: one masked number
                words += self._numbers(party, product, self.ring.bits)
            else:
                # bits only: the owner opens their product
                bits.append(self.items.add_bit(Local(party, product), 1))
        # Different functions may be one bit once a party's part is merged.
        return tuple(sorted(set(bits))), words

    def _numbers(self, party: int, polynomial: Polynomial, width: int) -> list[ScaledPlace]:
        """A party's number as scaled places: one per record, and one for what mixes its records."""
        mixed: Coefficients = {}
        single: dict[int, Coefficients] = {}
        for monomial, coefficient in polynomial.terms:
            # a number of one record is sent once, for all its edges
            records = {record for factor, _ in monomial for record in factor.records}
            part = single.setdefault(records.pop(), {}) if len(records) == 1 else mixed
            part[monomial] = coefficient
        scaled: list[ScaledPlace] = []
        if mixed:
            # mixes own records: opened edge by edge
            place = EdgePlace(party, self._checked(mixed), width)
            scaled.append((self.items.add_place(place, 1), 1))
        for slot, terms in sorted(single.items()):
            scaled.append(self._record_number(slot, self._checked(terms), width))
        return scaled

    def _record_number(self, slot: int, polynomial: Polynomial, width: int) -> ScaledPlace:
        """A number of one record as a multiple of a wire, which multiples and negatives share."""
        # x − y and y − x share one wire
        form, flipped = poly.orient(polynomial)
        wire = self.wires.number(relabel(form, {slot: 0}), width)
        place = self.items.add_place(RecordPlace(slot, wire), 0)
        return place, int(polynomial.unit) * (-1 if flipped else 1)

    def _bit(self, factor: Atom) -> int:
        """The number of a bit that mixes parties."""
        if isinstance(factor, FieldAtom):
            raise LocalProtocolError(f"a field belongs to one record and so to one party: {factor}")
        if isinstance(factor, LogicAtom):
            # logic is opened as one bit, in a layer of its own
            conjunctions, constant = conjunctions_of(factor.function)
            literals = tuple(self._conjunction(conjunction) for conjunction in conjunctions)
            return self.items.add_function(Logic(literals, constant))
        if factor.form not in self.differences:
            self.differences[factor.form] = self._difference(factor.form)
        difference, width = self.differences[factor.form]
        return self._compare(difference, width, factor.kind)

    def _compare(self, difference: Linear, width: int, kind: str) -> int:
        """The number of a bit of a comparison: by tables of all parties, or keys of two holders.

        Keys are for a study of few edges, and save the round that combines pieces.
        """
        places = [place for place, _ in difference.terms]
        holders = sorted({owner for place in places for owner in self._place_owners(place)})
        layer = 1 + max(self.items.place_layers[place] for place in places)
        # Boyle et al. 2021: two holders may have keys of one mask
        if self.few and len(holders) == 2 and len(tables.pieces(width - 1)) > 1:
            gate = Comparison(difference, width, (holders[0], holders[1]))
            return self.items.add_bit(Compared(self.items.add_comparison(gate), kind), layer)
        # any number of owners: tables shared among all
        return tables.compare(self.items, difference, width, kind, layer)

    def _conjunction(self, literals: Iterable[tuple[Polynomial, str]]) -> tuple[Literal, ...]:
        """A conjunction as literals of opened bits.

        The literals of one party become one bit of this party.
        """
        own: dict[int, Polynomial] = {}
        found: list[Literal] = []
        for form, kind in literals:
            owners = {self.pattern[record] for record in form.records}
            if len(owners) == 1:
                party = owners.pop()
                own[party] = poly.multiply(own.get(party, poly.constant(1)), _literal(form, kind))
            # above = 1 ⊕ less ⊕ equal
            elif kind == "above":
                bits = (self._bit(BitAtom(other, form)) for other in ("less", "equal"))
                found.append(Literal(tuple(bits), inverted=True))
            else:
                found.append(Literal((self._bit(BitAtom(kind, form)),)))
        for party, product in sorted(own.items()):
            found.append(Literal((self.items.add_bit(Local(party, product), 1),)))
        # 2^LONGEST products at most: longer ones take a round more
        while len(found) > LONGEST:
            starts = range(0, len(found), LONGEST)
            groups = [tuple(found[start : start + LONGEST]) for start in starts]
            found = [
                Literal((self.items.add_function(Logic((group,), constant=False)),))
                for group in groups
            ]
        return tuple(found)

    def _difference(self, form: Polynomial) -> tuple[Linear, int]:
        """A compared polynomial as a sum of places, and the bits that it needs."""
        # |d| < 2^(w−1), or the sign would be wrong
        low, high = bound(form, self.schema)
        width = 1 + max(1, max(high, -low).bit_length())  # |form| < 2^(width − 1)
        parts: dict[int, Coefficients] = {}
        for monomial, coefficient in form.terms:
            owners = {party for factor, _ in monomial for party in self._owners(factor)}
            # a product across owners must be opened under its own mask
            if len(owners) > 1:
                return self._word(form, width), width
            if owners:
                parts.setdefault(owners.pop(), {})[monomial] = coefficient
        terms: list[ScaledPlace] = []
        for party, part in sorted(parts.items()):
            terms += self._numbers(party, build(part), width)
        return Linear(tuple(terms), int(form.constant_term)), width

    def _word(self, form: Polynomial, width: int) -> Linear:
        """A number made of products of several parties' values, opened under a mask of its own."""
        # additive shares first, then one opening
        polynomial = self._shared(form)
        needed = [
            self.items.place_layers[place]
            for term in polynomial.terms
            for factor in term.factors
            for place, _ in factor.terms
        ]
        needed += [self.items.bit_layers[bit] for term in polynomial.terms for bit in term.bits]
        # one layer after all that it reads
        layer = 1 + max(needed, default=0)
        return Linear(((self.items.add_place(WordPlace(polynomial, width), layer), 1),))

    def _place_owners(self, number: int) -> Iterable[int]:
        """The parties whose values make a place."""
        match list(self.items.places)[number]:
            case RecordPlace(slot):
                return (self.pattern[slot],)
            case EdgePlace(party):
                return (party,)
            case _:
                return range(self.parties)


def _literal(form: Polynomial, kind: str) -> Polynomial:
    """The bit of a literal as a polynomial: above is 1 − less − equal."""
    less = poly.atom(BitAtom("less", form))
    equal = poly.atom(BitAtom("equal", form))
    if kind == "above":
        return poly.add(poly.constant(1), less.scaled(Fraction(-1)), equal.scaled(Fraction(-1)))
    return less if kind == "less" else equal


def _plus(form: Linear, words: Sequence[ScaledPlace], factor: int) -> Linear:
    """form + factor · (the one word there is, or 1)."""
    scaled = tuple((place, factor * coefficient) for place, coefficient in words)
    return Linear(form.terms + scaled, form.constant + (0 if words else factor))


def _bits_term(bits: tuple[int, ...], form: Linear) -> Term:
    return Term(1, bits, (form,)) if form.terms else Term(form.constant, bits)


# --- literals -------------------------------------------------------------------------------------

FormLiteral: TypeAlias = tuple[Polynomial, str]
"""(polynomial that is compared with zero, "less" | "equal" | "above")"""
FormConjunction: TypeAlias = tuple[FormLiteral, ...]
_Conjunctions: TypeAlias = frozenset[frozenset[FormLiteral]]


def conjunctions_of(function: Function) -> tuple[tuple[FormConjunction, ...], bool]:
    """(conjunctions, constant): their exclusive or is the function.

    The choice of literals is greedy, form by form.
    """
    best: _Conjunctions = frozenset(
        frozenset((bit.form, bit.kind) for bit in bits) for bits in function
    )
    # replace a literal where that leaves fewer conjunctions
    for form in sorted(logic.forms(function), key=lambda form: form.order):
        for kind in ("equal", "less"):
            best = min(best, _without(best, form, kind), key=len)
    constant = frozenset() in best
    sorted_inside = (tuple(sorted(literals, key=_order)) for literals in best if literals)
    ordered = sorted(sorted_inside, key=lambda literals: [_order(each) for each in literals])
    return tuple(ordered), constant


def _without(function: _Conjunctions, form: Polynomial, kind: str) -> _Conjunctions:
    """The function with a literal replaced by 1 ⊕ the other two of its comparison."""
    replaced = (form, kind)
    others = [(form, other) for other in ("less", "equal", "above") if other != kind]
    found: set[frozenset[FormLiteral]] = set()
    for conjunction in function:
        if replaced not in conjunction:
            found ^= {conjunction}
            continue
        rest = conjunction - {replaced}
        # b = 1 ⊕ (the other two of its comparison)
        for part in (rest, *(rest | {other} for other in others)):
            found ^= {part}
    return frozenset(found)


def _order(literal: FormLiteral) -> tuple[Any, ...]:
    form, kind = literal
    return (kind, form.order)
