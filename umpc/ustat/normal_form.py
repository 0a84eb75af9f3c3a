"""The data types of a kernel's normal form: atoms, Boolean functions of bits, and polynomials.

`polynomial.py` computes with them.

*Logic.* Boolean functions of comparison bits in their normal form over GF(2), the algebraic normal
form.

A function is written as an exclusive or of conjunctions. The bits of one comparison exclude each
other, [P < 0]·[P = 0] = 0, so a conjunction with both is dropped. With that, each function of the
comparisons' outcomes has exactly one normal form. Logic with one meaning therefore has one form,
however it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import gcd, lcm
from typing import TypeAlias

from umpc.errors import KernelError

MAX_WEIGHT = 10_000
"""The largest normal form, in terms and atoms.

A short text such as sign(sign(…)) could take exponential time and memory."""

Order: TypeAlias = tuple["int | str | Fraction | Order", ...]
"""A sort key: it puts atoms, monomials and functions into canonical order."""
Conjunction: TypeAlias = frozenset["BitAtom"]
"""The and of its bits; the empty conjunction is 1."""
Function: TypeAlias = frozenset[Conjunction]
"""The exclusive or of its conjunctions. `^` of two functions is their exclusive or."""


@dataclass(frozen=True)
class FieldAtom:
    """A field of one record of the edge, in steps of its resolution. record: from 0."""

    record: int
    name: str

    @cached_property
    def order(self) -> Order:
        return (0, self.record, self.name)

    @property
    def weight(self) -> int:
        return 1

    @property
    def records(self) -> frozenset[int]:
        return frozenset((self.record,))

    @property
    def fields(self) -> frozenset[str]:
        return frozenset((self.name,))


@dataclass(frozen=True)
class BitAtom:
    """The bit [form < 0] if kind is "less", [form = 0] if kind is "equal"."""

    kind: str
    form: Polynomial

    @cached_property
    def order(self) -> Order:
        return (1, self.kind, self.form.order)

    @property
    def weight(self) -> int:
        return 1 + self.form.weight

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.form))

    def __hash__(self) -> int:
        return self._hash

    @property
    def records(self) -> frozenset[int]:
        return self.form.records

    @property
    def fields(self) -> frozenset[str]:
        return self.form.fields


@dataclass(frozen=True)
class LogicAtom:
    """A Boolean function of more than WRITTEN_OUT comparisons, without a constant term.

    `logic_of` writes a function with a constant term as 1 minus its complement.
    """

    function: Function

    @cached_property
    def order(self) -> Order:
        return (2, function_order(self.function))

    @cached_property
    def weight(self) -> int:
        return 1 + len(self.function)

    @cached_property
    def _hash(self) -> int:
        return hash(self.function)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def records(self) -> frozenset[int]:
        return frozenset(chain.from_iterable(form.records for form in forms(self.function)))

    @cached_property
    def fields(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(form.fields for form in forms(self.function)))


Atom: TypeAlias = FieldAtom | BitAtom | LogicAtom
Monomial: TypeAlias = tuple[tuple[Atom, int], ...]
"""Atoms with their powers, in canonical order. () is the constant monomial."""


@dataclass(frozen=True)
class Polynomial:
    """Σ coefficient · monomial, in canonical order, without zero coefficients."""

    terms: tuple[tuple[Monomial, Fraction], ...]

    @cached_property
    def order(self) -> Order:
        return tuple(
            (monomial_order(monomial), coefficient) for monomial, coefficient in self.terms
        )

    @cached_property
    def weight(self) -> int:
        """Its size: terms and atoms, including those inside bits."""
        atoms = sum(atom.weight for monomial, _ in self.terms for atom, _ in monomial)
        return len(self.terms) + atoms

    @cached_property
    def records(self) -> frozenset[int]:
        """The records of the edge on which the value depends."""
        atoms = (atom for monomial, _ in self.terms for atom, _ in monomial)
        return frozenset(chain.from_iterable(atom.records for atom in atoms))

    @cached_property
    def fields(self) -> frozenset[str]:
        """The names of the fields on which the value depends."""
        atoms = (atom for monomial, _ in self.terms for atom, _ in monomial)
        return frozenset(chain.from_iterable(atom.fields for atom in atoms))

    @property
    def constant_term(self) -> Fraction:
        """The coefficient of the constant monomial."""
        return dict(self.terms).get((), Fraction(0))

    @property
    def is_constant(self) -> bool:
        """Whether it has no term but the constant one."""
        return all(monomial == () for monomial, _ in self.terms)

    @cached_property
    def unit(self) -> Fraction:
        """The greatest common divisor of the coefficients; 1 for the zero polynomial.

        Every value is an integer multiple of it.
        """
        if not self.terms:
            return Fraction(1)
        denominator = lcm(*(c.denominator for _, c in self.terms))
        numerators = (int(c * denominator) for _, c in self.terms)
        return Fraction(gcd(*numerators), denominator)

    def scaled(self, factor: Fraction) -> Polynomial:
        """The polynomial times a number."""
        return build({monomial: coefficient * factor for monomial, coefficient in self.terms})


def conjunction_order(bits: Conjunction) -> Order:
    """The place of a conjunction in canonical order."""
    return tuple(sorted(bit.order for bit in bits))


def function_order(function: Function) -> Order:
    """The place of a function in canonical order."""
    return tuple(sorted(conjunction_order(bits) for bits in function))


def monomial_order(monomial: Monomial) -> Order:
    """The place of a monomial in canonical order."""
    return tuple((factor.order, power) for factor, power in monomial)


def build(coefficients: Mapping[Monomial, Fraction]) -> Polynomial:
    """The polynomial with these coefficients. Raises: KernelError where it is too large."""
    kept: Iterable[tuple[Monomial, Fraction]] = ((m, c) for m, c in coefficients.items() if c != 0)
    built = Polynomial(tuple(sorted(kept, key=lambda item: monomial_order(item[0]))))
    check_weight(built.weight)
    return built


def check_weight(weight: int) -> None:
    """Raises: KernelError where a normal form would be too large."""
    if weight > MAX_WEIGHT:
        raise KernelError(
            f"the kernel expands into more than {MAX_WEIGHT} parts; "
            f"use fewer factors, or less nesting of comparisons"
        )


# --- logic ----------------------------------------------------------------------------------------

FALSE: Function = frozenset()
TRUE: Function = frozenset([frozenset()])
MAX_CONJUNCTIONS = 4096
MAX_PRODUCTS = 1 << 16
"""The most pairs of conjunctions that are multiplied.

Without it, a short text could take minutes and gigabytes before its result is known to be too
long."""


def single(bit: BitAtom) -> Function:
    """The function that is this bit."""
    return frozenset([frozenset([bit])])


def conjunction(left: Function, right: Function) -> Function:
    """The and of two functions. Raises: KernelError where it has too many conjunctions."""
    if len(left) * len(right) > MAX_PRODUCTS:
        raise _too_many()
    found: set[Conjunction] = set()
    for first in left:
        for second in right:
            joined = first | second
            if not _is_never(joined):
                found ^= {joined}
        if len(found) > MAX_CONJUNCTIONS:
            raise _too_many()
    return frozenset(found)


def _too_many() -> KernelError:
    return KernelError(
        f"the kernel's conditions expand into more than {MAX_CONJUNCTIONS} cases; "
        f"combine fewer comparisons"
    )


def _is_never(bits: Conjunction) -> bool:
    """Whether a conjunction asks a comparison to be both below and equal."""
    return len({bit.form for bit in bits}) < len(bits)


def forms(function: Iterable[Conjunction]) -> frozenset[Polynomial]:
    """The polynomials that the function compares with zero."""
    return frozenset(bit.form for bits in function for bit in bits)
