"""The columns of a file, a query or a data frame: exact names, and an expression in SQL of each."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from umpc.errors import DataError, UnknownField
from umpc.node.table.conversions import (
    PLAIN,
    Column,
    ColumnValues,
    Fetched,
    NumberFormat,
    mapped_sql,
    normal_sql,
    trimmed_sql,
    typed_column,
)
from umpc.node.table.source import (
    TableSite,
    TableSource,
    TextPipe,
    check_file,
    csv_header,
    place_of,
)
from umpc.node.table.sql_source import DUCKDB

PLACE = re.compile(r"Error on Line: \d+|Expected Number of Columns: \d+ Found: \d+")
"""The parts of DuckDB's errors that say where a text is wrong, and quote nothing of it."""
Schema = Sequence[tuple[str, int | None]]
"""The nodes of a Parquet file's schema: a name, and its number of children; the root is first."""

RELATION = "site_table"
"""The name of a query's rows in DuckDB. It is known to one connection, which reads one table."""


@dataclass(frozen=True)
class Table:
    """A table as a relation in SQL: the exact names of its columns, and an expression of each."""

    names: list[str]
    columns: list[Column]
    relation: str
    parameters: dict[str, Any]

    def column(self, name: str, site: TableSite) -> Column:
        """Return the column of a name.

        Raises: UnknownField; DataError where the name is not unique, or by the column's type.
        """
        column = self.columns[place_of(name, self.names, site)]
        if column.refused:
            its = f"its type in the table is {column.refused}. Export it as a number or as a text"
            raise site.of_other_type(name, its)
        return column


def staged_query(
    columns: Sequence[Column],
    relation: str,
    source: TableSource,
    normal: Collection[int],
    where: str,
    *,
    all_texts: bool = False,
) -> str:
    """Return the statement that every reading begins with: t0, n0, k0, t1, … of some columns.

    t is the text as the site means it (`words`), n the number by the column's type, k whether a
    value of such a type is there. The levels are apart, because DuckDB computes an expression as
    often as it is written.

    Args: normal: the places of the columns whose words count, and not only their numbers.
        where: a condition that uses every parameter of the statement. all_texts: whether the
        texts of numbers are wanted, too.
    """
    has_text = [
        all_texts or i in normal or column.may_be(source.missing)
        for i, column in enumerate(columns)
    ]
    first = [
        f"{column.text if has_text[i] else 'NULL::VARCHAR'} AS t{i}, "
        f"{column.raw or column.typed or 'NULL::DOUBLE'} AS n{i}, "
        f"{column.known or 'NULL::BOOLEAN'} AS k{i}"
        for i, column in enumerate(columns)
    ]
    found = f"SELECT {', '.join(first) or '0 AS nothing'} FROM {relation} WHERE {where}"
    texts = {i: normal_sql(f"t{i}") for i in normal if columns[i].is_of_texts}
    found = _replaced(found, texts)
    mapped = {
        i: mapped_sql(f"t{i}", source.words, is_normal=i in normal) for i in range(len(columns))
    }
    return _replaced(found, mapped if source.words else {})


def _replaced(query: str, texts: Mapping[int, str]) -> str:
    """Return the query with other texts."""
    if not texts:
        return query
    changed = ", ".join(f"{text} AS t{i}" for i, text in texts.items())
    return f"SELECT * REPLACE ({changed}) FROM ({query})"


@contextmanager
def open_table(
    source: TableSource, site: TableSite, wanted: Sequence[str] = ()
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Table]]:
    """Open a file for one query, by the format that its suffix names; objects; or a query.

    Args: wanted: the columns that will be read, by their names in studies; a database sends no
        others.
    Raises: ConfigError, DataError, EmptyTable; also where the query could not read the file.
        UnknownField where `columns` under [data] names a column that is not there.
    """
    own = [source.columns.get(name, name) for name in wanted]
    with _open_own(source, site, own) as (connection, table):
        yield connection, _renamed(table, source, site, wanted)


def _renamed(table: Table, source: TableSource, site: TableSite, wanted: Sequence[str]) -> Table:
    """Return the table with the names that studies have for its columns."""
    if not source.columns:
        return table
    for name in wanted or source.columns:
        if (own := source.columns.get(name, name)) not in table.names and name in source.columns:
            raise site.error(
                UnknownField,
                f"field {name!r}: the column that columns under [data] names for it was expected, "
                "and the table has none of this name. Correct it in the node's own configuration",
                f"no column {own!r}; columns: {', '.join(map(repr, table.names))}",
            )
    names, columns = [], []
    for own, column in zip(table.names, table.columns, strict=True):
        studies = [name for name, mapped in source.columns.items() if mapped == own]
        for name in studies or ([own] if own not in source.columns else []):
            names.append(name)
            columns.append(column)
    return replace(table, names=names, columns=columns)


@contextmanager
def _open_own(
    source: TableSource, site: TableSite, wanted: Sequence[str]
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Table]]:
    """Open a table with its own names. The readers of other kinds than files load when needed."""
    if source.sql is not None:
        database: AbstractContextManager[Any]
        if source.sql.kind == DUCKDB:
            from umpc.node.table.duckdb_file import read_duckdb

            database = read_duckdb(source.sql, site)
        else:
            from umpc.node.table.database import read_query

            database = read_query(source.sql, site)
        with new_cursor() as connection:
            # the database's connection is closed again before the columns are used
            with database as reading:
                names = reading.names
                columns = reading.fetch(
                    [name for name in dict.fromkeys(wanted) if names.count(name) == 1]
                )
            rows = reading.rows
            yield connection, _registered(connection, rows, names, columns, source.numbers)
        return
    if source.frame is not None:
        with new_cursor() as connection:
            names, rows = [*source.frame], max(map(_rows_of, source.frame.values()), default=0)
            yield connection, _registered(connection, rows, names, source.frame, source.numbers)
        return
    if source.objects is not None:
        from umpc.node.table.object_store import fetched

        with (
            fetched(source, source.objects, site) as local,
            _open_own(local, site, wanted) as opened,
        ):
            yield opened
        return
    check_file(source, site)
    try:
        if source.is_csv:
            names, delimiter = csv_header(source, site)
            files = source.files()
            text = TextPipe(files, source.encoding, delimiter)
            with text as pipe, new_cursor() as connection:
                try:
                    yield connection, _csv_table(names, delimiter, pipe.path, source.numbers)
                except duckdb.Error:
                    if pipe.failure is None:
                        raise
            if pipe.failure is not None:
                raise site.unreadable(f"{pipe.failure}; encoding {source.encoding!r}")
        else:
            with new_cursor() as connection:
                yield connection, _parquet_table(connection, source, site)
    except duckdb.Error as error:
        if isinstance(error, duckdb.FatalException | duckdb.InternalException):
            shared_engine.cache_clear()  # this engine may answer nothing more
        raise site.unreadable(where_it_stopped(error)) from None


def where_it_stopped(error: duckdb.Error) -> str:
    """Return the place in the file at which the reading stopped.

    DuckDB's own text quotes the line, which is a record, and the site's log must hold no values.
    """
    return "; ".join([type(error).__name__, *PLACE.findall(str(error))])


def new_cursor() -> duckdb.DuckDBPyConnection:
    """One query's own connection to the process's DuckDB, which holds no table and no file."""
    return shared_engine().cursor()


@cache
def shared_engine() -> duckdb.DuckDBPyConnection:
    """Open DuckDB in memory, without extensions from the network and without files on disk.

    It keeps the order of the rows, and nothing of a file after its query. To open it takes longer
    than to read a small table, so each process opens it once.
    """
    return duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_file_cache": False,
            "preserve_insertion_order": True,
            "temp_directory": "",
            "threads": 2,
        },
    )


# --- CSV --------------------------------------------------------------------------------------


def _csv_table(names: list[str], delimiter: str, path: Path, numbers: NumberFormat) -> Table:
    columns = [f"c{i}" for i in range(len(names))]
    types = ", ".join(f"'{column}': 'VARCHAR'" for column in columns)
    relation = (
        "read_csv($path, auto_detect=false, header=true, delim=$delimiter, "
        f"quote='\"', escape='\"', columns={{{types}}})"
    )
    found = [Column(trimmed_sql(column), numbers) for column in columns]
    return Table(names, found, relation, {"path": str(path), "delimiter": delimiter})


# --- Parquet ----------------------------------------------------------------------------------


def _parquet_table(
    connection: duckdb.DuckDBPyConnection, source: TableSource, site: TableSite
) -> Table:
    """Raises: DataError where two columns have one name, or differ by upper and lower case only.

    DuckDB takes such columns for one, so it might read the other one.
    """
    parameters = {"path": [glob.escape(os.path.abspath(path)) for path in source.files()]}
    found = connection.execute(
        "SELECT file_name, name, num_children, type, converted_type, logical_type::VARCHAR, "
        "scale, precision FROM parquet_schema($path)",
        parameters,
    ).fetchall()
    schemas: dict[str, list[tuple[Any, ...]]] = {}
    for file, *node in found:
        schemas.setdefault(file, []).append(tuple(node))
    first = next(iter(schemas.values()))
    if any(each[1:] != first[1:] for each in schemas.values()):
        raise site.error(
            DataError,
            "the Parquet files of one table were expected to have the same columns with the same "
            "types, in one order, and they do not. Export them anew, or correct path under [data]",
        )
    names = [*_top_level([node[:2] for node in first]), *source.partitions]
    alike = {name.casefold() for name in names}
    if len(alike) < len(names):
        raise site.error(
            DataError,
            "the columns of a Parquet file were expected to differ by more than upper and lower "
            "case, and two of them do not. Rename or remove one of the two",
            f"columns: {', '.join(map(repr, names))}",
        )
    is_partitioned = "true" if source.partitions else "false"
    # A guessed type would follow from all folders: one of them would decide how others are read.
    relation = f"read_parquet($path, hive_partitioning={is_partitioned}, hive_types_autocast=false)"
    described = connection.execute(f"DESCRIBE SELECT * FROM {relation}", parameters).fetchall()
    columns = [typed_column(_identifier(row[0]), row[1], source.numbers) for row in described]
    return Table([row[0] for row in described], columns, relation, parameters)


def _top_level(schema: Schema) -> list[str]:
    """Return the names of the columns, without the parts of nested ones."""
    names = []
    inside = 0  # parts of the present column that are still to come
    for name, children in schema[1:]:
        if inside == 0:
            names.append(name)
            inside = 1
        inside += (children or 0) - 1
    return names


# --- values in memory -------------------------------------------------------------------------


def _registered(
    connection: duckdb.DuckDBPyConnection,
    rows: int,
    names: Sequence[str],
    found: Mapping[str, ColumnValues],
    numbers: NumberFormat,
) -> Table:
    """Return columns in memory as a relation: converted one by one, or arrays of one type."""
    arrays: dict[str, object] = {"row": np.arange(rows)}
    for name, values in found.items():
        place = names.index(name)
        if isinstance(values, Fetched):
            arrays |= {f"t{place}": values.texts, f"k{place}": values.known}
            arrays[f"n{place}"] = values.numbers
        else:
            arrays[f"c{place}"] = values
    connection.register(RELATION, arrays)
    described = connection.execute(f"DESCRIBE {RELATION}").fetchall()
    kinds = {row[0]: row[1] for row in described}
    columns = [Column("NULL::VARCHAR", PLAIN)] * len(names)
    for name, values in found.items():
        place = names.index(name)
        if isinstance(values, Fetched):
            text = f"CASE WHEN k{place} THEN CAST(t{place} AS VARCHAR) END"
            columns[place] = Column(trimmed_sql(text), numbers, typed=f"n{place}")
        else:
            columns[place] = typed_column(f"c{place}", kinds[f"c{place}"], numbers)
    return Table([*names], columns, RELATION, {})


def _rows_of(values: ColumnValues) -> int:
    return len(values.texts if isinstance(values, Fetched) else values)


def _identifier(name: str) -> str:
    """Return a column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'
