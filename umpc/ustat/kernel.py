"""A kernel with everything that follows from its expression and the schema."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from umpc.errors import KernelError
from umpc.ustat.clear import Columns, evaluate_clear
from umpc.ustat.expression import (
    Expression,
    Interpreter,
    fields_of,
    interpret,
    permute_records,
    records_of,
)
from umpc.ustat.normal_form import Polynomial
from umpc.ustat.polynomial import bound, polynomial_of
from umpc.ustat.ranges import Interval, always_equal, exact_interval, interval_of
from umpc.ustat.robust import Robust, robust_of
from umpc.ustat.schema import Schema
from umpc.ustat.text import from_text, to_text

HASH_TAG = "umpc kernel 1"
"""The first part of the text that `Kernel.hash` hashes: its purpose and its version."""

KEPT = 64
"""The most kernels that a process keeps."""


@dataclass(frozen=True)
class Kernel:
    """A function of `degree` records.

    It is symmetric unless its arguments come from different classes of records.

    Args: symmetric: whether symmetry is required, and proved.
    Raises:
        KernelError: the expression is not known to be symmetric, compares categories with something
            else or calculates with them, or uses a record that the edge lacks.
        UnknownField: the schema lacks a field.
        RangeError: a value inside the kernel may not fit 62 bits.
    """

    expression: Expression
    schema: Schema
    degree: int = 2
    symmetric: bool = True

    def __post_init__(self) -> None:
        beyond = records_of(self.expression) - set(range(self.degree))
        if beyond:
            raise KernelError(
                f"the kernel uses record {max(beyond) + 1} of an edge of {self.degree} records"
            )
        interpret(self.expression, _Kinds(self.schema))
        if self.symmetric:
            self._require_symmetry()
        # refuse a kernel whose values may not fit
        bound(self.polynomial.scaled(1 / self.unit), self.schema)

    @classmethod
    def from_text(
        cls, text: str, schema: Schema, degree: int = 2, symmetric: bool = True
    ) -> Kernel:
        """The kernel for which a text stands. Raises: as `Kernel`.

        A process keeps its last kernels, so that it proves and bounds each of them once.
        """
        return kernel_of(text, schema, degree, symmetric)

    def _require_symmetry(self) -> None:
        """Prove that no exchange of records changes the value.

        Exchanges of neighbours generate all permutations, so they suffice.
        """
        # refuse a kernel that is too large for its size, not for its symmetry
        _ = self.polynomial
        for first in range(self.degree - 1):
            order = list(range(self.degree))
            order[first], order[first + 1] = first + 1, first
            exchanged = permute_records(self.expression, tuple(order))
            if not (
                self._same_normal_form(exchanged)
                or always_equal(self.expression, exchanged, self.schema)
            ):
                raise KernelError(
                    f"the kernel {self.text!r} is not symmetric: exchanging its records changes "
                    f"its value; average it over the exchanges, for example "
                    f"(f(a, b) + f(b, a)) * (1/2)"
                )

    def _same_normal_form(self, other: Expression) -> bool:
        """Whether normal forms prove another expression equal.

        They prove nothing where the other normal form is too large.
        """
        try:
            return polynomial_of(other, self.schema) == self.polynomial
        except KernelError:
            return False

    @cached_property
    def text(self) -> str:
        """Its canonical text."""
        return to_text(self.expression)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that occur in it, sorted."""
        names = {field.name for field in fields_of(self.expression)}
        return tuple(sorted(names))

    @cached_property
    def hash(self) -> str:
        """SHA-256, in hex, of everything on which the kernel's values depend.

        A site's administrator allows a kernel by this hash.
        """
        fields = [
            (
                field.name,
                str(field.lower),
                str(field.upper),
                str(field.resolution),
                field.categories,
            )
            for field in map(self.schema.__getitem__, self.fields)
        ]
        covered = json.dumps([HASH_TAG, self.text, self.degree, fields])
        return hashlib.sha256(covered.encode()).hexdigest()

    @cached_property
    def polynomial(self) -> Polynomial:
        """The normal form, with the kernel's own values."""
        return polynomial_of(self.expression, self.schema)

    @cached_property
    def interval(self) -> Interval:
        """An interval that holds all its values.

        It is exact where the kernel can be enumerated. Elsewhere interval arithmetic gives it.
        """
        exact = exact_interval(self.expression, self.schema, self.polynomial)
        return exact or interval_of(self.expression, self.schema)

    @property
    def unit(self) -> Fraction:
        """All values are integer multiples of the unit. Sums and noise are counted in it."""
        return self.polynomial.unit

    @property
    def sensitivity_units(self) -> int:
        """Δf = high − low in units, rounded up.

        One edge's value changes by at most this much when one record is replaced.
        """
        return _round_up(self.interval.width / self.unit)

    @property
    def magnitude_units(self) -> int:
        """max |f| in units, rounded up."""
        return _round_up(self.interval.magnitude / self.unit)

    @cached_property
    def robust(self) -> Robust:
        """The values of one edge if one of its owners may lie.

        Raises: KernelError, RangeError where no bound of them is known.
        """
        return robust_of(self.polynomial, self.interval, self.schema, self.degree)

    def evaluate(self, records: Sequence[Columns]) -> NDArray[np.int64]:
        """The kernel in the clear on a batch of edges: (edges,) int64, in units."""
        return evaluate_clear(self.expression, self.schema, records, self.unit)


@dataclass(frozen=True)
class _Meaning:
    """The meaning of a value: a category of one of these fields, a constant, or a number.

    field: empty for a number. categories: of the field. constant: None where it depends on records.
    """

    field: str = ""
    categories: tuple[str, ...] = ()
    constant: Fraction | None = None

    @property
    def listed(self) -> str:
        """The first categories, each with the number that stands for it."""
        shown = [f"{place} for {label!r}" for place, label in enumerate(self.categories[:3])]
        return ", ".join(shown) + (", …" if len(self.categories) > 3 else "")


NUMBER = _Meaning()


class _Kinds(Interpreter[_Meaning]):
    """Checks that categories are only compared for equality: they have no order and no arithmetic.

    A category is compared with one of a field of the same categories, or with its own number, which
    counts from 0 in the order of the list.
    """

    def __init__(self, schema: Schema):
        self.schema = schema

    def field(self, record: int, name: str) -> _Meaning:
        categories = self.schema[name].categories
        return _Meaning(name, categories) if categories else NUMBER

    def constant(self, value: Fraction) -> _Meaning:
        return _Meaning(constant=value)

    def equal(self, left: _Meaning, right: _Meaning) -> _Meaning:
        if left.field and right.field:
            _require_same(left, right)
        elif left.field or right.field:
            _require_number_of(*((left, right) if left.field else (right, left)))
        return NUMBER

    def add(self, left: _Meaning, right: _Meaning) -> _Meaning:
        if found := left.field or right.field:
            categories = (left if left.field else right).categories
            raise KernelError(
                f"field {found!r} has categories ({', '.join(map(repr, categories[:3]))}, …), "
                f"which have no order and no arithmetic; compare it with == or !=, or declare it "
                f"as numbers, with lower, upper and whole = true or a resolution"
            )
        return NUMBER

    multiply = less = add


def _require_same(left: _Meaning, right: _Meaning) -> None:
    if left.categories != right.categories:
        raise KernelError(
            f"fields {left.field!r} and {right.field!r} are compared and have different "
            f"categories; give both the same list of categories in the study, in the same order"
        )


def _require_number_of(category: _Meaning, other: _Meaning) -> None:
    """Raises: KernelError where the other value is not the number of one of the categories."""
    value = other.constant
    if value is not None and value.denominator == 1 and 0 <= value < len(category.categories):
        return
    came = "a number that depends on records" if value is None else str(value)
    raise KernelError(
        f"field {category.field!r} has categories and is compared with {came}; compare it with "
        f"the number of one of its categories ({category.listed}), or with a field of the same "
        f"categories"
    )


def _round_up(value: Fraction) -> int:
    return -((-value.numerator) // value.denominator)


@lru_cache(maxsize=KEPT)
def kernel_of(text: str, schema: Schema, degree: int, symmetric: bool) -> Kernel:
    """The kernel for which a text stands, kept from the last call. Raises: as `Kernel`."""
    return Kernel(from_text(text), schema, degree, symmetric)
