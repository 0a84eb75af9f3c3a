"""Integers of 128 bits, as the specification has blocks, to arrays of two words and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

WORD = (1 << 64) - 1


def blocks_of(integers: Sequence[int]) -> np.ndarray:
    """Blocks: (n, 2) uint64, the low word first."""
    words = [(block & WORD, block >> 64) for block in integers]
    return np.array(words, dtype=np.uint64).reshape(-1, 2)


def integers_of(blocks: np.ndarray) -> list[int]:
    """The inverse of `blocks_of`."""
    return [int(low) | int(high) << 64 for low, high in blocks.reshape(-1, 2)]
