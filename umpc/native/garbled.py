"""The garbled path compiled: streams of transfers, tables of pieces, gates and output elements.

Every function gives the bytes of numpy, which stays the reference:
`mpc/transfers/batch_columns.py`, `mpc/garbled/piece_tables.py` and `gates.py`. A call holds no lock
of Python. Callers take it where `CHOSEN` names a kind. Arrays have the layout that is named, or
ValueError is raised. Their content is not looked at: places are those of the same chunk or circuit.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np

from umpc.native import CHOSEN, call, check_array, checked_key

__all__ = ["CHOSEN", "CircuitArrays", "RowBlocks", "evaluate", "garble", "make_rows", "read_rows"]
__all__ += ["stretch", "transpose_into"]

BLOCK_BITS = 128
MOST_FOLD = 8
MOST_ROWS = 256
"""The numbers of native/garbled_types.h."""

_size, _number, _pointer = ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p


class _Places(ctypes.Structure):
    """row_places of native/garbled_types.h."""

    _fields_ = [
        *((name, _pointer) for name in ("keys", "offsets", "record", "order", "ends", "number")),
        ("blocks", _size),
        ("rows", ctypes.c_int),
        ("first_edge", _number),
        ("piece", _number),
    ]


class _Circuit(ctypes.Structure):
    """circuit of native/garbled_types.h."""

    _fields_ = [
        *((name, _pointer) for name in ("gates", "wires", "numbers", "elements", "terms")),
        *((f"{name}_count", _size) for name in ("gates", "wires", "elements")),
        *((name, _size) for name in ("inputs", "places", "ands")),
    ]


class _Edges(ctypes.Structure):
    """edges of native/garbled_types.h."""

    _fields_ = [
        ("count", _size),
        ("first_edge", _number),
        *((name, _pointer) for name in ("labels", "delta", "tables", "elements", "shares")),
        ("wide", ctypes.c_int),
    ]


def stretch(
    key: bytes, starts: np.ndarray, lacks_first: bool, number: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """The next bytes of all leaves' streams, combined: v of each column, and u of each digit.

    Args:
        key: 16 bytes, of the streams' AES.
        starts: (digits, 2^fold, 2) uint64, π(s) ⊕ tag of each leaf.
        lacks_first: whether leaf 0 of each digit is missing; it then counts as zeros.
        number: of the first block of these streams.

    Returns: (digits, fold, width) and (digits, width) uint8.
    """
    fold = starts.shape[1].bit_length() - 1
    check_array("starts", starts, np.uint64, (len(starts), 1 << fold, 2))
    if not 1 <= fold <= MOST_FOLD:
        raise ValueError(f"a digit has 1 to {MOST_FOLD} bits, got {fold}")
    rows = np.empty((len(starts), fold, width), dtype=np.uint8)
    u = np.empty((len(starts), width), dtype=np.uint8)
    given = checked_key(key), _at(starts), len(starts), fold, lacks_first, number, width
    call("umpc_stretch", CHOSEN, *given, _at(rows), _at(u))
    return rows, u


def transpose_into(rows: np.ndarray, blocks: np.ndarray) -> None:
    """The first n bits of 128 rows as blocks: (n, 2) uint64.

    Args: rows: (digits, fold, width) uint8, of packed bits.
    """
    digits, fold, width = rows.shape
    check_array("rows", rows, np.uint8, (digits, fold, width))
    check_array("blocks", blocks, np.uint64, (len(blocks), 2))
    if digits * fold != BLOCK_BITS or 8 * width < len(blocks):
        raise ValueError(f"rows of shape {rows.shape} make no {len(blocks)} blocks")
    call("umpc_blocks", CHOSEN, _at(rows), width, len(blocks), _at(blocks))


@dataclass(frozen=True)
class RowBlocks:
    """Pads of one piece's rows, as `piece_tables.Places` and its functions have them.

    keys: (records, 2) uint64. offsets: (rows, 2) uint64. record, order, ends: int64.
    number: (blocks,) uint64. first_edge, piece: of the tweaks.
    """

    keys: np.ndarray
    offsets: np.ndarray
    record: np.ndarray
    order: np.ndarray
    ends: np.ndarray
    number: np.ndarray
    first_edge: int
    piece: int
    rows: int

    def __repr__(self) -> str:
        return f"RowBlocks({len(self.record)} blocks, {self.rows} rows, <redacted>)"

    def _structure(self) -> _Places:
        """For the library. Raises: ValueError."""
        blocks = len(self.record)
        check_array("keys", self.keys, np.uint64, (len(self.keys), 2))
        check_array("offsets", self.offsets, np.uint64, (len(self.offsets), 2))
        check_array("record", self.record, np.int64, (blocks,))
        check_array("order", self.order, np.int64, (len(self.order),))
        check_array("ends", self.ends, np.int64, (blocks + 1,))
        check_array("number", self.number, np.uint64, (blocks,))
        if self.rows % 4 or not 4 <= self.rows <= MOST_ROWS:
            raise ValueError(f"a table has up to {MOST_ROWS} rows in fours, got {self.rows}")
        arrays = self.keys, self.offsets, self.record, self.order, self.ends, self.number
        numbers = blocks, self.rows, self.first_edge, self.piece
        return _Places(*map(_at, arrays), *numbers)


def make_rows(
    key: bytes, blocks: RowBlocks, packed: np.ndarray, own: np.ndarray, masks: np.ndarray
) -> np.ndarray:
    """The garbler's rows of one piece, masked: (n, rows / 4) uint8, in the blocks' order.

    Args:
        packed: (rows, rows / 4) uint8, the table by own value, four rows to a byte.
        own: (n,) integers, the garbler's own rows. masks: (n,) uint8, r in all four rows of a byte.
    """
    count, octets = len(own), blocks.rows // 4
    check_array("offsets", blocks.offsets, np.uint64, (blocks.rows, 2))
    check_array("packed", packed, np.uint8, (blocks.rows, octets))
    check_array("masks", masks, np.uint8, (count,))
    made = np.empty((count, octets), dtype=np.uint8)
    _rows(True, key, blocks, packed, own, _at(masks), made)
    return made


def read_rows(key: bytes, blocks: RowBlocks, table: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The evaluator's bits of one piece: (2, n) uint8.

    Args: table: (n, rows / 4) uint8, as received. own: (n,) integers, the evaluator's own rows.
    """
    check_array("table", table, np.uint8, (len(own), blocks.rows // 4))
    found = np.empty((2, len(own)), dtype=np.uint8)
    _rows(False, key, blocks, table, own, None, found)
    return found


def _rows(
    makes: bool,
    key: bytes,
    blocks: RowBlocks,
    table: np.ndarray,
    own: np.ndarray,
    masks: int | None,
    to: np.ndarray,
) -> None:
    own = np.ascontiguousarray(own, dtype=np.int64)
    check_array("own", own, np.int64, (len(blocks.order),))
    places = ctypes.byref(blocks._structure())
    given = makes, checked_key(key), places, _at(table), _at(own), masks, len(own)
    call("umpc_rows", CHOSEN, *given, _at(to))


@dataclass(frozen=True)
class CircuitArrays:
    """A circuit for the library; `umpc/mpc/garbled/garbling.py` makes it.

    gates: (gates, 5), wires: (wires, 3), numbers: (elements,), elements: (elements, 5), all int64.
    terms: (terms, 3) uint64. places: labels kept at a time.
    """

    gates: np.ndarray
    wires: np.ndarray
    numbers: np.ndarray
    elements: np.ndarray
    terms: np.ndarray
    inputs: int
    places: int
    ands: int
    sums: int

    def _structure(self) -> _Circuit:
        arrays = self.gates, self.wires, self.numbers, self.elements, self.terms
        counts = len(self.gates), len(self.wires), len(self.elements)
        return _Circuit(*map(_at, arrays), *counts, self.inputs, self.places, self.ands)


def garble(
    key: bytes,
    circuit: CircuitArrays,
    delta: np.ndarray,
    labels: np.ndarray,
    first_edge: int,
    tables: np.ndarray,
    elements: np.ndarray,
    shares: np.ndarray,
) -> None:
    """Fill tables and elements, and add to the garbler's shares.

    Args:
        delta: (2,) uint64. labels: (inputs, n, 2) uint64.
        tables: (ANDs, 2, n, 2) uint64. elements: (elements, n) of 32 or 64 bits.
        shares: (sums, n), as elements.
    """
    check_array("delta", delta, np.uint64, (2,))
    _run(True, key, circuit, _at(delta), labels, first_edge, tables, elements, shares)


def evaluate(
    key: bytes,
    circuit: CircuitArrays,
    labels: np.ndarray,
    first_edge: int,
    tables: np.ndarray,
    elements: np.ndarray,
    shares: np.ndarray,
) -> None:
    """Read tables and elements, and add to the evaluator's shares. Args: as of `garble`."""
    _run(False, key, circuit, None, labels, first_edge, tables, elements, shares)


def _run(
    garbles: bool,
    key: bytes,
    circuit: CircuitArrays,
    delta: int | None,
    labels: np.ndarray,
    first_edge: int,
    tables: np.ndarray,
    elements: np.ndarray,
    shares: np.ndarray,
) -> None:
    count, word = labels.shape[1], shares.dtype.type
    if word not in (np.uint32, np.uint64):
        raise ValueError(f"ring elements are uint32 or uint64, got {shares.dtype}")
    check_array("labels", labels, np.uint64, (circuit.inputs, count, 2))
    check_array("tables", tables, np.uint64, (circuit.ands, 2, count, 2))
    check_array("elements", elements, word, (len(circuit.elements), count))
    check_array("shares", shares, word, (circuit.sums, count))
    addresses = _at(labels), delta, *map(_at, (tables, elements, shares))
    edges = _Edges(count, first_edge, *addresses, shares.itemsize == 8)
    structures = ctypes.byref(circuit._structure()), ctypes.byref(edges)
    call("umpc_circuit", CHOSEN, garbles, checked_key(key), *structures)


def _at(array: np.ndarray) -> int:
    """Where an array begins. It lives as long as the caller holds it."""
    address: int = array.ctypes.data
    return address
