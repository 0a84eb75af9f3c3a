"""The vectors of `sharing.py`."""

from __future__ import annotations

from spec.cases.vectors import Arguments, Bad, Good

TRIPLES = [
    [[1, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 1, 1, 0]],
    [[0, 0, 1, 0, 1], [1, 1, 0, 0, 1], [0, 0, 0, 1, 1]],
    [[1, 1, 0, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 1, 0]],
]
ANDS: Arguments = {
    "x": [[0, 1, 1, 0, 1], [1, 1, 0, 0, 0], [0, 1, 0, 1, 0]],
    "y": [[1, 1, 0, 0, 1], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1]],
    "triples": TRIPLES,
    "names": ["north", "south", "west"],
}
GOOD: Good = [
    ("encode", "a negative number in 32 bits", {"value": -3, "bits": 32}),
    ("encode", "a positive number in 64 bits", {"value": 2**40, "bits": 64}),
    ("decode", "the least number of 32 bits", {"element": 2**31, "bits": 32}),
    ("decode", "the largest number of 64 bits", {"element": 2**63 - 1, "bits": 64}),
    ("and_bits", "three parties", ANDS),
]
BAD: Bad = [
    ("and_bits", "opened bits one byte short", {**ANDS, "last_sent": b"\x01"}),
    ("and_bits", "opened bits one byte long", {**ANDS, "last_sent": bytes(3)}),
]
