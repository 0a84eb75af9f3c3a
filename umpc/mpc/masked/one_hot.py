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

from umpc.mpc.arrays import BitArray, WordArray
from umpc.mpc.masked.plan_items import LookupTable

Rows: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""A table's rows, or shares of them: (words, n) of the table's type."""

WORD_BITS = 64
_PARITIES = np.array([number.bit_count() & 1 for number in range(256)], dtype=np.uint8)


def row_type(table: LookupTable) -> np.dtype[np.unsignedinteger[Any]]:
    """The numpy type of a table's words."""
    return np.dtype(f"<u{min(table.bits, WORD_BITS) // 8}")


def row_words(table: LookupTable) -> int:
    """The number of words of a row."""
    return -(-table.bits // WORD_BITS)


def one_hot(table: LookupTable, mask: WordArray, count: int) -> Rows:
    """The rows of the masks' pieces. Args: mask: (count,) or () uint64."""
    kind, words = row_type(table), row_words(table)
    piece = np.broadcast_to(piece_of(table, mask), (count,))
    place: NDArray[np.unsignedinteger[Any]]
    place = np.left_shift(kind.type(1), piece.astype(kind) & kind.type(WORD_BITS - 1))
    if words == 1:
        return place.reshape(1, count)
    word = piece >> np.uint64(6)
    return np.stack([place & _all_if(word == number) for number in range(words)])


def piece_of(table: LookupTable, values: WordArray) -> WordArray:
    """The bits of these numbers that a table covers."""
    piece: WordArray = (values >> np.uint64(table.low)) & np.uint64((1 << table.size) - 1)
    return piece


def above_and_at(rows: Rows, piece: WordArray) -> tuple[BitArray, BitArray]:
    """The parity of each row's bits above a place, and the bit at the place: two (n,) uint8.

    Args: piece: (n,) uint64 below the length of a row.
    """
    chosen, higher = rows[0], None
    if len(rows) > 1:
        chosen, higher = _chosen(rows, piece >> np.uint64(6))
    kind = rows.dtype
    shifted = chosen >> (piece.astype(kind, copy=False) & kind.type(WORD_BITS - 1))
    equal = shifted.astype(np.uint8) & np.uint8(1)
    if higher is not None:
        shifted ^= higher
    # The shifted word has the bits from the place on, so its parity counts the place's bit, too.
    return parity(shifted) ^ equal, equal


def _chosen(rows: Rows, word: WordArray) -> tuple[WordArray, WordArray]:
    """The word of each row with this number, and the exclusive or of all higher words."""
    chosen = rows[0] & _all_if(word == 0)
    higher = np.zeros_like(chosen)
    for number, row in enumerate(rows[1:], start=1):
        chosen |= row & _all_if(word == number)
        higher ^= row & _all_if(word < number)
    return chosen, higher


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
