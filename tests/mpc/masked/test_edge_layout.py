"""Edges of several chunks together, and each chunk's bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.studies import generator
from umpc.crypto.ring import pack
from umpc.errors import EncodingError
from umpc.mpc.masked.edge_layout import EdgeLayout

some_counts = st.lists(st.integers(1, 20), min_size=1, max_size=6)


def split(values: np.ndarray, counts: list[int]) -> list[np.ndarray]:
    return np.split(values, np.cumsum(counts)[:-1], axis=1)


@given(some_counts, st.integers(1, 5))
def test_each_chunk_has_the_bytes_of_its_own_rows(counts, rows):
    layout = EdgeLayout(counts)
    items = generator("items").integers(0, 1 << 63, (rows, layout.total, 2), dtype=np.uint64)
    parts = layout.cut(items)
    assert parts == [part.astype("<u8").tobytes() for part in split(items, counts)]
    assert np.array_equal(layout.join(parts, rows, "u8", (2,)), items)


@given(some_counts, st.integers(0, 5))
def test_each_chunk_has_its_own_packed_bits(counts, rows):
    layout = EdgeLayout(counts)
    bits = generator("bits").integers(0, 2, (rows, layout.total), dtype=np.uint8)
    parts = layout.cut_bits(bits)
    assert parts == [pack(part.reshape(-1), 1) for part in split(bits, counts)]
    assert np.array_equal(layout.join_bits(parts, rows), bits)


@given(some_counts, st.integers(1, 64))
def test_each_chunk_has_its_own_packed_words(counts, width):
    layout = EdgeLayout(counts)
    words = generator("words").integers(
        0, 1 << width, layout.total, dtype=np.uint64, endpoint=False
    )
    parts = layout.cut_words(words, width)
    assert parts == [pack(part[0], width) for part in split(words[None], counts)]
    assert np.array_equal(layout.join_words(parts, width), words)


@pytest.mark.parametrize("counts", [[3], [3, 8], [8, 3]])
def test_padding_of_a_message_is_zero_and_that_of_a_key_stream_is_anything(counts):
    layout = EdgeLayout(counts)
    parts = layout.cut_bits(np.ones((1, layout.total), dtype=np.uint8))
    parts[counts.index(3)] = b"\xff"
    assert np.count_nonzero(layout.join_bits(parts, 1, padded=False)) == layout.total
    with pytest.raises(EncodingError, match="padding"):
        layout.join_bits(parts, 1)


@given(some_counts, st.integers(0, 5))
def test_packed_rows_are_the_same_bytes_and_come_back(counts, rows):
    """Also where the edges of a single chunk fill bytes, and nothing is unpacked."""
    for each in (counts, [8 * counts[0]]):
        layout = EdgeLayout(each)
        bits = generator("packed").integers(0, 2, (rows, layout.total), dtype=np.uint8)
        packed = np.packbits(bits, axis=1, bitorder="little")
        parts = layout.cut_packed([*packed])
        assert parts == layout.cut_bits(bits)
        assert np.array_equal(layout.join_packed(parts, rows), packed)


@pytest.mark.parametrize("counts", [[3], [3, 8]])
def test_the_padding_of_packed_rows_is_looked_at(counts):
    layout = EdgeLayout(counts)
    parts = layout.cut_packed([np.packbits(np.ones(layout.total, dtype=np.uint8))])
    parts[0] = b"\xff"
    assert layout.join_packed(parts, 1, padded=False)[0, 0] & 7 == 7
    with pytest.raises(EncodingError, match="padding"):
        layout.join_packed(parts, 1)
