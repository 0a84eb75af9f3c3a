"""The vectors of `coins.py`: a few coins of two and of three members."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from spec.cases.vectors import Bad, Good, counting
from spec.coins import toss, xor
from spec.transfers import fresh_delta, set_up


def committee(
    thresholds: list[int], weights: list[int], members: int, last_sent: bytes | None = None
) -> dict[str, Any]:
    """The openings of a toss, and the noise that its coins make. All randomness counts upwards."""
    channels = {}
    for i, j in combinations(range(members), 2):
        session, delta, sender, receiver = channel_seeds(i, j)
        channels[i, j] = set_up(session, 4, fresh_delta(delta), sender, receiver)
    found = toss(thresholds, seeds_of(members), names_of(members), channels, last_sent)
    coins = xor(*found["coins"])
    noise = sum(weight * coin for weight, coin in zip(weights, coins, strict=True))
    return {"opened": found["opened"], "noise": noise}


def names_of(members: int) -> list[str]:
    """The members' names."""
    return [f"member {member}" for member in range(members)]


def seeds_of(members: int) -> list[bytes]:
    """Each member's own seed."""
    return [counting(3 + member) for member in range(members)]


def channel_seeds(i: int, j: int) -> list[bytes]:
    """The session of a channel, and the seeds of Δ, of its sender and of its receiver."""
    return [counting(2 * i + j, 16), counting(1 + i), counting(7 + i + j), counting(11 + j)]


def _coins(thresholds: list[int], members: int) -> dict[str, Any]:
    weights = [1 << n for n in range(len(thresholds))]
    return {"thresholds": thresholds, "weights": weights, "members": members}


ODDS = [2**63 - 1, 2**62 + 12345, 1, 0x9000_0000_0000_0001, 2**64 - 1]
GOOD: Good = [
    ("committee", "two members", _coins(ODDS, 2)),
    ("committee", "three members", _coins(ODDS[:3], 3)),
    ("committee", "three deciding bits", _coins([5 << 61, 1 << 61, 7 << 61, 3 << 61], 2)),
    ("committee", "fair coins take no product", _coins([1 << 63] * 9, 3)),
]
BAD: Bad = [
    ("committee", "opened bits one byte short", {**_coins(ODDS, 2), "last_sent": bytes(39)}),
    ("committee", "opened bits one byte long", {**_coins(ODDS, 3), "last_sent": bytes(41)}),
]
