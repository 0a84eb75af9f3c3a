"""A look at a whole table for its own administrator: its columns, its rows, and their types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from umpc.node.table.columns import Column, Table, open_table
from umpc.node.table.number_format import PLAIN, NumberFormat, quoted
from umpc.node.table.source import TableSite, TableSource
from umpc.node.table.spelling import FORMATS, WITH_UNIT, Spelling

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

    def __str__(self) -> str:
        if not self.values:
            return "no value"
        if not self.numbers:
            return "words"
        kind = "whole numbers" if self.whole == self.numbers else "numbers"
        others = self.values - self.numbers
        return f"{kind}, and {others} other value(s)" if others else kind


@dataclass(frozen=True)
class Survey:
    """A table's columns and number of rows, and the kind of each column that was looked at.

    missing: the words that stand for no value.
    """

    columns: list[str]
    rows: int
    kinds: dict[str, ColumnKind]
    missing: tuple[str, ...] = ()

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


def survey_table(source: TableSource, names: Sequence[str] | None, site: TableSite) -> Survey:
    """Read a table once, and count its rows and the values of some columns.

    This is for commands of the table's own owner.

    Args: names: the columns; a name that is no column has no kind. None looks at the first
        MOST_COLUMNS of a file, and at none of a database, whose columns have types.
    Raises: as `open_table`; DataError (name not unique).
    """
    with open_table(source, site, names or ()) as (connection, table):
        there = _looked_at(names, table, source)
        columns = [table.column(name, site) for name in there]
        query = f"SELECT count(*) FROM {table.relation} WHERE len($missing::VARCHAR[]) >= 0"
        if columns:
            query = _query(columns, table.relation, source)
        parameters = {**table.parameters, "missing": list(source.missing)}
        found = connection.execute(query, parameters).fetchall()
    if not columns:
        return Survey(table.names, found[0][0], {}, source.missing)
    rows = sum(count for place, _, _, count, *_ in found if place == 0)
    kinds = {
        name: _kind(columns[place], (each[1:] for each in found if each[0] == place))
        for place, name in enumerate(there)
    }
    return Survey(table.names, rows, kinds, source.missing)


def _looked_at(names: Sequence[str] | None, table: Table, source: TableSource) -> list[str]:
    """Return the names of the columns that are looked at, each once."""
    if names is not None:
        return [name for name in dict.fromkeys(names) if name in table.names]
    if source.sql is not None:
        return []
    unique = [name for name in table.names if table.names.count(name) == 1]
    return unique[:MOST_COLUMNS]


def _kind(column: Column, found: Iterable[tuple[str, str, int, int]]) -> ColumnKind:
    """Return a column's kind.

    Args: found: a way of writing, empty for a missing value; an example; the count; and whole ones.
    """
    texts: dict[str, int] = {}
    values = numbers = wholes = 0
    for way, example, count, whole in found:
        if not way:
            continue
        values += count
        wholes += whole
        if way[0] == "n":
            numbers += count
        if way != TYPED:
            texts[example] = texts.get(example, 0) + count
    return ColumnKind(values, numbers, wholes, texts, column.numbers)


def _query(columns: Sequence[Column], relation: str, source: TableSource) -> str:
    """Return the statement that counts the values of each column by the way they are written.

    All values of one way are alike for `Spelling`: a format reads all of them, or none.
    """
    texts, numbers, types, places = [], [], [], []
    for place, column in enumerate(columns):
        raw = column.raw or column.typed or "NULL::DOUBLE"
        texts.append(column.text)
        numbers.append(f"({column.number})::DOUBLE")
        is_typed = f"{raw} IS NOT NULL AND NOT isnan({raw})"
        if not column.is_text:
            is_typed = f"({column.number}) IS NOT NULL"
        types.append(f"coalesce({is_typed}, false)")
        places.append(str(place))
    rows = (
        f"SELECT unnest([{', '.join(places)}]) AS place, unnest([{', '.join(texts)}]) AS text, "
        f"unnest([{', '.join(numbers)}]) AS number, unnest([{', '.join(types)}]) AS typed "
        f"FROM {relation}"
    )
    written = f"SELECT place, text, number, {_way(source)} AS way FROM ({rows})"
    whole = "count(*) FILTER (way <> '' AND isfinite(number) AND number = floor(number))"
    return f"SELECT place, way, min(text), count(*), {whole} FROM ({written}) GROUP BY place, way"


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
        f"WHEN typed THEN {quoted(TYPED)} "
        "WHEN number IS NOT NULL AND NOT regexp_matches(text, '[^0-9+-]') THEN 'n' "
        f"WHEN number IS NOT NULL THEN 'n' || {formats} "
        f"WHEN text IN ({marks}) THEN 'm' || text "
        "WHEN NOT regexp_matches(text, '[0-9]') THEN 'w' "
        f"WHEN {has_unit} THEN 'u' || {formats} || ' ' || {sign} || ' ' || {unit} "
        f"WHEN {formats} = {none} THEN 'w' ELSE 'f' || {formats} END"
    )
