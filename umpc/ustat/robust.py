"""The robust sensitivity: the harm that a lying owner of a pair does to a kernel's value.

Two nodes evaluate a pair of records under masks. A node that lies may put any number in the place
of its record, and may flip every bit that both open. The other node then computes its share for
the flipped bits. If all opened values are bits, every value that can come about is the kernel's
normal form at some assignment of bits. Enumerating the assignments bounds the harm. Kendall's tau
moves within [−2, 4] where the honest kernel stays within [−1, 1].

A number that is opened and multiplied has no such bound: a liar adds 2^25 to it. `obstacle` finds
such kernels. docs/privacy.md has the proof, `tests/ustat/test_robust.py` the liar.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.errors import KernelError, RangeError
from umpc.ustat.normal_form import Atom, BitAtom, FieldAtom, LogicAtom, Monomial, Polynomial, build
from umpc.ustat.polynomial import bound
from umpc.ustat.ranges import Interval
from umpc.ustat.schema import Schema

MAX_BITS = 20
"""The most opened bits that are enumerated together: 2^20 assignments take 8 MiB."""

Bit: TypeAlias = tuple[int | None, Hashable]
"""A bit of the computation: the one owner that makes it, or None if both do."""
Product: TypeAlias = tuple[int, frozenset[Bit]]
"""A coefficient, and the bits that it is multiplied with."""


@dataclass(frozen=True)
class Robust:
    """The values of one edge if at most one of its two owners lies.

    interval: holds all of them. change: the most that they change when the honest owner's record
    is replaced, while the liar's messages stay. It covers edges without a liar too.
    """

    interval: Interval
    change: Fraction


@dataclass(frozen=True)
class _Parts:
    """An integer polynomial of a pair, by who computes what.

    products: of bits. local: of numbers of either record alone, which its owner computes in the
    clear and opens to nobody.
    """

    constant: int
    products: tuple[Product, ...]
    local: tuple[Polynomial, Polynomial]


def obstacle(polynomial: Polynomial, degree: int) -> str:
    """Why lying owners could move a kernel's value beyond any bound; empty if they cannot.

    A kernel of one record has no edges between owners, so nothing of it is opened. A kernel of two
    records must open bits only.
    """
    if degree > 2:
        return (
            f"an edge of {degree} records can have {degree} owners, and a liar could tell two "
            f"honest owners two different opened values"
        )
    for monomial, _ in polynomial.terms:
        if len(_records((monomial,))) > 1 and any(isinstance(a, FieldAtom) for a, _ in monomial):
            return "it multiplies a number of one record with a value of the other record"
    if any(_is_word(bit.form) for bit in _opened_comparisons(polynomial)):
        return "it compares a number that products or comparisons of both records make"
    return ""


def robust_of(polynomial: Polynomial, honest: Interval, schema: Schema, degree: int) -> Robust:
    """The values of one edge if one of its owners may lie.

    Args: honest: an interval of the kernel's values if nobody lies.

    Raises: KernelError where there is no bound; RangeError where too many bits depend on each
        other.
    """
    reason = obstacle(polynomial, degree)
    if reason:
        raise KernelError(f"no bound holds against lying nodes: {reason}")
    if degree < 2:
        return Robust(honest, honest.width)
    parts = _parts(polynomial)
    groups = [_Group.of(products) for products in _independent(parts.products)]
    local = [bound(numbers, schema) for numbers in parts.local]
    low = parts.constant + sum(least for least, _ in local)
    high = parts.constant + sum(most for _, most in local)
    low += sum(int(group.values.min()) for group in groups)
    high += sum(int(group.values.max()) for group in groups)
    changes = [
        most - least + sum(group.change(owner) for group in groups)
        for owner, (least, most) in enumerate(local)
    ]
    unit = polynomial.unit
    return Robust(
        Interval(min(honest.low, low * unit), max(honest.high, high * unit)),
        max(honest.width, max(changes) * unit),
    )


def _records(monomials: Iterable[Monomial]) -> frozenset[int]:
    return frozenset(r for monomial in monomials for atom, _ in monomial for r in atom.records)


def _opened_comparisons(polynomial: Polynomial) -> Iterator[BitAtom]:
    """The comparisons of both records, also those inside logic."""
    atoms = [atom for monomial, _ in polynomial.terms for atom, _ in monomial]
    bits = [atom for atom in atoms if isinstance(atom, BitAtom)]
    logic = [atom.function for atom in atoms if isinstance(atom, LogicAtom)]
    bits += [bit for function in logic for conjunction in function for bit in conjunction]
    return (bit for bit in bits if len(bit.records) > 1)


def _is_word(form: Polynomial) -> bool:
    """Whether a number is more than a sum of numbers that one owner makes."""
    return any(len(_records((monomial,))) > 1 for monomial, _ in form.terms)


def _parts(polynomial: Polynomial) -> _Parts:
    """The polynomial in units, sorted by who computes which part."""
    constant = 0
    products: list[Product] = []
    local: tuple[dict[Monomial, Fraction], ...] = ({}, {})
    for monomial, coefficient in polynomial.scaled(1 / polynomial.unit).terms:
        if not monomial:
            constant = int(coefficient)
        elif any(isinstance(atom, FieldAtom) for atom, _ in monomial):
            local[min(_records((monomial,)))][monomial] = coefficient
        else:
            products.append((int(coefficient), _bits(monomial)))
    return _Parts(constant, tuple(products), (build(local[0]), build(local[1])))


def _bits(monomial: Monomial) -> frozenset[Bit]:
    """The bits of a monomial: an owner merges the bits of its own record into one."""
    own: dict[int, list[Atom]] = {}
    bits: set[Bit] = set()
    for atom, _ in monomial:
        if len(atom.records) == 1:
            own.setdefault(min(atom.records), []).append(atom)
        else:
            bits.add((None, atom))
    bits.update((record, tuple(part)) for record, part in own.items())
    return frozenset(bits)


def _independent(products: Iterable[Product]) -> list[list[Product]]:
    """The products in groups that share no bit."""
    groups: list[tuple[set[Bit], list[Product]]] = []
    for product in products:
        touched = [group for group in groups if not group[0].isdisjoint(product[1])]
        groups = [group for group in groups if group[0].isdisjoint(product[1])]
        bits = set(product[1]).union(*(group[0] for group in touched))
        groups.append((bits, [product, *(each for group in touched for each in group[1])]))
    return [members for _, members in groups]


@dataclass(frozen=True)
class _Group:
    """A sum of products at every assignment of its bits.

    values: (2^a, 2^b, 2^c) int64 for a bits of owner 0, b of owner 1, and c of both. `bound` has
    accepted the kernel, so every sum of products fits 62 bits.
    """

    values: NDArray[np.int64]

    @classmethod
    def of(cls, products: Iterable[Product]) -> _Group:
        """Raises: RangeError where there are more than MAX_BITS bits."""
        products = list(products)
        kinds: dict[int | None, dict[Bit, int]] = {0: {}, 1: {}, None: {}}
        for bit in (bit for _, bits in products for bit in bits):
            kinds[bit[0]].setdefault(bit, len(kinds[bit[0]]))
        first, second, both = map(len, kinds.values())
        total = first + second + both
        if total > MAX_BITS:
            raise RangeError(
                f"the kernel opens {total} bits that depend on each other, at most {MAX_BITS} can "
                f"be enumerated to bound what lying nodes do; combine fewer comparisons"
            )
        starts = {0: second + both, 1: both, None: 0}
        values = np.zeros(1 << total, dtype=np.int64)
        for coefficient, bits in products:
            places = (starts[bit[0]] + kinds[bit[0]][bit] for bit in bits)
            values[sum(1 << place for place in places)] += coefficient
        # a product counts wherever all of its bits are 1
        for place in range(total):
            pairs = values.reshape(-1, 2, 1 << place)
            pairs[:, 1] += pairs[:, 0]
        return cls(values.reshape(1 << first, 1 << second, 1 << both))

    def change(self, honest: int) -> int:
        """The largest range over the honest owner's bits and the opened ones, for fixed other bits.

        The other owner lies: it chooses its own bits and flips the bits that both make, by what it
        sees, which is independent of the honest record. The honest owner's own bits stay as they
        are.
        """
        free = (honest, 2)
        return int((self.values.max(axis=free) - self.values.min(axis=free)).max())
