"""The sign gate's tree in numpy, level by level: the reference of the compiled one.

`dcf.py` says what a key and a block are, and how they relate to Gen< and Eval< of Boyle et al.
2021. The comments below name the steps of these two algorithms. Keys are for studies of few edges,
so the code follows `spec/dcf.py` step by step. All arrays are little-endian, like the machines that
this runs on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.arrays import BitArray, WordArray

LEAF_BITS = 5
_LEAF = 2
"""The pad of a leaf, in the place of a left or right child: 0 or 1."""
_ONE = np.uint64(1)
_SEED = np.uint64((1 << 64) - 8)
"""All bits of a block's lower word but the three low ones."""
_HALF = np.uint64(32)


def levels(width: int) -> int:
    """Levels of the tree for a w-bit difference."""
    return max(0, width - 1 - LEAF_BITS)


def evaluate_in_numpy(
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
    # Eval<: s^(0) is the root, t^(0) = b, V = 0
    blocks = roots
    control = np.full(len(masked), party, dtype=np.uint64)
    value = np.zeros_like(masked)
    for bit, word in zip(_path(width, masked), corrections, strict=True):
        # Eval<: expand G(s^(i−1)), but only the child that x_i selects, corrected by t^(i−1)·CW^(i)
        blocks = _child(blocks, bit, tree_hash) ^ control[:, None] * word
        # Eval<: V ⊕= v, and t^(i) is the control bit of the selected child
        value ^= blocks[:, 0] >> _ONE
        control = blocks[:, 0] >> bit + bit & _ONE
    # Eval<, last step: the truth tables, pad ⊕ t^(n)·CW^(n+1)
    pads = _child(blocks, _LEAF, tree_hash)
    words = leaves.astype(np.uint64)
    equal = pads[:, 0] ^ control * (words[:, 0] | words[:, 1] << _HALF)
    less = pads[:, 1] ^ control * words[:, 2]
    rest, place = _places(width, masked)
    bits = (less >> rest ^ value) & _ONE, equal >> place & _ONE
    return bits[0].astype(np.uint8), bits[1].astype(np.uint8)


def generate_in_numpy(
    width: int, mask: WordArray, roots: WordArray, tree_hash: FixedKeyHash
) -> tuple[WordArray, NDArray[np.uint32]]:
    """Gen<: corrections (levels, n, 2) uint64 and leaves (n, 3) uint32.

    Args:
        mask: (n,) uint64, r mod 2^w.
        roots: (2, n, 2) uint64.
    """
    corrections = np.empty((levels(width), len(mask), 2), dtype=np.uint64)
    # Gen<: the roots s_b^(0); t_0^(0) = 0, t_1^(0) = 1; V_α = 0
    blocks = list(roots)
    controls = [np.full_like(mask, party) for party in (0, 1)]
    value = np.zeros_like(mask)
    for bit, word in zip(_path(width, mask), corrections, strict=True):
        # Gen<: expand G(s_b^(i−1)) of both parties, (left, right) each
        children = [[_child(each, which, tree_hash) for which in (0, 1)] for each in blocks]
        left, right = (mine ^ theirs for mine, theirs in zip(*children, strict=True))
        keeps_right = bit.astype(np.bool_)[:, None]
        lost, kept = np.where(keeps_right, left, right), np.where(keeps_right, right, left)
        # Gen<: s_CW = s_0^Lose ⊕ s_1^Lose; V_CW = v_0^Lose ⊕ v_1^Lose ⊕ V_α, and ⊕ β if Lose = L
        value_word = (lost[:, 0] >> _ONE ^ value ^ bit) & _ONE
        word[:] = lost
        word[:, 0] &= _SEED
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
    # Gen<: CW^(n+1), the XOR of both parties' truth tables, under both pads
    pads = _child(blocks[0], _LEAF, tree_hash) ^ _child(blocks[1], _LEAF, tree_hash)
    rest, place = _places(width, mask)
    equal = pads[:, 0] ^ _ONE << place
    less = pads[:, 1] ^ (_ONE << rest) - _ONE ^ np.negative(value)
    leaves = np.stack([equal, equal >> _HALF, less], axis=1)
    return corrections, leaves.astype(np.uint32)


def _child(blocks: WordArray, which: WordArray | int, tree_hash: FixedKeyHash) -> WordArray:
    """G(s): the left child (0) or the right one (1) of each block, or the pad of a leaf."""
    inputs = np.array(blocks, order="C")
    inputs[:, 0] &= _SEED
    inputs[:, 0] |= np.uint64(which)
    return tree_hash(inputs)


def _path(width: int, values: WordArray) -> Iterator[WordArray]:
    """The bits that the levels walk, highest first: (n,) uint64 of 0 and 1 for each."""
    for place in range(width - 2, LEAF_BITS - 1, -1):
        yield values >> np.uint64(place) & _ONE


def _places(width: int, values: WordArray) -> tuple[WordArray, WordArray]:
    """The bits that the levels did not walk: the low bits, alone and below the highest bit.

    Returns: places in the tables of [j < r_low] and of [j = r], two (n,) uint64.
    """
    rest = values & np.uint64((1 << min(LEAF_BITS, width - 1)) - 1)
    return rest, values >> np.uint64(width - 1) << np.uint64(LEAF_BITS) | rest
