"""Parts of a study: its fields, its participants, and exact numbers as text."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Any

import msgspec

from umpc.errors import StudyError
from umpc.ustat.schema import FieldSchema

MAX_NUMBER = 100
"""Longest text of a number, in characters."""


class FieldText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A field's type. Numbers are exact text such as "0.01" or "1/3".

    resolution: the step of the values. whole: the values are whole numbers. A field of numbers says
        one of the two, because a step that nobody chose would round decimals in silence.
    categories: the labels of a field without order.
    public: everybody may know the label of each record. Only the number of a node's records with
        each label is disclosed.
    """

    name: str
    lower: str
    upper: str
    resolution: str = ""
    categories: tuple[str, ...] = ()
    public: bool = False
    whole: bool = False

    @classmethod
    def of_categories(cls, name: str, labels: Iterable[str], *, public: bool = False) -> FieldText:
        """A field of these labels, which are agreed on beforehand."""
        labels = tuple(labels)
        return cls(name, "0", str(len(labels) - 1), "1", labels, public)

    @property
    def step(self) -> str:
        """The resolution as exact text; 1 for whole numbers.

        Raises: StudyError where the field states neither a resolution nor that it is whole.
        """
        if self.whole and self.resolution:
            raise StudyError(
                f"field {self.name!r}: either a resolution or whole = true was expected, and both "
                f"came; leave one of them out"
            )
        if not (self.whole or self.resolution):
            raise StudyError(
                f"field {self.name!r}: a resolution, or whole = true, was expected, and neither "
                f'came. Write resolution = "0.01" (the step of its values), or whole = true if '
                f"they are whole numbers; `umpc study check FILE --table TABLE` finds the step of "
                f"your own table"
            )
        return "1" if self.whole else self.resolution

    def schema(self) -> FieldSchema:
        """The field with exact numbers. Raises: StudyError."""
        return _schema_of(self) if self.categories else _schema_of_numbers(self)

    def to_dict(self) -> dict[str, Any]:
        """The field as plain values, for reports."""
        values: dict[str, Any] = msgspec.to_builtins(self)
        return {**values, "categories": list(self.categories)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> FieldText:
        """The field from what `to_dict` made of it."""
        return msgspec.convert(values, type=cls)

    def values(self) -> str:
        """The values that the field may hold, in words: its categories, or bounds and step."""
        if self.categories:
            return ", ".join(map(repr, self.categories))
        step = "whole numbers" if self.whole else f"in steps of {self.resolution}"
        return f"{self.lower} to {self.upper}, {step}"


def _schema_of(field: FieldText) -> FieldSchema:
    where = f"field {field.name!r}"
    return FieldSchema(
        field.name,
        exact(field.lower, f"{where}: lower"),
        exact(field.upper, f"{where}: upper"),
        exact(field.step, f"{where}: resolution"),
        field.categories,
    )


_schema_of_numbers = lru_cache(maxsize=64)(_schema_of)
"""For fields without categories, which are short: each study states the same ones again."""


class Person(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The column that tells people apart, and how many records of one person count at a site.

    column: its name. No value of it leaves a site. records: the most that count, from 1.
    """

    column: str
    records: int

    def __str__(self) -> str:
        count = "the one record" if self.records == 1 else f"all records, at most {self.records},"
        return f"{count} of one {self.column!r} at a site"


class FieldBins(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The bins of a field's values: `count` bins of equal width, or the cut points between them.

    count: 0 if there are cut points. cuts: exact text. A value lies in the bin whose number is the
    number of cut points that are not above the value.
    """

    field: str
    count: int = 0
    cuts: tuple[str, ...] = ()

    def units(self, field: FieldSchema) -> tuple[int, ...]:
        """The cut points in steps of the field's resolution.

        Raises: StudyError where a cut point is not a multiple of the resolution.
        """
        found = []
        for cut in self.cuts:
            units = exact(cut, f"bins of {self.field!r}: a cut point") / field.resolution
            if units.denominator != 1:
                raise StudyError(
                    f"bins of {self.field!r}: the cut point {cut} is not a multiple of the "
                    f"resolution {field.resolution}; write one"
                )
            found.append(int(units))
        return tuple(found)


class Participant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A process: the name in its certificate, and the address where it listens."""

    name: str
    address: str


class Missing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The nodes that are left out of an attempt because they were lost before the release.

    places: theirs among all nodes, ascending. nodes: who they are, in this order.
    max_colluding: what the whole study says, which fewer nodes may not reach.
    datasets: the whole study's, where it names any.
    """

    places: tuple[int, ...]
    nodes: tuple[Participant, ...]
    max_colluding: int
    datasets: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


def describe_complete(columns: int, where: str, *, several: bool) -> str:
    """Which records of a table count, in words.

    Args: columns: the study's fields, and the column of the person if there is one. where: the
        condition, or empty. several: whether the study reports several values.
    """
    told = "complete in the study's one column"
    if columns > 1:
        told = f"complete in all {columns} columns of the study"
    if several:
        told += ", for each of its values"
    if where:
        told += (
            f"; only where {where}. A record with a missing value in any column is left out, "
            f"whatever the condition says of the others"
        )
    return told


def exact(text: str, what: str) -> Fraction:
    """An exact rational from text such as "0.01", "1e9" or "1/3". Raises: StudyError."""
    try:
        if len(text) > MAX_NUMBER or "_" in text or not text.isascii():
            raise ValueError  # Python reads 1_0 as 10
        if "/" in text:
            numerator, denominator = text.split("/")
            return Fraction(int(numerator), int(denominator))
        value = Decimal(text)
        if value.is_finite() and abs(value.adjusted()) <= 30:
            return Fraction(value)
    except (InvalidOperation, ValueError, ZeroDivisionError):
        pass
    raise StudyError(f'{what} must be a number such as 3, 0.01 or "1/3", got {text[:MAX_NUMBER]!r}')
