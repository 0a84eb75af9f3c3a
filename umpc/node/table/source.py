"""A table's file or query, and errors about it that name the node and never show a value.

*Shared tables.* The tables of several data sets of a site, which may not be shared.

A table under two names would have two budgets, and each would protect its records alone: together
they would cost the sum. `config.py` refuses shared tables, ledgers and anchors. `umpc node doctor`
also compares the content of the tables.

*Plain text.* The text of a CSV file: decoded, unpacked, without a byte order mark, and with plain
line ends.

DuckDB reads UTF-8 and uniform line ends. `TextPipe` hands it every file as such, through a pipe, so
that a decoded table is never written to a disk.

*Header.* The names of a table's columns, exactly as they are written.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import gzip
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from glob import glob
from io import StringIO, TextIOWrapper
from itertools import combinations, product, takewhile
from pathlib import Path
from threading import Thread
from typing import IO, TYPE_CHECKING, Self

from umpc.errors import ConfigError, DataError, EmptyTable, UmpcError, UnknownField, installing
from umpc.node.table.conversions import PLAIN, NumberFormat
from umpc.node.table.sql_source import FILES, SqlSource
from umpc.transport.files import digest_of

if TYPE_CHECKING:
    from umpc.node.table.conversions import ColumnValues

CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PARQUET_SUFFIXES = (".parquet",)
DELIMITERS = ",;\t|"
ENCODING = "utf-8"
S3 = "s3://"
MEGABYTE = 1_000_000
WILDCARDS = "*?["
"""Characters of a pattern of many files."""

MISSING = ("", "nan", "NaN", "NA")
"""The words of a missing value where [data] lists none: R writes NA, pandas nothing or nan."""
MISSING_MARKS = (
    *("?", "-", "--", ".", "*", "NA", "N/A", "n/a", "#N/A", "na", "NaN", "nan", "NAN"),
    *("NULL", "null", "Null", "None", "none", "missing", "Missing", "unknown", "Unknown"),
)
"""Words that often mark a missing value. A node suggests them, and decides nothing by them."""


@dataclass(frozen=True)
class ObjectSource:
    """Objects of one bucket.

    pattern: their key, or a pattern of keys, as of `TableSource.path`, which is bucket and pattern.
    endpoint: the store's address.
    credentials_file: the file with the keys; None where the environment has them.
    most_bytes: of all objects together, which are in memory while a study reads them.
    """

    bucket: str
    pattern: str
    endpoint: str
    region: str = "us-east-1"
    credentials_file: Path | None = None
    most_bytes: int = 4000 * MEGABYTE


@dataclass(frozen=True)
class TableSource:
    """A table's file and format.

    A `delimiter` of None means the one that splits the header most. A row with a word of `missing`
    in a field of the study is dropped, and so is a row with a NaN of a Parquet file. `encoding` is
    that of a CSV file, by Python's name. `numbers` says how texts write numbers. `words` has the
    table's own words and what they mean in studies; `columns` has names of fields in studies, and
    the table's own ones. If the table is in memory, `frame` has its columns. If the
    table is in a database, `sql` is the query, and `path` is the file that has it. If it is in an
    object store, `objects` says where, and `path` is bucket and key. With
    `is_pattern`, the table is all files whose names fit `path`, where * ? and [] stand for any
    characters of a name, and ** for any folders.
    """

    path: Path
    delimiter: str | None = None
    missing: tuple[str, ...] = MISSING
    encoding: str = ENCODING
    numbers: NumberFormat = field(default=PLAIN)
    sql: SqlSource | None = None
    is_pattern: bool = False
    objects: ObjectSource | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    frame: Mapping[str, ColumnValues] | None = field(default=None, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether the table is files of this machine."""
        return self.sql is None and self.objects is None and self.frame is None

    @property
    def states_missing(self) -> bool:
        """Whether somebody listed the words of missing values, be they those of MISSING."""
        return self.missing is not MISSING

    def files(self) -> tuple[Path, ...]:
        """Return the table's files in the order of its rows, which is that of their paths."""
        if self.objects is not None:
            return ()
        if not self.is_pattern:
            return (self.path,)
        found = map(Path, glob(str(self.path), recursive=True))
        return tuple(sorted(path for path in found if path.is_file()))

    def written_at(self) -> float:
        """Return when the table's files were last written, in seconds since 1970.

        0 stands for a database or a store elsewhere, and for files that are away.
        """
        files = self.files() if self.sql is None else ()
        if self.sql is not None and self.sql.kind in FILES:
            files = (self.sql.file,)
        try:
            return max((path.stat().st_mtime for path in files), default=0.0)
        except OSError:
            return 0.0

    @property
    def root(self) -> Path:
        """The deepest folder that has all files of a pattern."""
        parts = list(takewhile(lambda part: not set(part) & set(WILDCARDS), self.path.parts))
        return Path(*parts)

    @property
    def name(self) -> str:
        """The table's name, by its file or by the folder of its files."""
        return self.root.name if self.is_pattern else self.path.stem

    @property
    def partitions(self) -> tuple[str, ...]:
        """The keys of folders named KEY=VALUE below the root, of which all files must have some."""
        if not self.is_pattern:
            return ()
        keys = {
            tuple(part.partition("=")[0] for part in folders if "=" in part)
            for path in self.files()
            for folders in [path.relative_to(self.root).parts[:-1]]
        }
        return next(iter(keys)) if len(keys) == 1 else ()

    @property
    def is_csv(self) -> bool:
        """Whether the file is CSV, by its suffix."""
        return self.path.name.lower().endswith(CSV_SUFFIXES)

    def unlisted_marks(self) -> tuple[str, ...]:
        """Return the marks of missing values that `missing` does not list."""
        return tuple(mark for mark in MISSING_MARKS if mark not in self.missing)


@dataclass(frozen=True)
class TableSite:
    """The site that an error is about: the node's name, and for its administrator the file."""

    node: str
    path: Path

    def error(self, cls: type[UmpcError], message: str, detail: str = "") -> UmpcError:
        """Return an error that names the node. `detail` is for the administrator only."""
        return cls(
            f"node {self.node!r}: {message}.",
            culprit=self.node,
            detail=f"{self.path}: {detail}" if detail else str(self.path),
        )

    def without_extra(self, table: str, extra: str) -> UmpcError:
        """Return the error where a kind of table needs an extra that is not installed."""
        missing = f"{table} was expected, and the extra `{extra}` is not installed at the site"
        return self.error(ConfigError, f"{missing}: {installing(extra)}")

    def of_other_type(self, name: str, found: str) -> UmpcError:
        """Return the error for a column of a type that no study uses. found: a sentence's end."""
        expected = "a column of numbers, booleans or texts was expected"
        return self.error(DataError, f"field {name!r}: {expected}, and {found}")

    def unreadable(self, reason: str) -> UmpcError:
        """Return the error for a file that could not be read."""
        return self.error(
            DataError,
            "Parquet was expected, or text whose rows have as many values as its header, in "
            "the encoding that the node's configuration names (by default UTF-8), and the data "
            "file could not be read as such. The node's own log says where the reading stopped; "
            "correct the file there, or encoding under [data]",
            reason,
        )


@dataclass(frozen=True)
class OwnersTable(TableSite):
    """A table that its own owner looks at by a command: there is no node, and no log.

    Errors name the file and show their detail, which only this owner reads.
    """

    def error(self, cls: type[UmpcError], message: str, detail: str = "") -> UmpcError:
        shown = f" ({detail})" if detail else ""
        return cls(f"{self.path}: {message}{shown}.")

    def unreadable(self, reason: str) -> UmpcError:
        return self.error(
            DataError,
            "Parquet was expected, or text whose rows have as many values as its header, in UTF-8 "
            "or in the encoding under [data], and the file could not be read as such: "
            f"{reason}. Correct the file there, or compare with a node's configuration that names "
            "its encoding",
        )


def check_file(source: TableSource, site: TableSite) -> None:
    """Raises: ConfigError (no such file), DataError (another format), EmptyTable (no bytes)."""
    files = source.files()
    if not files or not all(path.is_file() for path in files):
        raise site.error(
            ConfigError,
            "the data file was expected, and there is no such file. Correct path "
            "under [data] in the node's own configuration",
        )
    suffixes = CSV_SUFFIXES + PARQUET_SUFFIXES
    for path in files:
        if not path.name.lower().endswith(CSV_SUFFIXES if source.is_csv else PARQUET_SUFFIXES):
            raise site.error(
                DataError,
                f"the data file was expected to end in one of {', '.join(suffixes)}, and all files "
                "of a table in the same one. Export the table to one of them",
            )
        if path.stat().st_size == 0:
            raise site.error(
                EmptyTable,
                "the data file is empty; a table with a header and at least one row was "
                "expected. Put the records into the file, or correct path under [data]",
            )


# --- shared tables --------------------------------------------------------------------------------


def is_same_table(one: TableSource, other: TableSource) -> bool:
    """Whether two sources have a file in common, or are one query of one database or objects."""
    if one.objects is not None or other.objects is not None:
        return one.objects == other.objects
    if one.sql is None or other.sql is None:
        pairs = product(one.files(), other.files())
        return one.sql is other.sql and any(is_same_file(mine, theirs) for mine, theirs in pairs)
    return is_same_database(one, other) and one.sql.select.split() == other.sql.select.split()


def is_same_database(one: TableSource, other: TableSource) -> bool:
    """Whether two sources are queries of one database, as far as their addresses tell."""
    if one.sql is None or other.sql is None:
        return False
    return one.sql.url == other.sql.url and one.sql.folder == other.sql.folder


def shared_content(found: Sequence[TableSource]) -> Iterator[tuple[int, int]]:
    """Yield the places of two tables of which two files have the same bytes, as copies have."""
    local = [(place, source) for place, source in enumerate(found) if source.is_local]
    contents = [(place, _contents(source)) for place, source in local]
    for (one, mine), (other, theirs) in combinations(contents, 2):
        sizes = mine.keys() & theirs.keys()
        if any(_digests(mine[size]) & _digests(theirs[size]) for size in sizes):
            yield one, other


def _digests(files: Sequence[Path]) -> set[str]:
    return {digest_of(path) for path in files}


def _contents(source: TableSource) -> dict[int, list[Path]]:
    """Return the files of a table by their size in bytes."""
    found: dict[int, list[Path]] = {}
    for path in filter(Path.is_file, source.files()):
        found.setdefault(path.stat().st_size, []).append(path)
    return found


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, which need not exist."""
    if one.resolve() == other.resolve():
        return True
    return one.exists() and other.exists() and os.path.samefile(one, other)


def named(source: TableSource) -> str:
    """Return the table without a database's address, which may say more than the error should."""
    if source.objects is not None:
        return f"{S3}{source.path}"
    return repr(source.sql.query) if source.sql else str(source.path)


# --- plain text -----------------------------------------------------------------------------------

CHARACTERS_AT_ONCE = 1 << 20
UNREADABLE = (OSError, EOFError, UnicodeError, zlib.error)
"""Failures of a file that has not the bytes that its suffix and its encoding promise."""


def is_encoding(name: str) -> bool:
    """Return whether Python knows a text encoding of this name."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return False
    return bool(getattr(codec, "_is_text_encoding", True))


def open_text(path: Path, encoding: str) -> TextIOWrapper:
    """Open a CSV file as text, in which every line ends with \\n. Raises: OSError.

    A name that ends in .gz is unpacked. A byte order mark of UTF-8 is left out.
    """
    utf_8 = codecs.lookup(encoding).name == "utf-8"
    encoding = "utf-8-sig" if utf_8 else encoding
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding=encoding, newline=None)
    return path.open(encoding=encoding, newline=None)


class TextPipe:
    """The text of a table's files as UTF-8 in a pipe, for one reader that opens a path once.

    The header of the first file is that of the table. Every other file must have the same one,
    which is left out. Use it as a context that ends after the reader's own: the writer waits for
    the reader.
    """

    def __init__(self, files: Sequence[Path], encoding: str, delimiter: str):
        self.failure: Exception | None = None
        self._files, self._encoding, self._delimiter = files, encoding, delimiter
        self._read, self._write = os.pipe()
        self._thread = Thread(target=self._copy, name="umpc-table", daemon=True)

    @property
    def path(self) -> Path:
        """The path that the reader opens."""
        return Path(f"/dev/fd/{self._read}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._read)
        self._thread.join()

    def _copy(self) -> None:
        """Write the text into the pipe, until the files or the reader end."""
        # A reader that stops early is no failure of the file.
        with suppress(BrokenPipeError), os.fdopen(self._write, "wb") as pipe:
            try:
                header = None
                for path in self._files:
                    with open_text(path, self._encoding) as file:
                        if len(self._files) > 1:
                            header = self._check_header(file, header, pipe)
                        _copy_text(file, pipe)
            except BrokenPipeError:
                raise
            except (*UNREADABLE, csv.Error) as error:
                self.failure = error

    def _check_header(
        self, file: TextIOWrapper, header: list[str] | None, pipe: IO[bytes]
    ) -> list[str]:
        """Read the header of one of several files, and write the first one.

        Raises: csv.Error where it is another one than the first file's.
        """
        found = next(csv.reader(file, delimiter=self._delimiter, strict=True), [])
        if header is None:
            text = StringIO()
            csv.writer(text, delimiter=self._delimiter, lineterminator="\n").writerow(found)
            pipe.write(text.getvalue().encode())
        elif found != header:
            raise csv.Error("one of the files has another header than the first one")
        return found


def _copy_text(file: TextIOWrapper, pipe: IO[bytes]) -> None:
    """Write the rest of a file, and end its last line."""
    last = "\n"
    while text := file.read(CHARACTERS_AT_ONCE):
        pipe.write(text.encode())
        last = text[-1]
    if last != "\n":
        pipe.write(b"\n")


# --- header ---------------------------------------------------------------------------------------


def csv_header(source: TableSource, site: TableSite) -> tuple[list[str], str]:
    """Return the columns' names as they are, and the delimiter.

    DuckDB would rename one of `age` and `Age`, so the header is read here.

    Raises: DataError, EmptyTable.
    """
    headers: dict[str, list[str]] = {}
    about = f"encoding {source.encoding!r}"
    reason = ""
    for delimiter in [source.delimiter] if source.delimiter else DELIMITERS:
        try:
            with open_text(source.files()[0], source.encoding) as file:
                rows = csv.reader(file, delimiter=delimiter, strict=True)
                headers[delimiter] = next(rows, [])
        except PermissionError:
            raise site.unreadable("this user may not read it: check its owner and mode") from None
        except (*UNREADABLE, csv.Error) as error:
            reason = f"the header with delimiter {delimiter!r}: {error}; {about}"
    if not headers:
        raise site.unreadable(reason)
    delimiter, names = max(headers.items(), key=lambda item: len(item[1]))
    if not names:
        raise site.error(
            EmptyTable,
            "the first line of the data file is blank; the columns' names were "
            "expected there. Remove blank lines above the header",
        )
    return names, delimiter


def place_of(name: str, names: Sequence[str], site: TableSite) -> int:
    """Return the place of the column of a name. Raises: UnknownField, DataError (not unique)."""
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f"; did the study mean {close[0]!r}?" if close else ""
        raise site.error(
            UnknownField,
            f"the study's field {name!r} was expected as a column of the "
            "table, letter by letter, and is not there. Rename one of the two, or write columns = "
            f'{{{name} = "ITS OWN NAME"}} under [data]',
            f"columns: {', '.join(map(repr, names))}{hint}",
        )
    if names.count(name) > 1:
        raise site.error(
            DataError,
            f"field {name!r} was expected once among the table's columns, and is "
            "there more than once. Rename or remove the others",
        )
    return names.index(name)
