"""The study's fields of all rows of a table, read with DuckDB: as numbers, or as texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from umpc.node.table.columns import Column, open_table
from umpc.node.table.source import TableSite, TableSource
from umpc.ustat.schema import FieldSchema

Floats = np.ma.MaskedArray[tuple[int], np.dtype[np.float64]]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Values:
    """The values of one field in all rows.

    numbers: (rows,) float64; a category's place; masked where the value is no number and no
        category. marks: (rows,) uint8, the place in MISSING_MARKS of such a value, from 1, or 0.
    """

    numbers: Floats
    marks: NDArray[np.uint8]

    def take(self, rows: Places) -> Values:
        """Return the values of these rows."""
        return Values(self.numbers[rows], self.marks[rows])


def read_values(
    source: TableSource, fields: Sequence[FieldSchema], site: TableSite, person: str | None = None
) -> tuple[NDArray[np.bool_], dict[str, Values], NDArray[np.object_]]:
    """Read the fields of all rows.

    Args: person: the column that tells people apart, whose texts are read too.
    Returns: `present`, (rows,) bool, true where neither a field nor the person is missing; each
        field's values; and the people's texts, (rows,) or, without a person, (0,).
    Raises: as `open_table`; UnknownField.
    """
    people = [person] if person is not None else []
    wanted = [*(each.name for each in fields), *people]
    with open_table(source, site, wanted) as (connection, table):
        columns = [table.column(schema.name, site) for schema in fields]
        of_people = [table.column(name, site) for name in people]
        chosen = [_present([*columns, *of_people])]
        chosen += [f"{column.text} AS person" for column in of_people]
        for index, (schema, column) in enumerate(zip(fields, columns, strict=True)):
            chosen += _expressions(index, schema, column)
        labels = {
            f"categories{i}": list(schema.categories)
            for i, schema in enumerate(fields)
            if schema.categories
        }
        parameters = {**table.parameters, **labels, **_words(source)}
        found = connection.execute(_query(chosen, table.relation), parameters).fetchnumpy()
    values = {
        schema.name: Values(np.ma.asarray(found[f"v{i}"]), np.asarray(found[f"m{i}"]))
        for i, schema in enumerate(fields)
    }
    persons = np.ma.getdata(found["person"]) if people else np.empty(0, dtype=object)
    return np.asarray(found["present"]), values, np.asarray(persons, dtype=object)


def read_texts(source: TableSource, names: Sequence[str], site: TableSite) -> dict[str, list[str]]:
    """Read the texts of these columns in every row that has all of them.

    This is for commands of the table's own owner. Raises: as `open_table`; UnknownField.
    """
    with open_table(source, site, names) as (connection, table):
        columns = [table.column(name, site) for name in names]
        chosen = [_present(columns), *(f"{each.text} AS t{i}" for i, each in enumerate(columns))]
        parameters = {**table.parameters, **_words(source)}
        found = connection.execute(_query(chosen, table.relation), parameters).fetchnumpy()
    rows = np.flatnonzero(np.asarray(found["present"]))
    texts = [np.ma.getdata(found[f"t{i}"])[rows].tolist() for i in range(len(names))]
    return dict(zip(names, texts, strict=True))


def _words(source: TableSource) -> dict[str, list[str]]:
    return {"missing": list(source.missing), "marks": list(source.unlisted_marks())}


def _query(chosen: Sequence[str], relation: str) -> str:
    """Return the statement. DuckDB wants every parameter used, so the words occur in its filter."""
    used = "len($missing::VARCHAR[]) >= 0 AND len($marks::VARCHAR[]) >= 0"
    return f"SELECT {', '.join(chosen)} FROM {relation} WHERE {used}"


def _present(columns: Sequence[Column]) -> str:
    """Return the SQL column `present`: no text of the row is missing."""
    known = [
        f"({each.text} IS NOT NULL AND NOT list_contains($missing, {each.text}))"
        for each in columns
    ]
    return f"({' AND '.join(['true', *known])}) AS present"


def _expressions(index: int, schema: FieldSchema, column: Column) -> list[str]:
    """Return the SQL columns `v<index>`, number or category's place, and `m<index>`, its mark."""
    number = column.number
    if schema.categories:
        number = f"nullif(list_position($categories{index}, {column.text}), 0)::DOUBLE - 1"
    mark = f"CASE WHEN ({number}) IS NULL THEN list_position($marks, {column.text}) END"
    return [f"{number} AS v{index}", f"coalesce({mark}, 0)::UTINYINT AS m{index}"]
