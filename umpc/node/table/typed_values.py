"""Values of a database's column, by their types in Python: a text, a number, or missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

NO_NUMBER = "(a value of another type)"
"""The text of a value that is neither number nor text. It counts as a word that nobody expects."""


@dataclass(frozen=True)
class Fetched:
    """A column's values in all rows.

    texts: (rows,) str, empty where the value is missing. known: (rows,) bool. numbers: (rows,)
    float64, NaN where the value is no number by its type.
    """

    texts: NDArray[np.object_]
    known: NDArray[np.bool_]
    numbers: NDArray[np.float64]


def joined(parts: Sequence[Fetched]) -> Fetched:
    """Return the rows of all parts, in their order."""
    if not parts:
        return Fetched(np.empty(0, object), np.empty(0, bool), np.empty(0, np.float64))
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
    if isinstance(value, bool):
        return ("true", 1.0) if value else ("false", 0.0)
    if isinstance(value, int):
        return str(value), _as_float(value)
    if isinstance(value, float):
        return (None, math.nan) if math.isnan(value) else (repr(value), value)
    if isinstance(value, Decimal):
        return (None, math.nan) if value.is_nan() else (f"{value:f}", float(value))
    if isinstance(value, str | UUID):
        return str(value), math.nan
    return NO_NUMBER, math.nan


def _as_float(value: int) -> float:
    """Return the nearest double; infinity beyond all doubles, which counts as a bound."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
