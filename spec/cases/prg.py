"""The vectors of `prg.py`."""

from __future__ import annotations

from spec.cases.vectors import Bad, Good, counting
from spec.prg import bits_of, derive, digest, stream, tree_hash, words


def seeds_and_streams(seed: bytes, labels: list[int | str | bytes]) -> dict[str, object]:
    """Everything that is read from one derived seed, for vectors."""
    derived = derive(seed, *labels)
    return {
        "derived": derived,
        "stream": stream(derived, 40),
        "words_64": words(derived, 2),
        "words_32": words(derived, 2, 32),
        "bits": bits_of(derived, 12),
        "digest": digest(seed, derived),
    }


def tree_hashes(key: bytes, blocks: list[int]) -> list[int]:
    """`tree_hash` of several blocks, for vectors."""
    return [tree_hash(key, block) for block in blocks]


BLOCKS = [int.from_bytes(counting(label, 16), "little") for label in (7, 8)]
GOOD: Good = [
    (
        "seeds_and_streams",
        "labels of all types",
        {"seed": counting(0), "labels": ["open", 7, b"\x00\xff"]},
    ),
    ("seeds_and_streams", "no label", {"seed": counting(2), "labels": []}),
    ("tree_hashes", "two blocks", {"key": counting(6, 16), "blocks": BLOCKS}),
    ("pack", "three bits", {"values": [5, 0, 7, 1], "width": 3}),
    ("pack", "one bit", {"values": [1, 0, 1, 1, 0, 0, 0, 1, 1], "width": 1}),
    ("pack", "seventeen bits", {"values": [131071, 1, 65536], "width": 17}),
    ("pack", "whole words", {"values": [1, 2**64 - 1], "width": 64}),
    ("pack", "nothing", {"values": [], "width": 5}),
]
BAD: Bad = [
    ("unpack", "one byte short", {"packed": b"\x45", "count": 4, "width": 3}),
    ("unpack", "one byte long", {"packed": b"\xc5\x03\x00", "count": 4, "width": 3}),
    ("unpack", "padding is set", {"packed": b"\xc5\x13", "count": 4, "width": 3}),
]
