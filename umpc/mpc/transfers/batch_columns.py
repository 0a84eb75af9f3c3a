"""The columns of a batch of correlated transfers: made of leaves, masked, and turned into blocks.

Paper: Roy 2022, SoftSpokenOT (eprint 2022/192), section 3.1; `correlated_ot.py` has the names. A
column is a row of packed bits here, one bit for each transfer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import BitArray, WordArray
from umpc.mpc.transfers.leaf_streams import LeafStreams
from umpc.native import garbled as compiled

BLOCK_BITS = 128
AT_ONCE = 1 << 18
"""Bytes of columns that are masked together."""
_STEPS = [
    (step, np.uint64(step), np.uint64(sum(1 << bit for bit in range(64) if not bit & step)))
    for step in (32, 16, 8, 4, 2, 1)
]
"""Steps of a transposition of 64 × 64 bits: the distance, and the bits that lie below it."""


@dataclass(frozen=True)
class Columns:
    """A part of a batch without its choices: v of each column, and u of each digit.

    rows: (digits, fold, width) uint8, v_i. u: (digits, width) uint8.
    blocks: (n, 2) uint64, the rows transposed, where that was done ahead.
    """

    rows: BitArray
    u: BitArray
    blocks: WordArray | None = None

    def __repr__(self) -> str:
        return f"Columns({self.u.shape[1]} bytes, <redacted>)"

    @classmethod
    def of(cls, streams: LeafStreams, fold: int, width: int) -> Columns:
        """The next bytes of the streams, combined."""
        if compiled.CHOSEN is not None:
            return cls(*streams.combined(width))
        digits = BLOCK_BITS // fold
        rows = np.empty((digits, fold, width), dtype=np.uint8)
        u = np.empty((digits, width), dtype=np.uint8)
        for some, leaves in _stretch(streams, width):
            u[some] = _combine(leaves, rows[some])
        return cls(rows, u)

    def transposed(self, count: int) -> Columns:
        """Also with the blocks of `count` transfers."""
        blocks = np.empty((count, 2), dtype=np.uint64)
        transpose_into(self.rows, blocks)
        return Columns(self.rows, self.u, blocks)

    def blocks_into(self, blocks: WordArray) -> None:
        """Write the blocks. Raises: LocalProtocolError, as `of_width`."""
        if self.blocks is None:
            transpose_into(self.rows, blocks)
        elif len(self.blocks) == len(blocks):
            blocks[:] = self.blocks
        else:
            raise LocalProtocolError("transfers of another number were stretched ahead")

    def of_width(self, width: int) -> tuple[BitArray, BitArray]:
        """Rows and u. Raises: LocalProtocolError if another batch was stretched ahead."""
        if self.u.shape[1] != width:
            raise LocalProtocolError("transfers of another number were stretched ahead")
        return self.rows, self.u


def add_masked(rows: BitArray, sent: BitArray, masks: BitArray) -> None:
    """rows ^= the sent rows of digits, in those columns whose mask is 255; in place.

    rows: (digits, fold, width) uint8. sent: (digits, 1, width). masks: (digits, fold, 1).
    """
    step = max(1, AT_ONCE // max(1, rows[0].size))
    for first in range(0, len(rows), step):
        some = slice(first, first + step)
        rows[some] ^= sent[some] & masks[some]


def transpose(rows: BitArray) -> WordArray:
    """128 rows of n bits as n blocks (Eklundh 1972, on 64 × 64 bits at a time).

    Args: rows: (128, 8m) uint8, bits packed with the lowest first.
    Returns: (64m, 2) uint64; bit i of block j is bit j of row i.
    """
    words = np.ascontiguousarray(rows).view("<u8").astype(np.uint64).reshape(2, 64, -1)
    for step, shift, low in _STEPS:
        pairs = words.reshape(2, 32 // step, 2, step, -1)
        upper = pairs[:, :, 0]
        lower = pairs[:, :, 1]
        moved = upper >> shift
        moved ^= lower
        moved &= low
        lower ^= moved
        moved <<= shift
        upper ^= moved
    return np.ascontiguousarray(words.transpose(2, 1, 0)).reshape(-1, 2)


def transpose_into(rows: BitArray, blocks: WordArray) -> None:
    """The first n bits of 128 rows as blocks: (n, 2) uint64.

    rows: (digits, fold, width) uint8, of packed bits in whole words.
    """
    if compiled.CHOSEN is not None:
        compiled.transpose_into(rows, blocks)
        return
    blocks[:] = transpose(rows.reshape(BLOCK_BITS, -1))[: len(blocks)]


def _stretch(streams: LeafStreams, width: int) -> Iterator[tuple[slice, BitArray]]:
    """Digits, and the next bytes of their leaves: (digits, leaves, width) uint8."""
    return streams.bytes(width)


def _combine(leaves: BitArray, columns: BitArray) -> BitArray:
    """Write columns[…, i] = v_i = ⊕ L_x over x with bit i; return u = ⊕ L_x: (digits, width).

    The leaves are halved from the highest bit down. Args: leaves: (digits, 2^fold, width) uint8.
    columns: (digits, fold, width) uint8.
    """
    for bit in reversed(range(columns.shape[1])):
        half = 1 << bit
        np.bitwise_xor.reduce(leaves[:, half:], axis=1, out=columns[:, bit])
        leaves = leaves[:, :half] ^ leaves[:, half:]
    u: BitArray = leaves[:, 0]
    return u
