"""Long rows of packed numbers, of which only one row and one batch are unpacked at a time.

A message of 54,000 records has some eight million numbers of twenty bits. Unpacked they take 8
bytes each, and while they are packed or unpacked one byte for each bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from umpc.crypto.ring import pack, packed_size, unpack
from umpc.errors import EncodingError
from umpc.mpc.arrays import Words

ALIGNED = 8
"""This many numbers of any width fill whole bytes."""
AT_ONCE = 1 << 17
"""Numbers that are packed or unpacked at once; a multiple of ALIGNED."""


def batches(rows: Iterable[Words], size: int) -> Iterator[Words]:
    """The numbers of all rows, one after the other, in batches of `size`; the last has the rest."""
    waiting: list[Words] = []
    count = 0
    for row in rows:
        at = 0
        while count + len(row) - at >= size:
            end = at + size - count
            yield np.concatenate([*waiting, row[at:end]])
            waiting, count, at = [], 0, end
        if at < len(row):
            waiting.append(row[at:])
            count += len(row) - at
    if count:
        yield np.concatenate(waiting)


def pack_rows(rows: Iterable[Words], width: int) -> bytes:
    """Pack all rows one after the other, as `pack` does with their concatenation."""
    return b"".join(pack(batch, width) for batch in batches(rows, AT_ONCE))


def unpack_rows(data: bytes, rows: int, columns: int, width: int) -> Iterator[Words]:
    """The rows of packed numbers: each (columns,) uint64. Raises: EncodingError, at once."""
    check_packed(data, rows * columns, width)
    return (_range(data, row * columns, (row + 1) * columns, width) for row in range(rows))


def check_packed(data: bytes, count: int, width: int) -> None:
    """Raises: EncodingError on a wrong length or on set padding bits."""
    expected = packed_size(count, width)
    if len(data) != expected:
        raise EncodingError(
            f"{count} values of {width} bits take {expected} bytes, got {len(data)}"
        )
    padding = 8 * expected - count * width
    if padding and data[-1] >> (8 - padding):
        raise EncodingError(f"the padding after {count} values of {width} bits is not zero")


def _range(data: bytes, start: int, stop: int, width: int) -> Words:
    """Numbers start .. stop − 1: (stop − start,) uint64."""
    found = np.empty(stop - start, dtype=np.uint64)
    first = start // ALIGNED * ALIGNED
    view = memoryview(data)
    for at in range(first, stop, AT_ONCE):
        count = min(AT_ONCE, stop - at)
        begin = at * width // 8
        piece = bytearray(view[begin : begin + packed_size(count, width)])
        if spare := -count * width % 8:
            piece[-1] &= (1 << (8 - spare)) - 1  # the next row begins in this byte
        numbers = unpack(bytes(piece), count, width)
        low = max(start, at)
        found[low - start : at + count - start] = numbers[low - at :]
    return found
