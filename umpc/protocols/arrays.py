"""Names for the array types that protocols pass around."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Real numbers in floating point."""

Integers = NDArray[np.int64]
"""Signed integers: values in units, counts, indices and bits."""

Words = NDArray[np.uint64]
"""Unsigned 64-bit words: random words, and numbers modulo 2^w."""

Flags = NDArray[np.bool_]
"""Truth values."""
