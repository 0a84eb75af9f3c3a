"""The compiled garbled path gives numpy's bytes, on every instruction set of this machine.

Each test computes in numpy, and then again with every kind. Without a kernel there is no kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mpc.garbled.test_garbling import circuits
from tests.native.hook import HOOK
from tests.support.gates import HASH, offset
from tests.support.kernels import PAIRS, SCHEMA
from tests.support.mpc_studies import seed_of
from umpc.crypto.prg import FixedKeyHash, Stream
from umpc.crypto.ring import RINGS, Ring
from umpc.mpc.garbled.circuits import Circuit
from umpc.mpc.garbled.garbling import evaluate, garble
from umpc.mpc.garbled.kernel_to_circuit import circuit_of_all
from umpc.mpc.garbled.piece_tables import LANES, Places, make_tables, read_tables
from umpc.mpc.garbled.pieces import EQUAL, LESS, LookedUp, NumberPiece
from umpc.mpc.transfers.batch_columns import Columns, transpose_into
from umpc.mpc.transfers.leaf_streams import LeafStreams
from umpc.native import garbled, library
from umpc.ustat.polynomial import polynomial_of

TREE_HASH = FixedKeyHash(seed_of("streams"))
COUNTS = (1, 2, 63, 64, 65, 200)


def kinds_that_differ(work: Callable[[], Any]) -> list[str]:
    """The kinds whose result is not numpy's."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(garbled, "CHOSEN", None)
        expected = work()
        for kind in library.kinds():
            patch.setattr(garbled, "CHOSEN", kind)
            if work() != expected:
                found.append(kind)
    return found


def octets(label: str, *shape: int) -> np.ndarray:
    return Stream(seed_of(label)).octets(int(np.prod(shape))).reshape(shape)


def words(label: str, *shape: int) -> np.ndarray:
    return Stream(seed_of(label)).words(int(np.prod(shape))).reshape(shape).copy()


# --- transfers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lacks_first", [False, True])
@pytest.mark.parametrize("fold", [1, 2, 4, 8])
def test_leaves_of_every_digit_and_width(fold, lacks_first):
    leaves, tag = words(f"leaves {fold}", 128 // fold, 1 << fold, 2), words("tag", 2)

    def stretched() -> list[bytes]:
        streams = LeafStreams(leaves, tag, TREE_HASH, lacks_first)
        parts = [Columns.of(streams, fold, width) for width in (1, 15, 16, 17, 64, 65, 3, 200)]
        return [array.tobytes() for each in parts for array in (each.rows, each.u)]

    assert kinds_that_differ(stretched) == []


@pytest.mark.parametrize("fold", [1, 2, 4, 8])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 63, 64, 65, 511, 512, 513, 1500])
def test_rows_of_every_length_become_blocks(fold, count):
    width = (count + 7) // 8
    digits = 128 // fold
    rows, sent = octets("rows", digits, fold, width), octets("sent", digits, 1, width)
    masks = np.uint8(0) - (octets("masks", digits, fold, 1) & 1)

    def turned(*more: np.ndarray) -> bytes:
        blocks = np.full((count + 1, 2), 7, dtype=np.uint64)  # not a byte more than asked
        transpose_into(rows.copy(), blocks[:count], *more)
        return blocks.tobytes()

    assert kinds_that_differ(turned) == []
    assert kinds_that_differ(lambda: turned(sent, masks)) == []


# --- tables of pieces -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", range(2, 8))
def test_tables_of_every_size_and_any_number_of_edges_of_a_record(size):
    rng = np.random.default_rng(size)
    many = np.full(2 * LANES + 3, 9)
    for index in (np.zeros(1, dtype=np.int64), np.r_[rng.integers(0, 9, 150), many, 20]):
        count, places = len(index), Places.of(index)
        pieces = [LookedUp(NumberPiece(0, size, 0, name), ((LESS, 0), (EQUAL, 1))) for name in "xy"]
        keys = [words(f"keys {name}", len(places.records), 2) for name in "xy"]
        values = [rng.integers(0, 1 << size, count) for _ in pieces]
        masks, delta = octets("masks", 4, count) & 1, offset("rows")

        def made() -> bytes:
            given = pieces, keys, values, masks, places, delta, TREE_HASH  # noqa: B023
            return make_tables(*given, 77, is_first=True)

        payload = made()

        def read() -> bytes:
            given = payload, pieces, keys, values, places, TREE_HASH, 77  # noqa: B023
            return read_tables(*given).tobytes()

        assert kinds_that_differ(made) == [] and kinds_that_differ(read) == []


# --- gates ----------------------------------------------------------------------------------------


def both_sides(circuit: Circuit, ring: Ring, count: int, first_edge: int = 5) -> list[bytes]:
    """The garbler's message and share, and the evaluator's share, of random labels."""
    labels, active = (words(name, len(circuit.inputs), count, 2) for name in ("zeros", "active"))
    message, kept = garble(circuit, ring, offset("gates"), labels, first_edge, HASH)
    found = evaluate(circuit, ring, message, active, first_edge, HASH)
    return [message.encode(), kept.tobytes(), found.tobytes()]


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("name", sorted(PAIRS))
def test_circuits_of_all_pair_kernels(name, in_pieces, ring):
    unit = polynomial_of(PAIRS[name], SCHEMA).unit
    circuit = circuit_of_all([PAIRS[name]], SCHEMA, [unit], in_pieces=in_pieces)
    assert kinds_that_differ(lambda: both_sides(circuit, ring, 13)) == []


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("first_edge", [0, (1 << 63) - 1])
def test_any_number_of_edges(count, first_edge):
    unit = polynomial_of(PAIRS["covariance"], SCHEMA).unit
    circuit = circuit_of_all([PAIRS["covariance"]], SCHEMA, [unit])
    for ring in RINGS:
        assert kinds_that_differ(lambda: both_sides(circuit, ring, count, first_edge)) == []  # noqa: B023


@settings(max_examples=40)
@given(circuit=circuits(), count=st.integers(1, 70), ring=st.sampled_from(RINGS))
def test_random_circuits(circuit, count, ring):
    assert kinds_that_differ(lambda: both_sides(circuit, ring, count)) == []


def test_a_wrong_bit_of_a_kind_would_be_seen(monkeypatch):
    real = garbled.garble

    def wrong(*arguments):
        real(*arguments)
        arguments[-1][0, -1] ^= 1

    monkeypatch.setattr(garbled, "garble", wrong)
    circuit = circuit_of_all([PAIRS["auc"]], SCHEMA, [polynomial_of(PAIRS["auc"], SCHEMA).unit])
    differ = kinds_that_differ(lambda: both_sides(circuit, RINGS[0], 3))
    assert differ == list(library.kinds())


# --- the border to C ------------------------------------------------------------------------------


def test_arrays_of_another_layout_are_refused():
    leaves = words("leaves", 32, 16, 2)
    with pytest.raises(ValueError, match="starts is"):
        garbled.stretch(bytes(16), leaves[:, ::2], False, 0, 5)
    with pytest.raises(ValueError, match="bits, got 0"):
        garbled.stretch(bytes(16), leaves[:, :1].copy(), False, 0, 5)
    with pytest.raises(ValueError, match="16 bytes"):
        garbled.stretch(bytes(15), leaves, False, 0, 5)
    rows = octets("rows", 32, 4, 2)
    with pytest.raises(ValueError, match="make no 17 blocks"):
        garbled.transpose_into(rows, np.empty((17, 2), dtype=np.uint64))
    with pytest.raises(ValueError, match="blocks is"):
        garbled.transpose_into(rows, np.empty((16, 2), dtype=np.int64))
    with pytest.raises(ValueError, match="masks is"):
        masks = np.zeros((32, 3), dtype=np.uint8)
        garbled.transpose_into(rows, np.empty((16, 2), dtype=np.uint64), rows[:, 0].copy(), masks)


def test_a_kind_that_this_processor_lacks_is_refused(monkeypatch):
    monkeypatch.setattr(garbled, "CHOSEN", "a quill")
    with pytest.raises(ValueError, match="not a quill"):
        garbled.stretch(bytes(16), words("leaves", 32, 16, 2), False, 0, 5)


def test_no_repr_shows_a_key():
    places = Places.of(np.arange(3))
    keys = words("keys", 3, 2)
    arrays = places.record, places.order, places.ends, places.number
    shown = repr(garbled.RowBlocks(keys, keys, *arrays, 0, 0, 8))
    assert "redacted" in shown and str(int(keys[0, 0])) not in shown


def test_codes_of_circuits_are_those_of_the_library():
    text = (HOOK.SOURCE.parent / "garbled_types.h").read_text()
    assert "enum { UNIT, PRODUCT, SWITCH };" in text
    assert f"#define MOST_FOLD {garbled.MOST_FOLD}\n" in text
    assert f"#define MOST_ROWS {garbled.MOST_ROWS}\n" in text
    assert f"#define LANES_OF_BLOCK {LANES} " in text
