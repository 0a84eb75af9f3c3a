"""Eval< of one gate as `umpc/mpc/masked/dcf.py` describes it, one AES call a block, in integers."""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

LEAF_BITS = 5
LOW = 0b111
"""The bits of a block that are not its seed."""


def hashed(key: bytes, block: int) -> int:
    """π(x) ⊕ x."""
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return int.from_bytes(encryptor.update(block.to_bytes(16, "little")), "little") ^ block


def evaluated_alone(
    key: bytes,
    party: int,
    width: int,
    corrections: np.ndarray,
    leaf: np.ndarray,
    masked: np.uint64,
    root: np.ndarray,
) -> tuple[int, int]:
    """A party's shares of [d̂_low < r_low] and [d̂ = r] for one gate.

    Args: corrections: (levels, 2) uint64. leaf: (3,) uint32. root: (2,) uint64.
    """
    number, control, value = int(masked), party, 0
    seed = joined(root) & ~LOW
    for level, word in enumerate(corrections):
        bit = number >> (width - 2 - level) & 1
        child = hashed(key, seed | bit) ^ control * joined(word)
        control = child >> (2 if bit else 0) & 1
        value ^= child >> 1 & 1
        seed = child & ~LOW
    pad = hashed(key, seed | 0b010)
    equals = (pad ^ control * joined(leaf[:2], 32)) % 2**64
    lesses = (pad >> 64 ^ control * int(leaf[2])) % 2**32
    rest = number % 2 ** min(width - 1, LEAF_BITS)
    top = number >> (width - 1)
    return value ^ lesses >> rest & 1, equals >> (rest | top << LEAF_BITS) & 1


def joined(halves: np.ndarray, bits: int = 64) -> int:
    """Two words as one number, the first one low."""
    return int(halves[0]) | int(halves[1]) << bits
