"""One table of a node's configuration file: each value is checked as it is read."""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from umpc.compute.place import DASK, DASK_EXPECTED, ComputePlace
from umpc.dp.composition import BASIC, COMPOSITIONS, Composition
from umpc.errors import ConfigError
from umpc.node.object_section import OBJECT_KEYS, objects_of
from umpc.node.policy import Policy
from umpc.node.records import TableSource
from umpc.node.table.number_format import DECIMAL_MARKS, THOUSANDS_MARKS, NumberFormat
from umpc.node.table.object_source import S3
from umpc.node.table.plain_text import is_encoding
from umpc.node.table.source import WILDCARDS
from umpc.node.table.sql_source import SqlSource, wrong_password_file, wrong_query, wrong_url
from umpc.study.misspelt import line_of_key
from umpc.transport.hub.address import HubAddress, parse_hub

KEYS = {
    "": (
        *("name", "listen", "hub", "identity", "ledger", "cores", "compute", "compute_tls"),
        *("data", "budget", "prepare", "notify", "policy", "datasets"),
    ),
    "hub": ("name", "address"),
    "data": (
        *("path", "delimiter", "missing", "clip", "name"),
        *("encoding", "decimal", "thousands"),
        *("sql", "url", "password_file"),
        *OBJECT_KEYS,
        "cache_megabytes",
    ),
    "budget": (
        *("epsilon", "delta", "composition", "composition_delta"),
        *("anchor", "hold_hours"),
    ),
    "prepare": ("most", "hours"),
    "notify": ("command",),
    "policy": tuple(field.name for field in fields(Policy)),
}
KEYS["datasets"] = (*KEYS["data"], "ledger", "budget", "policy")
"""Section → its keys."""
IDENTITY_FILES = ("ca.pem", "cert.pem", "key.pem")
EPSILON = r"[0-9]{1,30}(\.[0-9]{1,30}|/[0-9]{1,30})?"
MOST_DIGITS = 30
ZERO_BELOW = r".*/0+"
"""A fraction whose denominator is 0."""
DELTA = r"[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?|[0-9]{1,30}/[0-9]{1,30}"


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
                close = difflib.get_close_matches(key, keys, n=1, cutoff=0.5)
                known = f"known are {', '.join(keys)}."
                hint = f"did you mean {close[0]!r}?" if close else known
                line = line_of_key(_text(file), key)
                place = f" in line {line}" if line else ""
                raise ConfigError(
                    f"{file}: unknown key {self._key(key)!r}{place}; {hint} Correct or remove it"
                )

    def section(self, name: str, *, optional: bool = False) -> Section:
        """Return a table of this one. An optional one that is missing is empty."""
        default: dict[str, Any] | None = {} if optional else None
        values = self._typed(name, dict, f"a section [{self._key(name)}]", default)
        return Section(self.file, self._key(name), values, name)

    def tables(self, name: str) -> list[Section]:
        """Return the tables of a list [[name]] of one or more, named by their place from 1 on."""
        expected = f"one section [[{name}]] or more"
        found: list[Any] = self._typed(name, list, expected)
        if not found or not all(isinstance(each, dict) for each in found):
            raise self._wrong(name, expected, found)
        return [
            Section(self.file, f"{name}[{place}]", each, name)
            for place, each in enumerate(found, start=1)
        ]

    def refuse_beside(self, other: str, keys: tuple[str, ...]) -> None:
        """Refuse keys that exclude another one, which the file has. Raises: ConfigError."""
        for key in keys:
            if key in self.values:
                raise ConfigError(
                    f"{self.file}: key {self._key(key)!r} and [[{other}]] exclude each other: each "
                    f"data set has its own. Correct it: move {key!r} into the data sets"
                )

    def texts(self, key: str, pattern: str, expected: str) -> frozenset[str] | None:
        """Return a list of texts, or None if the key is missing."""
        if key not in self.values:
            return None
        texts: list[Any] = self._typed(key, list, expected)
        if not all(isinstance(text, str) and re.fullmatch(pattern, text) for text in texts):
            raise self._wrong(key, expected, texts)
        return frozenset(texts)

    def count(self, key: str, default: int = 0) -> int:
        """Return a whole number, 0 or more."""
        expected = "a whole number, 0 or more"
        value: int = self._typed(key, int, expected, default)
        if isinstance(value, bool) or value < 0:
            raise self._wrong(key, expected, value)
        return value

    def hours(self, key: str, default: float) -> float:
        """Return a number of hours, in seconds. Args: default: in seconds."""
        expected = "hours, a number above 0 and at most 168"
        value: int | Decimal = self._typed(key, (int, Decimal), expected, Decimal(default) / 3600)
        if isinstance(value, bool) or not Decimal(value).is_finite() or not 0 < value <= 168:
            raise self._wrong(key, expected, value)
        return float(value * 3600)

    def text(self, key: str, pattern: str, expected: str, default: str | None = None) -> str:
        """Return a text that matches the pattern."""
        value: str = self._typed(key, str, expected, default)
        if not re.fullmatch(pattern, value):
            raise self._wrong(key, expected, value)
        return value

    def flag(self, key: str) -> bool:
        """Return true or false; false if the key is missing."""
        value: bool = self._typed(key, bool, "true or false", False)
        return value

    def always_clips(self) -> None:
        """Accept the former key `clip` only where it says what every node does now."""
        if "clip" in self.values and not self.flag("clip"):
            raise ConfigError(
                f"{self.file}: key {self._key('clip')!r}: true was expected, and false came. A "
                "node no longer refuses a study because values do not fit: a refusal would tell "
                "the coordinator about them. It clips them and says so in its log. Correct the "
                "file: remove the key"
            )

    def existing(self, key: str) -> Path:
        """Return the path of a file that exists."""
        path = self._path(key, "the path of a file")
        if not path.is_file():
            raise self._wrong(key, "an existing file", str(path))
        return path

    def identity(self) -> Path:
        """Return the folder with the node's certificate and key."""
        folder = self.identity_folder()
        absent = [name for name in IDENTITY_FILES if not (folder / name).is_file()]
        if absent:
            raise self._wrong(
                "identity",
                f"a folder with {', '.join(IDENTITY_FILES)}",
                f"{folder} without {', '.join(absent)}",
            )
        return folder

    def identity_folder(self) -> Path:
        """Return the folder for the node's certificate and key, which need not exist yet."""
        return self._path("identity", "the path of a folder")

    def ledger(self, default: str | None) -> Path:
        """Return the path of the ledger, in a folder that exists. No default: it must be there."""
        path = self._path("ledger", "the path of the ledger's file", default)
        if not path.parent.is_dir() or path.is_dir():
            raise self._wrong("ledger", "a file in an existing folder", str(path))
        return path

    def listen(self) -> str:
        """Return the address at which the node listens, "host:port"."""
        expected = 'host:port with a port from 0 to 65535, like "127.0.0.1:0"'
        value = self.text(
            "listen", r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):[0-9]{1,5}", expected, "127.0.0.1:0"
        )
        if int(value.rpartition(":")[2]) > 65535:
            raise self._wrong("listen", expected, value)
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
            raise ConfigError(f"{self.file}: key 'hub': {error.message}") from None

    def place(self) -> ComputePlace:
        """Return where the node computes. Its certificates are looked at when the node starts."""
        cluster = self.text("compute", "|".join(("", DASK)), DASK_EXPECTED, "")
        if cluster and "compute_tls" not in self.values:
            raise ConfigError(
                f"{self.file}: key 'compute_tls' is missing, and compute = {cluster!r} needs it: "
                "the folder with the ca.pem, cert.pem and key.pem of the site's cluster. Add it"
            )
        tls = self._path("compute_tls", "the path of a folder") if cluster else None
        return ComputePlace(self.count("cores"), cluster, tls)

    def delimiter(self) -> str | None:
        """Return the table's delimiter, or None if the key is missing."""
        if "delimiter" not in self.values:
            return None
        return self.text(
            "delimiter",
            r"[^\"\r\n\x00A-Za-z0-9.+-]",
            "one character that occurs in no number, like ';'",
        )

    def missing(self) -> tuple[str, ...]:
        """Return the words that stand for a missing value."""
        expected = 'a list of texts, like ["", "NA"]'
        words = self._typed("missing", list, expected, list(TableSource.missing))
        if not all(isinstance(word, str) for word in words):
            raise self._wrong("missing", expected, words)
        return tuple(words)

    def table(self) -> TableSource:
        """Return the table: a file, a query in a database, or objects of a store."""
        if str(self.values.get("url", "")).startswith(S3):
            return self._objects()
        for key in OBJECT_KEYS:
            if key in self.values:
                raise self._apart(key, f'goes with a url that begins with "{S3}"')
        if "sql" in self.values or "url" in self.values:
            return self._database()
        if "password_file" in self.values:
            raise self._apart("password_file", "goes with sql and url")
        path = self._path("path", "the path of a file, or a pattern of many")
        is_pattern = not path.is_file() and any(each in str(path) for each in WILDCARDS)
        source = TableSource(
            path if is_pattern else self.existing("path"),
            self.delimiter(),
            self.missing(),
            self.encoding(),
            self.numbers(),
            is_pattern=is_pattern,
        )
        if not source.files():
            raise self._wrong("path", "an existing file, or a pattern of some", str(path))
        return source

    def _database(self) -> TableSource:
        for key in ("path", "delimiter", "encoding", "cache_megabytes"):
            if key in self.values:
                raise self._apart(key, "belongs to a file, and sql to a database")
        url = self.text("url", r"(?s).*", 'an address, like "postgresql://reader@host/database"')
        if wrong := wrong_url(url):
            # The address may hold a password, so it is not shown.
            raise ConfigError(
                f"{self.file}: key {self._key('url')!r}: an address without a password was "
                f'expected, like "postgresql://reader@host/database", and another one came: '
                f"{wrong}. Correct it there"
            )
        query = self.text("sql", r"(?s).+", "one SELECT, or the name of a table or view")
        if wrong := wrong_query(query):
            raise self._wrong("sql", "one SELECT, or the name of a table or view", wrong)
        password = None
        if "password_file" in self.values:
            password = self._path("password_file", "the path of a file")
            if wrong := wrong_password_file(password):
                raise self._wrong("password_file", "a file that only the node's user reads", wrong)
        sql = SqlSource(url, query, password, self.file.parent)
        return TableSource(self.file, None, self.missing(), numbers=self.numbers(), sql=sql)

    def _objects(self) -> TableSource:
        for key in ("path", "sql", "password_file", "cache_megabytes"):
            if key in self.values:
                raise self._apart(key, f'does not go with a url that begins with "{S3}"')
        objects = objects_of(self)
        return TableSource(
            Path(objects.bucket, objects.pattern),
            self.delimiter(),
            self.missing(),
            self.encoding(),
            self.numbers(),
            is_pattern=objects.is_pattern,
            objects=objects,
        )

    def file_of_key(self, key: str) -> Path | None:
        """Return the path of a file, or None if the key is missing."""
        return self._path(key, "the path of a file") if key in self.values else None

    def wrong(self, key: str, expected: str, found: object) -> ConfigError:
        """Return the error for a value that was not expected."""
        return self._wrong(key, expected, found)

    def _apart(self, key: str, reason: str) -> ConfigError:
        return ConfigError(
            f"{self.file}: key {self._key(key)!r} {reason}: both were not expected together. "
            "Correct it: write path for a file, sql and url for a database, or url for objects"
        )

    def encoding(self) -> str:
        """Return the encoding of a CSV file."""
        expected = 'the name of a text encoding, like "utf-8", "latin-1" or "cp1252"'
        name = self.text("encoding", r"[^\x00]+", expected, TableSource.encoding)
        if not is_encoding(name):
            raise self._wrong("encoding", expected, name)
        return name

    def numbers(self) -> NumberFormat:
        """Return how the table writes numbers."""
        decimal = self._mark("decimal", DECIMAL_MARKS, NumberFormat.decimal)
        thousands = self._mark("thousands", ("", *THOUSANDS_MARKS), NumberFormat.thousands)
        if thousands == decimal:
            raise self._wrong("thousands", "another character than the decimal mark", thousands)
        return NumberFormat(decimal, thousands)

    def _mark(self, key: str, marks: tuple[str, ...], default: str) -> str:
        expected = f"one of {', '.join(map(repr, marks))}"
        mark: str = self._typed(key, str, expected, default)
        if mark not in marks:
            raise self._wrong(key, expected, mark)
        return mark

    def epsilon(self, key: str) -> Fraction:
        """Return an ε, exact: the file's digits and never a double."""
        expected = 'a number above 0 with at most 30 digits, like 5, 0.5 or "1/3"'
        value = self._typed(key, (int, Decimal, str), expected)
        written = str(value)
        if isinstance(value, Decimal) and abs(value.adjusted()) < 60:
            written = f"{value:f}"
        if not re.fullmatch(EPSILON, written) or re.fullmatch(ZERO_BELOW, written):
            raise self._wrong(key, expected, value)
        epsilon = Fraction(written)
        if epsilon <= 0:
            raise self._wrong(key, expected, value)
        return epsilon

    def delta(self, key: str) -> Fraction:
        """Return a δ, exact as ε. With 0, no study may cost any δ."""
        expected = (
            "a number from 0 to below 1 with at most 30 digits, "
            'like "1e-9", 0.000001 or "1/1000000"'
        )
        value = self._typed(key, (int, Decimal, str), expected, "1e-9")
        written = str(value)
        is_number = re.fullmatch(DELTA, written) and not re.fullmatch(ZERO_BELOW, written)
        if isinstance(value, bool) or not is_number:
            raise self._wrong(key, expected, value)
        delta = Fraction(written)
        if delta >= 1 or delta.denominator > 10**MOST_DIGITS:
            raise self._wrong(key, expected, value)
        return delta

    def composition(self) -> Composition:
        """Return how the costs of studies add up: its name, and its own δ."""
        expected = f"one of {', '.join(map(repr, COMPOSITIONS))}"
        name = self.text("composition", "|".join(COMPOSITIONS), expected, BASIC)
        if name == BASIC:
            if "composition_delta" in self.values:
                self._refuse_composition_delta()
            return Composition()
        if "composition_delta" not in self.values or not (delta := self.delta("composition_delta")):
            raise ConfigError(
                f"{self.file}: key {self._key('composition_delta')!r} is missing or 0, and "
                f'composition = "{name}" needs it: the delta above 0 that the composition itself '
                'costs, such as "1e-9". Add it'
            )
        return Composition(name, delta)

    def _refuse_composition_delta(self) -> None:
        raise ConfigError(
            f"{self.file}: key {self._key('composition_delta')!r} goes with composition = "
            '"advanced" or "zcdp": basic composition costs no delta of its own. Remove it, or add '
            "composition"
        )

    def anchor(self) -> Path | None:
        """Return the path of the ledger's anchor, or None if the key is missing."""
        if "anchor" not in self.values:
            return None
        path = self._path("anchor", "the path of the ledger's anchor")
        if not path.parent.is_dir() or path.is_dir():
            raise self._wrong("anchor", "a file in an existing folder", str(path))
        return path

    def command(self) -> tuple[str, ...]:
        """Return a program that exists, and its arguments; empty if the key is missing."""
        expected = "a list of texts: the full path of a program that may run, and its arguments"
        words: list[Any] = self._typed("command", list, expected, [])
        if not all(isinstance(word, str) and "\0" not in word for word in words):
            raise self._wrong("command", expected, words)
        if words and not (Path(words[0]).is_absolute() and os.access(words[0], os.X_OK)):
            raise self._wrong("command", expected, words[0])
        return tuple(words)

    def _path(self, key: str, expected: str, default: str | None = None) -> Path:
        return (self.file.parent / self.text(key, r"[^\x00]+", expected, default)).resolve()

    def _typed(
        self, key: str, types: type | tuple[type, ...], expected: str, default: object = None
    ) -> Any:
        """Return the key's value, which is of one of these types."""
        value = self.values.get(key, default)
        if value is None:
            raise ConfigError(
                f"{self.file}: key {self._key(key)!r} is missing; {expected} was expected. Add it"
            )
        if not isinstance(value, types):
            raise self._wrong(key, expected, value)
        return value

    def _wrong(self, key: str, expected: str, came: object) -> ConfigError:
        shown = str(came) if isinstance(came, Decimal) else repr(came)
        return ConfigError(
            f"{self.file}: key {self._key(key)!r}: {expected} was expected, and {shown} came. "
            "Correct it there"
        )

    def _key(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key
