"""The sign gate and garbled edges on the processor's AES instructions, and a field, in C.

`umpc.mpc.masked`, `umpc.mpc.garbled`, `umpc.mpc.transfers` and `umpc.crypto.field` use it if
`CHOSEN` names a kind. The C code is in `native/` of the repository.
`native/build_hook.py` compiles it when a wheel is made. The library calls nothing of Python, so one
binary serves every version of Python.

| file | what it is |
|---|---|
| `field.py` | the field of the verified grid, a call for each function |
| `garbled.py` | garbled edges, tables of pieces and extensions of transfers, a call for each |

Every kind gives numpy's bytes. Numpy is the reference, and it runs where no kind can.

*Library.* The compiled library, and the instruction sets that this processor has.

The library holds the gate once for every instruction set of its platform. It asks the processor at
run time, so one binary runs everywhere.

*Choice.* Which kind of the compiled gate runs: the fastest, or the one that UMPC_NATIVE names.

| UMPC_NATIVE | runs |
|---|---|
| not set, empty or 1 | the fastest kind that this processor has, else numpy |
| 0 or numpy | numpy |
| a name of `KINDS`, in any case | this kind; an error where it cannot run |

*Checks.* Check that each array has the type, shape and layout that the kernel takes it for.

A pointer carries none of these.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from umpc.errors import ConfigError

FILE = Path(__file__).with_name("_gate.abi3.so")

VERSION = 6
"""The version that the library answers: KERNEL_VERSION in native/kernel.c. A library of another
version, left by an older build, is not used."""

KINDS = {"AES-NI": 1, "VAES-256": 2, "VAES-512": 4, "ARM": 8}
"""Instruction sets and their bits in the library's answer; of two, the later one is faster."""


def load(file: Path) -> ctypes.CDLL | None:
    """The library; None if there is none, or one that cannot be used.

    Its calls release the interpreter's lock.
    """
    number, size, pointer = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
    try:
        library = ctypes.CDLL(str(file))
        library.umpc_kernel_version.argtypes = library.umpc_kinds.argtypes = []
        if library.umpc_kernel_version() != VERSION:
            return None
    except (AttributeError, OSError):
        return None
    arrays: list[Any] = 6 * [pointer]
    library.umpc_evaluate.argtypes = [number, ctypes.c_char_p, number, number, size, *arrays]
    library.umpc_generate.argtypes = [number, ctypes.c_char_p, number, size, *arrays[:4]]
    text: Any = ctypes.c_char_p
    of_edges: list[Any] = [number, number, text, pointer, pointer]
    library.umpc_circuit.argtypes = of_edges
    library.umpc_rows.argtypes = [*of_edges, pointer, pointer, size, pointer]
    streams: list[Any] = [number, text, pointer, size, number, number, ctypes.c_uint64, size]
    library.umpc_stretch.argtypes = [*streams, pointer, pointer]
    library.umpc_blocks.argtypes = [number, pointer, size, size, pointer]
    operands: list[Any] = [number, pointer, pointer]
    library.umpc_field_multiply.argtypes = [*operands, size, pointer]
    library.umpc_field_times.argtypes = [*operands, size, pointer]
    of_rows: list[Any] = [pointer, size, pointer, size, size, size]
    library.umpc_field_inner.argtypes = [number, number, number, *of_rows, pointer]
    library.umpc_field_inverse.argtypes = [number, pointer, size, pointer]
    library.umpc_field_transform.argtypes = [*operands, size, size, size, pointer]
    return library


LIBRARY = load(FILE)


@cache
def kinds() -> tuple[str, ...]:
    """The kinds that this processor can run, the fastest last; none without the library."""
    able = 0 if LIBRARY is None else LIBRARY.umpc_kinds()
    return tuple(name for name, bit in KINDS.items() if able & bit)


# --- choice ---------------------------------------------------------------------------------------

VARIABLE = "UMPC_NATIVE"
AUTOMATIC, OFF = ("", "1"), ("0", "numpy")


def choose(setting: str, able: Sequence[str]) -> str | None:
    """Return the kind that runs; None for numpy.

    Args: setting: the text of UMPC_NATIVE. able: the kinds that can run, the fastest last.

    Raises: ConfigError for a setting that names nothing that can run.
    """
    wanted = setting.strip().lower()
    if wanted in OFF:
        return None
    if wanted in AUTOMATIC:
        return able[-1] if able else None
    for kind in able:
        if kind.lower() == wanted:
            return kind
    raise ConfigError(
        f"{VARIABLE} is one of {', '.join(['0', '1', *able])} on this machine, got {setting!r}"
    )


def explained(chosen: str | None, setting: str, able: Sequence[str], is_built: bool) -> str:
    """Say in a few words which gate runs, and why."""
    if chosen is not None:
        others = [kind for kind in able if kind != chosen]
        return f"compiled, {chosen}" + (f" (also here: {', '.join(others)})" if others else "")
    if not is_built:
        return "numpy (this installation has no compiled gate)"
    if not able:
        return "numpy (this processor has none of the instructions of the compiled gate)"
    return f"numpy ({VARIABLE}={setting}; also here: {', '.join(able)})"


CHOSEN = choose(os.environ.get(VARIABLE, ""), kinds())
"""The kind that this process runs; None for numpy."""


def status() -> str:
    """Which gate this process runs, and why, in a few words."""
    return explained(CHOSEN, os.environ.get(VARIABLE, ""), kinds(), LIBRARY is not None)


# --- checks ---------------------------------------------------------------------------------------

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


def checked_key(key: bytes) -> bytes:
    """The key of a hash. Raises: ValueError."""
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise ValueError(f"the key of a hash has {KEY_BYTES} bytes")
    return key


def _check_numbers(key: bytes, width: int, party: int = 0) -> None:
    checked_key(key)
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


# ---   init   -------------------------------------------------------------------------------------

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
    call("umpc_evaluate", kind, key, party, width, count, *addresses)
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
    call("umpc_generate", kind, key, width, count, *addresses)
    return corrections, leaves


def call(name: str, kind: str | None, *arguments: Any) -> None:
    """Call a function of the library. Raises: ValueError if this processor lacks the kind."""
    wanted = kind or CHOSEN
    if LIBRARY is None or wanted not in kinds():
        raise ValueError(f"the compiled kernel can run {kinds()} here, not {wanted}")
    answer = getattr(LIBRARY, name)(KINDS[wanted], *arguments)
    if answer == -2:
        raise MemoryError("the compiled kernel found no memory for labels")
    if answer:
        raise ValueError(f"the compiled kernel refused {wanted}: {answer}")
