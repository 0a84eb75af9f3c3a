"""The study's fields of all rows of a table, read with DuckDB: as numbers, or as texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from umpc.node.table.arrow_stream import batches
from umpc.node.table.batch import Batch, Values
from umpc.node.table.columns import Column, open_table
from umpc.node.table.source import TableSite, TableSource
from umpc.ustat.schema import FieldSchema


def read_batches(
    source: TableSource, fields: Sequence[FieldSchema], site: TableSite, person: str | None = None
) -> Iterator[Batch]:
    """Read the fields of all rows, some rows at a time.

    Args: person: the column that tells people apart, whose texts are read too.
    Raises: as `open_table`; UnknownField.
    """
    wanted = [*(each.name for each in fields), *([person] if person is not None else [])]
    with open_table(source, site, wanted) as (connection, table):
        columns = [table.column(schema.name, site) for schema in fields]
        of_person = table.column(person, site) if person is not None else None
        labels = {
            f"categories{i}": list(schema.categories)
            for i, schema in enumerate(fields)
            if schema.categories
        }
        query = _batch_query(source, fields, columns, of_person, table.relation)
        parameters = {**table.parameters, **labels, **_words(source)}
        for found in batches(connection.sql(query, params=parameters)):
            values = {
                schema.name: Values(found[f"v{i}"], found[f"m{i}"], found.get(f"d{i}"))
                for i, schema in enumerate(fields)
            }
            nobody = np.empty(0, dtype=object)
            yield Batch(found["present"].view(bool), values, found.get("person", nobody))


def _batch_query(
    source: TableSource,
    fields: Sequence[FieldSchema],
    columns: Sequence[Column],
    person: Column | None,
    relation: str,
) -> str:
    """Return the statement of a batch's columns.

    Three levels, because DuckDB computes an expression as often as it is written: texts and raw
    numbers; numbers; marks of values that are none.
    """
    first, second, third = [], [], []
    for i, (schema, column) in enumerate(zip(fields, columns, strict=True)):
        has_text = bool(schema.categories) or column.may_be(source.missing)
        first += [
            f"{column.text if has_text else 'NULL::VARCHAR'} AS t{i}",
            f"{column.raw or column.typed or 'NULL::DOUBLE'} AS n{i}",
            f"{column.known or 'NULL::BOOLEAN'} AS k{i}",
        ]
        number = column.number_of(f"t{i}", f"n{i}")
        if schema.categories:
            number = f"nullif(list_position($categories{i}, t{i}), 0)::DOUBLE - 1"
        second += [f"t{i}", f"{_is_there(column, source, f't{i}', f'k{i}')} AS k{i}"]
        second += [f"{number} AS v{i}"]
        mark = f"CASE WHEN v{i} IS NULL THEN list_position($marks, t{i}) END"
        mark = "0::UTINYINT" if column.raw else f"coalesce({mark}, 0)::UTINYINT"
        third += [f"coalesce(v{i}, 'nan'::DOUBLE) AS v{i}", f"{mark} AS m{i}"]
        if schema.categories:
            # of every word, so that a clock does not see how many words a study lists
            third += [f"encode(md5(coalesce(t{i}, ''))) AS d{i}"]
    known = ["true", *(f"k{i}" for i in range(len(fields)))]
    if person is not None:
        first += [f"{person.text} AS person", f"{person.known or 'NULL::BOOLEAN'} AS here"]
        second += ["person", f"{_is_there(person, source, 'person', 'here')} AS here"]
        third += ["coalesce(person, '') AS person"]
        known += ["here"]
    third += [f"coalesce({' AND '.join(known)}, false)::UTINYINT AS present"]
    inner = _query(first or ["0 AS nothing"], relation)
    middle = f"SELECT {', '.join(second) or '*'} FROM ({inner})"
    return f"SELECT {', '.join(third)} FROM ({middle})"


def _is_there(column: Column, source: TableSource, text: str, known: str) -> str:
    """Return the expression of whether a value is there and is no word for a missing one.

    Args: text, known: the names of the column's text, and of whether a value of its type is there.
    """
    known = known if column.known else f"{text} IS NOT NULL"
    if not column.may_be(source.missing):
        return known
    return f"({known} AND NOT list_contains($missing, {text}))"


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
