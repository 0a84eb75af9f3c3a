"""One table of a node's configuration file: each value is checked as it is read.

*Table section.* The keys of a configuration's [data] that say where a node's table is, and how it
is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from umpc.compute.place import DASK, DASK_EXPECTED, ComputePlace
from umpc.errors import ConfigError
from umpc.node.policy import Policy
from umpc.node.table.conversions import DECIMAL_MARKS, THOUSANDS_MARKS, NumberFormat
from umpc.node.table.object_store import keys_of_store
from umpc.node.table.source import MEGABYTE, S3, WILDCARDS, ObjectSource, TableSource, is_encoding
from umpc.node.table.sql_source import SqlSource, wrong_password_file, wrong_query, wrong_url
from umpc.study.rules import line_of_key, nearest
from umpc.transport.addresses import HubAddress, parse_hub

OBJECT_KEYS = ("endpoint", "region", "credentials_file", "object_megabytes")
"""The keys under [data] that only objects of a store have."""
KEYS = {
    "": (
        *("name", "listen", "hub", "identity", "ledger", "plugins"),
        *("cores", "compute", "compute_tls"),
        *("data", "budget", "prepare", "notify", "policy", "datasets", "people", "linked"),
    ),
    "hub": ("name", "address"),
    "data": (
        *("path", "delimiter", "missing", "clip", "name"),
        *("encoding", "decimal", "thousands", "words", "columns"),
        *("sql", "url", "password_file"),
        *OBJECT_KEYS,
        "cache_megabytes",
        "people",
    ),
    "people": ("listen", "cap", "most_per_second"),
    "linked": ("folder", "key"),
    "budget": ("epsilon", "delta", "composition", "composition_delta", "anchor", "hold_hours"),
    "prepare": ("most", "hours"),
    "notify": ("command",),
    "policy": tuple(field.name for field in fields(Policy)),
}
KEYS["datasets"] = (*KEYS["data"], "ledger", "budget", "policy")
"""Section → its keys."""
IDENTITY_FILES = ("ca.pem", "cert.pem", "key.pem")


def _text(file: Path) -> str:
    """Return the file's text; nothing where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


class Section:
    """One table of the file.

    Args: name: its name in the file, "" for the top. kind: the section whose keys it may have, by
    default that of its name.

    Each method returns one checked value, or raises a ConfigError that says what was expected and
    what came.
    """

    def __init__(self, file: Path, name: str, values: dict[str, Any], kind: str | None = None):
        self.file = file
        self.name = name
        self.values = values
        keys = KEYS[name if kind is None else kind]
        for key in values:
            if key not in keys:
                close = nearest(key, keys)
                hint = f"did you mean {close!r}?" if close else f"known are {', '.join(keys)}."
                line = line_of_key(_text(file), key)
                place = f" in line {line}" if line else ""
                raise ConfigError(
                    f"{file}: unknown key {self.key(key)!r}{place}; {hint} Correct or remove it"
                )

    def section(self, name: str, *, optional: bool = False) -> Section:
        """Return a table of this one. An optional one that is missing is empty."""
        default: dict[str, Any] | None = {} if optional else None
        values = self.typed(name, dict, f"a section [{self.key(name)}]", default)
        return Section(self.file, self.key(name), values, name)

    def tables(self, name: str) -> list[Section]:
        """Return the tables of a list [[name]] of one or more, named by their place from 1 on."""

        def is_right(value: Any) -> bool:
            return all_of(dict, value) and bool(value)

        found = self.checked(name, is_right, f"one section [[{name}]] or more")
        return [
            Section(self.file, f"{name}[{place}]", each, name)
            for place, each in enumerate(found, start=1)
        ]

    def texts(self, key: str, pattern: str, expected: str) -> frozenset[str]:
        """Return a list of texts that match the pattern, empty if the key is missing."""

        def is_right(value: Any) -> bool:
            return all_of(str, value) and all(re.fullmatch(pattern, text) for text in value)

        return frozenset(self.checked(key, is_right, expected, []))

    def count(self, key: str, default: int = 0) -> int:
        """Return a whole number, 0 or more."""
        expected = "a whole number, 0 or more"
        found: int = self.checked(
            key, lambda value: type(value) is int and value >= 0, expected, default
        )
        return found

    def hours(self, key: str, default: float) -> float:
        """Return a number of hours, in seconds. Args: default: in seconds."""

        def is_right(value: Any) -> bool:
            is_number = type(value) in (int, Decimal) and Decimal(value).is_finite()
            return is_number and 0 < value <= 168

        expected = "hours, a number above 0 and at most 168"
        return float(self.checked(key, is_right, expected, Decimal(default) / 3600) * 3600)

    def text(self, key: str, pattern: str, expected: str, default: str | None = None) -> str:
        """Return a text that matches the pattern."""

        def is_right(value: Any) -> bool:
            return isinstance(value, str) and re.fullmatch(pattern, value) is not None

        found: str = self.checked(key, is_right, expected, default)
        return found

    def flag(self, key: str) -> bool:
        """Return true or false; false if the key is missing."""
        value: bool = self.typed(key, bool, "true or false", False)
        return value

    def always_clips(self) -> None:
        """Accept the former key `clip` only where it says what every node does now."""
        if "clip" in self.values and not self.flag("clip"):
            raise self.error(
                "clip",
                ": true was expected, and false came. A "
                "node no longer refuses a study because values do not fit: a refusal would tell "
                "the coordinator about them. It clips them and says so in its log. Correct the "
                "file: remove the key",
            )

    def identity(self) -> Path:
        """Return the folder with the node's certificate and key."""
        folder = self.identity_folder()
        absent = [name for name in IDENTITY_FILES if not (folder / name).is_file()]
        if absent:
            raise self.wrong(
                "identity",
                f"a folder with {', '.join(IDENTITY_FILES)}",
                f"{folder} without {', '.join(absent)}",
            )
        return folder

    def identity_folder(self) -> Path:
        """Return the folder for the node's certificate and key, which need not exist yet."""
        return self.path("identity", "the path of a folder")

    def ledger(self, default: str | None) -> Path:
        """Return the path of the ledger, in a folder that exists. No default: it must be there."""
        return self._place("ledger", "the path of the ledger's file", default)

    def anchor(self) -> Path | None:
        """Return the path of the ledger's anchor, or None if the key is missing."""
        expected = "the path of the ledger's anchor"
        return self._place("anchor", expected) if "anchor" in self.values else None

    def _place(self, key: str, expected: str, default: str | None = None) -> Path:
        path = self.path(key, expected, default)
        if not path.parent.is_dir() or path.is_dir():
            raise self.wrong(key, "a file in an existing folder", str(path))
        return path

    def listen(self) -> str:
        """Return the address at which the node listens, "host:port"."""
        expected = 'host:port with a port from 0 to 65535, like "127.0.0.1:0"'
        value = self.text(
            "listen", r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):[0-9]{1,5}", expected, "127.0.0.1:0"
        )
        if int(value.rpartition(":")[2]) > 65535:
            raise self.wrong("listen", expected, value)
        return value

    def hub(self) -> HubAddress | None:
        """Return the hub at which the node waits for calls, or None if it listens itself."""
        if "hub" not in self.values:
            return None
        if "listen" in self.values:
            raise ConfigError(
                f"{self.file}: keys 'hub' and 'listen' exclude each other: a node behind a hub "
                "accepts no connection. Remove one of them"
            )
        table = self.section("hub")
        name = table.text("name", r"[^\x00@]+", "the name in the hub's certificate")
        address = table.text("address", r"[^\x00]+", "the hub's host:port")
        try:
            return parse_hub(f"{name}@{address}")
        except ConfigError as error:
            raise self.error("hub", f": {error.message}") from None

    def place(self) -> ComputePlace:
        """Return where the node computes. Its certificates are looked at when the node starts."""
        cluster = self.text("compute", "|".join(("", DASK)), DASK_EXPECTED, "")
        if cluster and "compute_tls" not in self.values:
            raise self.error(
                "compute_tls",
                f" is missing, and compute = {cluster!r} needs it: "
                "the folder with the ca.pem, cert.pem and key.pem of the site's cluster. Add it",
            )
        tls = self.path("compute_tls", "the path of a folder") if cluster else None
        return ComputePlace(self.count("cores"), cluster, tls)

    def secret_file(self, key: str, fault: Callable[[Path], str]) -> Path | None:
        """Return the path of a secret file, or None if the key is missing.

        Args: fault: what is wrong with the file, or "".
        """
        if key not in self.values:
            return None
        path = self.path(key, "the path of a file")
        if wrong := fault(path):
            raise self.wrong(key, "a file that only the node's user reads", wrong)
        return path

    def command(self) -> tuple[str, ...]:
        """Return a program that exists, and its arguments; empty if the key is missing."""
        expected = "a list of texts: the full path of a program that may run, and its arguments"
        words = self.checked(
            "command", lambda value: all_of(str, value) and "\0" not in "".join(value), expected, []
        )
        if words and not (Path(words[0]).is_absolute() and os.access(words[0], os.X_OK)):
            raise self.wrong("command", expected, words[0])
        return tuple(words)

    def path(self, key: str, expected: str, default: str | None = None) -> Path:
        """Return a path, which need not exist; a relative one begins at the file's folder."""
        return (self.file.parent / self.text(key, r"[^\x00]+", expected, default)).resolve()

    def typed(self, key: str, kind: type, expected: str, default: object = None) -> Any:
        """Return the key's value, which is of this type."""
        return self.checked(key, lambda value: isinstance(value, kind), expected, default)

    def checked(
        self, key: str, is_right: Callable[[Any], bool], expected: str, default: object = None
    ) -> Any:
        """Return the key's value if it is right, or the default; without one it must be there."""
        value = self.values.get(key, default)
        if value is None:
            raise self.error(key, f" is missing; {expected} was expected. Add it")
        if not is_right(value):
            raise self.wrong(key, expected, value)
        return value

    def wrong(self, key: str, expected: str, found: object) -> ConfigError:
        """Return the error for a value that was not expected."""
        shown = str(found) if isinstance(found, Decimal) else repr(found)
        return self.error(key, f": {expected} was expected, and {shown} came. Correct it there")

    def error(self, key: str, text: str) -> ConfigError:
        """Return an error about a key."""
        return ConfigError(f"{self.file}: key {self.key(key)!r}{text}")

    def key(self, key: str) -> str:
        """Return the key's full name, as messages show it."""
        return f"{self.name}.{key}" if self.name else key


def all_of(kind: type, value: Any) -> bool:
    """Whether a value is a list, and each of its items of a type."""
    return isinstance(value, list) and all(isinstance(each, kind) for each in value)


# --- table section --------------------------------------------------------------------------------

SQL_ADDRESS = '"postgresql://reader@host/database?sslmode=verify-full"'
QUERY = "one SELECT, or the name of a table or view"
OBJECTS = 'the address of objects, like "s3://bucket/visits/*.parquet"'
STORE = 'the address of a store with TLS, like "https://minio.site:9000"'
ADDRESS = rf"{S3}([a-z0-9][a-z0-9.-]{{1,61}}[a-z0-9])/([^\x00-\x1f]+)"
HERE = r"http://(127\.0\.0\.1|\[::1\]|localhost)"
ENDPOINT = rf"(?i)(https://([\w.-]+|\[[0-9a-f:]+\])|{HERE})(:\d{{1,5}})?(/[^?#@]*)?"


def table_of(section: Section, *, reads_table: bool = True) -> TableSource:
    """Return the table: a file, a query in a database, or objects of a store; and its words.

    Args: reads_table: the table's files and passwords must be there. Otherwise no disk is asked.
    """
    if "people" in section.values:
        # an aggregator: people send it shares, and it has no table
        others = tuple(key for key in KEYS["data"] if key not in ("people", "name"))
        _refuse(section, others, "belongs to a table, and people to an aggregator")
        return TableSource(section.path("people", "the path of a folder"), frame={})
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
    if re.fullmatch(ENDPOINT, endpoint) is None:
        # it might hold a password, so it is not shown
        raise section.wrong(
            "endpoint",
            STORE,
            "it is not written as https://HOST:PORT, holds more than scheme, host and port, or is "
            "elsewhere without TLS, where records would cross the network in the clear",
        )
    objects = ObjectSource(found[1], found[2], endpoint.rstrip("/"), region)

    def fault(path: Path) -> str:
        return keys_of_store(path)[1]

    objects = replace(
        objects,
        credentials_file=section.secret_file("credentials_file", _if_read(reads_table, fault)),
        most_bytes=MEGABYTE
        * section.count("object_megabytes", ObjectSource.most_bytes // MEGABYTE),
    )
    is_pattern = any(each in objects.pattern for each in WILDCARDS)
    path = Path(objects.bucket, objects.pattern)
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
                f" {reason}: both were not expected together. Correct it: write path for a file, "
                "sql and url for a database, url for objects, or people for shares of people",
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
