"""Work of the garbled path whose bytes must not depend on what computes it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.support.gates import HASH, offset
from tests.support.kernels import PAIRS, SCHEMA
from tests.support.mpc_studies import seed_of
from umpc.crypto.prg import FixedKeyHash, Stream
from umpc.crypto.ring import RINGS, Ring
from umpc.mpc.arrays import IndexArray
from umpc.mpc.garbled.circuits import Circuit
from umpc.mpc.garbled.garbling import evaluate, garble
from umpc.mpc.garbled.kernel_to_circuit import circuit_of_all
from umpc.mpc.garbled.piece_tables import LANES, Places, make_tables, read_tables
from umpc.mpc.garbled.pieces import EQUAL, LESS, LookedUp, NumberPiece
from umpc.mpc.transfers import batch_columns
from umpc.mpc.transfers.batch_columns import LeafStreams, transpose_into
from umpc.mpc.transfers.message_shapes import row_bytes
from umpc.ustat.polynomial import polynomial_of

TREE_HASH = FixedKeyHash(seed_of("streams"))
FOLDS = (1, 2, 4, 8)
WIDTHS = (1, 15, 16, 17, 64, 65, 3, 200)
LENGTHS = (0, 1, 7, 8, 9, 63, 64, 65, 511, 512, 513, 1500)


def octets(label: str, *shape: int) -> np.ndarray:
    return Stream(seed_of(label)).octets(int(np.prod(shape))).reshape(shape).copy()


def words(label: str, *shape: int) -> np.ndarray:
    return Stream(seed_of(label)).words(int(np.prod(shape))).reshape(shape).copy()


def stretched(fold: int, lacks_first: bool) -> list[bytes]:
    """Columns of several widths, one after the other, of one channel."""
    leaves, tag = words(f"leaves {fold}", 128 // fold, 1 << fold, 2), words("tag", 2)
    streams = LeafStreams(leaves, tag, TREE_HASH, lacks_first)
    parts = [batch_columns.stretched(streams, fold, width) for width in WIDTHS]
    return [array.tobytes() for each in parts for array in each]


def turned(fold: int, count: int) -> bytes:
    """Rows as blocks, and the block after the last one, which stays."""
    rows = octets("rows", 128 // fold, fold, row_bytes(count))
    blocks = np.full((count + 1, 2), 7, dtype=np.uint64)
    transpose_into(rows, blocks[:count])
    return blocks.tobytes()


def indexes(size: int) -> list[IndexArray]:
    """The evaluator's records of some edges: one edge, and records of few and of many edges."""
    some = np.random.default_rng(size).integers(0, 9, 150)
    return [np.zeros(1, dtype=np.int64), np.r_[some, np.full(2 * LANES + 3, 9), 20]]


def tables(size: int, index: IndexArray) -> list[bytes]:
    """The garbler's tables of two pieces, and the evaluator's bits."""
    rng = np.random.default_rng(size)
    count, places = len(index), Places.of(index)
    pieces = [LookedUp(NumberPiece(0, size, 0, name), ((LESS, 0), (EQUAL, 1))) for name in "xy"]
    keys = [words(f"keys {name}", len(places.records), 2) for name in "xy"]
    values = [rng.integers(0, 1 << size, count) for _ in pieces]
    masks = octets("masks", 4, count) & 1
    common = places, TREE_HASH, 77
    payload = make_tables(
        pieces, keys, values, masks, places, offset("rows"), *common[1:], is_first=True
    )
    return [payload, read_tables(payload, pieces, keys, values, *common).tobytes()]


def circuit(name: str, *, in_pieces: bool = False) -> Circuit:
    unit = polynomial_of(PAIRS[name], SCHEMA).unit
    return circuit_of_all([PAIRS[name]], SCHEMA, [unit], in_pieces=in_pieces)


def both_sides(of: Circuit, ring: Ring, count: int, first_edge: int = 5) -> list[bytes]:
    """The garbler's message and share, and the evaluator's share, of random labels."""
    labels, active = (words(name, len(of.inputs), count, 2) for name in ("zeros", "active"))
    message, kept = garble(of, ring, offset("gates"), labels, first_edge, HASH)
    found = evaluate(of, ring, message, active, first_edge, HASH)
    return [message.encode(), kept.tobytes(), found.tobytes()]


def every_case(lengths: Sequence[int] = (1, 65, 513)) -> list[object]:
    """A few cases of all functions."""
    found: list[object] = [stretched(fold, lacks) for fold in FOLDS for lacks in (False, True)]
    found += [turned(4, each) for each in lengths]
    found += [tables(size, index) for size in (2, 3, 7) for index in indexes(size)]
    for name in ("kendall_tau", "covariance", "select_by_tie"):
        found += [both_sides(circuit(name), ring, count) for ring in RINGS for count in (3, 67)]
    return found
