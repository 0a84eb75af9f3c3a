"""A look at a whole table for its own administrator: its columns, its rows, and their types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from umpc.node.table.columns import Column, open_table
from umpc.node.table.source import TableSite, TableSource


@dataclass(frozen=True)
class ColumnKind:
    """The numbers of values of one column: those that are not missing, numbers, whole numbers."""

    values: int
    numbers: int
    whole: int

    def __str__(self) -> str:
        if not self.values:
            return "no value"
        if not self.numbers:
            return "text"
        kind = "whole numbers" if self.whole == self.numbers else "numbers"
        others = self.values - self.numbers
        return f"{kind}, and {others} other value(s)" if others else kind


@dataclass(frozen=True)
class Survey:
    """A table's columns and number of rows, and the kind of each column that was asked for."""

    columns: list[str]
    rows: int
    kinds: dict[str, ColumnKind]


def survey_table(source: TableSource, names: Sequence[str], site: TableSite) -> Survey:
    """Read a table once, and count its rows and the values of some columns.

    This is for commands of the table's own owner. A name that is no column has no kind.
    Raises: as `open_table`; DataError (name not unique).
    """
    with open_table(source, site, names) as (connection, table):
        there = [name for name in dict.fromkeys(names) if name in table.names]
        counts = ["count(*)"]
        for name in there:
            counts += _counts(table.column(name, site))
        query = (
            f"SELECT {', '.join(counts)} FROM {table.relation} WHERE len($missing::VARCHAR[]) >= 0"
        )
        parameters = {**table.parameters, "missing": list(source.missing)}
        rows, *found = connection.execute(query, parameters).fetchall()[0]
        columns = table.names
    kinds = {name: ColumnKind(*found[3 * i : 3 * i + 3]) for i, name in enumerate(there)}
    return Survey(columns, rows, kinds)


def _counts(column: Column) -> list[str]:
    """Return the SQL expressions of a ColumnKind's three numbers."""
    value = f"{column.text} IS NOT NULL AND NOT list_contains($missing, {column.text})"
    number = f"{value} AND ({column.number}) IS NOT NULL"
    whole = f"{number} AND isfinite({column.number}) AND {column.number} = floor({column.number})"
    return [f"count(*) FILTER ({each})" for each in (value, number, whole)]
