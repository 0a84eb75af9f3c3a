"""The compiled library, and the instruction sets that this processor has.

The library holds the gate once for every instruction set of its platform. It asks the processor at
run time, so one binary runs everywhere.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("_gate.abi3.so")

VERSION = 5
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
    return library


LIBRARY = load(FILE)


@cache
def kinds() -> tuple[str, ...]:
    """The kinds that this processor can run, the fastest last; none without the library."""
    able = 0 if LIBRARY is None else LIBRARY.umpc_kinds()
    return tuple(name for name, bit in KINDS.items() if able & bit)
