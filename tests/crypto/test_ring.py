"""Z_{2^32} and Z_{2^64}: signs, wrapping, and values packed to their own width."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umpc.crypto.ring import RINGS, Ring, pack, packed_size, smallest_ring, unpack
from umpc.errors import EncodingError, RangeError

rings = pytest.mark.parametrize("ring", RINGS, ids=lambda ring: ring.bits)


@rings
def test_signed_integers_survive_at_both_bounds(ring):
    half = 1 << (ring.bits - 1)
    for value in (-half, -1, 0, 1, half - 1):
        assert ring.decode(ring.encode(value)) == value
        assert int(ring.scalar(value)) == ring.encode(value)
    assert ring.decode(ring.encode(half)) == -half


@rings
@given(values=st.lists(st.integers(-(2**62), 2**62), max_size=20))
def test_a_sum_of_elements_is_the_element_of_the_sum(ring, values):
    elements = ring.array(np.array(values, dtype=np.int64))
    assert elements.dtype == ring.dtype
    assert int(elements.sum(dtype=ring.dtype)) == ring.encode(sum(values))


@pytest.mark.parametrize(
    ("bound", "bits"),
    [(0, 32), (2**31 - 1, 32), (2**31, 64), (2**63 - 1, 64)],
    ids=["0", "2^31-1", "2^31", "2^63-1"],
)
def test_the_smallest_ring_holds_the_bound_with_its_sign(bound, bits):
    ring = smallest_ring(bound)
    assert ring.bits == bits
    assert ring.decode(ring.encode(bound)) == bound and ring.decode(ring.encode(-bound)) == -bound


def test_a_bound_beyond_all_rings_is_refused_with_what_to_change():
    with pytest.raises(RangeError, match="narrow the fields' bounds"):
        smallest_ring(2**63)


@given(
    st.integers(1, 64).flatmap(
        lambda w: st.tuples(st.just(w), st.lists(st.integers(0, 2**w - 1), max_size=30))
    )
)
def test_packed_values_come_back(case):
    width, values = case
    data = pack(np.array(values, dtype=np.uint64), width)
    assert len(data) == packed_size(len(values), width) == -(-len(values) * width // 8)
    assert int.from_bytes(data, "little") == sum(
        value << (width * i) for i, value in enumerate(values)
    )
    assert unpack(data, len(values), width).tolist() == values


@pytest.mark.parametrize("kind", [np.uint8, np.uint32])
def test_packing_keeps_the_type_asked_for(kind):
    values = np.array([5, 0, 7], dtype=kind)
    assert unpack(pack(values, 3), 3, 3, kind).dtype == kind
    assert unpack(pack(values, 3), 3, 3, kind).tolist() == [5, 0, 7]


def test_only_the_low_bits_are_packed():
    assert pack(np.array([0xFF, 0x10], dtype=np.uint64), 4) == b"\x0f"


@pytest.mark.parametrize("width", [1, 7, 8, 13, 32, 64])
@pytest.mark.parametrize("change", [-1, 1])
def test_a_wrong_length_is_refused(width, change):
    with pytest.raises(EncodingError, match=f"3 values of {width} bits"):
        unpack(bytes(packed_size(3, width) + change), 3, width)


@pytest.mark.parametrize("bit", range(6, 8))
def test_set_padding_is_refused(bit):
    with pytest.raises(EncodingError, match="padding"):
        unpack(bytes([1 << bit]), 2, 3)


def test_a_ring_says_its_size():
    assert [(ring.bytes, ring.dtype) for ring in (Ring(32), Ring(64))] == [
        (4, np.uint32),
        (8, np.uint64),
    ]
