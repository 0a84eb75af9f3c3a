"""Messages: what is packed comes back, what is malformed is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umpc.crypto.packing import check_counts, pack, packed_bytes, split_seed, unpack
from umpc.errors import EncodingError, LocalProtocolError


@settings(max_examples=60)
@given(
    st.integers(1, 64).flatmap(
        lambda width: st.tuples(st.just(width), st.lists(st.integers(0, 2**width - 1)))
    )
)
def test_what_is_packed_comes_back(case):
    width, values = case
    data = pack(np.array(values, dtype=np.uint64), width)
    assert len(data) == packed_bytes(len(values), width)
    assert unpack(data, len(values), width).tolist() == values


@pytest.mark.parametrize(
    "data, broken",
    [(b"\x01", "take 2 bytes, got 1"), (b"\x01\x00\x00", "got 3"), (b"\xff\xff", "padding")],
)
def test_a_malformed_message_is_refused(data, broken):
    with pytest.raises(EncodingError, match=broken):
        unpack(data, 3, 5)


def test_seeds_and_counts_are_checked():
    assert split_seed(bytes(32) + b"x") == (bytes(32), b"x")
    with pytest.raises(EncodingError, match="32 bytes"):
        split_seed(bytes(31))
    for messages, counts in (([b""], [1, 2]), ([b"", b""], [3, -1]), ([b""], [1])):
        with pytest.raises(LocalProtocolError):
            check_counts(messages, counts)
