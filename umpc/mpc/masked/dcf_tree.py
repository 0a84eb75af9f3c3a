"""The sign gate's tree in numpy: batches of gates, level by level.

`dcf.py` says what a key and a block are, and how they relate to Gen< and Eval< of Boyle et al.
2021. The comments below name the steps of these two algorithms.

A level is a few passes over blocks that stay in the cache, and few calls of numpy: a chunk of wide
keys has so few gates that a call costs as much as its work. Control and value bits are computed in
(n,) uint16 copies of the blocks' lowest two octets (*heads*), an eighth of the blocks. All arrays
below are little-endian, like the machines that this runs on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.arrays import BitArray, WordArray

HeadArray: TypeAlias = NDArray[np.uint16]
"""The lowest two octets of blocks, or single bits in their places."""

LEAF_BITS = 5
BATCH = 1 << 13
"""Gates walked together, so that all their blocks of a level fit a cache of 1 MiB."""

_LEAVES = np.dtype([("equal", "<u8"), ("less", "<u4")])
_SEED, _CHILD, _VALUE, _LEAF = (np.array(number, dtype=np.uint16) for number in (0xFFF8, 1, 2, 2))
_ALL_BITS = np.array(15, dtype=np.int16)
"""The shift that spreads the highest bit over a head."""


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
        octets = _octets(width, masked[part])
        walked = _walk(party, width, corrections[:, part], octets, roots[part], room, tree_hash)
        shares[:, part] = _read_leaves(width, leaves[part], octets, *walked)
    return shares[0], shares[1]


def _walk(
    party: int,
    width: int,
    corrections: WordArray,
    octets: BitArray,
    roots: WordArray,
    room: WordArray,
    tree_hash: FixedKeyHash,
) -> tuple[WordArray, _Chosen, HeadArray]:
    """The levels of Eval<, from the roots to the leaves.

    Returns: hashed leaf blocks (n, 2) uint64, the gates whose control bit is set, and the value
    bits (n,) uint16.
    """
    count = len(roots)
    blocks, child = room[0, :count], room[1, :count]
    permute = tree_hash.permutation(blocks, room[1])
    # Eval<: s^(0) is the root, t^(0) = b, V = 0
    blocks[:] = roots
    heads = _heads(blocks)
    low = heads & _SEED
    chosen = _Chosen(count)
    bits, factors = _path(width, octets)
    ends = np.empty_like(bits)
    steps = zip(corrections, bits, factors, ends, strict=True)
    for level, (word, bit, factor, end) in enumerate(steps):
        # Eval<: expand G(s^(i−1)), but only the child that x_i selects
        np.bitwise_or(low, bit, low)
        heads[...] = low
        permute()
        np.bitwise_xor(blocks, child, blocks)
        # Eval<: τ = child ⊕ t^(i−1) · CW^(i); t^(0) is the same for all gates
        if level or party:
            np.bitwise_xor(blocks, chosen.of(word) if level else word, blocks)
        # Eval<: t^(i) is the control bit of the selected child
        end[...] = heads
        chosen.by_bit(end, factor)
        np.bitwise_and(end, _SEED, low)
    if not len(bits):
        chosen.all_or_none(party)
    # Eval<, last step: Convert(s^(n)), here the pad of the truth tables
    heads[...] = low | _LEAF
    permute()
    np.bitwise_xor(child, blocks, child)
    # Eval<: V = Σ v ⊕ t^(i−1) · V_CW, which all are in the corrected children
    return child, chosen, np.bitwise_xor.reduce(ends, axis=0) & _VALUE


def _read_leaves(
    width: int,
    leaves: NDArray[np.uint32],
    octets: BitArray,
    pads: WordArray,
    chosen: _Chosen,
    values: HeadArray,
) -> tuple[BitArray, BitArray]:
    """Both bits, from the truth tables below the path: pad ⊕ t^(n) · CW^(n+1), at place x.

    The pads are overwritten.
    """
    # the third table in the low half of the second word; nothing reads its high half
    corrections = np.empty_like(pads)
    for table, words in zip(corrections.view(np.uint32).T, leaves.T, strict=False):
        table[...] = words
    pads ^= chosen.of(corrections)
    rest, place = _below(width, octets)
    equal = (pads[:, 0] >> place).astype(np.uint8)
    less = (pads[:, 1] >> rest).astype(np.uint8)
    less ^= (values >> np.uint16(1)).astype(np.uint8)
    less &= np.uint8(1)
    equal &= np.uint8(1)
    return less, equal


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
    room = np.empty((8 * min(count, BATCH) + 1, 2), dtype=np.uint64)
    for part in _batches(count):
        octets = _octets(width, mask[part])
        walked = _grow(width, octets, roots[:, part], tree_hash, corrections[:, part], room)
        _write_leaves(width, leaves[part], octets, *walked)
    return corrections, leaves


def _grow(
    width: int,
    octets: BitArray,
    roots: WordArray,
    tree_hash: FixedKeyHash,
    corrections: WordArray,
    room: WordArray,
) -> tuple[WordArray, HeadArray]:
    """The levels of Gen<: walk α = r_low in both parties' trees, and write a correction a level.

    A level hashes the child that α's path loses (Lose), of both parties, then the one that it keeps
    (Keep): nothing is selected by the bit but an input's lowest bit. On the path exactly one
    party's control bit is set, and nothing else tells the parties apart. So row 0 always has the
    party whose bit is not set, to whose child no correction is added. Row 1 is row 0 ⊕ their
    difference, which is that of the kept children and the correction. H(x) = π(x) ⊕ x, so the
    difference of the inputs is in both differences of children and cancels in their sum.

    Returns: the difference of both parties' hashed leaf blocks (n, 2) uint64, and V_α = V_0 ⊕ V_1
    (n,) uint16, in the place of the value bit.
    """
    count = roots.shape[1]
    blocks, kept, lost, (former, latter) = room[: 8 * count].reshape(4, 2, count, 2)
    both = blocks.reshape(-1, 2)
    keep = tree_hash.permutation(both, room[2 * count : 4 * count + 1])
    lose = tree_hash.permutation(both, room[4 * count : 6 * count + 1])
    # Gen<: the roots s_b^(0); t_0^(0) = 0, t_1^(0) = 1; V_α = 0
    blocks[:] = roots
    heads = _heads(blocks)
    low = heads & _SEED
    np.bitwise_xor(blocks[0], blocks[1], former)  # its three low bits are never read
    inputs = low[0] ^ low[1]
    value = np.zeros(count, dtype=np.uint16)
    head, either, scratch = np.empty((3, count), dtype=np.uint16)
    chosen = _Chosen(count)
    bits, factors = _path(width, octets)
    # The low bits that a level ends with, as the XOR of both parties: the kept child's control bit
    # is 1; its value bit is β = 1 if the left child is lost, since all below it is less than r.
    controls = 3 * bits + _CHILD
    targets = controls | bits * _VALUE
    steps = zip(corrections, bits ^ _CHILD, factors, controls, targets, strict=True)
    for word, lost_bit, factor, control, target in steps:
        # Gen<: expand G(s_b^(i−1)) for both parties, Lose first, then Keep
        np.bitwise_or(low, lost_bit, low)
        heads[...] = low
        lose()
        np.bitwise_xor(low, _CHILD, low)
        heads[...] = low
        keep()
        # Gen<: s_CW = s_0^Lose ⊕ s_1^Lose
        np.bitwise_xor(lost[0], lost[1], word)
        word_heads = _heads(word)
        head[...] = word_heads
        np.bitwise_xor(kept[0], kept[1], latter)
        np.bitwise_xor(latter, word, latter)
        either[...] = _heads(latter)
        np.bitwise_xor(word, former, word)
        # Gen<: t_CW^L and t_CW^R: each child's own difference, and 1 for the kept one
        np.bitwise_xor(head, inputs, head)
        np.bitwise_and(either, control, scratch)
        np.bitwise_xor(head, scratch, head)
        # Gen<: V_CW = v_0^Lose ⊕ v_1^Lose ⊕ V_α, and ⊕ β if Lose = L
        np.bitwise_xor(head, target, head)
        np.bitwise_xor(head, value, head)
        word_heads[...] = head
        # Gen<: V_α ⊕= v_0^Keep ⊕ v_1^Keep ⊕ V_CW
        np.bitwise_xor(either, target, value)
        np.bitwise_and(value, _VALUE, value)
        # Gen<: s_b^(i) = s_b^Keep ⊕ t_b^(i−1) · s_CW, and the rows change places
        np.bitwise_xor(blocks[0], kept[0], blocks[0])
        head[...] = heads[0]
        chosen.by_bit(head, factor)
        np.bitwise_xor(blocks[0], chosen.of(latter), blocks[0])
        np.bitwise_xor(blocks[0], latter, blocks[1])
        # the heads of both, and their difference
        np.bitwise_and(either, _SEED, inputs)
        np.bitwise_and(head, _SEED, low[0])
        np.bitwise_and(inputs, chosen.heads, scratch)
        np.bitwise_xor(low[0], scratch, low[0])
        np.bitwise_xor(low[0], inputs, low[1])
        former, latter = latter, former
    heads[...] = low | _LEAF
    keep()
    pads = kept[0] ^ kept[1]
    pads ^= blocks[0]
    pads ^= blocks[1]
    return pads, value


def _write_leaves(
    width: int,
    leaves: NDArray[np.uint32],
    octets: BitArray,
    pads: WordArray,
    values: HeadArray,
) -> None:
    """CW^(n+1) into (n, 3) uint32: the XOR of both parties' truth tables, under both pads."""
    rest, place = _below(width, octets)
    one = np.uint64(1)
    tables = leaves.view(_LEAVES)[:, 0]
    tables["equal"] = pads[:, 0] ^ one << place
    less = (one << rest) - one
    less ^= -(values >> np.uint16(1)).astype(np.uint64)
    less ^= pads[:, 1]
    tables["less"] = less.astype(np.uint32)


def _octets(width: int, values: WordArray) -> BitArray:
    """The octets of numbers of w bits, the lowest first: (⌈w/8⌉, n) uint8."""
    octets: BitArray = np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8)
    return octets.T[: (width + 7) // 8].copy()


def _below(width: int, octets: BitArray) -> tuple[WordArray, WordArray]:
    """The bits that the levels did not walk: the low bits, alone and below the highest bit.

    Returns: places in the tables of [j < r_low] and of [j = r], two (n,) uint64.
    """
    rest = octets[0] & np.uint8((1 << min(LEAF_BITS, width - 1)) - 1)
    octet, bit = divmod(width - 1, 8)
    top = octets[octet] & np.uint8(1 << bit)
    if bit > LEAF_BITS:
        top >>= np.uint8(bit - LEAF_BITS)
    else:
        top *= np.uint8(1 << (LEAF_BITS - bit))
    top |= rest
    return rest.astype(np.uint64), top.astype(np.uint64)


def _path(width: int, octets: BitArray) -> tuple[HeadArray, HeadArray]:
    """The bits that the levels walk, highest first: (levels, n) uint16 of 0 and 1.

    The second array has, for each of them, the factor of a head that brings the control bit of the
    selected child to the top: bit 0 of a left child, bit 2 of a right one.
    """
    places = np.arange(width - 2, LEAF_BITS - 1, -1, dtype=np.uint8)[:, None]
    walked = octets[places[:, 0] >> 3]
    walked >>= places & 7
    walked &= np.uint8(1)
    bits = walked.astype(np.uint16)
    factors = bits * np.uint16(0x6000)
    return bits, np.subtract(np.uint16(0x8000), factors, factors)


class _Chosen:
    """Gates whose control bit is set.

    A bit is spread over the two octets of a head, and each of them, as a signed number, over a word
    of the block. So no processor has to predict it, and no block is fetched by number.
    """

    def __init__(self, count: int):
        self.heads = np.empty(count, dtype=np.uint16)
        """Ones for each chosen gate, and zeros for all others."""
        self._signed = self.heads.view(np.int16)
        self._octets = self.heads.view(np.int8)
        self._words = np.empty(2 * count, dtype=np.int64)
        self._mask = self._words.view(np.uint64).reshape(count, 2)
        self._blocks = np.empty((count, 2), dtype=np.uint64)

    def by_bit(self, heads: HeadArray, factor: HeadArray) -> None:
        """Choose the gates that have a bit set. Args: factor: brings the bit to the top."""
        np.multiply(heads, factor, self.heads)
        np.right_shift(self._signed, _ALL_BITS, self._signed)
        self._words[...] = self._octets

    def all_or_none(self, bit: int) -> None:
        """Choose all gates by 1, or none by 0."""
        self._words.fill(-bit)

    def of(self, blocks: WordArray) -> WordArray:
        """The blocks (n, 2) of the chosen gates, and zeros, until the next call."""
        return np.bitwise_and(blocks, self._mask, self._blocks)


def _heads(blocks: WordArray) -> HeadArray:
    """The lowest two octets of each block, as a view: (…, n, 2) uint64 → (…, n) uint16."""
    heads: HeadArray = blocks.view(np.uint16)[..., 0]
    return heads


def _batches(count: int) -> Iterator[slice]:
    for start in range(0, count, BATCH):
        yield slice(start, min(start + BATCH, count))
