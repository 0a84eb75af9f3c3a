"""The sign gate's tree in numpy: batches of gates, level by level. `comparison.py` says what a key and a block are.

A level is a few passes over blocks that stay in the cache. Whole blocks are selected as complex128, the only numpy
type of 16 bytes (nothing is computed with it); control and value bits are computed in (n,) uint8 copies of the
blocks' low bytes, a sixteenth of the blocks. All arrays below are little-endian, as the machines are that this runs on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from umpc.crypto.prg import FixedKeyHash

LEAF_BITS = 5
BATCH = 1 << 13
"""Gates walked together, so that all their blocks of a level fit a cache of 1 MiB."""

_MASKS = np.array([[0, 0], [~0, ~0]]).view(np.complex128)[:, 0]
_SEED, _CONTROL, _OTHER, _VALUE, _LEAF = (
    np.array(bits, dtype=np.uint8) for bits in (0xF8, 1, 1, 2, 2)
)


def levels(width: int) -> int:
    """Levels of the tree for a w-bit difference."""
    return max(0, width - 1 - LEAF_BITS)


def evaluate_batches(
    party: int,
    width: int,
    corrections: np.ndarray,
    leaves: np.ndarray,
    masked: np.ndarray,
    roots: np.ndarray,
    tree_hash: FixedKeyHash,
) -> tuple[np.ndarray, np.ndarray]:
    """A party's shares of [d̂_low < r_low] and [d̂ = r]: two (n,) uint8.

    Args:
        corrections: (levels, n, 2) uint64. leaves: (n, 3) uint32. masked: (n,) uint64, d̂ mod 2^w.
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
    corrections: np.ndarray,
    masked: np.ndarray,
    roots: np.ndarray,
    room: np.ndarray,
    tree_hash: FixedKeyHash,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """From the roots to the leaves: (hashed leaf blocks (n, 2) uint64, control bits, value bits (n,) uint8)."""
    count = len(masked)
    here, there = (_Blocks(row, count) for row in room)
    here.words[:] = roots
    low = here.heads & _SEED
    correction = np.empty_like(here.words)
    whole_correction = _whole(correction)
    control = np.full(count, party, dtype=np.uint8)
    index = np.empty(count, dtype=np.intp)
    values = np.zeros(count, dtype=np.uint8)
    bits = _path_bits(width, masked)
    places = 2 * bits  # of the control bit: bit 0 of a left child, bit 2 of a right one
    for word, bit, place in zip(corrections, bits, places, strict=True):
        low |= bit
        here.heads[:] = low
        child = tree_hash.into(here.words, there.room)
        index[:] = control
        np.take(_MASKS, index, out=whole_correction, mode="clip")
        correction &= word
        child ^= correction
        here, there = there, here
        low[:] = here.heads
        values ^= low
        np.right_shift(low, place, out=control)
        control &= _CONTROL
        low &= _SEED
    here.heads[:] = low | _LEAF
    return tree_hash.into(here.words, there.room), control, values >> 1 & 1


def _read_leaves(
    width: int,
    leaves: np.ndarray,
    masked: np.ndarray,
    pads: np.ndarray,
    control: np.ndarray,
    values: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Both bits, from the truth tables below the path."""
    tables = leaves.T.copy()  # a row a word: numpy's inner loops are then over gates
    tables &= -control.astype(np.uint32)
    tables ^= pads.view(np.uint32).T[:3]
    rest, top = _below(width, masked)
    equal = _either(top, tables[0], tables[1]) >> rest
    less = tables[2] >> rest
    return less.astype(np.uint8) & 1 ^ values, equal.astype(np.uint8) & 1


def generate_batches(
    width: int, mask: np.ndarray, roots: np.ndarray, tree_hash: FixedKeyHash
) -> tuple[np.ndarray, np.ndarray]:
    """Keys: (corrections (levels, n, 2) uint64, leaves (n, 3) uint32).

    Args:
        mask: (n,) uint64, r mod 2^w. roots: (2, n, 2) uint64.
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
    mask: np.ndarray,
    roots: np.ndarray,
    tree_hash: FixedKeyHash,
    corrections: np.ndarray,
    room: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Walk r's own path in both parties' trees and write a correction a level.

    A level hashes the child that r's path keeps, of both parties, then the one that it loses: nothing is selected by
    the bit but an input's lowest bit. On the path exactly one party's control bit is set, and nothing else tells the
    parties apart. So row 0 always becomes the kept child of the party whose bit is not set, to which no correction is
    added, and row 1 follows from it: both differ by what the kept children differ by, and the correction.

    Returns: (hashed leaf blocks of both (2, n, 2) uint64, V_0 ⊕ V_1 (n,) uint8).
    """
    count = len(mask)
    blocks, kept, lost = room[: 6 * count].reshape(3, 2, count, 2)
    blocks[:] = roots
    heads, low = _heads(blocks), _heads(blocks) & _SEED
    unset = np.zeros(
        count, dtype=np.uint8
    )  # the row whose control bit is not set: at the root, party 0's
    rows = _Rows(count)
    value = np.zeros(count, dtype=np.uint8)  # V_0 ⊕ V_1, in the place of the value bit
    bits = _path_bits(width, mask)
    places = 2 * bits  # of the kept child's control bit
    controls = np.left_shift(_CONTROL, places)
    # The low bits that a level ends with, as the XOR of both parties: the kept child's control bit and, if the left
    # child is lost, so that all below it is less than r, its value bit.
    targets = controls | bits * _VALUE
    for word, bit, place, control, target in zip(
        corrections, bits, places, controls, targets, strict=True
    ):
        low |= bit
        heads[:] = low
        tree_hash.into(blocks.reshape(-1, 2), room[2 * count :])
        low ^= _OTHER
        heads[:] = low
        tree_hash.into(blocks.reshape(-1, 2), room[4 * count :])
        np.bitwise_xor(*lost, out=word)
        np.bitwise_xor(*kept, out=blocks[1])
        head = _heads(word).copy()
        either = head ^ heads[1]
        head ^= (
            either & control
        )  # a child's control bit is corrected by its own difference, lost or kept
        head ^= target
        head ^= value
        _heads(word)[:] = head
        np.bitwise_xor(either, target, out=value)
        value &= _VALUE
        np.take(_whole(kept).reshape(-1), rows(unset), out=_whole(blocks[0]), mode="clip")
        blocks[1] ^= word
        blocks[1] ^= blocks[0]
        low[:] = heads
        np.right_shift(low[0], place, out=unset)
        unset &= _CONTROL  # set in row 0: then not in row 1
        low &= _SEED
    heads[:] = low | _LEAF
    return tree_hash.into(blocks.reshape(-1, 2), room[2 * count :]).reshape(
        blocks.shape
    ), value >> 1


def _truth_tables(width: int, mask: np.ndarray, pads: np.ndarray, borrow: np.ndarray) -> np.ndarray:
    """The leaf corrections (n, 3) uint32: what both parties' tables must XOR to, under their pads."""
    tables = np.bitwise_xor(*pads).view(np.uint32).T[:3].copy()
    rest, top = _below(width, mask)
    place = np.uint32(1) << rest
    tables[0] ^= place & ~-top
    tables[1] ^= place & -top
    tables[2] ^= (place - np.uint32(1)) ^ -borrow.astype(np.uint32)
    return tables.T


def _below(width: int, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the levels did not walk: the low bits, and the highest one. Two (n,) uint32."""
    rest = values.astype(np.uint32) & np.uint32((1 << min(LEAF_BITS, width - 1)) - 1)
    return rest, (values >> np.uint64(width - 1)).astype(np.uint32) & np.uint32(1)


def _path_bits(width: int, values: np.ndarray) -> np.ndarray:
    """The bits that the levels walk, highest first: (levels, n) uint8 of 0 and 1."""
    places = np.arange(width - 2, LEAF_BITS - 1, -1, dtype=np.uint8)[:, None]
    octets = np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8).T[: (width + 7) // 8].copy()
    bits = octets[places[:, 0] >> 3]
    bits >>= places & 7
    bits &= 1
    return bits


def _either(bit: np.ndarray, of_zero: np.ndarray, of_one: np.ndarray) -> np.ndarray:
    """np.where for bits that no processor can predict."""
    return of_zero ^ (of_zero ^ of_one) & -bit


class _Blocks:
    """room: (n + 1, 2) uint64 for the hash to write to. words: its n blocks. heads: their low bytes (n,)."""

    def __init__(self, room: np.ndarray, count: int):
        self.room, self.words, self.heads = room, room[:count], _heads(room[:count])


class _Rows:
    """Where to `take` block `row[i]` of gate i from (rows, n) blocks: (n,) row numbers → (n,) places."""

    def __init__(self, count: int):
        self._count, self._gates, self._out = (
            np.intp(count),
            np.arange(count),
            np.empty(count, dtype=np.intp),
        )

    def __call__(self, row: np.ndarray) -> np.ndarray:
        self._out[:] = row
        self._out *= self._count
        self._out += self._gates
        return self._out


def _heads(blocks: np.ndarray) -> np.ndarray:
    """The low byte of each block, as a view: (…, n, 2) uint64 → (…, n) uint8."""
    return blocks.view(np.uint8)[..., 0]


def _whole(blocks: np.ndarray) -> np.ndarray:
    """(…, n, 2) uint64 → (…, n) of 16 bytes."""
    return blocks.view(np.complex128)[..., 0]


def _batches(count: int) -> Iterator[slice]:
    for start in range(0, count, BATCH):
        yield slice(start, min(start + BATCH, count))
