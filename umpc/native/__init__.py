"""Garbled edges and point keys on the processor's AES instructions, and a field, in C.

`umpc.mpc.garbled`, `umpc.mpc.transfers`, `umpc.mpc.fss` and `umpc.crypto.field` use it if `CHOSEN`
names a kind.
The C code is in `native/` of the repository. `native/build_hook.py` compiles it when a wheel is
made. The library calls nothing of Python, so one binary serves every version of Python.

| file | what it is |
|---|---|
| `field.py` | the field of the verified grid, a call for each function |
| `garbled.py` | garbled edges, tables of pieces and extensions of transfers, a call for each |
| `points.py` | point keys, a call for each function |

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

VERSION = 11
"""The version that the library answers: KERNEL_VERSION in native/kernel.c. A library of another
version, left by an older build, is not used."""

KINDS = {"AES-NI": 1, "VAES-256": 2, "ARM": 8}
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
    text: Any = ctypes.c_char_p
    arrays: list[Any] = 5 * [pointer]
    key_of: list[Any] = [number, text, number]
    library.umpc_add_points.argtypes = [*key_of, number, number, *3 * [size], *arrays]
    library.umpc_generate_points.argtypes = [*key_of, ctypes.c_uint64, number, size, *arrays[:4]]
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


def checked_key(key: bytes) -> bytes:
    """The key of a hash. Raises: ValueError."""
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise ValueError(f"the key of a hash has {KEY_BYTES} bytes")
    return key


def check_array(name: str, array: np.ndarray, kind: type, shape: tuple[int, ...]) -> None:
    """Raises: ValueError. The alignment may be any: the kernel takes any address."""
    expected = f"{name} is {shape} {kind.__name__}"
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{expected}, got {type(array).__name__}")
    if array.dtype != kind or array.shape != shape or not array.flags.c_contiguous:
        raise ValueError(
            f"{expected}, contiguous; got {array.shape} {array.dtype}, strides {array.strides}"
        )


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
