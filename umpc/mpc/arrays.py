"""The types of numpy arrays that protocol code passes around."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

WordArray: TypeAlias = NDArray[np.uint64]
"""64-bit words: masks, masked values, and 128-bit blocks as two words each."""
PieceArray: TypeAlias = NDArray[np.uint32] | WordArray
"""Numbers of which some low bits are read: uint32 where these fit, else uint64."""
BitArray: TypeAlias = NDArray[np.uint8]
"""One bit a byte, 0 or 1, unless a docstring says that eight bits are packed into a byte."""
RingArray: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""Elements of the ring Z_{2^w}, as unsigned integers of w bits; w is known only at run time."""
IntArray: TypeAlias = NDArray[np.int64]
"""Signed values in the clear."""
IndexArray: TypeAlias = NDArray[np.integer[Any]]
"""Row numbers of records."""
Integers: TypeAlias = IntArray
"""Signed integers: values in units, counts, indices and bits."""
Words: TypeAlias = WordArray
"""Unsigned 64-bit words: random words, and numbers modulo 2^w."""
Floats: TypeAlias = NDArray[np.float64]
"""Real numbers in floating point."""
Flags: TypeAlias = NDArray[np.bool_]
"""Truth values."""
