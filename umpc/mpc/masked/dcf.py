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
parties; their roots come from seeds of their own. Keys: one mask, one use. This file has the keys; `tree.py` walks
the tree in numpy, and where the optional `native/` is installed that does it, with the same bytes as result.

The half-tree (Guo et al., eprint 2022/1431) would take two AES blocks of the dealer where this takes four, but its
right child is H(s) ⊕ s, and with H(s) = π(s) ⊕ s that is π(s), which anyone inverts. It needs a circular correlation
robust hash, π(σ(s)) ⊕ σ(s), and one more selection a level: in numpy evaluation would lose more than the dealer gains.

Reveals: nothing to either party (a key alone is pseudorandom given r). Cost: no communication;
w−5 AES blocks a gate for each party, 4(w−6)+2 for the dealer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from umpc.crypto.prg import FixedKeyHash
from umpc.errors import EncodingError
from umpc.mpc.masked import native
from umpc.mpc.masked.dcf_tree import evaluate_batches, generate_batches, levels

LEAF_BYTES = 12


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
            raise EncodingError(
                f"{count} keys of width {width} take {count * key_bytes(width)} bytes, got {len(data)}"
            )
        split = 16 * levels(width) * count
        corrections = np.frombuffer(data[:split], dtype="<u8").reshape(levels(width), count, 2)
        return cls(width, corrections, np.frombuffer(data[split:], dtype="<u4").reshape(count, 3))


def generate(
    width: int, mask: np.ndarray, roots: np.ndarray, tree_hash: FixedKeyHash
) -> ComparisonKeys:
    """The dealer's side: keys for gates whose differences are masked by `mask`.

    Args:
        width: w, bits of the masked difference, 2..64.
        mask: (n,) uint64, r mod 2^w.
        roots: (2, n, 2) uint64, uniform: the root seed of either party.
    """
    if native.KERNEL is not None:
        mask, roots = np.ascontiguousarray(mask), np.ascontiguousarray(roots)
        return ComparisonKeys(width, *native.KERNEL.generate(tree_hash.key, width, mask, roots))
    return ComparisonKeys(width, *generate_batches(width, mask, roots, tree_hash))


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
    arrays = (keys.corrections, keys.leaves, masked, roots)
    if native.KERNEL is not None:
        arrays = map(np.ascontiguousarray, arrays)
        less, equal = native.KERNEL.evaluate(tree_hash.key, party, keys.width, *arrays)
    else:
        less, equal = evaluate_batches(party, keys.width, *arrays, tree_hash)
    if party == 0:
        less ^= (masked >> np.uint64(keys.width - 1)).astype(np.uint8) & 1
    return less, equal
