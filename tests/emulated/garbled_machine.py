"""The garbled path and point keys as a program for one machine, and not as the library here."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.emulated.machines import HERE, OPTIONS, ROOT, Machine
from umpc.native import KINDS, garbled
from umpc.native.garbled import CircuitArrays, RowBlocks
from umpc.native.points import LEAF_CELLS, levels
from umpc.testing import lying

SOURCES = (HERE / "garbled_driver.c", ROOT / "native" / "kernel.c")
NONE = np.empty(0, dtype=np.uint8)


@dataclass
class GarbledProgram:
    """It has the functions of `umpc.native.garbled` that numpy's code calls. ran: calls so far."""

    runner: tuple[str, ...]
    file: Path
    ran: int = 0

    def in_place(self) -> AbstractContextManager[None]:
        """Let this machine compute what this process would compute by its own library."""

        def here(name: str) -> Callable[..., Any]:
            return lambda _, *given: getattr(self, name)(*given)

        names = ("stretch", "transpose_into", "make_rows", "read_rows", "garble", "evaluate")
        return lying("machine", **{name: here(name) for name in names})

    def generate_points(self, key, cells, places, roots, kind, alpha=None):
        """`umpc.native.points.generate` on this machine."""
        paired = alpha is not None
        corrections = np.empty((levels(cells), len(places), 2), dtype=np.uint64)
        leaves = np.empty((len(places), LEAF_CELLS << paired), dtype=np.uint64)
        arrays = key, places, roots, corrections, leaves
        numbers = paired, alpha or 0, levels(cells), len(places)
        self._fill(self._run("make_points", numbers, arrays, kind), corrections, leaves)
        return corrections, leaves

    def add_points(self, key, party, cells, corrections, leaves, numbers, roots, kind, row=None):
        """`umpc.native.points.add_up` on this machine."""
        paired = leaves.shape[1] > LEAF_CELLS
        table = np.zeros(cells << 2 * paired, dtype=np.uint64)
        arrays = key, corrections, leaves, numbers, roots, table
        counts = paired, party, levels(cells), cells, row or cells, len(numbers)
        self._fill(self._run("add_points", counts, arrays, kind), table)
        return table[: 2 * cells].reshape(cells, 2).T if paired else table

    def _run(
        self,
        name: str,
        numbers: Sequence[int],
        arrays: Sequence[np.ndarray | bytes],
        kind: str | None = None,
    ) -> bytes:
        self.ran += 1
        sent = b""
        for array in arrays:
            octets = array if isinstance(array, bytes) else array.tobytes()
            sent += len(octets).to_bytes(8, "little") + octets
        words = [name, KINDS[kind or garbled.CHOSEN], *map(int, numbers)]
        command = [*self.runner, str(self.file), *map(str, words)]
        return subprocess.run(command, input=sent, stdout=subprocess.PIPE, check=True).stdout

    def stretch(self, key, starts, lacks_first, number, width):
        digits, leaves, _ = starts.shape
        fold = leaves.bit_length() - 1
        rows = np.empty((digits, fold, width), dtype=np.uint8)
        u = np.empty((digits, width), dtype=np.uint8)
        numbers = digits, fold, lacks_first, number, width
        self._fill(self._run("stretch", numbers, (key, starts, rows, u)), rows, u)
        return rows, u

    def transpose_into(self, rows, blocks):
        made = self._run("transpose", (rows.shape[2], len(blocks)), (rows, blocks))
        self._fill(made, blocks)

    def make_rows(self, key, blocks, packed, own, masks):
        made = np.empty((len(own), blocks.rows // 4), dtype=np.uint8)
        self._rows(True, key, blocks, packed, own, masks, made)
        return made

    def read_rows(self, key, blocks, table, own):
        found = np.empty((2, len(own)), dtype=np.uint8)
        self._rows(False, key, blocks, table, own, NONE, found)
        return found

    def _rows(self, makes, key, blocks: RowBlocks, table, own, masks, to):
        numbers = makes, len(blocks.record), blocks.rows, blocks.first_edge, blocks.piece, len(own)
        places = blocks.keys, blocks.offsets, blocks.record, blocks.order, blocks.ends
        arrays = (key, *places, blocks.number, table, own, masks, to)
        self._fill(self._run("rows", numbers, arrays), to)

    def garble(self, key, circuit, delta, labels, first_edge, tables, elements, shares):
        self._circuit(True, key, circuit, delta, labels, first_edge, tables, elements, shares)

    def evaluate(self, key, circuit, labels, first_edge, tables, elements, shares):
        self._circuit(False, key, circuit, NONE, labels, first_edge, tables, elements, shares)

    def _circuit(self, garbles, key, circuit: CircuitArrays, delta, labels, first_edge, *made):
        lists = circuit.gates, circuit.wires, circuit.numbers, circuit.elements, circuit.terms
        counts = len(circuit.gates), len(circuit.wires), len(circuit.elements)
        sizes = *counts, circuit.inputs, circuit.places, circuit.ands
        numbers = garbles, labels.shape[1], first_edge, made[-1].itemsize == 8, *sizes
        answer = self._run("circuit", numbers, (key, *lists, labels, delta, *made))
        self._fill(answer, *(made if garbles else made[-1:]), start=0 if garbles else -1)

    @staticmethod
    def _fill(answer: bytes, *arrays: np.ndarray, start: int = 0) -> None:
        """Write the answer into the arrays; with start −1 only its end."""
        if start:
            answer = answer[len(answer) - sum(array.nbytes for array in arrays) :]
        for array in arrays:
            target = np.frombuffer(answer[: array.nbytes], array.dtype).reshape(array.shape)
            np.copyto(writable(array), target)
            answer = answer[array.nbytes :]


def writable(array: np.ndarray) -> np.ndarray:
    """A view of an array's memory that numpy may change, also where the array is a message's."""
    if array.flags.writeable or not array.size:
        return array
    kind = np.ctypeslib.as_ctypes_type(array.dtype) * array.size
    return np.frombuffer(kind.from_address(array.ctypes.data), array.dtype).reshape(array.shape)


def garbled_program(machine: Machine, folder: Path) -> GarbledProgram:
    """Compile the garbled path for a machine, without a shared library."""
    file = folder / "garbled_driver"
    words = [*machine.compiler, *OPTIONS, "-o", str(file), *map(str, SOURCES)]
    subprocess.run(words, check=True)
    return GarbledProgram(machine.runner, file)
