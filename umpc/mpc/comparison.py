"""The sign gate: is a masked difference below zero, is it zero? (Boyle et al. 2021, eprint 2020/1392, section 3)

Two parties know d̂ = d + r mod 2^w; the dealer knows r and gave each a key. Each computes, alone, an XOR
share of [d < 0] and of [d = 0], because

    [d < 0] = msb(d̂) ⊕ msb(r) ⊕ [d̂_low < r_low]        d in [−2^(w−1), 2^(w−1)),  low = the w−1 low bits
    [d = 0] = [d̂ = r]

The key is a distributed comparison function at r_low. One GGM tree serves both bits. Its top levels walk the
low bits from the highest down, one AES block a level. It stops LEAF_BITS early: the block below holds, as
a truth table, [j < r_low] for the 32 values j of the remaining bits and [j = r_low] for the 64 values of these bits
and the msb. That saves five levels of work and of key (departure from the paper; early termination as in Boyle,
Gilboa & Ishai 2016, section 3.2.3). The term msb(r) is left to whoever uses the bit (`dealing.py` folds it into
the mask under which the bit is opened), so it costs nothing.

A block is 128 bits: a seed in the upper 125, and three low bits.

| bit | in a child, before and after correction |
|---|---|
| 0 | control bit, if the child is a left one |
| 1 | value bit, added into the borrow |
| 2 | control bit, if the child is a right one |

So a correction word needs no bits beside its block: w−6 blocks and a 12-byte leaf make a key, the same for both
parties; their roots come from seeds of their own. Keys: one mask, one use.

Reveals: nothing to either party (a key alone is pseudorandom given r). Cost: no communication;
w−5 AES blocks a gate for each party, 4(w−6)+2 for the dealer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from umpc.errors import EncodingError
from umpc.mpc.prg import FixedKeyHash

LEAF_BITS = 5
LEAF_BYTES = 12
BATCH = 1 << 13
"""Gates walked together: their blocks stay in the cache."""

_LOW_THREE = np.uint64(7)
_SEED = ~_LOW_THREE
_LEAF = np.uint64(2)
_ONE = np.uint64(1)
_HALF = np.uint64(0xFFFFFFFF)


def levels(width: int) -> int:
    """Levels of the tree for a w-bit difference."""
    return max(0, width - 1 - LEAF_BITS)


def key_bytes(width: int) -> int:
    """Bytes of one gate's key on the wire."""
    return 16 * levels(width) + LEAF_BYTES


def aes_blocks(width: int) -> int:
    """AES blocks that one party spends on one gate."""
    return levels(width) + 1


@dataclass(frozen=True)
class ComparisonKeys:
    """Keys of n gates, common to both parties.

    corrections: (levels, n, 2) uint64. leaves: (n, 3) uint32: equality table low, high, less table.
    """

    width: int
    corrections: np.ndarray
    leaves: np.ndarray

    def __repr__(self) -> str:
        return f"ComparisonKeys(width={self.width}, gates={len(self.leaves)}, <redacted>)"

    def encode(self) -> bytes:
        return self.corrections.astype("<u8").tobytes() + self.leaves.astype("<u4").tobytes()

    @classmethod
    def decode(cls, data: memoryview, width: int, count: int) -> ComparisonKeys:
        """Raises: EncodingError on a wrong length."""
        if len(data) != count * key_bytes(width):
            raise EncodingError(f"{count} keys of width {width} take {count * key_bytes(width)} bytes, got {len(data)}")
        split = 16 * levels(width) * count
        corrections = np.frombuffer(data[:split], dtype="<u8").reshape(levels(width), count, 2)
        return cls(width, corrections, np.frombuffer(data[split:], dtype="<u4").reshape(count, 3))


def generate(width: int, mask: np.ndarray, roots: np.ndarray, tree_hash: FixedKeyHash) -> ComparisonKeys:
    """The dealer's side: keys for gates whose differences are masked by `mask`.

    Args:
        width: w, bits of the masked difference, 2..64.
        mask: (n,) uint64, r mod 2^w.
        roots: (2, n, 2) uint64, uniform: the root seed of either party.
    """
    count = len(mask)
    corrections = np.empty((levels(width), count, 2), dtype=np.uint64)
    leaves = np.empty((count, 3), dtype=np.uint32)
    for start in range(0, count, BATCH):
        part = slice(start, min(start + BATCH, count))
        _generate_batch(width, mask[part], roots[:, part], tree_hash, corrections[:, part], leaves[part])
    return ComparisonKeys(width, corrections, leaves)


def _generate_batch(
    width: int,
    mask: np.ndarray,
    roots: np.ndarray,
    tree_hash: FixedKeyHash,
    corrections: np.ndarray,
    leaves: np.ndarray,
) -> None:
    count = len(mask)
    blocks = np.empty((2, 2, count, 2), dtype=np.uint64)  # child (left, right), party
    seeds = roots & np.array([_SEED, ~np.uint64(0)])
    control = np.stack([np.zeros(count, np.uint64), np.ones(count, np.uint64)])  # t_0 = 0, t_1 = 1
    borrow = np.zeros(count, dtype=np.uint64)  # V_0 ⊕ V_1 on the path of r
    for level in range(levels(width)):
        bit = (mask >> np.uint64(width - 2 - level)) & _ONE
        blocks[:] = seeds
        blocks[1, ..., 0] |= _ONE
        children = tree_hash(blocks.reshape(-1, 2)).reshape(blocks.shape)
        difference = children[:, 0] ^ children[:, 1]  # left, right: (2, n, 2)
        right_kept = (_ONE & bit).astype(bool)
        lost = np.where(right_kept[:, None], difference[0], difference[1])
        word = corrections[level]
        word[:] = lost
        value = ((lost[:, 0] >> _ONE) & _ONE) ^ borrow ^ bit
        left = (difference[0, :, 0] & _ONE) ^ bit ^ _ONE
        right = ((difference[1, :, 0] >> np.uint64(2)) & _ONE) ^ bit
        word[:, 0] = (word[:, 0] & _SEED) | left | (value << _ONE) | (right << np.uint64(2))
        kept = np.where(right_kept[:, None], children[1], children[0])  # (party, n, 2)
        kept ^= word & (np.uint64(0) - control)[..., None]
        control = (kept[..., 0] >> (bit << _ONE)) & _ONE
        borrow ^= ((kept[0, :, 0] ^ kept[1, :, 0]) >> _ONE) & _ONE
        kept[..., 0] &= _SEED
        seeds = kept
    final = seeds.copy()
    final[..., 0] |= _LEAF
    table = tree_hash(final.reshape(-1, 2)).reshape(final.shape)
    table = table[0] ^ table[1]
    rest = mask & np.uint64((1 << min(LEAF_BITS, width - 1)) - 1)
    top = (mask >> np.uint64(width - 1)) & _ONE
    equal = _ONE << (rest | top << np.uint64(LEAF_BITS))
    less = ((_ONE << rest) - _ONE) ^ (np.uint64(0) - borrow)
    table[:, 0] ^= equal
    table[:, 1] = (table[:, 1] ^ less) & _HALF
    leaves[:, 0] = table[:, 0] & _HALF
    leaves[:, 1] = table[:, 0] >> np.uint64(32)
    leaves[:, 2] = table[:, 1]


def evaluate(
    party: int, keys: ComparisonKeys, masked: np.ndarray, roots: np.ndarray, tree_hash: FixedKeyHash
) -> tuple[np.ndarray, np.ndarray]:
    """One party's XOR shares.

    Args:
        party: 0 or 1.
        masked: (n,) uint64, d̂ mod 2^w.
        roots: (n, 2) uint64, this party's root seeds.

    Returns: ([d̂_low < r_low], [d̂ = r]) shares: two (n,) uint8. Party 0 adds msb(d̂); msb(r) is still to be added.
    """
    less = np.empty(len(masked), dtype=np.uint8)
    equal = np.empty(len(masked), dtype=np.uint8)
    for start in range(0, len(masked), BATCH):
        part = slice(start, min(start + BATCH, len(masked)))
        less[part], equal[part] = _evaluate_batch(
            party, keys.width, keys.corrections[:, part], keys.leaves[part], masked[part], roots[part], tree_hash
        )
    if party == 0:
        less ^= (masked >> np.uint64(keys.width - 1)).astype(np.uint8) & 1
    return less, equal


def _evaluate_batch(
    party: int,
    width: int,
    corrections: np.ndarray,
    leaves: np.ndarray,
    masked: np.ndarray,
    roots: np.ndarray,
    tree_hash: FixedKeyHash,
) -> tuple[np.ndarray, np.ndarray]:
    seeds = np.ascontiguousarray(roots)
    seeds = seeds & np.array([_SEED, ~np.uint64(0)])
    control = np.full(len(masked), party, dtype=np.uint64)
    values = np.zeros(len(masked), dtype=np.uint64)
    correction = np.empty_like(seeds)
    for level in range(levels(width)):
        bit = (masked >> np.uint64(width - 2 - level)) & _ONE
        seeds[:, 0] |= bit
        child = tree_hash(seeds)
        np.multiply(corrections[level], control[:, None], out=correction)
        np.bitwise_xor(child, correction, out=seeds)
        head = seeds[:, 0]
        control = (head >> (bit << _ONE)) & _ONE
        values ^= head
        head &= _SEED
    seeds[:, 0] |= _LEAF
    table = tree_hash(seeds)
    rest = masked & np.uint64((1 << min(LEAF_BITS, width - 1)) - 1)
    top = (masked >> np.uint64(width - 1)) & _ONE
    wide = leaves.astype(np.uint64)
    equal_table = table[:, 0] ^ (wide[:, 0] | wide[:, 1] << np.uint64(32)) * control
    less_table = table[:, 1] ^ wide[:, 2] * control
    equal = equal_table >> (rest | top << np.uint64(LEAF_BITS))
    less = (less_table >> rest) ^ (values >> _ONE)
    return (less & _ONE).astype(np.uint8), (equal & _ONE).astype(np.uint8)
