"""Parts of a study: its fields, its participants, and exact numbers as text.

Several statistics in one study, and one statistic in several strata, with their parts of ε.

*Several statistics* over the same E: ε is split between the statistics, and the part of each is
split equally over its sums.

*Strata.* The sums of one kernel inside different strata share one part of ε. Replacing a record can
move it from one stratum to another. Still each edge of two and more records changes the sum of one
stratum only: the one that its other records are in. So all strata together change by no more than
one sum may, and each sum has noise for the whole part of ε. An edge of one record can change two
sums, which then have half of the part each. docs/privacy.md has the proof. It needs noise that is
discrete Laplace and participants that follow the protocol; otherwise the part is split over strata.

A course: several studies that pay once, such as the steps of a training.

A course has a fixed number of steps, and each step is a study of its own, with a fresh E and fresh
noise. Its ε and δ are for all steps together. The first step that a node charges pays them, and the
other steps pay nothing more. A node releases each step of a course at most once, so it never
releases more than the ε was computed for (`umpc/node/budget/ledger.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from struct import Struct
from typing import Any

import msgspec

from umpc.decoding import convert
from umpc.errors import EncodingError, StudyError
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
        return convert(values, cls)

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


# --- several statistics ---------------------------------------------------------------------------


LAPLACE = ("distributed", "in_mpc")
"""The noises that are discrete Laplace, but for the distance that δ states."""


class StudyPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One value of a study that reports several.

    name: tells the study's statistics apart. Strata of one statistic have one name.
    statistic: the library's name or the kernel's. estimator: what is computed from its sums.
    sums: how many of the study's kernels are its own; parts take them in order.
    stratum: the category that its sets lie in; empty where the study has no strata.
    """

    name: str
    statistic: str
    estimator: str
    sums: int
    stratum: str = ""


@dataclass(frozen=True)
class SumOfPart:
    """A sum's place. number: of the sum in its part, from 0. strata: of the part's statistic."""

    part: StudyPart
    number: int
    strata: int

    @property
    def shared(self) -> tuple[str, int]:
        """Equal for the sums of one kernel in different strata."""
        return self.part.name, self.number


def sums_of(parts: Sequence[StudyPart]) -> Iterator[SumOfPart]:
    """The place of each of the study's sums, in order."""
    strata = Counter(part.name for part in parts)
    for part in parts:
        for number in range(part.sums):
            yield SumOfPart(part, number, strata[part.name])


def names_of(parts: Sequence[StudyPart]) -> tuple[str, ...]:
    """The names of the study's statistics, in order, each once."""
    return tuple(dict.fromkeys(part.name for part in parts))


def changed_at_once(degree: int, strata: int) -> int:
    """How many strata's sums may one edge change when a record is replaced."""
    return 1 if degree > 1 else min(2, strata)


def shares_of_sums(
    parts: Sequence[StudyPart], shares: Mapping[str, Fraction], degree: int, *, is_shared: bool
) -> tuple[Fraction, ...]:
    """Each sum's part of ε.

    Args:
        shares: the part of each statistic, by name.
        is_shared: whether strata share the part of their statistic.
    """
    found = []
    for each in sums_of(parts):
        over = changed_at_once(degree, each.strata) if is_shared else each.strata
        found.append(shares[each.part.name] / each.part.sums / over)
    return tuple(found)


def groups_of_sums(parts: Sequence[StudyPart]) -> tuple[tuple[int, ...], ...]:
    """The numbers of the sums that share one part of ε, for each such part."""
    found: dict[tuple[str, int], list[int]] = {}
    for place, each in enumerate(sums_of(parts)):
        found.setdefault(each.shared, []).append(place)
    return tuple(map(tuple, found.values()))


# --- courses --------------------------------------------------------------------------------------


COURSE = Struct(">32sII")
"""The bytes of a course: its id, a step, and the number of steps."""

COURSE_BYTES = COURSE.size


@dataclass(frozen=True)
class Course:
    """The place of a study in its course.

    Args:
        id: 32 bytes that cover everything which all steps have in common.
        step: the study's number, from 1.
        steps: the number of steps that the ε pays for.
    """

    id: bytes
    step: int
    steps: int

    def encode(self) -> bytes:
        """Its bytes, of fixed length."""
        return COURSE.pack(self.id, self.step, self.steps)

    @classmethod
    def decode(cls, data: bytes) -> Course:
        """The course of these bytes. Raises: EncodingError."""
        if len(data) != COURSE_BYTES:
            raise EncodingError(f"a course has {COURSE_BYTES} bytes, got {len(data)}")
        course = cls(*COURSE.unpack(data))
        if not 1 <= course.step <= course.steps:
            raise EncodingError(f"step {course.step} of {course.steps} steps does not exist")
        return course
