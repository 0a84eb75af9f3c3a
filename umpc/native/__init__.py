"""The sign gate and garbled edges on the processor's AES instructions, compiled from C.

`umpc.mpc.masked`, `umpc.mpc.garbled` and `umpc.mpc.transfers` use it if `CHOSEN` names a kind. The
C code is in `native/` of the repository.
`native/build_hook.py` compiles it when a wheel is made. The library calls nothing of Python, so one
binary serves every version of Python.

| file | what it is |
|---|---|
| `library.py` | the compiled library, and the instruction sets that this processor has |
| `garbled.py` | garbled edges, tables of pieces and extensions of transfers, a call for each |

Every kind gives numpy's bytes. Numpy is the reference, and it runs where no kind can.
"""

from __future__ import annotations

import numpy as np

from umpc.native.library import (
    CHOSEN,
    KINDS,
    LIBRARY,
    check_evaluate,
    check_generate,
    kinds,
    levels,
)

__all__ = ["CHOSEN", "evaluate", "generate", "kinds"]


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
        kind: one of `kinds()`; default: `CHOSEN`.

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
    """Call a function of the library. Raises: ValueError if this processor lacks the kind."""
    wanted = kind or CHOSEN
    if LIBRARY is None or wanted not in kinds():
        raise ValueError(f"the compiled gate can run {kinds()} here, not {wanted}")
    if getattr(LIBRARY, name)(KINDS[wanted], *arguments):
        raise ValueError(f"the compiled gate refused {wanted}")
