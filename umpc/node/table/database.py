"""A query's columns, read from a database: read-only, in one snapshot, and exactly typed.

SQLAlchemy speaks to the database, with psycopg for PostgreSQL. It is installed by the extra
`sql` and loaded when a node first reads (docs/sql.md says why).

| a value in the database | is |
|---|---|
| NULL, or a NaN | missing |
| integer, numeric, float | its number, with the text that the database shows |
| boolean | the words `true` and `false`, and the numbers 1 and 0 |
| text, enumeration, uuid | a text, as in a CSV file |
| date, time, interval, JSON, bytes, array, money | refused in a study, by the column's type |

An error never holds the driver's own text, which may quote a value or the address. It says the
class, the SQLSTATE, and what to do.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import quote

from umpc.errors import ConfigError, DataError, UmpcError
from umpc.node.table.conversions import ROWS_AT_ONCE, Fetched, in_columns
from umpc.node.table.source import TableSite
from umpc.node.table.sql_source import (
    OTHER_TYPE,
    SQLITE,
    UNREADABLE,
    SqlSource,
    wrong_password_file,
)
from umpc.transport.patience import ended_by

USUAL = {"connect_timeout": "15", "client_encoding": "utf8"}
"""The connection's settings that an address need not have: seconds, and the encoding of texts.
A database in SQL_ASCII would otherwise send bytes in place of texts, which fit nothing."""
CANCEL_SECONDS = 5
"""Seconds that a server may take to end a query that nobody waits for any more."""
SECONDS = "EXTRACT(EPOCH FROM VISIT)::bigint AS seconds"
HOUR = "EXTRACT(HOUR FROM VISIT)::int AS hour"
VALUE = "(RESULT->>'value')::numeric AS value"
INSTEAD = {
    "date": "(VISIT - DATE '2000-01-01') AS visit_days, or write in the query, for example, "
    "EXTRACT(YEAR FROM age(BIRTH))::int AS age",
    **dict.fromkeys(("timestamp", "timestamptz"), SECONDS),
    **dict.fromkeys(("time", "timetz"), HOUR),
    "interval": "EXTRACT(DAY FROM STAY)::int AS days",
    **dict.fromkeys(("json", "jsonb"), VALUE),
    "money": "COST::numeric AS cost",
}
LEFT_OUT = "leave it out of the study, or cast it in the query"
REFUSED = {
    **{kind: f"write in the query, for example, {text}" for kind, text in INSTEAD.items()},
    **dict.fromkeys(("bytea", "xml"), LEFT_OUT),
}
"""PostgreSQL's types that are neither a number nor a text → what to write in their place."""

STATES = {
    "28": "the database refuses the user: correct the user in url, or the password",
    "3D": "there is no such database: correct its name in url",
    "42501": "the user may not read this table: run GRANT SELECT ON TABLE TO USER",
    "42P01": "there is no such table or view: correct sql under [data]",
    "42703": "there is no such column: correct sql under [data]",
    "42": "the database does not understand the query: correct sql under [data]",
    "0A": "the query must be one SELECT that changes nothing: correct sql under [data]",
    "25006": "the query tries to change data, and the node only reads: correct sql under [data]",
    "57014": "the database ended the query: look at its statement_timeout",
    "57P": "the database was shut down, or ended the connection: look at its log",
    "53": "the database lacks connections, memory or disk: try again later",
    "22": "the database cannot convert or compute a value: correct sql under [data]",
}
"""SQLSTATE, or its beginning, → what to do. The longest that fits counts."""
SAID = {
    "password authentication failed": STATES["28"],
    "no password supplied": "the database asks for a password: write password_file under [data]",
    "pg_hba.conf": "the database does not let this user or host in: look at its pg_hba.conf",
    "does not exist": "there is no such database or user: correct url",
    "Connection refused": "nothing listens there: correct host and port in url, or start it",
    "No such file": "nothing listens there: correct host and port in url, or start it",
    "resolve host": "the host has no address: correct its name in url",
    "server closed the connection": STATES["57P"],
    "timeout": "the host did not answer in time: look at the firewall between",
    "certificate": "the certificate of the database is not accepted: correct sslrootcert in url",
    "unable to open": "there is no such file, or it may not be read: correct url",
    "no such table": STATES["42P01"],
    "no such column": STATES["42703"],
    "readonly database": STATES["25006"],
}
"""Words of a driver's text → what to do. The text itself is shown to nobody."""


class SqlReading:
    """One transaction of a query. Make it with `read_query`."""

    def __init__(self, connection: Any, source: SqlSource, site: TableSite):
        # A cursor on the server takes one statement only, also where the driver would take several.
        self.connection = connection.execution_options(
            stream_results=True, max_row_buffer=ROWS_AT_ONCE
        )
        self._site = site
        self._query = f"FROM ({source.select}\n) AS site_query"  # it may end with a comment
        found = self.connection.exec_driver_sql(self._plain(f"SELECT * {self._query} LIMIT 0"))
        self._described = list(found.cursor.description)
        self.names: list[str] = [each[0] for each in self._described]
        self.rows = 0
        found.close()

    def fetch(self, names: Sequence[str]) -> dict[str, Fetched]:
        """Read the columns of these names, of which each is that of one column.

        Raises: DataError for a type that is neither number nor text.
        """
        for name in names:
            self._check_type(name)
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names) or "1"
        result = self.connection.exec_driver_sql(self._plain(f"SELECT {columns} {self._query}"))
        found, self.rows = in_columns(names, result.partitions(ROWS_AT_ONCE))
        return found

    def _plain(self, statement: str) -> str:
        """Return the statement with percent signs that the driver does not take for parameters."""
        is_format = self.connection.dialect.paramstyle in ("format", "pyformat")
        return statement.replace("%", "%%") if is_format else statement

    def _check_type(self, name: str) -> None:
        """Raises: DataError by the column's type, which is the same whatever its values are."""
        kind = getattr(self._described[self.names.index(name)], "type_display", "") or ""
        plain = kind.partition("(")[0]
        advice = "take one element in the query, as (RESULTS)[1]" if kind.endswith("[]") else None
        advice = advice or REFUSED.get(plain)
        if advice:
            raise self._site.of_other_type(name, OTHER_TYPE.format(kind, advice))


@contextmanager
def read_query(source: SqlSource, site: TableSite) -> Iterator[SqlReading]:
    """Open the database for one read-only transaction.

    Raises: ConfigError without the optional packages, or for the password's file; DataError.
    """
    engine = engine_of(source, site)
    try:
        with engine.connect() as connection, _ending(connection.connection.driver_connection):
            yield SqlReading(connection, source, site)
    except UmpcError:
        raise
    except Exception as error:
        if not _is_of_database(error):
            raise
        raise site.error(DataError, UNREADABLE, why(error)) from None
    finally:
        engine.dispose()


@contextmanager
def _ending(connection: Any) -> Iterator[None]:
    """End what the block waits for as soon as nobody waits for the block.

    SQLite keeps any bytes as a text. Bytes that are no UTF-8 become the replacement character.
    """
    if isinstance(connection, sqlite3.Connection):
        # otherwise one text that is no UTF-8 would end the study, and tell that there is one
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        with ended_by(connection.interrupt):
            yield
        return
    # a descriptor of its own, because the system gives a closed one's number to other files
    with (
        socket.socket(fileno=os.dup(connection.fileno())) as line,
        ended_by(partial(_end_query, connection, line)),
    ):
        yield


def _end_query(connection: Any, line: socket.socket) -> None:
    """Ask the server to end a query, then hang up: a server that hangs does not answer."""
    with suppress(Exception):  # the reading may have ended meanwhile
        connection.cancel_safe(timeout=CANCEL_SECONDS)
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def why(error: Exception) -> str:
    """Return what to do about a driver's error, without any of its text."""
    original = getattr(error, "orig", None) or error
    state = str(getattr(original, "sqlstate", None) or "")
    known = [state[:length] for length in (5, 3, 2) if state[:length] in STATES]
    said = [advice for words, advice in SAID.items() if words in str(original)]
    advice = [STATES[known[0]]] if known else said[:1]
    names = [type(original).__name__, *([f"SQLSTATE {state}"] if state else [])]
    return "; ".join([" ".join(names), *advice])


def engine_of(source: SqlSource, site: TableSite) -> Any:
    """Return SQLAlchemy's engine, whose connections only read and see one snapshot."""
    try:
        import sqlalchemy
        from sqlalchemy.pool import NullPool
    except ImportError:
        raise site.without_extra("a table in a database", "sql") from None
    if source.kind == SQLITE:
        address = f"file:{quote(str(source.file))}?mode=ro"

        def connect() -> sqlite3.Connection:
            return sqlite3.connect(address, uri=True, check_same_thread=False)

        return sqlalchemy.create_engine("sqlite://", creator=connect, poolclass=NullPool)
    url = sqlalchemy.make_url(source.url)
    if source.password_file is not None:
        url = url.set(password=_password(source, site))
    usual = {name: text for name, text in USUAL.items() if name not in url.query}
    url = url.update_query_dict(usual)
    return sqlalchemy.create_engine(
        url.set(drivername="postgresql+psycopg"),
        poolclass=NullPool,
        hide_parameters=True,
        isolation_level="REPEATABLE READ",
        execution_options={"postgresql_readonly": True},
    )


def _password(source: SqlSource, site: TableSite) -> str:
    """Read the password. Raises: ConfigError; it shows the file's name and nothing of its text."""
    path = source.password_file
    if path is None:
        return ""
    try:
        wrong = wrong_password_file(path)
        if not wrong:
            return path.read_text(encoding="utf-8").strip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        wrong = type(error).__name__
    raise site.error(
        ConfigError,
        "the file of the database's password was expected, readable by the node's user alone, and "
        "it is not so. Correct password_file under [data]",
        f"{path}: {wrong}",
    )


def _is_of_database(error: Exception) -> bool:
    """Return whether an error is the driver's or SQLAlchemy's."""
    place = type(error).__module__.partition(".")[0]
    return place in ("sqlalchemy", "psycopg", "sqlite3")
