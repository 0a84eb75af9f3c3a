"""The key streams of many seeds in one call, as `umpc.crypto.prg.Stream` has them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from umpc.native.choice import CHOSEN
from umpc.native.library import KINDS, LIBRARY, kinds

KEY_BYTES = 32


def key_streams(
    seeds: Sequence[bytes], sizes: Sequence[int], kind: str | None = None
) -> NDArray[np.uint8]:
    """The first bytes of each seed's stream, one stream behind the other: (Σ sizes,) uint8.

    Args:
        seeds: 32 bytes each.
        sizes: the bytes of each stream.
        kind: one of `kinds()`; default: `CHOSEN`.

    Raises: ValueError where a seed has another length, or the kernel cannot run.
    """
    wanted = kind or CHOSEN
    if LIBRARY is None or wanted not in kinds():
        raise ValueError(f"the compiled kernel can run {kinds()} here, not {wanted}")
    if len(seeds) != len(sizes) or any(len(seed) != KEY_BYTES for seed in seeds):
        raise ValueError(f"a size, and a seed of {KEY_BYTES} bytes, were expected for each stream")
    if min(sizes, default=0) < 0:
        raise ValueError("a stream cannot have fewer than no bytes")
    streams = np.empty(sum(sizes), dtype=np.uint8)
    lengths = (ctypes.c_size_t * len(sizes))(*sizes)
    keys = b"".join(seeds)
    LIBRARY.umpc_key_streams(KINDS[wanted], keys, lengths, len(sizes), streams.ctypes.data)
    return streams
