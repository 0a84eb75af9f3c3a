"""Tables of millions of made-up records as Parquet files, and their Kendall sum in the clear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from umpc.study.parts import FieldText

NARROW = "19 + (i * 7919) % 69", "(i * 104729) % 74502 - 3313"
"""Age and balance: the made-up table of the bank data's domains."""
WIDE = (
    "(i::HUGEINT * 6364136223846793005 % 4503599627370449)::BIGINT",
    "((i::HUGEINT * 6364136223846793005 % 4503599627370449) // 3 "
    "+ i::HUGEINT * 2862933555777941757 % 3002399751580331)::BIGINT",
)
"""Two columns of 52 bits, which a double holds; the second one depends on the first."""
WIDE_FIELDS = tuple(FieldText(name, "0", str((1 << 52) - 1), whole=True) for name in ("x", "y"))


@dataclass(frozen=True)
class LargeTable:
    """A table that no process holds as Python objects.

    Args: texts: its fields. values: SQL of each column, of the record's number i.
    """

    records: int
    texts: Sequence[FieldText]
    values: Sequence[str]

    def fields(self) -> list[FieldText]:
        return list(self.texts)

    def split(self, folder: Path, parts: int) -> list[Path]:
        """Write the parts, and return their files."""
        paths = []
        for part in range(parts):
            start, stop = (self.records * place // parts for place in (part, part + 1))
            path = folder / f"node-{part + 1}.parquet"
            duckdb.sql(self._query(start, stop)).write_parquet(str(path))
            paths.append(path)
        return paths

    def columns(self) -> list[np.ndarray]:
        """All columns: (records,) int64 each."""
        found = duckdb.sql(self._query(0, self.records)).fetchnumpy()
        return [found[text.name].astype(np.int64) for text in self.texts]

    def _query(self, start: int, stop: int) -> str:
        pairs = zip(self.values, self.texts, strict=True)
        listed = ", ".join(f'{value} AS "{text.name}"' for value, text in pairs)
        return f"SELECT {listed} FROM range({start}, {stop}) AS numbers(i)"


def kendall_sum(x: np.ndarray, y: np.ndarray) -> int:
    """Σ sign(Δx)·sign(Δy) over all pairs, in O(n log² n).

    *Paper* Knight 1966: sort by x and then y, and count the exchanges that sorting y takes. Ties
    make no exchange.
    """
    order = np.lexsort((y, x))
    x, y = x[order], np.unique(y[order], return_inverse=True)[1].astype(np.int64)
    both = _tied(np.flatnonzero((np.diff(x) != 0) | (np.diff(y) != 0)), len(x))
    same_x = _tied(np.flatnonzero(np.diff(x) != 0), len(x))
    same_y = _tied(np.flatnonzero(np.diff(np.sort(y)) != 0), len(x))
    untied = len(x) * (len(x) - 1) // 2 - same_x - same_y + both
    return untied - 2 * exchanges(y)


def _tied(ends: np.ndarray, count: int) -> int:
    """Pairs within runs of equal values. Args: ends: the last place of each run but the last."""
    runs = np.diff(np.concatenate(([-1], ends, [count - 1])))
    return int((runs * (runs - 1) // 2).sum())


def exchanges(values: np.ndarray) -> int:
    """Pairs whose first value is larger than the second. Args: values: from 0 on."""
    count = len(values)
    size = 1 << max(0, count - 1).bit_length()
    most = int(values.max(initial=0)) + 1
    # what is added at the end is larger than everything, so it makes no exchange
    padded = np.concatenate((values, np.full(size - count, most)))
    found, width = 0, 1
    while width < size:
        halves = padded.reshape(-1, 2, width)
        offset = np.arange(len(halves))[:, None] * (most + 1)
        left, right = ((halves[:, place] + offset).reshape(-1) for place in (0, 1))
        not_above = np.searchsorted(left, right, side="right")
        before = np.repeat(np.arange(len(halves)), width) * width
        found += int((width - (not_above - before)).sum())
        width *= 2
        padded = np.sort(padded.reshape(-1, width), axis=1).reshape(-1)
    return found
