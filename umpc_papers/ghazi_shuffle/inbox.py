"""The frames of one message of numbers, which come one after the other, in chunks of 1 MiB.

`Inbox` keeps the message. `HeapInbox` adds up the numbers of each coordinate as they come, because
the coordinator needs their sums only.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from umpc.crypto.ring import packed_size, unpack
from umpc.errors import EncodingError
from umpc.mpc.arrays import Words
from umpc.study.messages import MAX_PAYLOAD, Frame


def pieces(count: int, width: int) -> Iterator[tuple[int, int]]:
    """(first, how many) numbers of each frame; all but the last end with a byte."""
    most = numbers_of_frame(width)
    for start in range(0, max(count, 1), most):
        yield start, min(most, count - start)


def numbers_of_frame(width: int) -> int:
    """The most numbers of a frame, which fill whole bytes."""
    return 8 * MAX_PAYLOAD // width // 8 * 8


class Inbox:
    """The frames of one message, which must come one after the other, and the whole message."""

    def __init__(self, step: str, owners: tuple[int, ...], count: int, width: int):
        self._due = [
            Frame(step, owners, number, size, width, b"")
            for number, (_, size) in enumerate(pieces(count, width))
        ]
        self._came: list[bytes] = []
        self._number = 0
        self.wire_bytes = 0

    @property
    def is_complete(self) -> bool:
        return self._number == len(self._due)

    @property
    def data(self) -> bytes:
        return b"".join(self._came)

    def take(self, frame: Frame) -> None:
        """Raises: EncodingError for a frame of another place, size or number than the next one."""
        if self.is_complete:
            raise EncodingError(f"{frame.label} came after all that was due")
        due = self._due[self._number]
        if (frame.key, frame.count, frame.width) != (due.key, due.count, due.width):
            raise EncodingError(
                f"{due.label}, {due.count} × {due.width} bits, was due, and {frame.label}, "
                f"{frame.count} × {frame.width} bits, came"
            )
        if len(frame.payload) != packed_size(due.count, due.width):
            raise EncodingError(f"{frame.label} came with {len(frame.payload)} bytes")
        self._keep(frame)
        self._number += 1
        self.wire_bytes += frame.wire_bytes

    def _keep(self, frame: Frame) -> None:
        self._came.append(frame.payload)


class HeapInbox(Inbox):
    """A shuffler's heap, of which only the sum of each coordinate is kept.

    Args: rows: d, coordinates. columns: n r, the numbers of each.
    """

    def __init__(self, step: str, owners: tuple[int, ...], rows: int, columns: int, width: int):
        super().__init__(step, owners, rows * columns, width)
        self._sums: Words = np.zeros(rows, dtype=np.uint64)
        self._columns = columns
        self._at = 0

    @property
    def sums(self) -> Words:
        """(d,) uint64: the sum of each coordinate modulo 2^64."""
        return self._sums

    def _keep(self, frame: Frame) -> None:
        """Raises: EncodingError on set padding bits."""
        numbers = unpack(frame.payload, frame.count, frame.width)
        rows = (self._at + np.arange(len(numbers))) // max(self._columns, 1)
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        if len(starts):
            self._sums[rows[starts]] += np.add.reduceat(numbers, starts)
        self._at += len(numbers)
