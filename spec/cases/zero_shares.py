"""The vectors of `zero_shares.py`."""

from __future__ import annotations

from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.zero_shares import public_key


def public_keys(secrets: list[bytes]) -> list[bytes]:
    """The keys of all nodes, for vectors."""
    return [public_key(secret) for secret in secrets]


SECRETS = [counting(1), counting(5), counting(9)]
NAMES = ["north", "south", "west"]
GIVEN: Arguments = {
    "names": NAMES,
    "secrets": SECRETS,
    "attempt": counting(3),
    "ring_bits": 64,
    "sums": 2,
}
GOOD: Good = [
    ("public_keys", "three nodes' keys", {"secrets": SECRETS}),
    ("zero_shares", "three nodes", GIVEN),
    ("zero_shares", "a ring of 32 bits", {**GIVEN, "ring_bits": 32, "sums": 1}),
]
BAD: Bad = [
    ("zero_shares", "a key of small order", {**GIVEN, "last_key": bytes(32)}),
    ("zero_shares", "a key one byte short", {**GIVEN, "last_key": counting(9, 31)}),
]
