"""One-hot rows of pieces of a mask as machine words, and what a party reads off its share of them.

A row of 2^b bits has a 1 at the place of the piece's value. A share of it is the exclusive or with
what others hold. All that is read is linear over GF(2), so it is read off shares: the bit at a
public place, and the parity of all bits above a public place. A table of n edges is (words, n): the
words that hold places 0..63, 64..127 and so on, of 8 to 64 bits each.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.mpc.arrays import BitArray, PieceArray, WordArray
from umpc.mpc.masked.plan_items import LookupTable

Rows: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""A table's rows, or shares of them: (words, n) of the table's type."""

WORD_BITS = 64
_TYPES = {bits: np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, WORD_BITS)}
_PARITIES = np.array([number.bit_count() & 1 for number in range(256)], dtype=np.uint8)


def row_type(table: LookupTable) -> np.dtype[np.unsignedinteger[Any]]:
    """The numpy type of a table's words."""
    return _TYPES[min(table.bits, WORD_BITS)]


def row_words(table: LookupTable) -> int:
    """The number of words of a row."""
    return -(-table.bits // WORD_BITS)


def one_hot(table: LookupTable, mask: PieceArray, count: int) -> Rows:
    """The rows of the masks' pieces. Args: mask: (count,) or ()."""
    kind, words = row_type(table), row_words(table)
    piece = piece_of(table, mask)
    if not piece.ndim:
        piece = np.full(count, piece)
    rows = np.empty((words, count), dtype=kind)
    place = piece
    if words > 1:
        piece = piece.astype(np.uint64, copy=False)
        place = piece & np.uint64(WORD_BITS - 1)
    np.left_shift(kind.type(1), place.astype(kind, copy=False), out=rows[0])
    for number in range(6, table.size):
        # a bit of the piece puts the place into the lower or the higher half of the words
        mask = (piece >> np.uint64(number)) & np.uint64(1)
        np.subtract(np.uint64(0), mask, out=mask)
        half = 1 << (number - 6)
        lower, higher = rows[:half], rows[half : 2 * half]
        np.bitwise_and(lower, mask, out=higher)
        lower ^= higher
    return rows


def piece_of(table: LookupTable, values: PieceArray) -> PieceArray:
    """The bits of these numbers that a table covers, in the type of the numbers."""
    kind = values.dtype.type
    shifted = values >> kind(table.low) if table.low else values
    return shifted & kind((1 << table.size) - 1)


def above_and_at(rows: Rows, piece: PieceArray) -> tuple[BitArray, BitArray]:
    """The parity of each row's bits above a place, and the bit at the place: two (n,) uint8.

    Args: piece: (n,) uint32 or uint64, below the length of a row.
    """
    kind = rows.dtype
    if len(rows) == 1:
        shifted = rows[0] >> piece.astype(kind, copy=False)
        higher = None
    else:
        piece = piece.astype(np.uint64, copy=False)
        chosen, higher = _chosen(rows, piece)
        shifted = np.bitwise_and(piece, np.uint64(WORD_BITS - 1))
        np.right_shift(chosen, shifted, out=shifted)
    equal = _low_bytes(shifted) & np.uint8(1)
    if higher is not None:
        shifted ^= higher
    # The shifted word has the bits from the place on, so its parity counts the place's bit, too.
    less = parity(shifted)
    less ^= equal
    return less, equal


def _low_bytes(words: NDArray[np.unsignedinteger[Any]]) -> BitArray:
    """The low byte of each word, as a view."""
    octets: BitArray = words.astype(words.dtype.newbyteorder("<"), copy=False).view(np.uint8)
    return octets[:: words.dtype.itemsize]


def _chosen(rows: Rows, piece: WordArray) -> tuple[WordArray, WordArray]:
    """The word of each row in which a place is, and the exclusive or of all higher words.

    A bit of the place chooses one half of the words that are left, and the lower half has the other
    one above it.
    """
    higher: WordArray | None = None
    while len(rows) > 1:
        half = len(rows) // 2
        lower, upper = rows[:half], rows[half:]
        in_lower = piece >> np.uint64(5 + half.bit_length())
        in_lower &= np.uint64(1)
        in_lower -= np.uint64(1)  # ones where the place is in the lower half, or zeros
        others = np.bitwise_xor.reduce(upper, axis=0) if half > 1 else upper[0]
        if higher is None:
            higher = others & in_lower
        else:
            higher ^= others & in_lower
        rows = lower ^ upper
        rows &= in_lower
        rows ^= upper
    if higher is None:
        higher = np.zeros_like(rows[0])
    return rows[0], higher


def moved(rows: Rows, size: int, masked: WordArray) -> Rows:
    """The rows with place v moved to place v ⊕ û. Args: masked: û, (n,) uint64 below 2^size.

    Only for rows of one word: a bit of û exchanges two halves of every block of places.
    """
    words: NDArray[np.unsignedinteger[Any]] = rows[0]
    kind, length = words.dtype, 8 * words.dtype.itemsize
    for number in range(size):
        half = 1 << number
        lower = kind.type(sum(1 << place for place in range(length) if not place & half))
        exchanged = ((words >> kind.type(half)) & lower) | ((words & lower) << kind.type(half))
        chosen = _all_if((masked >> np.uint64(number)) & np.uint64(1) == 1).astype(kind)
        words = words ^ (words ^ exchanged) & chosen
    return words.reshape(1, -1)


def parity(words: NDArray[np.unsignedinteger[Any]]) -> BitArray:
    """Whether the number of set bits is odd: (n,) uint8."""
    if hasattr(np, "bitwise_count"):
        odd: BitArray = np.bitwise_count(words) & np.uint8(1)
        return odd
    return folded_parity(words)


def folded_parity(words: NDArray[np.unsignedinteger[Any]]) -> BitArray:
    """`parity` for numpy before version 2."""
    shift = 4 * words.dtype.itemsize
    while shift >= 8:
        words = words ^ (words >> words.dtype.type(shift))
        shift //= 2
    found: BitArray = _PARITIES[words.astype(np.uint8)]
    return found


def _all_if(condition: NDArray[np.bool_]) -> WordArray:
    """A word of ones where the condition holds, and of zeros elsewhere."""
    return np.negative(condition.astype(np.int64)).view(np.uint64)
