"""The compiled garbled path gives numpy's bytes, on every instruction set of this machine.

Each test computes in numpy, and then again with every kind. Without a kernel there is no kind.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mpc.garbled.test_garbling import circuits
from tests.native.garbled_cases import (
    FOLDS,
    LENGTHS,
    both_sides,
    circuit,
    indexes,
    octets,
    stretched,
    tables,
    turned,
    words,
)
from tests.native.hook import HOOK
from tests.support.kernels import PAIRS
from umpc import native as library
from umpc.crypto.ring import RINGS
from umpc.mpc.garbled.piece_tables import LANES, Places
from umpc.native import garbled
from umpc.testing import limited, lying


def kinds_that_differ(work: Callable[[], Any], path: ModuleType = garbled) -> list[str]:
    """The kinds whose result is not numpy's. path: the module of `umpc.native` that computes."""
    found = []
    with limited(path, CHOSEN=None):
        expected = work()
    for kind in library.kinds():
        with limited(path, CHOSEN=kind):
            if work() != expected:
                found.append(kind)
    return found


@pytest.mark.parametrize("lacks_first", [False, True])
@pytest.mark.parametrize("fold", FOLDS)
def test_leaves_of_every_fold_and_width(fold, lacks_first):
    assert kinds_that_differ(lambda: stretched(fold, lacks_first)) == []


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("count", LENGTHS)
def test_rows_of_every_length_become_blocks_and_not_a_byte_more(fold, count):
    assert kinds_that_differ(lambda: turned(fold, count)) == []


@pytest.mark.parametrize("size", range(2, 8))
def test_tables_of_every_size_and_any_number_of_edges_of_a_record(size):
    for index in indexes(size):
        assert kinds_that_differ(lambda: tables(size, index)) == []  # noqa: B023


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("name", sorted(PAIRS))
def test_circuits_of_all_pair_kernels(name, in_pieces, ring):
    of = circuit(name, in_pieces=in_pieces)
    assert kinds_that_differ(lambda: both_sides(of, ring, 13)) == []


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize("first_edge", [0, (1 << 63) - 1])
def test_any_number_of_edges(count, first_edge):
    for ring in RINGS:
        of = circuit("covariance")
        assert kinds_that_differ(lambda: both_sides(of, ring, count, first_edge)) == []  # noqa: B023


@settings(max_examples=40)
@given(of=circuits(), count=st.integers(1, 70), ring=st.sampled_from(RINGS))
def test_random_circuits(of, count, ring):
    assert kinds_that_differ(lambda: both_sides(of, ring, count)) == []


def test_a_wrong_bit_of_a_kind_would_be_seen():
    def wrong(honest, *arguments):
        honest(*arguments)
        arguments[-1][0, -1] ^= 1

    with lying("machine", garble=wrong):
        differ = kinds_that_differ(lambda: both_sides(circuit("auc"), RINGS[0], 3))
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


def row_blocks(rows: int = 8) -> garbled.RowBlocks:
    places = Places.of(np.arange(3))
    arrays = places.record, places.order, places.ends, places.number
    return garbled.RowBlocks(words("keys", 3, 2), words("offsets", rows, 2), *arrays, 0, 0, rows)


def test_tables_and_labels_of_another_layout_are_refused():
    own, masks = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.uint8)
    with pytest.raises(ValueError, match="packed is"):
        garbled.make_rows(bytes(16), row_blocks(), octets("table", 8, 3), own, masks)
    with pytest.raises(ValueError, match="own is"):
        garbled.make_rows(bytes(16), row_blocks(), octets("table", 8, 2), own[:2], masks[:2])
    with pytest.raises(ValueError, match="rows in fours, got 6"):
        garbled.read_rows(bytes(16), row_blocks(6), octets("table", 3, 1), own)
    of = garbled.CircuitArrays(*([np.empty((0, 5), dtype=np.int64)] * 5), 2, 2, 0, 1)
    shares = np.zeros((1, 3), dtype=np.uint32)
    nothing = np.empty((0, 2, 3, 2), dtype=np.uint64), np.empty((0, 3), dtype=np.uint32)
    with pytest.raises(ValueError, match="labels is"):
        garbled.evaluate(bytes(16), of, words("labels", 3, 3, 2), 0, *nothing, shares)
    with pytest.raises(ValueError, match="uint32 or uint64"):
        garbled.evaluate(bytes(16), of, words("labels", 2, 3, 2), 0, *nothing, shares.view("f4"))


def test_a_kind_that_this_processor_lacks_is_refused(limit):
    limit(garbled, CHOSEN="a quill")
    with pytest.raises(ValueError, match="not a quill"):
        garbled.stretch(bytes(16), words("leaves", 32, 16, 2), False, 0, 5)


def test_no_repr_shows_a_key():
    blocks = row_blocks()
    assert "redacted" in repr(blocks) and str(int(blocks.keys[0, 0])) not in repr(blocks)


def test_codes_of_circuits_are_those_of_the_library():
    text = (HOOK.SOURCE.parent / "garbled_types.h").read_text()
    assert "enum { UNIT, PRODUCT, SWITCH };" in text
    assert f"#define MOST_FOLD {garbled.MOST_FOLD}\n" in text
    assert f"#define MOST_ROWS {garbled.MOST_ROWS}\n" in text
    assert f"#define LANES_OF_BLOCK {LANES} " in text
