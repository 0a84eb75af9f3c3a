"""The vectors of `noise.py`: seeded streams in place of a node's randomness."""

from __future__ import annotations

from fractions import Fraction

from spec.cases.vectors import Bad, Good, counting
from spec.noise import committee_law, committee_size, own_share
from spec.prg import stream


def own_shares(honest: int, ratio: list[int], seed: bytes, draws: int) -> list[int]:
    """Parts of the noise, one after the other. Args: ratio: ε/s, numerator and denominator."""
    used = 0

    def source(size: int) -> bytes:
        nonlocal used
        used += size
        return stream(seed, used)[used - size :]

    return [own_share(honest, Fraction(*ratio), source) for _ in range(draws)]


def share_of_a_dead_source(honest: int, ratio: list[int], word: bytes) -> int:
    """A part of the noise where the source repeats one word."""
    return own_share(honest, Fraction(*ratio), lambda size: word * (size // 8))


def law_of_committee(ratio: list[int]) -> dict[str, list[int]]:
    """`committee_law` by numerator and denominator."""
    return committee_law(Fraction(*ratio))


def committee_sizes(nodes: list[int], colluding: int) -> list[int]:
    """`committee_size` of several numbers of nodes."""
    return [committee_size(each, colluding) for each in nodes]


def _own(honest: int, ratio: list[int], draws: int = 8) -> dict[str, object]:
    return {"honest": honest, "ratio": ratio, "seed": counting(honest), "draws": draws}


GOOD: Good = [
    ("own_shares", "one honest node: two geometrics", _own(1, [1, 3])),
    ("own_shares", "two honest nodes", _own(2, [1, 2])),
    ("own_shares", "three honest nodes, much noise", _own(3, [1, 1000])),
    ("own_shares", "seven honest nodes, little noise", _own(7, [5, 2])),
    ("law_of_committee", "ε of 1, sensitivity 4", {"ratio": [1, 4]}),
    ("law_of_committee", "ε of 1/10, sensitivity 60", {"ratio": [1, 600]}),
    (
        "committee_sizes",
        "half of the nodes may collude",
        {"nodes": [2, 16, 40, 100], "colluding": 20},
    ),
    ("committee_sizes", "all but one may collude", {"nodes": [41], "colluding": 40}),
]
BAD: Bad = [
    (
        "share_of_a_dead_source",
        "a source of zeros",
        {"honest": 2, "ratio": [1, 2], "word": bytes(8)},
    ),
    (
        "share_of_a_dead_source",
        "a source that repeats one word",
        {"honest": 1, "ratio": [1, 2], "word": counting(3, 8)},
    ),
]
