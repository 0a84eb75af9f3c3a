"""A query's columns, read from a DuckDB database: read-only, from this file alone, exactly typed.

The node opens the file in an engine of its own, apart from the one that reads CSV and Parquet. This
engine reaches no other file, no network, no extension and no variable of Python, and its settings
are locked before the query is seen. No other process can write to the file while it is open, so
both statements of a reading see one snapshot.

| a value in the database | is |
|---|---|
| NULL, or a NaN | missing |
| integer, DECIMAL, DOUBLE | its number |
| FLOAT | the number with its shortest decimals, as in a CSV file |
| BOOLEAN | the words `true` and `false`, and the numbers 1 and 0 |
| VARCHAR, ENUM, UUID | a text, as in a CSV file |
| any other type | refused in a study, by the column's type |

An error never holds DuckDB's own text, which may quote a value. It says the class and what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import duckdb

from umpc.errors import ConfigError, DataError
from umpc.node.table.conversions import KINDS, ROWS_AT_ONCE, Fetched, in_columns
from umpc.node.table.source import TableSite
from umpc.node.table.sql_source import OTHER_TYPE, UNREADABLE, SqlSource
from umpc.transport.patience import ended_by

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "enable_external_access": False,
    "lock_configuration": True,
    "preserve_insertion_order": True,
    "python_enable_replacements": False,
    "temp_directory": "",
    "threads": 2,
}
"""The engine's settings. A query cannot change them."""
SECONDS = "EXTRACT(EPOCH FROM VISIT)::bigint AS seconds"
INSTEAD = {
    "DATE": "(VISIT - DATE '2000-01-01') AS visit_days",
    "TIMESTAMP": SECONDS,
    "TIMESTAMP WITH TIME ZONE": SECONDS,
    "TIME": "EXTRACT(HOUR FROM VISIT) AS hour",
    "INTERVAL": "EXTRACT(DAY FROM STAY) AS days",
    "JSON": "(RESULT->>'value')::double AS value",
    "BIGNUM": "COST::hugeint AS cost",
}
REFUSED = {kind: f"write in the query, for example, {text}" for kind, text in INSTEAD.items()}
REFUSED["STRUCT"] = "take one part in the query, as RESULTS.value"
"""Types that are neither a number nor a text → what to write in their place."""

CORRECT_SQL = "correct sql under [data]"
ADVICE: tuple[tuple[type[duckdb.Error], str, str], ...] = (
    (
        duckdb.IOException,
        "lock on file",
        "another process writes to the file: read a copy, or a file that the writer has closed",
    ),
    (duckdb.ConnectionException, "different configuration", "this process has the file open"),
    (
        duckdb.IOException,
        "",
        "the file may not be read, or is no database of this version of DuckDB: correct url, or "
        "update the package duckdb",
    ),
    (
        duckdb.PermissionException,
        "",
        "the query or the file needs another file or an extension, and the node reads only this "
        f"file: copy the data into it, or {CORRECT_SQL}",
    ),
    (
        duckdb.CatalogException,
        "",
        f"there is no such table, view or function: {CORRECT_SQL}",
    ),
    (duckdb.BinderException, "", f"there is no such column, or types do not fit: {CORRECT_SQL}"),
    (duckdb.ParserException, "", f"the database does not understand the query: {CORRECT_SQL}"),
    (
        duckdb.InvalidInputException,
        "",
        f"the query tries to change data or settings, and the node only reads: {CORRECT_SQL}",
    ),
    (duckdb.OutOfMemoryException, "", "the query needs more memory than there is: simplify it"),
    (duckdb.DataError, "", f"the database cannot convert or compute a value: {CORRECT_SQL}"),
)
"""An error's class, and words of its text, → what to do. The first that fits counts."""


class DuckdbReading:
    """One reading of a query. Make it with `read_duckdb`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, source: SqlSource, site: TableSite):
        self.connection = connection
        self._site = site
        self._select = source.select
        kinds = [each.type for each in connection.extract_statements(self._select)]
        if kinds != [duckdb.StatementType.SELECT]:
            raise site.error(
                ConfigError,
                "one SELECT was expected as the table's query, and it is something else. Correct "
                "sql under [data]",
            )
        described = connection.execute(f"DESCRIBE {self._select}").fetchall()
        self.names: list[str] = [row[0] for row in described]
        self._types: list[str] = [row[1] for row in described]
        self.rows = 0

    def fetch(self, names: Sequence[str]) -> dict[str, Fetched]:
        """Read the columns of these names, of which each is that of one column.

        Raises: DataError for a type that is neither number nor text.
        """
        columns = [self._column(name) for name in names]
        # DuckDB takes "age" and "Age" for one name, so the query's columns are named by place.
        places = ", ".join(f"c{place}" for place in range(len(self.names)))
        self.connection.execute(
            f"SELECT {', '.join(columns) or '1'} FROM ({self._select}\n) AS site_query({places})"
        )
        chunks = iter(lambda: self.connection.fetchmany(ROWS_AT_ONCE), [])
        found, self.rows = in_columns(names, chunks)
        return found

    def _column(self, name: str) -> str:
        """Return the expression of a column.

        Raises: DataError by the column's type, which is the same whatever its values are.
        """
        place = self.names.index(name)
        kind = self._types[place]
        plain = kind.partition("(")[0]
        is_list = kind.endswith("]")
        if is_list or plain not in KINDS:
            other = "leave it out of the study, or cast it in the query"
            advice = REFUSED.get(plain.partition("_")[0], other)
            advice = "take one element in the query, as RESULTS[1]" if is_list else advice
            shown = OTHER_TYPE.format("LIST" if is_list else plain, advice)
            raise self._site.of_other_type(name, shown)
        return f"CAST(CAST(c{place} AS VARCHAR) AS DOUBLE)" if kind == "FLOAT" else f"c{place}"


@contextmanager
def read_duckdb(source: SqlSource, site: TableSite) -> Iterator[DuckdbReading]:
    """Open the database's file for one reading, and close it afterwards.

    Raises: ConfigError where there is no such file, or another statement; DataError.
    """
    path = source.file
    if not path.is_file():
        raise site.error(
            ConfigError,
            "the database's file was expected, and there is no such file. Correct url under [data] "
            "in the node's own configuration",
            str(path),
        )
    try:
        with (
            duckdb.connect(path, read_only=True, config=SETTINGS) as connection,
            ended_by(connection.interrupt),
        ):
            yield DuckdbReading(connection, source, site)
    except duckdb.Error as error:
        raise site.error(DataError, UNREADABLE, why(error)) from None


def why(error: duckdb.Error) -> str:
    """Return what to do about an error of DuckDB, without any of its text."""
    said = str(error)
    fitting = [advice for cls, words, advice in ADVICE if isinstance(error, cls) and words in said]
    return "; ".join([type(error).__name__, *fitting[:1]])
