"""The one table of conversions: how a value of a table becomes a number, a text, or missing.

| a value | its number | its text |
|---|---|---|
| NULL, None, NaN, and what a data frame marks as missing | missing | missing |
| whole number | itself | its digits, all of them |
| double, DECIMAL | itself | whole: its digits, without `.0`; others: the shortest decimals |
| float of 32 bits | its shortest decimals | as of a double |
| boolean, and the text TRUE or false in any case | 1 or 0 | `true` or `false` |
| text, enumeration, UUID | by the site's format of numbers, or none | trimmed; NFC; `1.0` is `1` |
| date, time, list, bytes, and every other type | refused by the column's type | refused |

A text loses blanks at its ends, and has Unicode's form NFC. CSV files have texts only. Parquet
files, DuckDB files, databases and data frames have types. A site may say what its own words mean
(`words` under [data]): this comes after all that the table says.

The table is written twice, side by side in this file: in SQL for columns that DuckDB reads, and in
Python for values that come one by one. A test sends one list of values through every reader.

*Number format.* The texts that are numbers: digits with a decimal mark, and perhaps thousands
separators.

| text | decimal "." | decimal ",", thousands "." |
|---|---|---|
| `1234.5`, `1e12`, `-.5`, `inf` | a number | not a number, but `1e12` and `inf` |
| `1234,5`, `1.234,5` | not a number | a number |
| `1.23`, `12.34,5` | 1.23; not a number | not a number: three digits follow a separator |
| `1_0`, `0x1F`, `１２` | not a number | not a number |

Python's `float` and DuckDB's cast read `1_0` as 10. A person may have meant 1.0 or a code, so it is
not a number here.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

NO_NUMBER = "(a value of another type)"
"""The text of a value that is neither number nor text. It counts as a word that nobody expects."""
BLANKS = " \t\r\n\u00a0"
WHOLE = r"-?[0-9]+\.0+"
"""A whole number as programs write it that have doubles only, for `re` and for RE2."""
BOOLEANS = {"true": 1.0, "false": 0.0}
LARGEST_WHOLE = 2.0**63
"""Whole doubles below it are written with all digits."""

WHOLE_KINDS = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
)
"""DuckDB's types of whole numbers of up to 64 bits."""
TEXT_KINDS = ("VARCHAR", "ENUM", "UUID", '"NULL"')
KINDS = (*WHOLE_KINDS, "HUGEINT", "UHUGEINT", "DECIMAL", "FLOAT", "DOUBLE", "BOOLEAN", *TEXT_KINDS)
"""DuckDB's types of columns that a study reads."""


# --- in SQL, by the type of a column -----------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column's text, as a trimmed VARCHAR in SQL, and how this text writes numbers."""

    text: str
    numbers: NumberFormat
    raw: str = ""
    """The column's own number as DOUBLE, where its type is of numbers: its text is not parsed."""
    known: str = ""
    """Where the column has a type of numbers: whether a value is there."""
    typed: str = ""
    """Where values have types of their own: the number of those that are numbers, else NaN."""
    is_text: bool = True
    """Whether the file has texts here; it has values of one other type, where this is false."""
    refused: str = ""
    """The column's type, where no study can use it."""

    @property
    def is_of_texts(self) -> bool:
        """Whether a value may be a text, and then is not yet in normal form."""
        return self.is_text or not self.known

    def number_of(self, text: str, raw: str) -> str:
        """Return the number, DOUBLE or NULL, where the text and the raw number have these names."""
        if self.raw:
            return raw
        word = f"CASE lower({text}) WHEN 'true' THEN 1::DOUBLE WHEN 'false' THEN 0::DOUBLE END"
        number = f"coalesce({self.numbers.sql(text)}, {word})"
        if self.typed:
            is_none = f"{raw} IS NULL OR isnan({raw})"  # DuckDB may take NaN for NULL
            return f"CASE WHEN {is_none} THEN {number} ELSE {raw} END"
        return number

    def may_be(self, words: Sequence[str]) -> bool:
        """Return whether the column's text may be one of these words."""
        possible = f"{PLAIN.pattern}|true|false"
        return not self.raw or any(re.fullmatch(possible, word) for word in words)


def typed_column(reference: str, kind: str, numbers: NumberFormat) -> Column:
    """Return a column of DuckDB by its type.

    Args: reference: the column in SQL. kind: its type as DuckDB writes it. numbers: for texts.
    """
    plain = kind.partition("(")[0]
    if kind.endswith("]") or plain not in KINDS:
        return Column("NULL::VARCHAR", PLAIN, refused="LIST" if kind.endswith("]") else plain)
    text = f"CAST({reference} AS VARCHAR)"
    if plain in TEXT_KINDS:
        return Column(trimmed_sql(text), numbers, is_text=plain == "VARCHAR")
    known = f"{reference} IS NOT NULL"
    raw = f"CAST({reference} AS DOUBLE)" if _has_exact_numbers(kind) else ""
    if plain == "DECIMAL":
        text = f"regexp_replace({text}, '\\.0+$', '')"
    if plain in ("FLOAT", "DOUBLE"):
        whole = f"{reference} = trunc({reference}) AND abs({reference}) < {LARGEST_WHOLE:.0f}"
        digits = f"CAST(CAST({reference} AS BIGINT) AS VARCHAR)"
        text = f"CASE WHEN isnan({reference}) THEN NULL WHEN {whole} THEN {digits} ELSE {text} END"
        known = f"({known} AND NOT isnan({reference}))"
    return Column(text, PLAIN, raw, known if raw else "", is_text=False)


def _has_exact_numbers(kind: str) -> bool:
    """Return whether a cast to DOUBLE gives what the text of a value gives.

    A FLOAT's text has fewer digits than its double. A DECIMAL of 15 digits is a whole number below
    2^53 by a power of ten that is a double, so the quotient is rounded once.
    """
    width = re.fullmatch(r"DECIMAL\((\d+),\d+\)", kind)
    has_few_digits = width is not None and int(width[1]) <= 15
    return kind in (*WHOLE_KINDS, "DOUBLE", "BOOLEAN") or has_few_digits


def trimmed_sql(text: str) -> str:
    """Return a text without blanks at its ends.

    DuckDB's `trim` takes longer than all else about a text, so it is asked only where the first or
    the last character is no printable one of ASCII. Blanks and control characters come before "!".
    """
    ends = f"{text} < '!' OR right({text}, 1) < '!' OR {text} > '~' OR right({text}, 1) > '~'"
    return f"CASE WHEN {ends} THEN trim({text}, E' \\t\\r\\n\u00a0') ELSE {text} END"


def normal_sql(text: str) -> str:
    """Return an expression of `normal`. Args: text: the name of a trimmed VARCHAR.

    DuckDB's NFC ends at NUL, which would make one of two people, so such texts stay as they are.
    """
    # the cheap conditions before the dear ones: few words are of these kinds
    return (
        f"CASE WHEN length({text}) < 6 AND lower({text}) IN ('true', 'false') THEN lower({text}) "
        f"WHEN right({text}, 1) = '0' AND regexp_full_match({text}, {quoted(WHOLE)}) "
        f"THEN regexp_replace(split_part({text}, '.', 1), '^-0$', '0') "
        f"WHEN contains({text}, chr(0)) THEN {text} ELSE nfc_normalize({text}) END"
    )


def mapped_sql(text: str, words: Mapping[str, str], *, is_normal: bool) -> str:
    """Return what a text means at the site. Args: is_normal: whether the text is in normal form."""
    keys = {
        key if is_normal else word: value for word, value in words.items() for key in [normal(word)]
    }
    cases = " ".join(
        f"WHEN {quoted(key)} THEN {quoted(normal(value))}" for key, value in keys.items()
    )
    return f"CASE {text} {cases} ELSE {text} END" if cases else text


# --- in Python, value by value -----------------------------------------------------------------


def normal(text: str) -> str:
    """Return the form in which texts are compared: of a value, a category, and a site's words."""
    text = text.strip(BLANKS)
    if text.lower() in BOOLEANS:
        return text.lower()
    if re.fullmatch(WHOLE, text):
        whole = text.partition(".")[0]
        return "0" if whole == "-0" else whole
    return text if "\0" in text else unicodedata.normalize("NFC", text)


@dataclass(frozen=True)
class Fetched:
    """A column's values in all rows.

    texts: (rows,) str, empty where the value is missing. known: (rows,) bool. numbers: (rows,)
    float64, NaN where the value is no number by its type.
    """

    texts: NDArray[np.object_]
    known: NDArray[np.bool_]
    numbers: NDArray[np.float64]


ColumnValues: TypeAlias = "Fetched | NDArray[Any]"
"""Values that were converted one by one, or an array of numbers or booleans, perhaps masked."""


ROWS_AT_ONCE = 10_000
"""Rows of a query that are converted together."""


def in_columns(
    names: Sequence[str], chunks: Iterable[Sequence[Sequence[Any]]]
) -> tuple[dict[str, Fetched], int]:
    """Return rows that come in chunks as columns, and the number of rows."""
    parts = [[typed(())] for _ in names]
    rows = 0
    for chunk in chunks:
        rows += len(chunk)
        for place, part in enumerate(parts):
            part.append(typed([row[place] for row in chunk]))
    return {name: _joined(part) for name, part in zip(names, parts, strict=True)}, rows


def _joined(parts: Sequence[Fetched]) -> Fetched:
    """Return the rows of all parts, in their order."""
    return Fetched(
        np.concatenate([part.texts for part in parts]),
        np.concatenate([part.known for part in parts]),
        np.concatenate([part.numbers for part in parts]),
    )


def typed(values: Sequence[Any]) -> Fetched:
    """Return a column's values in some rows, by their types in Python."""
    pairs = [_read(value) for value in values]
    texts = np.empty(len(pairs), object)
    texts[:] = [text or "" for text, _ in pairs]
    known = np.array([text is not None for text, _ in pairs], bool)
    return Fetched(texts, known, np.array([number for _, number in pairs], np.float64))


def _read(value: Any) -> tuple[str | None, float]:
    """Return a value's text, None if it is missing, and its number, NaN if it has none."""
    if value is None:
        return None, math.nan
    if isinstance(value, bool | np.bool_):
        return ("true", 1.0) if value else ("false", 0.0)
    if isinstance(value, int | np.integer):
        return str(value), _as_float(int(value))
    if isinstance(value, float | np.floating):
        narrow = not isinstance(value, float)
        number = float(str(value)) if narrow else float(value)  # a narrow one's shortest decimals
        return (None, math.nan) if math.isnan(number) else (_text_of(number), number)
    if isinstance(value, Decimal):
        text = re.sub(r"\.0+$", "", f"{value:f}")
        return (None, math.nan) if value.is_nan() else (text, float(value))
    if isinstance(value, str | UUID):
        return str(value), math.nan
    return NO_NUMBER, math.nan


def _text_of(value: float) -> str:
    is_short = value.is_integer() and abs(value) < LARGEST_WHOLE
    return str(int(value)) if is_short else repr(value)


def _as_float(value: int) -> float:
    """Return the nearest double; infinity beyond all doubles, which counts as a bound."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


# --- number format --------------------------------------------------------------------------------

DECIMAL_MARKS = (".", ",")
THOUSANDS_MARKS = (".", ",", "'", " ", "_")
ALIKE = {" ": " \u00a0\u202f", "'": "'\u2019"}
"""A separator → the characters that look the same in print."""


@dataclass(frozen=True)
class NumberFormat:
    """The decimal mark of a table's numbers, and their thousands separator; empty for none."""

    decimal: str = "."
    thousands: str = ""

    @cached_property
    def pattern(self) -> str:
        """The regular expression of a number, for Python's `re` and for DuckDB's RE2."""
        mark = re.escape(self.decimal)
        digits = "[0-9]+"
        if self.thousands:
            digits = f"(?:[0-9]+|[0-9]{{1,3}}(?:[{self._separators}][0-9]{{3}})+)"
        finite = f"(?:{digits}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?"
        return f"[+-]?(?:{finite}|(?i:inf(?:inity)?))"

    @cached_property
    def _separators(self) -> str:
        """The characters of the thousands separator, for a class of a regular expression."""
        return ALIKE.get(self.thousands, self.thousands)

    def plain(self, text: str) -> str | None:
        """Return a number's text with a decimal point and without separators; None for others."""
        trimmed = text.strip(" \t\r\n")
        if not re.fullmatch(self.pattern, trimmed):
            return None
        for separator in self._separators:
            trimmed = trimmed.replace(separator, "")
        return trimmed.replace(self.decimal, ".")

    def sql(self, text: str) -> str:
        """Return an expression in SQL: the number that a text is, as DOUBLE, or NULL.

        Args: text: an expression of a trimmed VARCHAR.
        """
        plain = text
        for separator in self._separators:
            plain = f"replace({plain}, {quoted(separator)}, '')"
        if self.decimal != ".":
            plain = f"replace({plain}, {quoted(self.decimal)}, '.')"
        matches = f"regexp_full_match({text}, {quoted(self.pattern)})"
        return f"CASE WHEN {matches} THEN TRY_CAST({plain} AS DOUBLE) END"


PLAIN = NumberFormat()


def quoted(text: str) -> str:
    """Return a text as a literal in SQL."""
    return "'" + text.replace("'", "''") + "'"
