"""Check that each array has the type, shape and layout that the kernel takes it for.

A pointer carries none of these.
"""

from __future__ import annotations

import numpy as np

KEY_BYTES = 16
LEAF_BITS = 5


def levels(width: int) -> int:
    """Levels of the tree for a w-bit difference."""
    return max(0, width - 1 - LEAF_BITS)


def check_evaluate(
    key: bytes,
    party: int,
    width: int,
    corrections: np.ndarray,
    leaves: np.ndarray,
    masked: np.ndarray,
    roots: np.ndarray,
) -> int:
    """The number of gates. Raises: ValueError."""
    _check_numbers(key, width, party)
    count = len(masked)
    check_array("masked", masked, np.uint64, (count,))
    check_array("corrections", corrections, np.uint64, (levels(width), count, 2))
    check_array("leaves", leaves, np.uint32, (count, 3))
    check_array("roots", roots, np.uint64, (count, 2))
    return count


def check_generate(key: bytes, width: int, mask: np.ndarray, roots: np.ndarray) -> int:
    """The number of gates. Raises: ValueError."""
    _check_numbers(key, width)
    count = len(mask)
    check_array("mask", mask, np.uint64, (count,))
    check_array("roots", roots, np.uint64, (2, count, 2))
    return count


def _check_numbers(key: bytes, width: int, party: int = 0) -> None:
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise ValueError(f"the key of the tree's hash has {KEY_BYTES} bytes")
    if width not in range(2, 65):
        raise ValueError(f"a width is in 2..64, got {width}")
    if party not in (0, 1):
        raise ValueError(f"a party is 0 or 1, got {party}")


def check_array(name: str, array: np.ndarray, kind: type, shape: tuple[int, ...]) -> None:
    """Raises: ValueError. The alignment may be any: the kernel takes any address."""
    expected = f"{name} is {shape} {kind.__name__}"
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{expected}, got {type(array).__name__}")
    if array.dtype != kind or array.shape != shape or not array.flags.c_contiguous:
        raise ValueError(
            f"{expected}, contiguous; got {array.shape} {array.dtype}, strides {array.strides}"
        )
