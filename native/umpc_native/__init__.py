"""The sign gate on the processor's AES instructions.

umpc uses it if it is installed and `enabled()`.

| file | what it is |
|---|---|
| `checks.py` | check that arrays have the layout that the kernel expects |
| `kernel.c`, `walk.h` | the kernel: it evaluates and generates whole batches, and holds no lock |

UMPC_NATIVE=0 in the environment turns it off.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os

import numpy as np

from umpc_native.checks import check_evaluate, check_generate, levels

KEY_FORMAT = 1
"""The format of comparison keys. umpc uses a kernel only if both have the same format."""

KINDS = {"AES-NI": 1, "VAES": 2}
"""Instruction sets and their bits in the kernel's answer; the fastest is last."""


def kinds() -> list[str]:
    """The instruction sets that this processor has."""
    return [
        name
        for name, kind in KINDS.items()
        if _LIBRARY is not None and _LIBRARY.umpc_kinds() & kind
    ]


def enabled() -> bool:
    return os.environ.get("UMPC_NATIVE") != "0" and bool(kinds())


def evaluate(
    key: bytes,
    party: int,
    width: int,
    corrections: np.ndarray,
    leaves: np.ndarray,
    masked: np.ndarray,
    roots: np.ndarray,
    kind: str | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """A party's shares of [d̂_low < r_low] and [d̂ = r]: two (n,) uint8.

    Args:
        key: 16 bytes, the key of the tree's hash.
        party: 0 or 1.
        width: w, 2..64.
        corrections: (levels, n, 2) uint64.
        leaves: (n, 3) uint32.
        masked: (n,) uint64.
        roots: (n, 2) uint64.
        kind: one of `kinds()`; default: the fastest.

    Raises: ValueError for anything else.
    """
    count = check_evaluate(key, party, width, corrections, leaves, masked, roots)
    shares = np.empty((2, count), dtype=np.uint8)
    addresses = [array.ctypes.data for array in (corrections, leaves, masked, roots, *shares)]
    _call("umpc_evaluate", kind, key, party, width, count, *addresses)
    return shares[0], shares[1]


def generate(
    key: bytes, width: int, mask: np.ndarray, roots: np.ndarray, kind: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The keys for masks (n,) uint64 and roots (2, n, 2) uint64.

    Returns: corrections and leaves, with the shapes that `evaluate` takes.

    Raises: ValueError for anything else.
    """
    count = check_generate(key, width, mask, roots)
    corrections = np.empty((levels(width), count, 2), dtype=np.uint64)
    leaves = np.empty((count, 3), dtype=np.uint32)
    addresses = [array.ctypes.data for array in (mask, roots, corrections, leaves)]
    _call("umpc_generate", kind, key, width, count, *addresses)
    return corrections, leaves


def _call(name: str, kind: str | None, *arguments: bytes | int) -> None:
    if not (able := kinds()) or (kind or able[-1]) not in able:
        raise ValueError(f"this processor has {able}, not {kind or 'what the kernel needs'}")
    getattr(_LIBRARY, name)(KINDS[kind or able[-1]], *arguments)


def _load() -> ctypes.CDLL | None:
    """The kernel's library; None if it was not built or cannot be opened.

    Its calls release the interpreter's lock.
    """
    found = importlib.util.find_spec("umpc_native._kernel")
    try:
        library = ctypes.CDLL(found.origin)
    except (AttributeError, OSError):
        return None
    library.umpc_kinds.argtypes = []
    number, size, pointer = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
    library.umpc_evaluate.argtypes = [number, ctypes.c_char_p, number, number, size] + 6 * [pointer]
    library.umpc_generate.argtypes = [number, ctypes.c_char_p, number, size] + 4 * [pointer]
    return library


_LIBRARY = _load()
