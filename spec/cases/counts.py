"""The vectors of `counts.py`."""

from __future__ import annotations

from fractions import Fraction
from io import BytesIO

from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.counts import own_shares
from spec.prg import stream

RECORDS = [[0, 1], [7, 0], [3, 1], [9, 0], [3, 1], [4, 0]]
TWO_AXES: Arguments = {"records": RECORDS, "cuts": [[2, 4, 9], [1]], "tree": -1}
ONE_AXIS: Arguments = {
    "records": [[each] for each, _ in RECORDS],
    "cuts": [list(range(1, 10))],
    "tree": 0,
}
THREE: Arguments = {
    "records": [[*each, number % 3] for number, each in enumerate(RECORDS)],
    "cuts": [[5], list(range(1, 2)), [1, 2]],
    "tree": 2,
}
WORD = 1 << 32


def noise(honest: int, ratio: list[int], count: int, seed: bytes) -> list[int]:
    """`own_shares` from a seeded stream. Args: ratio: ε/L1, numerator and denominator."""
    return own_shares(honest, Fraction(*ratio), count, BytesIO(stream(seed, 1 << 17)).read)


def _noise(honest: int, ratio: list[int]) -> Arguments:
    return {"honest": honest, "ratio": ratio, "count": 5, "seed": counting(honest)}


GOOD: Good = [
    ("counts", "two axes", TWO_AXES),
    ("counts", "one axis with a tree of ten leaves", ONE_AXIS),
    ("counts", "a tree over the last of three axes", THREE),
    ("counts", "no record", {**TWO_AXES, "records": []}),
    ("sensitivities", "a table of records", {"axes": 2, "levels": 1, "most": 1}),
    ("sensitivities", "a tree over its one axis", {"axes": 1, "levels": 5, "most": 1}),
    ("sensitivities", "a tree over one of two axes", {"axes": 2, "levels": 5, "most": 1}),
    ("sensitivities", "people with up to three records", {"axes": 1, "levels": 5, "most": 3}),
    ("noise", "one honest node", _noise(1, [1, 2])),
    ("noise", "two honest nodes", _noise(2, [1, 4])),
    (
        "share",
        "a node's share",
        {"own": [0, 3], "noise": [-2, 1], "zeros": [5, WORD - 9], "ring": 32},
    ),
    ("total", "two nodes", {"shares": [[3, WORD - 5], [WORD - 6, 4]], "ring": 32}),
]
BAD: Bad = []
