"""Rows of tables as machine words say the same as their bits one by one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.studies import generator
from umpc.mpc.masked import dcf
from umpc.mpc.masked.dcf import (
    above_and_at,
    folded_parity,
    moved,
    parity,
    piece_of,
    row_type,
    row_words,
)
from umpc.mpc.masked.plan_items import Linear, LookupTable

SIZES = range(1, 10)
LOW = 3


def table(size: int) -> LookupTable:
    return LookupTable(Linear(((0, 1),)), LOW + size + 1, LOW, size)


def bits_of(rows: np.ndarray) -> np.ndarray:
    """(n, places) of a table's rows."""
    octets = np.ascontiguousarray(rows.T).view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")


@pytest.mark.parametrize("size", SIZES)
def test_a_row_has_a_one_at_the_place_of_the_masks_piece_only(size):
    masks = np.arange(1 << (size + LOW + 1), dtype=np.uint64)
    rows = dcf.one_hot(table(size), masks, len(masks))
    assert rows.shape == (row_words(table(size)), len(masks)) and rows.dtype == row_type(
        table(size)
    )
    bits = bits_of(rows)
    assert bits.shape[1] == table(size).bits and (bits.sum(axis=1) == 1).all()
    assert np.array_equal(bits.argmax(axis=1), piece_of(table(size), masks).astype(np.int64))


@pytest.mark.parametrize("size", SIZES)
def test_what_is_read_at_every_place_of_random_rows(size):
    """The bit there, and the parity of all bits above, padding included."""
    places = np.arange(1 << size, dtype=np.uint64)
    words = generator(f"rows {size}").integers(0, 2**63, (row_words(table(size)), len(places)))
    rows = words.astype(np.uint64).astype(row_type(table(size)))
    before = rows.copy()
    above, at = above_and_at(rows, places)
    bits = bits_of(rows)
    assert np.array_equal(rows, before)
    assert np.array_equal(at, [row[place] for place, row in enumerate(bits)])
    assert np.array_equal(above, [row[place + 1 :].sum() & 1 for place, row in enumerate(bits)])


@pytest.mark.parametrize("size", [3, 4, 5, 6])
def test_places_move_by_an_exclusive_or(size):
    masked = np.arange(1 << size, dtype=np.uint64)
    words = generator(f"moved {size}").integers(0, 2**63, (1, len(masked)))
    rows = words.astype(np.uint64).astype(row_type(table(size)))
    bits, found = bits_of(rows), bits_of(moved(rows, size, masked))
    for number in range(len(masked)):
        expected = [bits[number, place ^ number] for place in range(1 << size)]
        assert np.array_equal(found[number], expected)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_parity_is_the_same_with_and_without_numpys_count(kind):
    words = generator("parity").integers(0, 2**63, 500).astype(kind)
    expected = [int(word).bit_count() & 1 for word in words]
    assert np.array_equal(parity(words), expected)
    assert np.array_equal(folded_parity(words), expected)
