"""Pieces of comparisons of the owners' own numbers: bits that both owners look up, without gates.

In [x < y] one owner knows x and the other one knows y. Each cuts its number into pieces of at most
PIECE bits. For a piece the bits [x' < y'] and [x' = y'] need no gate: they are inputs of the
circuit, which `piece_tables.py` hands to both owners. Gates combine the pieces:

    less = less' ⊕ equal'·less''        equal = equal'·equal''        greater = 1 ⊕ less ⊕ equal

A comparison of w bits takes 2·(⌈w / PIECE⌉ − 1) ANDs where its carries take w, and the one of the
other direction takes none. Papers: Couteau 2018 (eprint 2016/544) and CrypTFlow2 (Rathee et al.
2020, eprint 2020/1002, section 3) cut comparisons in this way; their gates are GMW's.

A number is a field of the schema, which both records have: two's complement becomes 0 … 2^w − 1 by
adding 2^(w−1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from umpc.mpc.arrays import IntArray
from umpc.mpc.garbled.bit_sums import BitSum
from umpc.mpc.garbled.circuits import Circuit, CircuitBuilder, InputBit, WireLiteral

PIECES = 3
"""The record of an input bit that both owners look up."""
PIECE = 7
"""The most bits of a piece. A table has 2^bits rows of two bits, an AND gate 256 bits."""
LEAST_WIDTH = 3
"""Comparisons of fewer bits are made of gates, in one message instead of three."""
LESS, EQUAL = 0, 1
"""Bits of a row."""


@dataclass(frozen=True)
class NumberPiece:
    """Bits `low` … `low + size − 1` of a field, to which `offset` is added."""

    low: int
    size: int
    offset: int
    field: str

    def input(self, kind: int) -> InputBit:
        """The circuit's input that carries LESS or EQUAL of this piece."""
        return InputBit(PIECES, f"{self.low}.{self.size}.{self.offset}.{self.field}", kind)

    @classmethod
    def of(cls, bit: InputBit) -> NumberPiece:
        """The inverse of `input`."""
        low, size, offset, field = bit.field.split(".", 3)
        return cls(int(low), int(size), int(offset), field)

    @property
    def rows(self) -> int:
        """Rows of its table."""
        return 1 << self.size

    @property
    def bits(self) -> range:
        """The places of its bits in the field."""
        return range(self.low, self.low + self.size)

    def rows_of(self, column: IntArray) -> IntArray:
        """The bits of the piece of each number, as a number of a row: (n,) int64."""
        found: IntArray = column >> self.low & self.rows - 1
        return found

    @property
    def turned(self) -> int:
        """The bits of a row's number to turn, so that rows are in the order of the numbers.

        It is the sign of two's complement, in the piece that has it.
        """
        return self.offset >> self.low & self.rows - 1


@dataclass(frozen=True)
class LookedUp:
    """A piece of a circuit. wires: (kind, input wire) of the bits that the circuit needs."""

    piece: NumberPiece
    wires: tuple[tuple[int, int], ...]


@lru_cache(maxsize=64)
def pieces_of(circuit: Circuit) -> tuple[LookedUp, ...]:
    """The pieces of a circuit, in the order of its inputs."""
    found: dict[NumberPiece, list[tuple[int, int]]] = {}
    for wire in circuit.inputs_of(PIECES):
        bit = circuit.inputs[wire]
        found.setdefault(NumberPiece.of(bit), []).append((bit.bit, wire))
    return tuple(LookedUp(piece, tuple(wires)) for piece, wires in found.items())


def carried_bits(circuit: Circuit, record: int) -> tuple[InputBit, ...]:
    """The bits of a record that choose rows and are no wires of the circuit."""
    wires = {circuit.inputs[wire] for wire in circuit.inputs_of(record)}
    chosen = {
        InputBit(record, each.piece.field, place)
        for each in pieces_of(circuit)
        for place in each.piece.bits
    }
    return tuple(sorted(chosen - wires))


class Comparisons:
    """The comparisons of a circuit in the making that are made of pieces."""

    def __init__(self, gates: CircuitBuilder):
        self._gates = gates
        self._made: dict[tuple[str, int, int], tuple[WireLiteral, WireLiteral]] = {}

    def below_and_zero(self, number: BitSum) -> tuple[WireLiteral, WireLiteral] | None:
        """[number < 0] and [number = 0].

        None unless the number is a multiple of the difference of both records in one field.
        """
        found = self._field_of(number)
        if found is None:
            return None
        field, width, offset, is_turned = found
        key = field, width, offset
        if key not in self._made:
            self._made[key] = self._compared(*key)
        less, equal = self._made[key]
        if is_turned:
            less = self._gates.xor(less, equal) ^ 1
        return less, equal

    def _compared(self, field: str, width: int, offset: int) -> tuple[WireLiteral, WireLiteral]:
        """[x < y] and [x = y] for x of record 0 and y of record 1."""
        less, equal = 0, 1
        for low, size in cut(width):
            piece = NumberPiece(low, size, offset, field)
            # bits of the piece: inputs of the circuit, looked up
            below, same = (self._gates.input(piece.input(kind)) for kind in (LESS, EQUAL))
            # less ⊕ equal·below: highest piece first
            less = self._gates.xor(less, self._gates.conjunction(equal, below))
            # Π of the pieces' equalities
            equal = self._gates.conjunction(equal, same)
        return less, equal

    def _field_of(self, number: BitSum) -> tuple[str, int, int, bool] | None:
        """Field, width, offset, and whether record 1 counts positively."""
        places: tuple[dict[int, object], dict[int, object]] = ({}, {})
        fields = set()
        for wire, weight in number.terms.items():
            bit = self._gates.gates[wire]
            if not isinstance(bit, InputBit) or bit.record not in (0, 1):
                return None
            fields.add(bit.field)
            places[bit.record][bit.bit] = weight if bit.record == 0 else -weight
        width = len(places[0])
        if number.constant or len(fields) != 1 or width < LEAST_WIDTH or places[0] != places[1]:
            return None
        if 0 not in places[0]:
            return None
        (field,) = fields
        unit = number.terms[self._gates.input(InputBit(0, field, 0)) >> 1]
        weights = [places[0].get(place) for place in range(width)]
        ordinary = [unit * (1 << place) for place in range(width)]
        if weights[:-1] != ordinary[:-1] or weights[-1] not in (ordinary[-1], -ordinary[-1]):
            return None
        offset = 0 if weights[-1] == ordinary[-1] else 1 << width - 1
        return field, width, offset, unit < 0


def cut(width: int) -> Sequence[tuple[int, int]]:
    """(low, size) of the pieces of a number, the highest first, as equal as possible."""
    count = -(-width // PIECE)
    lows = [width * number // count for number in range(count + 1)]
    return [(low, high - low) for low, high in pairwise(lows)][::-1]


def rows_of_piece(piece: NumberPiece, kinds: Sequence[int], first_is_row: bool) -> np.ndarray:
    """The bits of a table by own value and row: (rows, rows) uint8, bit `kind` of each.

    Args: first_is_row: whether the row is record 0's value, and the own value record 1's.
    """
    # two's complement in the order of the numbers
    values = np.arange(piece.rows) ^ piece.turned
    own, row = values[:, None], values[None, :]
    # x of record 0, y of record 1
    x, y = (row, own) if first_is_row else (own, row)
    table = np.zeros((piece.rows, piece.rows), dtype=np.uint8)
    for kind in kinds:
        table |= (x < y if kind == LESS else x == y).astype(np.uint8) << kind
    return table
