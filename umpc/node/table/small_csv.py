"""A small CSV file, read without DuckDB, into what `reading.py` gives for it.

DuckDB plans a query of three levels for each reading, which takes longer than all else about a
short file (`python -m bench.short_tables`). A process that reads nothing else need not load it.

The length of the file decides. So a clock sees no more of the values here than there, but for a
file that is not what its suffix promises, of which DuckDB then says so, and for one with a blank
before a quote, which the two would read in different ways. No record may decide how the others are
read: so whatever is read here is read as DuckDB reads it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from io import StringIO

import numpy as np

from umpc.node.table.batch import Batch, Values, digests_of
from umpc.node.table.header import csv_header, place_of
from umpc.node.table.number_format import NumberFormat
from umpc.node.table.plain_text import UNREADABLE, open_text
from umpc.node.table.source import TableSite, TableSource, check_file
from umpc.ustat.schema import FieldSchema

SMALL_BYTES = 1 << 14
"""The longest file that is read here: its values take as long as one of DuckDB's plans."""
BLANKS = " \t\r\n"
Texts = Sequence[str | None]
"""The trimmed texts of a column; None where nothing is written, as DuckDB has it."""


def is_small(source: TableSource, site: TableSite) -> bool:
    """Return whether a table is one CSV file of at most SMALL_BYTES, and not packed.

    Raises: as `check_file`.
    """
    if not source.is_local or not source.is_csv or source.is_pattern:
        return False
    check_file(source, site)
    return source.path.suffix != ".gz" and source.path.stat().st_size <= SMALL_BYTES


def read_small(
    source: TableSource, fields: Sequence[FieldSchema], site: TableSite, person: str | None = None
) -> Batch | None:
    """Read the fields of all rows of a small file.

    Args: person: the column that tells people apart, whose texts are read too.

    Returns: None where the text is malformed.
    Raises: UnknownField, EmptyTable, DataError.
    """
    names, delimiter = csv_header(source, site)
    places = [place_of(schema.name, names, site) for schema in fields]
    of_person = None if person is None else place_of(person, names, site)
    rows = _rows(source, delimiter, len(names))
    if rows is None:
        return None
    present = np.ones(len(rows), bool)
    values = {}
    for schema, place in zip(fields, places, strict=True):
        texts = _trimmed(rows, place)
        present &= _are_there(texts, source)
        values[schema.name] = _values(texts, schema, source)
    persons = np.empty(0 if of_person is None else len(rows), object)
    if of_person is not None:
        texts = _trimmed(rows, of_person)
        present &= _are_there(texts, source)
        persons[:] = [text or "" for text in texts]
    return Batch(present, values, persons)


def _rows(source: TableSource, delimiter: str, columns: int) -> list[list[str]] | None:
    """Return the rows below the header; None unless each has as many values as the header.

    None also where a value may begin with a blank and a quote: DuckDB leaves that blank out.
    """
    try:
        with open_text(source.path, source.encoding) as file:
            text = file.read()
        if re.search(rf'(?:^|[\n{re.escape(delimiter)}])[^\S\n]+"', text):
            return None
        rows = list(csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True))[1:]
    except (*UNREADABLE, csv.Error):
        return None
    # a blank line is a missing value of the only column, else no row
    rows = [row or [""] for row in rows if row or columns == 1]
    return rows if all(len(row) == columns for row in rows) and "\0" not in text else None


def _trimmed(rows: Sequence[Sequence[str]], place: int) -> Texts:
    return [row[place].strip(BLANKS) if row[place] else None for row in rows]


def _are_there(texts: Texts, source: TableSource) -> np.ndarray:
    """Return where a value is there, and is no word for a missing one: (rows,) bool."""
    return np.array([text is not None and text not in source.missing for text in texts], bool)


def _values(texts: Texts, schema: FieldSchema, source: TableSource) -> Values:
    marks = source.unlisted_marks()
    of_marks = {mark: place for place, mark in reversed([*enumerate(marks, 1)])}
    if schema.categories:
        of_words = {word: float(i) for i, word in reversed([*enumerate(schema.categories)])}
        numbers = [None if text is None else of_words.get(text) for text in texts]
    else:
        numbers = [None if text is None else _number(text, source.numbers) for text in texts]
    pairs = [*zip(numbers, texts, strict=True)]
    return Values(
        np.array([np.nan if number is None else number for number in numbers], np.float64),
        np.array(
            [of_marks.get(text or "", 0) if number is None else 0 for number, text in pairs],
            np.uint8,
        ),
        digests_of(text or "" for text in texts) if schema.categories else None,
    )


def _number(text: str, numbers: NumberFormat) -> float | None:
    plain = numbers.plain(text)
    return None if plain is None else float(plain)
