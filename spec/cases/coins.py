"""The vectors of `coins.py` and `checked_bits.py`: coins of two and of three members, and lies."""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from operator import xor
from typing import Any

from spec.cases.vectors import Bad, Good, counting
from spec.checked_bits import FACTOR, Channels, chosen
from spec.coins import toss
from spec.prg import bits_of, derive, pack, unpack, words
from spec.transfers import fresh_delta, set_up


def committee(
    thresholds: list[int],
    weights: list[int],
    ring: int,
    members: int,
    step: str = "",
    payload: bytes = b"",
) -> dict[str, Any]:
    """A toss. All randomness counts upwards. Args: step, payload: a lie, as in `checked_bits`."""
    parties = seeds_of(members), names_of(members), channels_of(members)
    return toss(thresholds, weights, ring, *parties, (step, payload))


def noise_of(thresholds: list[int], weights: list[int], seeds: list[bytes]) -> int:
    """The noise in the clear, which no party of the protocol can compute."""
    drawn = [words(derive(seed, "toss", "numbers"), len(thresholds)) for seed in seeds]
    numbers = (reduce(xor, each) for each in zip(*drawn, strict=True))
    rows = zip(numbers, thresholds, weights, strict=True)
    return sum(weight * (u < threshold) for u, threshold, weight in rows)


def names_of(members: int) -> list[str]:
    """The members' names."""
    return [f"member {member}" for member in range(members)]


def seeds_of(members: int) -> list[bytes]:
    """Each member's own seed."""
    return [counting(3 + member) for member in range(members)]


def channels_of(members: int) -> Channels:
    """Channels of each two members."""
    channels = {}
    for i, j in combinations(range(members), 2):
        session, delta, *seeds = channel_seeds(i, j)
        channels[i, j] = set_up(session, 4, fresh_delta(delta), *seeds)
    return channels


def channel_seeds(i: int, j: int) -> list[bytes]:
    """The session of a channel, and the seeds of Δ, of its sender and of its receiver."""
    return [counting(2 * i + j, 16), counting(1 + i), counting(7 + i + j), counting(11 + j)]


def _coins(thresholds: list[int], members: int, ring: int = 64, **lie: Any) -> dict[str, Any]:
    weights = [(-1) ** n << n for n in range(len(thresholds))]
    given = {"thresholds": thresholds, "weights": weights, "ring": ring, "members": members}
    return given | lie


def _lie(step: str, payload: bytes, members: int = 2) -> dict[str, Any]:
    return _coins(ODDS, members, step=step, payload=payload)


def flipped(data: bytes, place: int) -> bytes:
    """The data with one bit turned."""
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


ODDS = [2**63 - 1, 2**62 + 12345, 1, 0x9000_0000_0000_0001, 2**64 - 1]
HONEST = committee(**_coins(ODDS, 2))["messages"]
DUE = unpack(HONEST["converted"][0], FACTOR * len(ODDS), 64)
SCALED = pack([(c + (1 << 40)) % (1 << 63) for c in DUE], 64)
"""The other member's bits b count 1 − 2·(s + 2^40) instead of 1 − 2·s."""
_, OPENED = chosen(HONEST["challenge"], len(ODDS))
BITS = bits_of(derive(derive(seeds_of(2)[1], "toss", "checked bits", 0), "bits"), len(DUE))
PLACE = next(place for place in OPENED if BITS[place])
CHANGED = flipped(HONEST["converted"][0], 8 * PLACE)
"""In one number that is opened, and in which the other member's bit is 1."""
GOOD: Good = [
    ("committee", "two members", _coins(ODDS, 2)),
    ("committee", "three members, a ring of 32 bits", _coins(ODDS[:3], 3, 32)),
    ("committee", "three deciding bits", _coins([5 << 61, 1 << 61, 7 << 61, 3 << 61], 2)),
    ("committee", "fair coins take no product", _coins([1 << 63] * 4, 3)),
]
BAD: Bad = [
    ("committee", "opened bits one byte short", _lie("compared", bytes(39))),
    ("committee", "opened bits one byte long", _lie("compared", bytes(41), 3)),
    ("committee", "other numbers than the shares of bits", _lie("converted", SCALED)),
    ("committee", "one number that is opened is changed", _lie("converted", CHANGED)),
    ("committee", "a commitment is broken", _lie("commitment", counting(1))),
    ("committee", "another challenge than committed to", _lie("challenge", counting(1), 3)),
    (
        "committee",
        "the second commitment is broken",
        _lie("second commitment", counting(1), 3),
    ),
    (
        "committee",
        "another share than committed to",
        _lie("opened", flipped(HONEST["opened"][1], 32)),
    ),
]
