"""The keys of a configuration's [data] that say where a node's table is, and how it is written."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from umpc.node.config_section import OBJECT_KEYS, Section, all_of
from umpc.node.records import TableSource
from umpc.node.table.conversions import DECIMAL_MARKS, THOUSANDS_MARKS, NumberFormat
from umpc.node.table.object_source import ADDRESS, MEGABYTE, S3, ObjectSource, wrong_endpoint
from umpc.node.table.plain_text import is_encoding
from umpc.node.table.source import WILDCARDS
from umpc.node.table.sql_source import SqlSource, wrong_password_file, wrong_query, wrong_url

SQL_ADDRESS = '"postgresql://reader@host/database?sslmode=verify-full"'
QUERY = "one SELECT, or the name of a table or view"
OBJECTS = 'the address of objects, like "s3://bucket/visits/*.parquet"'
STORE = 'the address of a store with TLS, like "https://minio.site:9000"'


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
        return _objects(section, reads_table)
    _refuse(section, OBJECT_KEYS, f'goes with a url that begins with "{S3}"')
    if "sql" in section.values or "url" in section.values:
        return _database(section, reads_table)
    _refuse(section, ("password_file",), "goes with sql and url")
    path = section.path("path", "the path of a file, or a pattern of many")
    is_pattern = any(each in str(path) for each in WILDCARDS) and not path.is_file()
    if reads_table and not is_pattern and not path.is_file():
        raise section.wrong("path", "an existing file", str(path))
    source = TableSource(path, is_pattern=is_pattern, **_format(section))
    if reads_table and not source.files():
        raise section.wrong("path", "an existing file, or a pattern of some", str(path))
    return source


def _database(section: Section, reads_table: bool) -> TableSource:
    keys = ("path", "delimiter", "encoding", "cache_megabytes")
    _refuse(section, keys, "belongs to a file, and sql to a database")
    url = section.text("url", r"(?s).*", f"an address, like {SQL_ADDRESS}")
    if wrong := wrong_url(url):
        # The address may hold a password, so it is not shown.
        raise section.error(
            "url",
            ": an address of a database was expected, like "
            f"{SQL_ADDRESS}, and another one came: {wrong}. Correct it there",
        )
    query = section.text("sql", r"(?s).+", QUERY)
    if wrong := wrong_query(query):
        raise section.wrong("sql", QUERY, wrong)
    password = section.secret_file("password_file", _if_read(reads_table, wrong_password_file))
    sql = SqlSource(url, query, password, section.file.parent)
    return TableSource(section.file, sql=sql, **_format(section))


def _objects(section: Section, reads_table: bool) -> TableSource:
    keys = ("path", "sql", "password_file", "cache_megabytes")
    _refuse(section, keys, f'does not go with a url that begins with "{S3}"')
    found = re.fullmatch(ADDRESS, section.text("url", r"(?s).*", OBJECTS))
    if found is None:
        wrong = "it is not written as s3://BUCKET/KEY, where KEY may be a pattern"
        raise section.wrong("url", OBJECTS, wrong)
    if {"", ".", ".."} & set(found[2].split("/")):
        raise section.wrong("url", OBJECTS, "its key has an empty part, or . or .. as one")
    name = "the name of a region"
    region = section.text("region", "[A-Za-z0-9-]{1,40}", name, ObjectSource.region)
    usual = f"https://s3.{region}.amazonaws.com"
    endpoint = section.text("endpoint", r"(?s).*", STORE, usual)
    if wrong := wrong_endpoint(endpoint):
        # it might hold a password, so it is not shown
        raise section.wrong("endpoint", STORE, wrong)
    objects = ObjectSource(found[1], found[2], endpoint.rstrip("/"), region)

    def fault(path: Path) -> str:
        return replace(objects, credentials_file=path).key_of_store()[1]

    objects = replace(
        objects,
        credentials_file=section.secret_file("credentials_file", _if_read(reads_table, fault)),
        most_bytes=MEGABYTE
        * section.count("object_megabytes", ObjectSource.most_bytes // MEGABYTE),
    )
    path, is_pattern = Path(objects.bucket, objects.pattern), objects.is_pattern
    return TableSource(path, is_pattern=is_pattern, objects=objects, **_format(section))


def _if_read(reads_table: bool, fault: Callable[[Path], str]) -> Callable[[Path], str]:
    """Return what looks for a fault of a secret file; at nothing where no table is read."""
    return fault if reads_table else lambda path: ""


def _refuse(section: Section, keys: tuple[str, ...], reason: str) -> None:
    """Refuse keys of another kind of table. Raises: ConfigError."""
    for key in keys:
        if key in section.values:
            raise section.error(
                key,
                f" {reason}: both were not expected together. "
                "Correct it: write path for a file, sql and url for a database, or url for objects",
            )


def _format(section: Section) -> dict[str, Any]:
    """Return how the table is written, where keys say so: parts of a TableSource by their names."""
    readers = {"delimiter": _delimiter, "missing": _missing, "encoding": _encoding}
    found = {key: read(section) for key, read in readers.items() if key in section.values}
    return {**found, "numbers": _numbers(section)}


def _delimiter(section: Section) -> str:
    expected = "one character that occurs in no number, like ';'"
    return section.text("delimiter", r"[^\"\r\n\x00A-Za-z0-9.+-]", expected)


def _missing(section: Section) -> tuple[str, ...]:
    """Return the words that stand for a missing value."""
    expected = 'a list of texts, like ["", "NA"]'
    return tuple(section.checked("missing", lambda value: all_of(str, value), expected))


def _names(section: Section, key: str, expected: str) -> dict[str, str]:
    """Return a table of texts, empty where the key is missing."""

    def is_right(value: Any) -> bool:
        return isinstance(value, dict) and all_of(str, [*value.values()])

    return dict(section.checked(key, is_right, f"{expected}, all of them texts", {}))


def _encoding(section: Section) -> str:
    """Return the encoding of a CSV file."""
    expected = 'the name of a text encoding, like "utf-8", "latin-1" or "cp1252"'
    name = section.text("encoding", r"[^\x00]+", expected)
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
    mark: str = section.checked(key, lambda value: value in marks, expected, default)
    return mark
