"""umpc.native.streams: every kind gives the streams of `umpc.crypto.prg`."""

from __future__ import annotations

import pytest

from tests.support.mpc_studies import seed_of
from umpc.crypto.prg import Stream
from umpc.native.library import kinds
from umpc.native.streams import key_streams

EDGE = 8 * 1024
"""Bytes that the kernel makes at once."""
SIZES = [
    [],
    [0],
    [1, 0, 15, 16, 17, 31, 255, 256, 257],
    [EDGE - 1, EDGE, EDGE + 1, 3 * EDGE + 5],
    [7] * 100,
]


@pytest.mark.parametrize("kind", kinds())
@pytest.mark.parametrize("sizes", SIZES)
def test_streams_stand_one_behind_the_other(kind, sizes):
    seeds = [seed_of(f"stream {number}") for number in range(len(sizes))]
    expected = b"".join(Stream(seed).bytes(size) for seed, size in zip(seeds, sizes, strict=True))
    assert key_streams(seeds, sizes, kind).tobytes() == expected


@pytest.mark.parametrize(
    ("seeds", "sizes"), [([bytes(31)], [1]), ([bytes(32)], [1, 2]), ([bytes(32)], [-1])]
)
def test_other_seeds_and_sizes_are_refused(seeds, sizes):
    with pytest.raises(ValueError, match=r"expected|fewer|can run"):
        key_streams(seeds, sizes, kinds()[0] if kinds() else None)


def test_a_kind_that_is_not_here_is_refused():
    with pytest.raises(ValueError, match="can run"):
        key_streams([bytes(32)], [1], "another")
