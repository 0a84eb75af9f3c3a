"""umpc_papers.ghazi_shuffle.messages and inbox: rows in batches are what they are as a whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umpc.crypto.ring import pack, packed_size
from umpc.errors import EncodingError
from umpc.study.messages import Frame
from umpc_papers.ghazi_shuffle import inbox as inboxes
from umpc_papers.ghazi_shuffle import messages as module
from umpc_papers.ghazi_shuffle.inbox import HeapInbox, numbers_of_frame, pieces
from umpc_papers.ghazi_shuffle.messages import batches, check_packed, pack_rows, unpack_rows


@pytest.fixture(autouse=True)
def small(limit):
    """Let a batch have 16 numbers, and a frame 64 bytes."""
    limit(module, AT_ONCE=16)
    limit(inboxes, MAX_PAYLOAD=64)


def numbers(rows: int, columns: int, width: int) -> np.ndarray:
    rng = np.random.default_rng(rows * 100 + columns)
    return rng.integers(0, 1 << width, (rows, columns), dtype=np.uint64)


SHAPES = {
    "rows": st.integers(1, 6),
    "columns": st.integers(1, 70),
    "width": st.integers(1, 63),
}


@settings(deadline=None)
@given(**SHAPES)
def test_rows_are_packed_and_unpacked_as_one(rows, columns, width):
    heap = numbers(rows, columns, width)
    packed = pack(heap.reshape(-1), width)
    assert pack_rows(heap, width) == packed
    assert np.array_equal(np.stack([*unpack_rows(packed, rows, columns, width)]), heap)


@settings(deadline=None)
@given(size=st.integers(1, 40), **SHAPES)
def test_batches_leave_nothing_out(size, rows, columns, width):
    heap = numbers(rows, columns, width)
    found = list(batches(heap, size))
    assert np.array_equal(np.concatenate(found), heap.reshape(-1))
    assert all(len(batch) == size for batch in found[:-1]) and 0 < len(found[-1]) <= size


@settings(deadline=None)
@given(**SHAPES)
def test_a_heap_in_frames_becomes_the_sums_of_its_rows(rows, columns, width):
    heap = numbers(rows, columns, width)
    inbox = HeapInbox("heap", (0,), rows, columns, width)
    chunks = list(batches(heap, numbers_of_frame(width)))
    assert [len(chunk) for chunk in chunks] == [size for _, size in pieces(heap.size, width)]
    for number, chunk in enumerate(chunks):
        assert not inbox.is_complete
        inbox.take(Frame("heap", (0,), number, len(chunk), width, pack(chunk, width)))
    assert inbox.is_complete and inbox.data == b""
    assert np.array_equal(inbox.sums, heap.sum(axis=1, dtype=np.uint64))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda data: data[:-1], "take 5 bytes, got 4"),
        (lambda data: data + b"\0", "take 5 bytes, got 6"),
        (lambda data: data[:-1] + b"\xff", "the padding after 13 values of 3 bits is not zero"),
    ],
)
def test_another_length_and_set_padding_are_refused_before_any_row(spoil, words):
    good = bytes(packed_size(13, 3))
    check_packed(good, 13, 3)
    with pytest.raises(EncodingError, match=words):
        unpack_rows(spoil(good), 13, 1, 3)
