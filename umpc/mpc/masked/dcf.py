"""The sign gate: is a masked difference below zero, and is it zero?

Paper: Boyle et al. 2021 (eprint 2020/1392), section 3: the distributed comparison function (DCF)
with the algorithms Gen< and Eval<.

Two parties know d̂ = d + r mod 2^w. The dealer knows r and gave each of them a key. Each party
computes, alone, an XOR share of [d < 0] and of [d = 0], because for d in [−2^(w−1), 2^(w−1))

    [d < 0] = msb(d̂) ⊕ msb(r) ⊕ [d̂_low < r_low]        low = the w−1 low bits
    [d = 0] = [d̂ = r]

The key is a DCF key at r_low. One GGM tree serves both bits:

| in the paper | here |
|---|---|
| α, β, 𝔾 | r_low, 1, Z_2: addition is ⊕, and the signs (−1)^b disappear |
| G(s) = s^L‖v^L‖t^L‖s^R‖v^R‖t^R | two blocks, H(s‖0) and H(s‖1) |
| CW^(i) = s_CW‖V_CW‖t_CW^L‖t_CW^R | one block a level |
| V in Eval<, V_α in Gen< | the value bits, added up on the way down |
| CW^(n+1) | two truth tables, for the LEAF_BITS lowest bits |

The tree's top levels walk the low bits from the highest down, one AES block a level. They stop
LEAF_BITS early (departure from the paper; early termination as in Boyle, Gilboa & Ishai 2016,
section 3.2.3). The block below holds, as truth tables, [j < r_low] for the 32 values j of the
remaining bits, and [j = r] for the 64 values of these bits and the msb. That saves five levels of
work and of key. The term msb(r) is left to whoever uses the bit: `tasks.py` folds it into the
mask under which the bit is opened, so it costs nothing.

`umpc/mpc/fss/tree.py` has the tree and the layout of its blocks, which point keys share.

So a correction word needs no bits beside its block. A key is w−6 blocks and a 12-byte leaf, and it
is the same for both parties; their roots come from seeds of their own. Each key serves one mask
and one use.

The half-tree (Guo et al., eprint 2022/1431) would take two AES blocks of the dealer where this
takes four. But its right child is H(s) ⊕ s, and with H(s) = π(s) ⊕ s that is π(s), which anyone
inverts. It needs a circular correlation robust hash, π(σ(s)) ⊕ σ(s), and one more selection a
level. In numpy, evaluation would lose more than the dealer gains.

Reveals: nothing to either party, as a key alone is pseudorandom given r. Cost: no communication;
w−5 AES blocks a gate for each party, and 4(w−6)+2 for the dealer.

*One hot.* One-hot rows of pieces of a mask as machine words, and what a party reads off its share
of them.

A row of 2^b bits has a 1 at the place of the piece's value. A share of it is the exclusive or with
what others hold. All that is read is linear over GF(2), so it is read off shares: the bit at a
public place, and the parity of all bits above a public place. A table of n edges is (words, n): the
words that hold places 0..63, 64..127 and so on, of 8 to 64 bits each.

*Gates.* The comments name the steps of Gen< and Eval<. Keys are for studies of few edges, so the
code follows `spec/dcf.py` step by step: 1,000 keys of 25 bits take 3 ms to make, and 0.5 ms to
evaluate. All arrays are little-endian, like the machines that this runs on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import FixedKeyHash
from umpc.errors import EncodingError
from umpc.mpc.arrays import BitArray, PieceArray, WordArray
from umpc.mpc.fss.tree import child, generate_path
from umpc.mpc.masked.plan_items import LookupTable

LEAF_BYTES = 12


def key_bytes(width: int) -> int:
    """Bytes of one gate's key on the wire."""
    return 16 * levels(width) + LEAF_BYTES


@dataclass(frozen=True)
class ComparisonKeys:
    """Keys of n gates, common to both parties.

    corrections: (levels, n, 2) uint64, the words CW^(i).
    leaves: (n, 3) uint32: equality table low, equality table high, less table.
    """

    width: int
    corrections: WordArray
    leaves: NDArray[np.uint32]

    def __repr__(self) -> str:
        return f"ComparisonKeys(width={self.width}, gates={len(self.leaves)}, <redacted>)"

    def encode(self) -> bytes:
        """The bytes on the wire, little-endian: all corrections, then all leaves."""
        return self.corrections.astype("<u8").tobytes() + self.leaves.astype("<u4").tobytes()

    @classmethod
    def decode(cls, data: memoryview, width: int, count: int) -> ComparisonKeys:
        """The inverse of encode. Raises: EncodingError on a wrong length."""
        due = count * key_bytes(width)
        if len(data) != due:
            raise EncodingError(
                f"{count} keys of width {width} take {due} bytes, and {len(data)} came"
            )
        split = 16 * levels(width) * count
        corrections = np.frombuffer(data[:split], dtype="<u8").reshape(levels(width), count, 2)
        return cls(width, corrections, np.frombuffer(data[split:], dtype="<u4").reshape(count, 3))


# --- one hot --------------------------------------------------------------------------------------

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
    # SIRNN (Rathee et al. 2021): one-hot row of the mask's piece r_i
    kind, words = row_type(table), row_words(table)
    piece = piece_of(table, mask)
    if not piece.ndim:
        piece = np.full(count, piece)
    # spec/masked_dealing.py, `deal`: 1 at place r_i, 0 elsewhere
    rows = np.empty((words, count), dtype=kind)
    place = piece
    if words > 1:
        piece = piece.astype(np.uint64, copy=False)
        # the low six bits choose the place inside a word
        place = piece & np.uint64(WORD_BITS - 1)
    np.left_shift(kind.type(1), place.astype(kind, copy=False), out=rows[0])
    for number in range(6, table.size):
        # a bit of the piece puts the place into the lower or the higher half of the words
        mask = (piece >> np.uint64(number)) & np.uint64(1)
        np.subtract(np.uint64(0), mask, out=mask)
        # branch-free: both halves are written, masks choose the bit's word
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
    # linear over GF(2): these hold for XOR shares of a row, too
    kind = rows.dtype
    if len(rows) == 1:
        # [r_i > d̂_i] is the parity of places above d̂_i
        shifted = rows[0] >> piece.astype(kind, copy=False)
        higher = None
    else:
        piece = piece.astype(np.uint64, copy=False)
        # words above the chosen one count as a whole
        chosen, higher = _chosen(rows, piece)
        shifted = np.bitwise_and(piece, np.uint64(WORD_BITS - 1))
        np.right_shift(chosen, shifted, out=shifted)
    # [d̂_i = r_i] is the bit at place d̂_i
    equal = _low_bytes(shifted) & np.uint8(1)
    if higher is not None:
        shifted ^= higher
    # The shifted word has the bits from the place on, so its parity counts the place's bit, too.
    # [d̂_i < r_i], XOR-shared among all owners
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
        # one bit of the public place halves the words
        half = len(rows) // 2
        lower, upper = rows[:half], rows[half:]
        in_lower = piece >> np.uint64(5 + half.bit_length())
        in_lower &= np.uint64(1)
        in_lower -= np.uint64(1)  # ones where the place is in the lower half, or zeros
        # the upper half lies above every place of the lower one
        others = np.bitwise_xor.reduce(upper, axis=0) if half > 1 else upper[0]
        if higher is None:
            higher = others & in_lower
        else:
            higher ^= others & in_lower
        # select lower or upper without a branch
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
    # exchange halves by each bit of û, so that place v moves to v ⊕ û
    for number in range(size):
        half = 1 << number
        lower = kind.type(sum(1 << place for place in range(length) if not place & half))
        exchanged = ((words >> kind.type(half)) & lower) | ((words & lower) << kind.type(half))
        # whether û has this bit, as a mask of the word
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


# --- gates ----------------------------------------------------------------------------------------

LEAF_BITS = 5
_LEAF = 2
"""The pad of a leaf, in the place of a left or right child: 0 or 1."""
_ONE = np.uint64(1)
_HALF = np.uint64(32)


def levels(width: int) -> int:
    """Levels of the tree for a w-bit difference."""
    return max(0, width - 1 - LEAF_BITS)


def generate(
    width: int, mask: WordArray, roots: WordArray, tree_hash: FixedKeyHash
) -> ComparisonKeys:
    """Gen<: the dealer's keys for gates whose differences are masked by `mask`.

    Args:
        width: w, bits of the masked difference, 2..64.
        mask: (n,) uint64, r mod 2^w.
        roots: (2, n, 2) uint64, uniform: the root seed s^(0) of either party.
    """
    # spec/dcf.py, `generate`
    path = generate_path(list(_path(width, mask)), roots, tree_hash)
    # Gen<: CW^(n+1), the XOR of both parties' truth tables, under both pads
    pads = np.bitwise_xor(*(child(each, _LEAF, tree_hash) for each in path.blocks))
    rest, place = _places(width, mask)
    equal = pads[:, 0] ^ _ONE << place
    less = pads[:, 1] ^ (_ONE << rest) - _ONE ^ np.negative(path.value)
    leaves = np.stack([equal, equal >> _HALF, less], axis=1)
    return ComparisonKeys(width, path.corrections, leaves.astype(np.uint32))


def evaluate(
    party: int, keys: ComparisonKeys, masked: WordArray, roots: WordArray, tree_hash: FixedKeyHash
) -> tuple[BitArray, BitArray]:
    """Eval<: one party's XOR shares.

    Args:
        party: 0 or 1.
        masked: (n,) uint64, d̂ mod 2^w.
        roots: (n, 2) uint64, this party's root seeds.

    Returns: shares of [d̂_low < r_low] and of [d̂ = r]: two (n,) uint8. Party 0 adds msb(d̂) to the
        first one; msb(r) is still to be added.
    """
    # spec/dcf.py, `evaluate`
    width = keys.width
    # Eval<: s^(0) is the root, t^(0) = b, V = 0
    blocks = roots
    control = np.full(len(masked), party, dtype=np.uint64)
    value = np.zeros_like(masked)
    for bit, word in zip(_path(width, masked), keys.corrections, strict=True):
        # Eval<: expand G(s^(i−1)), but only the child that x_i selects, corrected by t^(i−1)·CW^(i)
        blocks = child(blocks, bit, tree_hash) ^ control[:, None] * word
        # Eval<: V ⊕= v, and t^(i) is the control bit of the selected child
        value ^= blocks[:, 0] >> _ONE
        control = blocks[:, 0] >> bit + bit & _ONE
    # Eval<, last step: the truth tables, pad ⊕ t^(n)·CW^(n+1)
    pads = child(blocks, _LEAF, tree_hash)
    words = keys.leaves.astype(np.uint64)
    equal = pads[:, 0] ^ control * (words[:, 0] | words[:, 1] << _HALF)
    less = pads[:, 1] ^ control * words[:, 2]
    rest, place = _places(width, masked)
    less = less >> rest ^ value
    # [d < 0] = msb(d̂) ⊕ msb(r) ⊕ [d̂_low < r_low]: msb(d̂) is public
    if party == 0:
        less ^= masked >> np.uint64(width - 1)
    return (less & _ONE).astype(np.uint8), (equal >> place & _ONE).astype(np.uint8)


def _path(width: int, values: WordArray) -> Iterator[WordArray]:
    """The bits that the levels walk, highest first: (n,) uint64 of 0 and 1 for each."""
    # Boyle, Gilboa & Ishai 2016, 3.2.3: the last LEAF_BITS are not walked
    for place in range(width - 2, LEAF_BITS - 1, -1):
        yield values >> np.uint64(place) & _ONE


def _places(width: int, values: WordArray) -> tuple[WordArray, WordArray]:
    """The bits that the levels did not walk: the low bits, alone and below the highest bit.

    Returns: places in the tables of [j < r_low] and of [j = r], two (n,) uint64.
    """
    # spec/dcf.py, `places`
    rest = values & np.uint64((1 << min(LEAF_BITS, width - 1)) - 1)
    return rest, values >> np.uint64(width - 1) << np.uint64(LEAF_BITS) | rest
