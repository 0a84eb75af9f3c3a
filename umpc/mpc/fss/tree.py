"""The tree of comparison keys and of point keys, in numpy, level by level.

Paper: Boyle et al. 2021 (eprint 2020/1392), section 3, algorithm Gen<. Boyle, Gilboa & Ishai 2016,
section 3.2: the same tree without the value bits is that of a point function. A point key has
these bits, and nobody reads them, so both kinds of keys have one tree.

A block is 128 bits: a seed in the upper 125, and three low bits.

| bit | in a child, before and after correction |
|---|---|
| 0 | control bit t^L, if the child is a left one |
| 1 | value bit v, added into the borrow of a comparison |
| 2 | control bit t^R, if the child is a right one |

So a correction word needs no bits beside its block. Other children than 0 and 1 are pads of a leaf,
and their numbers may have a fourth bit, which is added to the lowest one of the seed.
All arrays are little-endian, like the machines that this runs on. `native/points.h` computes the
same in C for point keys. Comparison keys have no compiled path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.arrays import WordArray

SEED = np.uint64((1 << 64) - 8)
"""All bits of a block's lower word but the three low ones."""
_ONE = np.uint64(1)


def child(blocks: WordArray, which: WordArray | int, tree_hash: FixedKeyHash) -> WordArray:
    """G(s): the left child (0) or the right one (1) of each block, or a pad of a leaf.

    Args: blocks: (…, 2) uint64. which: one number, or (…) uint64.
    """
    # spec/dcf.py, `child`
    inputs = np.array(blocks, order="C")
    # the three low bits are control and value bits: no part of the seed
    inputs[..., 0] &= SEED
    inputs[..., 0] ^= np.uint64(which)
    return tree_hash(inputs)


@dataclass(frozen=True)
class TreePath:
    """The way to α's leaf in both parties' trees.

    corrections: (levels, n, 2) uint64, the words CW^(i).
    blocks: of each party (n, 2) uint64, at the leaf. controls: of each party t^(n), (n,) uint64.
    value: (n,) uint64, V_α.
    """

    corrections: WordArray
    blocks: list[WordArray]
    controls: list[WordArray]
    value: WordArray

    def __repr__(self) -> str:
        return f"TreePath(levels={len(self.corrections)}, keys={len(self.value)}, <redacted>)"


def generate_path(bits: Sequence[WordArray], roots: WordArray, tree_hash: FixedKeyHash) -> TreePath:
    """Gen< down to a leaf, for n keys.

    Args:
        bits: of each level (n,) uint64 of 0 and 1, those of α that choose a child, highest first.
        roots: (2, n, 2) uint64, uniform.
    """
    # spec/dcf.py, `path`
    count = roots.shape[1]
    corrections = np.empty((len(bits), count, 2), dtype=np.uint64)
    # Gen<: the roots s_b^(0); t_0^(0) = 0, t_1^(0) = 1; V_α = 0
    blocks = list(roots)
    controls = [np.full(count, party, dtype=np.uint64) for party in (0, 1)]
    value = np.zeros(count, dtype=np.uint64)
    for bit, word in zip(bits, corrections, strict=True):
        # Gen<: expand G(s_b^(i−1)) of both parties, (left, right) each
        children = [[child(each, which, tree_hash) for which in (0, 1)] for each in blocks]
        left, right = (mine ^ theirs for mine, theirs in zip(*children, strict=True))
        keeps_right = bit.astype(np.bool_)[:, None]
        lost, kept = np.where(keeps_right, left, right), np.where(keeps_right, right, left)
        # Gen<: s_CW = s_0^Lose ⊕ s_1^Lose; V_CW = v_0^Lose ⊕ v_1^Lose ⊕ V_α, and ⊕ β if Lose = L
        value_word = (lost[:, 0] >> _ONE ^ value ^ bit) & _ONE
        word[:] = lost
        word[:, 0] &= SEED
        word[:, 0] |= value_word << _ONE
        # Gen<: t_CW^L and t_CW^R: each child's own difference, and 1 for the kept one
        word[:, 0] |= left[:, 0] & _ONE ^ bit ^ _ONE
        word[:, 0] |= (right[:, 0] >> np.uint64(2) & _ONE ^ bit) << np.uint64(2)
        # Gen<: V_α ⊕= v_0^Keep ⊕ v_1^Keep ⊕ V_CW
        value ^= kept[:, 0] >> _ONE & _ONE ^ value_word
        # Gen<: s_b^(i) = s_b^Keep ⊕ t_b^(i−1)·s_CW, and t_b^(i) in the same way
        for party, (own_left, own_right) in enumerate(children):
            own = np.where(keeps_right, own_right, own_left)
            blocks[party] = own ^ controls[party][:, None] * word
            controls[party] = blocks[party][:, 0] >> bit + bit & _ONE
    return TreePath(corrections, blocks, controls, value)
