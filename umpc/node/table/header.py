"""The names of a table's columns, exactly as they are written."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Sequence

from umpc.errors import DataError, EmptyTable, UnknownField
from umpc.node.table.plain_text import UNREADABLE, read_header
from umpc.node.table.source import DELIMITERS, TableSite, TableSource


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
