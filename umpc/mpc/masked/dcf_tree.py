"""The sign gate's tree in numpy: batches of gates, level by level.

`dcf.py` says what a key and a block are, and how they relate to Gen< and Eval< of Boyle et al.
2021. The comments below name the steps of these two algorithms.

A level is a few passes over blocks that stay in the cache. Whole blocks are selected as complex128,
the only numpy type of 16 bytes; nothing is computed with it. Control and value bits are computed in
(n,) uint8 copies of the blocks' low bytes, a sixteenth of the blocks. All arrays below are
little-endian, like the machines that this runs on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.arrays import BitArray, BlockItems, WordArray

LEAF_BITS = 5
BATCH = 1 << 13
"""Gates walked together, so that all their blocks of a level fit a cache of 1 MiB."""

_MASKS = np.array([[0, 0], [~0, ~0]]).view(np.complex128)[:, 0]
_SEED = np.uint8(0xF8)
_ONE = np.uint8(1)
_CONTROL = np.uint8(1)
_CHILD = np.uint8(1)
_VALUE = np.uint8(2)
_LEAF = np.uint8(2)


def levels(width: int) -> int:
    """Levels of the tree for a w-bit difference."""
    return max(0, width - 1 - LEAF_BITS)


def evaluate_batches(
    party: int,
    width: int,
    corrections: WordArray,
    leaves: NDArray[np.uint32],
    masked: WordArray,
    roots: WordArray,
    tree_hash: FixedKeyHash,
) -> tuple[BitArray, BitArray]:
    """Eval<: a party's shares of [d̂_low < r_low] and [d̂ = r], two (n,) uint8.

    Args:
        corrections: (levels, n, 2) uint64.
        leaves: (n, 3) uint32.
        masked: (n,) uint64, d̂ mod 2^w.
        roots: (n, 2) uint64.
    """
    count = len(masked)
    shares = np.empty((2, count), dtype=np.uint8)
    room = np.empty((2, min(count, BATCH) + 1, 2), dtype=np.uint64)
    for part in _batches(count):
        walked = _walk(
            party, width, corrections[:, part], masked[part], roots[part], room, tree_hash
        )
        shares[:, part] = _read_leaves(width, leaves[part], masked[part], *walked)
    return shares[0], shares[1]


def _walk(
    party: int,
    width: int,
    corrections: WordArray,
    masked: WordArray,
    roots: WordArray,
    room: WordArray,
    tree_hash: FixedKeyHash,
) -> tuple[WordArray, BitArray, BitArray]:
    """The levels of Eval<, from the roots to the leaves.

    Returns: hashed leaf blocks (n, 2) uint64, control bits and value bits (n,) uint8.
    """
    count = len(masked)
    here, there = (_Blocks(row, count) for row in room)
    # Eval<: s^(0) is the root, t^(0) = b, V = 0
    here.words[:] = roots
    low = here.heads & _SEED
    control = np.full(count, party, dtype=np.uint8)
    values = np.zeros(count, dtype=np.uint8)
    correction = np.empty_like(here.words)
    whole_correction = _whole(correction)
    index = np.empty(count, dtype=np.intp)
    bits = _path_bits(width, masked)
    places = 2 * bits  # of the control bit: bit 0 of a left child, bit 2 of a right one
    for level, (word, bit, place) in enumerate(zip(corrections, bits, places, strict=True)):
        # Eval<: expand G(s^(i−1)), but only the child that x_i selects
        low |= bit
        here.heads[:] = low
        child = tree_hash.into(here.words, there.room)
        # Eval<: τ = child ⊕ t^(i−1) · CW^(i); t^(0) is the same for all gates
        if level:
            index[:] = control
            np.take(_MASKS, index, out=whole_correction, mode="wrap")  # faster than "clip"
            correction &= word
            child ^= correction
        elif party:
            child ^= word
        here, there = there, here
        # Eval<: V += v ⊕ t^(i−1) · V_CW, both already in the corrected child
        low[:] = here.heads
        values ^= low
        # Eval<: t^(i) is the control bit of the selected child
        np.right_shift(low, place, out=control)
        control &= _CONTROL
        low &= _SEED
    # Eval<, last step: Convert(s^(n)), here the pad of the truth tables
    here.heads[:] = low | _LEAF
    return tree_hash.into(here.words, there.room), control, values >> _ONE & _ONE


def _read_leaves(
    width: int,
    leaves: NDArray[np.uint32],
    masked: WordArray,
    pads: WordArray,
    control: BitArray,
    values: BitArray,
) -> tuple[BitArray, BitArray]:
    """Both bits, from the truth tables below the path: pad ⊕ t^(n) · CW^(n+1), at place x."""
    tables = leaves.T.copy()  # a row a word: numpy's inner loops are then over gates
    tables &= -control.astype(np.uint32)
    tables ^= pads.view(np.uint32).T[:3]
    rest, top = _below(width, masked)
    equal = _either(top, tables[0], tables[1]) >> rest
    less = tables[2] >> rest
    return less.astype(np.uint8) & _ONE ^ values, equal.astype(np.uint8) & _ONE


def generate_batches(
    width: int, mask: WordArray, roots: WordArray, tree_hash: FixedKeyHash
) -> tuple[WordArray, NDArray[np.uint32]]:
    """Gen<: corrections (levels, n, 2) uint64 and leaves (n, 3) uint32.

    Args:
        mask: (n,) uint64, r mod 2^w.
        roots: (2, n, 2) uint64.
    """
    count = len(mask)
    corrections = np.empty((levels(width), count, 2), dtype=np.uint64)
    leaves = np.empty((count, 3), dtype=np.uint32)
    room = np.empty((6 * min(count, BATCH) + 1, 2), dtype=np.uint64)
    for part in _batches(count):
        walked = _grow(width, mask[part], roots[:, part], tree_hash, corrections[:, part], room)
        leaves[part] = _truth_tables(width, mask[part], *walked)
    return corrections, leaves


def _grow(
    width: int,
    mask: WordArray,
    roots: WordArray,
    tree_hash: FixedKeyHash,
    corrections: WordArray,
    room: WordArray,
) -> tuple[WordArray, BitArray]:
    """The levels of Gen<: walk α = r_low in both parties' trees, and write a correction a level.

    A level hashes the child that α's path keeps (Keep), of both parties, then the one that it loses
    (Lose): nothing is selected by the bit but an input's lowest bit. On the path exactly one
    party's control bit is set, and nothing else tells the parties apart. So row 0 always becomes
    the kept child of the party whose bit is not set, to which no correction is added. Row 1 follows
    from it: the rows differ by the difference of the kept children and by the correction.

    Returns: hashed leaf blocks of both (2, n, 2) uint64, V_α = V_0 ⊕ V_1 (n,) uint8.
    """
    count = len(mask)
    blocks, kept, lost = room[: 6 * count].reshape(3, 2, count, 2)
    flat_blocks = blocks.reshape(-1, 2)
    # Gen<: the roots s_b^(0); t_0^(0) = 0, t_1^(0) = 1; V_α = 0
    blocks[:] = roots
    heads = _heads(blocks)
    low = heads & _SEED
    unset = np.zeros(count, dtype=np.uint8)  # the row whose control bit is 0: at first party 0's
    rows = _Rows(count)
    value = np.zeros(count, dtype=np.uint8)  # V_α, in the place of the value bit
    bits = _path_bits(width, mask)
    places = 2 * bits  # of the kept child's control bit
    controls = np.left_shift(_CONTROL, places)
    # The low bits that a level ends with, as the XOR of both parties: the kept child's control bit
    # is 1; its value bit is β = 1 if the left child is lost, since all below it is less than r.
    targets = controls | bits * _VALUE
    steps = zip(corrections, bits, places, controls, targets, strict=True)
    for word, bit, place, control, target in steps:
        # Gen<: expand G(s_b^(i−1)) for both parties, Keep first, then Lose
        low |= bit
        heads[:] = low
        tree_hash.into(flat_blocks, room[2 * count :])
        low ^= _CHILD
        heads[:] = low
        tree_hash.into(flat_blocks, room[4 * count :])
        # Gen<: s_CW = s_0^Lose ⊕ s_1^Lose
        np.bitwise_xor(lost[0], lost[1], out=word)
        np.bitwise_xor(kept[0], kept[1], out=blocks[1])
        # Gen<: t_CW^L and t_CW^R: each child's own difference, and 1 for the kept one
        head = _heads(word).copy()
        either = head ^ heads[1]
        head ^= either & control
        # Gen<: V_CW = v_0^Lose ⊕ v_1^Lose ⊕ V_α, and ⊕ β if Lose = L
        head ^= target
        head ^= value
        _heads(word)[:] = head
        # Gen<: V_α ⊕= v_0^Keep ⊕ v_1^Keep ⊕ V_CW
        np.bitwise_xor(either, target, out=value)
        value &= _VALUE
        # Gen<: s_b^(i) = s_b^Keep ⊕ t_b^(i−1) · s_CW
        np.take(_whole(kept).reshape(-1), rows(unset), out=_whole(blocks[0]), mode="clip")
        blocks[1] ^= word
        blocks[1] ^= blocks[0]
        # Gen<: t_b^(i) = t_b^Keep ⊕ t_b^(i−1) · t_CW^Keep
        low[:] = heads
        np.right_shift(low[0], place, out=unset)
        unset &= _CONTROL  # if it is set in row 0, it is not set in row 1
        low &= _SEED
    heads[:] = low | _LEAF
    pads = tree_hash.into(flat_blocks, room[2 * count :])
    return pads.reshape(2, count, 2), value >> _ONE


def _truth_tables(
    width: int, mask: WordArray, pads: WordArray, borrow: BitArray
) -> NDArray[np.uint32]:
    """CW^(n+1): (n, 3) uint32, the XOR of both parties' tables, under both parties' pads."""
    tables: NDArray[np.uint32] = (pads[0] ^ pads[1]).view(np.uint32).T[:3].copy()
    rest, top = _below(width, mask)
    place = np.uint32(1) << rest
    tables[0] ^= place & ~-top
    tables[1] ^= place & -top
    tables[2] ^= (place - np.uint32(1)) ^ -borrow.astype(np.uint32)
    return tables.T


def _below(width: int, values: WordArray) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The bits that the levels did not walk: the low bits, and the highest one. Two (n,) uint32."""
    rest = values.astype(np.uint32) & np.uint32((1 << min(LEAF_BITS, width - 1)) - 1)
    return rest, (values >> np.uint64(width - 1)).astype(np.uint32) & np.uint32(1)


def _path_bits(width: int, values: WordArray) -> BitArray:
    """The bits that the levels walk, highest first: (levels, n) uint8 of 0 and 1."""
    places = np.arange(width - 2, LEAF_BITS - 1, -1, dtype=np.uint8)[:, None]
    octets = np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8).T[: (width + 7) // 8].copy()
    bits: BitArray = octets[places[:, 0] >> 3]
    bits >>= places & 7
    bits &= 1
    return bits


def _either(
    bit: NDArray[np.uint32], if_zero: NDArray[np.uint32], if_one: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """np.where for bits that no processor can predict."""
    chosen: NDArray[np.uint32] = if_zero ^ (if_zero ^ if_one) & -bit
    return chosen


class _Blocks:
    """n blocks of a batch, and the room for the hash to write them to.

    room: (n + 1, 2) uint64. words: its n blocks. heads: their low bytes (n,).
    """

    def __init__(self, room: WordArray, count: int):
        self.room = room
        self.words = room[:count]
        self.heads = _heads(self.words)


class _Rows:
    """The places from which to take block `row[i]` of gate i: (n,) row numbers → (n,) places.

    They are places in (rows, n) blocks, row after row.
    """

    def __init__(self, count: int):
        self._count = np.intp(count)
        self._gates = np.arange(count)
        self._out = np.empty(count, dtype=np.intp)

    def __call__(self, row: BitArray) -> NDArray[np.intp]:
        self._out[:] = row
        self._out *= self._count
        self._out += self._gates
        return self._out


def _heads(blocks: WordArray) -> BitArray:
    """The low byte of each block, as a view: (…, n, 2) uint64 → (…, n) uint8."""
    low_bytes: BitArray = blocks.view(np.uint8)[..., 0]
    return low_bytes


def _whole(blocks: WordArray) -> BlockItems:
    """Each block as one item of 16 bytes, as a view: (…, n, 2) uint64 → (…, n)."""
    items: BlockItems = blocks.view(np.complex128)[..., 0]
    return items


def _batches(count: int) -> Iterator[slice]:
    for start in range(0, count, BATCH):
        yield slice(start, min(start + BATCH, count))
