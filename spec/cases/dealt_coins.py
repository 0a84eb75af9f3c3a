"""The vectors of `dealt_coins.py`: coins of two and of three members."""

from __future__ import annotations

from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.dealt_coins import toss
from spec.prg import words

ODDS = [2**63 - 1, 2**62 + 12345, 1, 0x9000_0000_0000_0001, 2**64 - 1]


def _coins(members: int, ring: int) -> Arguments:
    return {
        "thresholds": ODDS,
        "weights": [1, 2, 4, -8, -16],
        "ring": ring,
        "numbers": [words(counting(20 + member), len(ODDS)) for member in range(members)],
        "chunk_seeds": [counting(5 + member) for member in range(members)],
        "names": ["north", "south", "west"][:members],
    }


TWO = _coins(2, 32)
SENT = toss(**TWO)["messages"][1][0]
GOOD: Good = [
    ("toss", "two members", TWO),
    ("toss", "three members, 64 bits", _coins(3, 64)),
]
BAD: Bad = [
    ("toss", "û one byte short", {**TWO, "last_sent": SENT[:-1]}),
    ("toss", "û one byte long", {**TWO, "last_sent": SENT + b"\0"}),
]
