"""The texts that are numbers: digits with a decimal mark, and perhaps thousands separators.

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

import re
from dataclasses import dataclass
from functools import cached_property

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
