"""Programs for a chunk's edges, which the compiled kernel runs in one call without Python's lock.

A program is a list of steps over rows. A row has an item for each edge: a bit, eight edges to a
byte, or a word of 1 to 8 bytes. The kernel takes some thousand edges at a time through all steps,
so rows stay in the processor's cache. Key streams are computed where a step reads them. Programs
are public: they follow from a plan, and no step's place depends on a value.

| code | the row `to` becomes |
|---|---|
| XOR_BITS, AND_BITS | one ⊕ other; one & other. XOR_BITS also takes words |
| NOT_BITS, COPY | ~one; one |
| TOP_BIT | bit `number` of uint64 |
| ONE_HOT | a word of the one-hot row of a piece of `one`, ⊕ other |
| LOOK_UP | and the row after it: above a place and at it, of a table from `other` on |
| ADD_IF, NEGATE_IF | to + number, or −to, where the bit of `one` is set |
| DOT | not a row: sums[number] += Σ one · other, or Σ one |
| FILL, ADD, ADD_TIMES, TIMES | number; to + one; to + one · number; to · one |
| SUBTRACT | one − other |

Words are little-endian and wrap. `one_hot.py` of `umpc/mpc/masked` says what tables are.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import cached_property
from itertools import accumulate, pairwise
from operator import add, sub
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from umpc.native.choice import CHOSEN
from umpc.native.library import KINDS, LIBRARY, kinds

SCRATCH = -1
NOTHING = -1
"""No operand."""
TILE_EDGES = 1024
"""Edges that go through all steps together: TILE_EDGES in native/kernel.c."""
KEY_BYTES = 32


class Code(IntEnum):
    """The operations of steps, in the order of native/kernel.c."""

    XOR_BITS = 0
    AND_BITS = auto()
    NOT_BITS = auto()
    COPY = auto()
    TOP_BIT = auto()
    ONE_HOT = auto()
    LOOK_UP = auto()
    ADD_IF = auto()
    NEGATE_IF = auto()
    DOT = auto()
    FILL = auto()
    ADD = auto()
    ADD_TIMES = auto()
    TIMES = auto()
    SUBTRACT = auto()


def row_size(unit: int, edges: int) -> int:
    """Bytes of a row. Args: unit: bytes of a word; 0 for bits."""
    return unit * edges if unit else (edges + 7) // 8


def piece(low: int, size: int, word: int = 0) -> int:
    """The number of a step that reads bits [low, low + size). Args: word: of the one-hot row."""
    return low | size << 8 | word << 16


class Source(ABC):
    """Rows that a program reads, or an array that it writes."""

    @cached_property
    @abstractmethod
    def places(self) -> tuple[list[int], list[int]]:
        """Where each chunk's part begins, and its bytes. Raises: ValueError for gaps."""


@dataclass(frozen=True)
class KeyStreams(Source):
    """A source that is the AES-256-CTR key stream of a seed. Args: seeds: one for each chunk."""

    seeds: Sequence[bytes]

    def __repr__(self) -> str:
        return "KeyStreams(<redacted>)"

    @cached_property
    def places(self) -> tuple[list[int], list[int]]:
        return _places_of_bytes(self.seeds)


@dataclass(frozen=True)
class Parts(Source):
    """A source that each chunk has apart, contiguous.

    starts: for each chunk the bytes before its first row; empty where there are none.
    """

    parts: Sequence[bytes] | Sequence[NDArray[Any]]
    starts: Sequence[int] = ()

    def __repr__(self) -> str:
        return "Parts(<redacted>)"

    @cached_property
    def places(self) -> tuple[list[int], list[int]]:
        if not self.parts or isinstance(self.parts[0], bytes):
            addresses, sizes = _places_of_bytes(cast("Sequence[bytes]", self.parts))
        else:
            found = [_place(part) for part in self.parts if isinstance(part, np.ndarray)]
            addresses, sizes = [first for first, _ in found], [size for _, size in found]
        if self.starts:
            addresses = [*map(add, addresses, self.starts)]
            sizes = [*map(sub, sizes, self.starts)]
        return addresses, sizes


@dataclass(frozen=True)
class Joined(Source):
    """A source that is one array with the rows of all chunks, chunk by chunk.

    cuts: the bytes before each chunk, and those of all chunks.
    """

    array: NDArray[Any]
    cuts: Sequence[int]

    def __repr__(self) -> str:
        return "Joined(<redacted>)"

    @cached_property
    def places(self) -> tuple[list[int], list[int]]:
        first, total = _place(self.array)
        if self.cuts[-1] > total:
            raise ValueError(f"a source has {total} bytes, and {self.cuts[-1]} are due")
        sizes = [stop - start for start, stop in pairwise(self.cuts)]
        return [first + start for start in self.cuts[:-1]], sizes


_new_bytes = ctypes.pythonapi.PyBytes_FromStringAndSize
_new_bytes.argtypes, _new_bytes.restype = [ctypes.c_char_p, ctypes.c_ssize_t], ctypes.py_object


def bytes_to_fill(size: int) -> bytes:
    """Bytes of any content, which a program fills before anybody else has them.

    CPython makes such bytes for C code. So a frame of a megabyte is not copied under the lock.
    """
    made: bytes = _new_bytes(None, size)
    return made


def cuts_of(sizes: Iterable[int]) -> list[int]:
    """The cuts of `Joined`. Args: sizes: the bytes of each chunk."""
    return [0, *accumulate(sizes)]


def _places_of_bytes(parts: Sequence[bytes]) -> tuple[list[int], list[int]]:
    pointers = (ctypes.c_char_p * len(parts))(*parts)
    return memoryview(pointers).cast("B").cast("P").tolist(), [*map(len, parts)]


def _place(array: NDArray[Any]) -> tuple[int, int]:
    """Where an array begins, and its bytes. Raises: ValueError for an array with gaps."""
    flags, size = array.flags, array.nbytes
    if not flags.c_contiguous:
        raise ValueError(f"a source has strides {array.strides}; it must be contiguous")
    if flags.writeable and size:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data)), size  # the faster way
    return array.ctypes.data, size


class EdgeProgram:
    """A program in the making, and its run. Args: sums: how many it has."""

    def __init__(self, sums: int = 0):
        self.sums = sums
        self.scratch = 0
        self._sources: dict[str, tuple[int, int]] = {}
        """The rows of bits, and bytes an edge, of each source that is read or written, by name."""
        self._operands: dict[tuple[int, int, int], int] = {}
        self._steps: list[tuple[int, int, int, int, int]] = []

    @property
    def names(self) -> list[str]:
        """The sources that steps read or write, in the order of the kernel's arguments."""
        return [*self._sources]

    def row(self, source: str, before: int, unit: int = 0) -> int:
        """A row of a source.

        Args:
            before: rows of bits before it; for words, the bytes of each edge before it.
            unit: bytes of a word; 0 for bits.
        """
        rows, each = self._sources.get(source, (0, 0))
        if unit:
            each = max(each, before + unit)
        else:
            rows = max(rows, before + 1)
        self._sources[source] = rows, each
        return self._operand(self.names.index(source), before, unit)

    def new(self, unit: int = 0) -> int:
        """A row of the scratch, of any content. Rows that are made together follow each other."""
        place = self.scratch
        self.scratch += -(-row_size(unit, TILE_EDGES) // 64) * 64
        return self._operand(SCRATCH, place, unit)

    def _operand(self, source: int, before: int, unit: int) -> int:
        return self._operands.setdefault((source, before, unit), len(self._operands))

    def add(
        self, code: Code, to: int, one: int = NOTHING, other: int = NOTHING, number: int = 0
    ) -> int:
        """Add a step. Returns: its row."""
        self._steps.append((code, to, one, other, number))
        return to

    def run(
        self, counts: Sequence[int], sources: Mapping[str, Source], kind: str | None = None
    ) -> list[list[int]]:
        """Run the program over several chunks. Returns: each chunk's sums, modulo 2^64.

        Args:
            counts: edges of each chunk.
            sources: by name; those that no step reads or writes may be among them.
            kind: one of `kinds()`; default: `CHOSEN`.

        Raises: ValueError where a source is too short, or the kernel cannot run.
        """
        wanted = kind or CHOSEN
        if LIBRARY is None or wanted not in kinds():
            raise ValueError(f"the compiled kernel can run {kinds()} here, not {wanted}")
        steps, operands = self.compiled
        used = [sources[name] for name in self.names]
        addresses = self._addresses(counts, used)
        sums = (ctypes.c_uint64 * (self.sums * len(counts) + 1))()
        answer = LIBRARY.umpc_run(
            KINDS[wanted],
            steps,
            len(self._steps),
            operands,
            (ctypes.c_void_p * len(addresses))(*addresses),
            bytes([isinstance(source, KeyStreams) for source in used]),
            len(used),
            self.scratch,
            (ctypes.c_size_t * len(counts))(*counts),
            len(counts),
            sums,
            self.sums,
        )
        if answer:
            raise ValueError(f"the compiled kernel refused a program of {wanted}: {answer}")
        each = self.sums
        return [sums[chunk * each : (chunk + 1) * each] for chunk in range(len(counts))]

    @cached_property
    def compiled(self) -> tuple[bytes, bytes]:
        """Steps and operands as the kernel reads them. The program is complete."""
        words = [[word & (1 << 64) - 1 for word in step] for step in self._steps]
        steps = np.array(words, dtype=np.uint64)
        operands = np.array(list(self._operands), dtype=np.int64)
        return steps.tobytes(), operands.tobytes()

    def _addresses(self, counts: Sequence[int], sources: Sequence[Source]) -> list[int]:
        """Where each source of the first chunk begins, then of the next. Raises: ValueError."""
        columns = []
        pairs = [((count + 7) // 8, count) for count in counts]
        for source, (rows, each) in zip(sources, self._sources.values(), strict=True):
            addresses, sizes = source.places
            due = [max(rows * octets, each * count) for octets, count in pairs]
            if isinstance(source, KeyStreams):
                due = [KEY_BYTES] * len(counts)
            for size, least in zip(sizes, due, strict=True):
                if size < least:
                    raise ValueError(f"a source has {size} bytes, and {least} are due")
            columns.append(addresses)
        return [address for chunk in zip(*columns, strict=True) for address in chunk]
