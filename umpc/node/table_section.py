"""The keys of a configuration's [data] that say where a node's table is, and how it is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from umpc.errors import ConfigError
from umpc.node.config_section import Section
from umpc.node.object_section import OBJECT_KEYS, objects_of
from umpc.node.records import TableSource
from umpc.node.table.number_format import DECIMAL_MARKS, THOUSANDS_MARKS, NumberFormat
from umpc.node.table.object_source import S3
from umpc.node.table.plain_text import is_encoding
from umpc.node.table.source import WILDCARDS
from umpc.node.table.sql_source import SqlSource, wrong_password_file, wrong_query, wrong_url

SQL_ADDRESS = '"postgresql://reader@host/database?sslmode=verify-full"'


def table_of(section: Section, *, reads_table: bool = True) -> TableSource:
    """Return the table: a file, a query in a database, or objects of a store; and its words.

    Args: reads_table: the table's files and passwords must be there. Otherwise no disk is asked.
    """
    words = _names(section, "words", 'words of the table and of studies, like {TRUE = "true"}')
    columns = _names(section, "columns", 'fields and own columns, like {crp = "CRP_mg_l"}')
    if len(set(columns.values())) < len(columns):
        raise section.wrong("columns", "another column of the table for each field", columns)
    return replace(_table_of(section, reads_table), words=words, columns=columns)


def _table_of(section: Section, reads_table: bool) -> TableSource:
    if str(section.values.get("url", "")).startswith(S3):
        return _objects(section, reads_table=reads_table)
    for key in OBJECT_KEYS:
        if key in section.values:
            raise _apart(section, key, f'goes with a url that begins with "{S3}"')
    if "sql" in section.values or "url" in section.values:
        return _database(section, reads_table=reads_table)
    if "password_file" in section.values:
        raise _apart(section, "password_file", "goes with sql and url")
    path = section.path("path", "the path of a file, or a pattern of many")
    is_pattern = any(each in str(path) for each in WILDCARDS) and not path.is_file()
    source = TableSource(
        section.existing("path") if reads_table and not is_pattern else path,
        _delimiter(section),
        _missing(section),
        _encoding(section),
        _numbers(section),
        is_pattern=is_pattern,
    )
    if reads_table and not source.files():
        raise section.wrong("path", "an existing file, or a pattern of some", str(path))
    return source


def _database(section: Section, *, reads_table: bool) -> TableSource:
    for key in ("path", "delimiter", "encoding", "cache_megabytes"):
        if key in section.values:
            raise _apart(section, key, "belongs to a file, and sql to a database")
    url = section.text("url", r"(?s).*", f"an address, like {SQL_ADDRESS}")
    if wrong := wrong_url(url):
        # The address may hold a password, so it is not shown.
        raise ConfigError(
            f"{section.file}: key {section.key('url')!r}: an address of a database was "
            f"expected, like {SQL_ADDRESS}, and another one came: {wrong}. Correct it there"
        )
    query = section.text("sql", r"(?s).+", "one SELECT, or the name of a table or view")
    if wrong := wrong_query(query):
        raise section.wrong("sql", "one SELECT, or the name of a table or view", wrong)
    password = None
    if "password_file" in section.values:
        password = section.path("password_file", "the path of a file")
        if reads_table and (wrong := wrong_password_file(password)):
            raise section.wrong("password_file", "a file that only the node's user reads", wrong)
    sql = SqlSource(url, query, password, section.file.parent)
    return TableSource(section.file, None, _missing(section), numbers=_numbers(section), sql=sql)


def _objects(section: Section, *, reads_table: bool) -> TableSource:
    for key in ("path", "sql", "password_file", "cache_megabytes"):
        if key in section.values:
            raise _apart(section, key, f'does not go with a url that begins with "{S3}"')
    objects = objects_of(section, reads_table=reads_table)
    return TableSource(
        Path(objects.bucket, objects.pattern),
        _delimiter(section),
        _missing(section),
        _encoding(section),
        _numbers(section),
        is_pattern=objects.is_pattern,
        objects=objects,
    )


def _apart(section: Section, key: str, reason: str) -> ConfigError:
    return ConfigError(
        f"{section.file}: key {section.key(key)!r} {reason}: both were not expected together. "
        "Correct it: write path for a file, sql and url for a database, or url for objects"
    )


def _delimiter(section: Section) -> str | None:
    """Return the table's delimiter, or None if the key is missing."""
    if "delimiter" not in section.values:
        return None
    return section.text(
        "delimiter",
        r"[^\"\r\n\x00A-Za-z0-9.+-]",
        "one character that occurs in no number, like ';'",
    )


def _missing(section: Section) -> tuple[str, ...]:
    """Return the words that stand for a missing value."""
    expected = 'a list of texts, like ["", "NA"]'
    if "missing" not in section.values:
        return TableSource.missing
    words = section.typed("missing", list, expected, None)
    if not all(isinstance(word, str) for word in words):
        raise section.wrong("missing", expected, words)
    return tuple(words)


def _names(section: Section, key: str, expected: str) -> dict[str, str]:
    """Return a table of texts, empty where the key is missing."""
    found = section.typed(key, dict, f"{expected}, all of them texts", {})
    if not all(isinstance(value, str) for value in found.values()):
        raise section.wrong(key, f"{expected}, all of them texts", found)
    return dict(found)


def _encoding(section: Section) -> str:
    """Return the encoding of a CSV file."""
    expected = 'the name of a text encoding, like "utf-8", "latin-1" or "cp1252"'
    name = section.text("encoding", r"[^\x00]+", expected, TableSource.encoding)
    if not is_encoding(name):
        raise section.wrong("encoding", expected, name)
    return name


def _numbers(section: Section) -> NumberFormat:
    """Return how the table writes numbers."""
    decimal = _mark(section, "decimal", DECIMAL_MARKS, NumberFormat.decimal)
    thousands = _mark(section, "thousands", ("", *THOUSANDS_MARKS), NumberFormat.thousands)
    if thousands == decimal:
        raise section.wrong("thousands", "another character than the decimal mark", thousands)
    return NumberFormat(decimal, thousands)


def _mark(section: Section, key: str, marks: tuple[str, ...], default: str) -> str:
    expected = f"one of {', '.join(map(repr, marks))}"
    mark: str = section.typed(key, str, expected, default)
    if mark not in marks:
        raise section.wrong(key, expected, mark)
    return mark
