"""The columns of a file or of a database's query: exact names, and the text of each as SQL."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from umpc.errors import DataError
from umpc.node.table.database import read_query
from umpc.node.table.duckdb_file import read_duckdb
from umpc.node.table.header import csv_header, place_of
from umpc.node.table.number_format import PLAIN, NumberFormat
from umpc.node.table.object_store import fetched
from umpc.node.table.plain_text import TextPipe
from umpc.node.table.source import TableSite, TableSource, check_file
from umpc.node.table.sql_source import DUCKDB, SqlSource

PLACE = re.compile(r"Error on Line: \d+|Expected Number of Columns: \d+ Found: \d+")
"""The parts of DuckDB's errors that say where a text is wrong, and quote nothing of it."""
Schema = Sequence[tuple[str, int | None]]
"""The nodes of a Parquet file's schema: a name, and its number of children; the root is first."""

RELATION = "site_table"
"""The name of a query's rows in DuckDB. It is known to one connection, which reads one table."""

WHOLE_KINDS = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
)
"""DuckDB's types of whole numbers of up to 64 bits."""


@dataclass(frozen=True)
class Column:
    """A column's text, as a trimmed VARCHAR in SQL, and how this text writes numbers."""

    text: str
    numbers: NumberFormat
    raw: str = ""
    """The column's own number as DOUBLE, where its type is of numbers: its text is not parsed."""
    known: str = ""
    """Where the column has a type of numbers: whether a value is there."""
    typed: str = ""
    """Where values have types of their own: the number of those that are numbers, else NaN."""
    is_text: bool = True
    """Whether the file has texts here; it has values of one other type, where this is false."""

    @property
    def number(self) -> str:
        """The expression of the column's number, DOUBLE or NULL."""
        return self.number_of(self.text, self.raw or self.typed)

    def number_of(self, text: str, raw: str) -> str:
        """Return the number, DOUBLE or NULL, where the text and the raw number have these names."""
        if self.raw:
            return raw
        number = self.numbers.sql(text)
        if self.typed:
            is_none = f"{raw} IS NULL OR isnan({raw})"  # DuckDB may take NaN for NULL
            return f"CASE WHEN {is_none} THEN {number} ELSE {raw} END"
        return number

    def may_be(self, words: Sequence[str]) -> bool:
        """Return whether the column's text may be one of these words."""
        return not self.raw or any(re.fullmatch(PLAIN.pattern, word) for word in words)


@dataclass(frozen=True)
class Table:
    """A table as a relation in SQL: the exact names of its columns, and an expression of each."""

    names: list[str]
    columns: list[Column]
    relation: str
    parameters: dict[str, Any]

    def column(self, name: str, site: TableSite) -> Column:
        """Return the column of a name. Raises: UnknownField, DataError (name not unique)."""
        return self.columns[place_of(name, self.names, site)]


@contextmanager
def open_table(
    source: TableSource, site: TableSite, wanted: Sequence[str] = ()
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Table]]:
    """Open a file for one query, by the format that its suffix names; objects; or a query.

    Args: wanted: the columns that will be read; a database sends no others.
    Raises: ConfigError, DataError, EmptyTable; also where the query could not read the file.
    """
    if source.sql is not None:
        with _cursor() as connection:
            yield connection, _database_table(connection, source, source.sql, site, wanted)
        return
    if source.objects is not None:
        with fetched(source, site) as local, open_table(local, site, wanted) as opened:
            yield opened
        return
    check_file(source, site)
    try:
        if source.is_csv:
            names, delimiter = csv_header(source, site)
            files = source.files()
            text = TextPipe(files, source.encoding, delimiter)
            with text as pipe, _cursor() as connection:
                try:
                    yield connection, _csv_table(names, delimiter, pipe.path, source.numbers)
                except duckdb.Error:
                    if pipe.failure is None:
                        raise
            if pipe.failure is not None:
                raise site.unreadable(f"{pipe.failure}; encoding {source.encoding!r}")
        else:
            with _cursor() as connection:
                yield connection, _parquet_table(connection, source, site)
    except duckdb.Error as error:
        if isinstance(error, duckdb.FatalException | duckdb.InternalException):
            _connect.cache_clear()  # this engine may answer nothing more
        raise site.unreadable(where_it_stopped(error)) from None


def where_it_stopped(error: duckdb.Error) -> str:
    """Return the place in the file at which the reading stopped.

    DuckDB's own text quotes the line, which is a record, and the site's log must hold no values.
    """
    return "; ".join([type(error).__name__, *PLACE.findall(str(error))])


def open_engine() -> None:
    """Open DuckDB, if this process has not. A process that will read tables does so beforehand."""
    _connect()


def _cursor() -> duckdb.DuckDBPyConnection:
    """One query's own connection to the process's DuckDB, which holds no table and no file."""
    return _connect().cursor()


@cache
def _connect() -> duckdb.DuckDBPyConnection:
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
    found = [Column(_trimmed(column), numbers) for column in columns]
    return Table(names, found, relation, {"path": str(path), "delimiter": delimiter})


# --- Parquet ----------------------------------------------------------------------------------


def _parquet_table(
    connection: duckdb.DuckDBPyConnection, source: TableSource, site: TableSite
) -> Table:
    """Raises: DataError where two columns have one name, or differ by upper and lower case only.

    DuckDB takes such columns for one, so it might read the other one.
    """
    parameters = {"path": [_literal(path) for path in source.files()]}
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
    columns = [_parquet_column(row[0], row[1], source.numbers) for row in described]
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


def _parquet_column(name: str, kind: str, numbers: NumberFormat) -> Column:
    """Return a column's text. A NaN of a column of numbers is missing, as NULL is."""
    reference = '"' + name.replace('"', '""') + '"'
    text = f"CAST({reference} AS VARCHAR)"
    known = f"{reference} IS NOT NULL"
    if kind in ("FLOAT", "DOUBLE"):
        text = f"CASE WHEN isnan({reference}) THEN NULL ELSE {text} END"
        known = f"({known} AND NOT isnan({reference}))"
    raw = f"CAST({reference} AS DOUBLE)" if _has_exact_numbers(kind) else ""
    format = numbers if kind == "VARCHAR" else PLAIN
    return Column(_trimmed(text), format, raw, known if raw else "", is_text=kind == "VARCHAR")


def _has_exact_numbers(kind: str) -> bool:
    """Return whether a cast to DOUBLE gives what the text of a value gives.

    A FLOAT's text has fewer digits than its double. A DECIMAL of 15 digits is a whole number below
    2^53 by a power of ten that is a double, so the quotient is rounded once.
    """
    width = re.fullmatch(r"DECIMAL\((\d+),\d+\)", kind)
    return kind in (*WHOLE_KINDS, "DOUBLE") or (width is not None and int(width[1]) <= 15)


# --- databases --------------------------------------------------------------------------------


def _database_table(
    connection: duckdb.DuckDBPyConnection,
    source: TableSource,
    sql: SqlSource,
    site: TableSite,
    wanted: Sequence[str],
) -> Table:
    """Read the columns from the database, whose connection is then closed again.

    Raises: as `read_query`; DataError by a column's type.
    """
    read = read_duckdb if sql.kind == DUCKDB else read_query
    with read(sql, site) as reading:
        fetched = reading.fetch(wanted)
        names, rows = reading.names, reading.rows
    arrays: dict[str, object] = {"row": np.arange(rows)}
    columns = [Column("NULL::VARCHAR", PLAIN)] * len(names)
    for name, found in fetched.items():
        place = names.index(name)
        arrays |= {f"t{place}": found.texts, f"k{place}": found.known, f"n{place}": found.numbers}
        text = f"CASE WHEN k{place} THEN CAST(t{place} AS VARCHAR) END"
        columns[place] = Column(_trimmed(text), source.numbers, typed=f"n{place}")
    connection.register(RELATION, arrays)
    return Table(names, columns, RELATION, {})


def _literal(path: Path) -> str:
    """Return the path with * ? [ escaped, which DuckDB would take for patterns."""
    return "".join(
        f"[{character}]" if character in "*?[" else character for character in os.path.abspath(path)
    )


def _trimmed(text: str) -> str:
    """Return a text without blanks at its ends.

    DuckDB's `trim` takes longer than all else about a text, so it is asked only where the first or
    the last character is a blank or a control character: these come before "!".
    """
    trimmed = f"trim({text}, E' \\t\\r\\n')"
    return f"CASE WHEN {text} < '!' OR right({text}, 1) < '!' THEN {trimmed} ELSE {text} END"
