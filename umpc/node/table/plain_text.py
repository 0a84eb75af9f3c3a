"""The text of a CSV file: decoded, unpacked, without a byte order mark, and with plain line ends.

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
from collections.abc import Sequence
from contextlib import suppress
from io import StringIO, TextIOWrapper
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import IO, Self

from umpc.errors import DataError, EmptyTable, UnknownField
from umpc.node.table.source import DELIMITERS, TableSite, TableSource

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


def read_header(path: Path, encoding: str, delimiter: str) -> list[str]:
    """Return the names in the first line. Raises: csv.Error, and one of UNREADABLE."""
    with open_text(path, encoding) as file:
        return next(csv.reader(file, delimiter=delimiter, strict=True), [])


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
            headers[delimiter] = read_header(source.files()[0], source.encoding, delimiter)
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
