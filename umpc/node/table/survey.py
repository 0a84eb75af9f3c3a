"""A look at a whole table for its own administrator: its columns, its rows, and their types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from umpc.node.table.columns import Table, open_table, staged_query
from umpc.node.table.conversions import PLAIN, Column, NumberFormat, quoted
from umpc.node.table.reading import USES_ALL, word_lists
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
class Survey:
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
        query = f"SELECT count(*) FROM {table.relation} WHERE {USES_ALL}"
        if columns:
            query = _query(columns, table.relation, source)
        parameters = {**table.parameters, **word_lists(source)}
        found = connection.execute(query, parameters).fetchall()
    kinds = {name: each.refused for name, each in zip(table.names, table.columns, strict=True)}
    refused = {name: kind for name, kind in kinds.items() if kind}
    if not columns:
        return Survey(table.names, found[0][0], {}, source.missing, refused)
    rows = sum(count for place, _, _, count, *_ in found if place == 0)
    looked_at = {
        name: _kind(columns[place], (each[1:] for each in found if each[0] == place))
        for place, name in enumerate(there)
    }
    return Survey(table.names, rows, looked_at, source.missing, refused)


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
