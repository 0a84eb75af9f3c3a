"""A look at a whole table for its own administrator: its columns, its rows, and their types.

*Spelling.* How a column's words would be numbers: a guess for the table's own administrator.

A node never uses the guess. `umpc node doctor` and `umpc study check --table` show it at the site
that owns the table. It says what to write under [data], with an example of the values.

A word may be a number in another format (`115,1`, `1.234,5`), a mark of a missing value (`?`), or a
number with a unit (`12 mg`). All other words are words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from umpc.node.table.columns import Table, open_table, staged_query
from umpc.node.table.conversions import (
    DECIMAL_MARKS,
    PLAIN,
    THOUSANDS_MARKS,
    Column,
    NumberFormat,
    quoted,
)
from umpc.node.table.reading import USES_ALL, word_lists
from umpc.node.table.source import MISSING_MARKS, TableSite, TableSource

MOST_COLUMNS = 100
"""Columns of a file that are looked at where nobody names some."""
TYPED = "n typed"
"""The way of a number that is one by its type, and not by its text."""


@dataclass(frozen=True)
class ColumnKind:
    """The numbers of values of one column: those that are not missing, numbers, whole numbers.

    `texts` has a value for each way of writing them, and how many values are written so. Values
    that are numbers by their type are not in it.
    """

    values: int
    numbers: int
    whole: int
    texts: Mapping[str, int] = field(default_factory=dict, repr=False)
    format: NumberFormat = PLAIN
    infinite: int = 0
    """Numbers among them that are infinite, each of which counts as a bound."""
    not_available: int = 0
    """Missing values beside them that are written NA."""

    def __str__(self) -> str:
        if not self.values:
            return "no value"
        if not self.numbers:
            return "words"
        kind = "whole numbers" if self.whole == self.numbers else "numbers"
        others = self.values - self.numbers
        return f"{kind}, and {others} other value(s)" if others else kind


@dataclass(frozen=True)
class TableSurvey:
    """A table's columns and number of rows, and the kind of each column that was looked at.

    missing: the words that stand for no value. refused: the columns that no study can use, and
    their types.
    """

    columns: list[str]
    rows: int
    kinds: dict[str, ColumnKind]
    missing: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    def spelling(self, name: str) -> Spelling:
        """Return how a column that was looked at is written, beside all other ones."""
        elsewhere: dict[str, int] = {}
        for other, kind in self.kinds.items():
            if other != name:
                numbers = Spelling(kind.texts, kind.format).numbers
                elsewhere |= {text: elsewhere.get(text, 0) + n for text, n in numbers.items()}
        kind = self.kinds[name]
        typed = kind.values - sum(kind.texts.values())
        return Spelling(kind.texts, kind.format, self.missing, elsewhere, typed)


def survey_table(source: TableSource, names: Sequence[str] | None, site: TableSite) -> TableSurvey:
    """Read a table once, and count its rows and the values of some columns.

    This is for commands of the table's own owner.

    Args: names: the columns; a name that is no column has no kind. None looks at the first
        MOST_COLUMNS of a file, and at none of a database, whose columns have types.
    Raises: as `open_table`; DataError (name not unique).
    """
    with open_table(source, site, names or ()) as (connection, table):
        there = _looked_at(names, table, source)
        columns = [table.column(name, site) for name in there]
        query = f"SELECT count(*) FROM {table.relation} WHERE {USES_ALL}"
        if columns:
            query = _query(columns, table.relation, source)
        parameters = {**table.parameters, **word_lists(source)}
        found = connection.execute(query, parameters).fetchall()
    kinds = {name: each.refused for name, each in zip(table.names, table.columns, strict=True)}
    refused = {name: kind for name, kind in kinds.items() if kind}
    if not columns:
        return TableSurvey(table.names, found[0][0], {}, source.missing, refused)
    rows = sum(count for place, _, _, count, *_ in found if place == 0)
    looked_at = {
        name: _kind(columns[place], (each[1:] for each in found if each[0] == place))
        for place, name in enumerate(there)
    }
    return TableSurvey(table.names, rows, looked_at, source.missing, refused)


def _looked_at(names: Sequence[str] | None, table: Table, source: TableSource) -> list[str]:
    """Return the names of the columns that are looked at, each once."""
    if names is not None:
        return [name for name in dict.fromkeys(names) if name in table.names]
    if source.sql is not None:
        return []
    usable = [
        name for name, each in zip(table.names, table.columns, strict=True) if not each.refused
    ]
    unique = [name for name in usable if table.names.count(name) == 1]
    return unique[:MOST_COLUMNS]


def _kind(column: Column, found: Iterable[tuple[str, str, int, int, int, int]]) -> ColumnKind:
    """Return a column's kind.

    Args: found: a way of writing, empty for a missing value; an example; the count; the numbers of
        whole ones, of infinite ones, and of those that are written NA.
    """
    texts: dict[str, int] = {}
    values = numbers = wholes = infinities = not_available = 0
    for way, example, count, whole, infinite, written_na in found:
        if not way:
            not_available += written_na
            continue
        values += count
        wholes += whole
        infinities += infinite
        if way[0] == "n":
            numbers += count
        if way != TYPED:
            texts[example] = texts.get(example, 0) + count
    return ColumnKind(values, numbers, wholes, texts, column.numbers, infinities, not_available)


def _query(columns: Sequence[Column], relation: str, source: TableSource) -> str:
    """Return the statement that counts the values of each column by the way they are written.

    All values of one way are alike for `Spelling`: a format reads all of them, or none.
    """
    inner = staged_query(columns, relation, source, (), USES_ALL, all_texts=True)
    texts, numbers, types, places = [], [], [], []
    for place, column in enumerate(columns):
        number = column.number_of(f"t{place}", f"n{place}")
        is_typed = f"n{place} IS NOT NULL AND NOT isnan(n{place})"
        if not column.is_text:
            is_typed = f"({number}) IS NOT NULL"
        texts.append(f"t{place}")
        numbers.append(f"({number})::DOUBLE")
        types.append(f"coalesce({is_typed}, false)")
        places.append(str(place))
    rows = (
        f"SELECT unnest([{', '.join(places)}]) AS place, unnest([{', '.join(texts)}]) AS text, "
        f"unnest([{', '.join(numbers)}]) AS number, unnest([{', '.join(types)}]) AS typed "
        f"FROM ({inner})"
    )
    written = f"SELECT place, text, number, {_way(source)} AS way FROM ({rows})"
    return (
        "SELECT place, way, min(text), count(*), "
        "count(*) FILTER (way <> '' AND isfinite(number) AND number = floor(number)), "
        "count(*) FILTER (way <> '' AND isinf(number)), count(*) FILTER (text = 'NA') "
        f"FROM ({written}) GROUP BY place, way"
    )


def _way(source: TableSource) -> str:
    """Return the expression of how a text is written: empty where the value is missing."""
    formats = " || ".join(
        f"CASE WHEN regexp_full_match(text, {quoted(each.pattern)}) THEN '1' ELSE '0' END"
        for each in FORMATS
    )
    none = quoted("0" * len(FORMATS))
    marks = ", ".join(map(quoted, source.unlisted_marks()))
    has_unit = f"regexp_full_match(text, {quoted(WITH_UNIT)})"
    sign, unit = (f"regexp_extract(text, {quoted(WITH_UNIT)}, {group})" for group in (1, 3))
    return (
        "CASE WHEN text IS NULL OR list_contains($missing, text) THEN '' "
        "WHEN lower(text) IN ('true', 'false') THEN 'b' "
        f"WHEN typed THEN {quoted(TYPED)} "
        "WHEN number IS NOT NULL AND NOT regexp_matches(text, '[^0-9+-]') THEN 'n' "
        f"WHEN number IS NOT NULL THEN 'n' || {formats} "
        f"WHEN text IN ({marks}) THEN 'm' || text "
        "WHEN NOT regexp_matches(text, '[0-9]') THEN 'w' "
        f"WHEN {has_unit} THEN 'u' || {formats} || ' ' || {sign} || ' ' || {unit} "
        f"WHEN {formats} = {none} THEN 'w' ELSE 'f' || {formats} END"
    )


# --- spelling -------------------------------------------------------------------------------------

FORMATS = tuple(
    NumberFormat(decimal, thousands)
    for thousands in ("", *THOUSANDS_MARKS)
    for decimal in DECIMAL_MARKS
    if decimal != thousands
)
"""Every format that [data] can name; those without a thousands separator come first."""

_NUMBER = "[+-]?[.,]?[0-9]+(?:[.,'\u2019 \u00a0\u202f_][0-9]{3})*(?:[.,][0-9]*)?"
WITH_UNIT = f"([^0-9A-Za-z.,+-]{{0,3}})({_NUMBER})([ \u00a0]?[^0-9 \t\r\n.,]{{0,8}})"
"""The regular expression of a sign such as < or €, a number, and a unit; for `re` and for RE2."""
_WITH_UNIT = re.compile(WITH_UNIT)
_NEGATIVE = re.compile(f"\\(({_NUMBER})\\)|[\u2010-\u2015\u2212] ?({_NUMBER})")
"""A negative number of accountants, in brackets, or with a sign that is no hyphen."""
MOST_UNITS = 3
"""A column with more units than these holds codes, such as the numbers of houses."""

MARKS = {".": "point", ",": "comma"}
Counts = Mapping[str, int]
"""Texts, and how often each is there. One text may stand for all that are written as it is."""


@dataclass(frozen=True)
class Spelling:
    """How the values of one column are written, beside the format that the site states.

    Args:
        texts: the column's values, without the missing ones.
        format: the format of numbers under [data].
        missing: the words under [data] that stand for no value.
        elsewhere: numbers of the table's other columns; [data] has one format for all.
        typed: how many more values are numbers by their type, whatever the format is.
    """

    texts: Counts
    format: NumberFormat
    missing: Sequence[str] = ()
    elsewhere: Counts = field(default_factory=dict)
    typed: int = 0

    @cached_property
    def words(self) -> Counts:
        """The values that are no numbers for the node."""
        return {text: n for text, n in self.texts.items() if self.format.plain(text) is None}

    @cached_property
    def marks(self) -> Counts:
        """The words that often mark a missing value."""
        return {text: n for text, n in self.words.items() if text in MISSING_MARKS}

    @cached_property
    def better(self) -> tuple[NumberFormat, ...]:
        """The formats in which most of the words are numbers, and least is changed."""
        found = [each for each in FORMATS if each != self.format and self._read_by(each)]
        best = min(map(self._rank, found), default=None)
        equal = [each for each in found if self._rank(each) == best]
        return tuple({each.decimal: each for each in reversed(equal)}.values())[::-1]

    @cached_property
    def in_another_format(self) -> Counts:
        """The words that are numbers in a better format."""
        return self._read_by(self.better[0]) if self.better else {}

    @cached_property
    def negative(self) -> Counts:
        """The words that are negative numbers, with brackets or another sign than a hyphen."""
        return {text: n for text, n in self.words.items() if _NEGATIVE.fullmatch(text)}

    @cached_property
    def with_unit(self) -> Counts:
        """The words that are a number in any format and a unit, of which there are few."""
        found, units = {}, Counter[tuple[str, str]]()
        for text in self.words.keys() - self.in_another_format.keys() - self.negative.keys():
            if parts := _WITH_UNIT.fullmatch(text):
                found[text] = self.words[text]
                units[parts[1], parts[3]] += 1
        return found if len(units) <= MOST_UNITS else {}

    @property
    def is_of_numbers(self) -> bool:
        """Whether more than half of the values, without marks, are meant as numbers."""
        total = self.typed + _total(self.texts) - _total(self.marks)
        meant = (
            self.typed
            + _total(self.numbers)
            + _total(self.in_another_format)
            + _total(self.with_unit)
            + _total(self.negative)
        )
        return total < 2 * meant

    @cached_property
    def numbers(self) -> Counts:
        """The values that are numbers for the node."""
        return {text: n for text, n in self.texts.items() if text not in self.words}

    def _lost_by(self, format: NumberFormat) -> Counts:
        """The numbers of the table that are none in another format."""
        own = {text: n for text, n in self.numbers.items() if format.plain(text) is None}
        rest = {text: n for text, n in self.elsewhere.items() if format.plain(text) is None}
        return Counter(own) + Counter(rest)

    def _changed_by(self, format: NumberFormat) -> dict[str, str]:
        """The numbers of the table that are other numbers in another format: text → the other."""
        found = {}
        for text in (*self.numbers, *self.elsewhere):
            own, new = self.format.plain(text), format.plain(text)
            if own is not None and new is not None and float(own) != float(new):
                found[text] = new
        return found

    def advice(self) -> Iterator[str]:
        """Yield a part of a sentence for each kind of words: how many, an example, what to do."""
        if other := self.in_another_format:
            yield f"{_shown(other)}, {self._about_format()}"
        if self.negative:
            parts = _NEGATIVE.fullmatch(min(self.negative))
            number = "" if parts is None else parts[1] or parts[2]
            yield (
                f"{_shown(self.negative)}, are negative numbers that are written in another way: "
                f"write them with a hyphen in front, as -{number}"
            )
        if self.with_unit:
            yield (
                f"{_shown(self.with_unit)}, hold other characters beside the number: remove these "
                "from the table"
            )
        if self.marks:
            yield (
                f"{_shown(self.marks)}, often stand for a missing value: if so, write missing = "
                f"[{self._listed()}] under [data]"
            )
        known = self.in_another_format.keys() | self.with_unit.keys() | self.marks.keys()
        known |= self.negative.keys()
        if rest := {text: n for text, n in self.words.items() if text not in known}:
            yield (
                f"{_shown(rest)}, are words: correct the table, or list them as missing under "
                "[data]"
            )

    def _about_format(self) -> str:
        """Say what the better format is, and what to write for it."""
        kinds = " or ".join(dict.fromkeys(self._kind(each) for each in self.better))
        first, *others = [self._keys(each) for each in self.better]
        if lost := self._lost_by(self.better[0]):
            return (
                f"have {kinds}, and other numbers of the table, such as {min(lost)!r}, do not: "
                "write all of them in one way"
            )
        changed = self._changed_by(self.better[0])
        counts = Counter(self.numbers) + Counter(self.elsewhere)
        if sum(counts[text] for text in changed) >= _total(self.in_another_format):
            return (
                f"have {kinds}, in which other numbers of the table, such as {min(changed)!r}, "
                f"would be others ({changed[min(changed)]}): correct these values"
            )
        written = f"have {kinds}: write {first} under [data]"
        if changed:
            written += f", if {min(changed)!r} is {changed[min(changed)]}"
        if not others:
            return written
        example = min(self.in_another_format)
        readings = [str(each.plain(example)) for each in self.better]
        more = "".join(
            f", or {keys} if it is {reading}"
            for keys, reading in zip(others, readings[1:], strict=True)
        )
        return f"{written} if {example!r} is {readings[0]}{more}"

    def _kind(self, other: NumberFormat) -> str:
        """Name in words what another format has and the present one has not."""
        parts = []
        if other.decimal != self.format.decimal:
            parts.append(f"a decimal {MARKS[other.decimal]}")
        if other.thousands != self.format.thousands and other.thousands:
            parts.append("thousands separators")
        return " and ".join(parts) or "no thousands separators"

    def _keys(self, other: NumberFormat) -> str:
        """Return the keys under [data] that make the other format of the present one."""
        keys = []
        if other.decimal != self.format.decimal:
            keys.append(f'decimal = "{other.decimal}"')
        if other.thousands != self.format.thousands:
            keys.append(f'thousands = "{other.thousands}"' if other.thousands else "no thousands")
        return " and ".join(keys)

    def _read_by(self, format: NumberFormat) -> Counts:
        return {text: n for text, n in self.words.items() if format.plain(text) is not None}

    def _rank(self, format: NumberFormat) -> tuple[int, int]:
        """Order formats: first those that read most, then those that change fewest keys."""
        changed = format.decimal != self.format.decimal
        gained = _total(self._read_by(format)) - _total(self._lost_by(format))
        gained -= len(self._changed_by(format))
        return -gained, changed + (format.thousands != self.format.thousands)

    def _listed(self) -> str:
        return ", ".join(f'"{word}"' for word in (*self.missing, *sorted(self.marks)))


def _total(counts: Counts) -> int:
    return sum(counts.values())


def _shown(counts: Counts) -> str:
    """Return how many values there are, and an example of them."""
    return f"{_total(counts)} value(s), such as {min(counts)!r}"
