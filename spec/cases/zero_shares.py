"""The vectors of `zero_shares.py`."""

from __future__ import annotations

from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.joint_seed import joint_seed
from spec.prg import digest
from spec.zero_shares import neighbours, public_key


def public_keys(secrets: list[bytes]) -> list[bytes]:
    """The keys of all nodes, for vectors."""
    return [public_key(secret) for secret in secrets]


def peers(openings: list[bytes], colluding: int, node: int) -> list[int]:
    """The nodes with which a node shares masks, for vectors."""
    return neighbours(joint_seed(openings), len(openings), colluding, node)


SECRETS = [counting(1), counting(5), counting(9)]
NAMES = ["north", "south", "west"]
GIVEN: Arguments = {
    "names": NAMES,
    "secrets": SECRETS,
    "attempt": counting(3),
    "ring_bits": 64,
    "sums": 2,
}
OPENINGS = [digest(bytes([number])) for number in range(66)]
GOOD: Good = [
    ("public_keys", "three nodes' keys", {"secrets": SECRETS}),
    ("zero_shares", "three nodes", GIVEN),
    ("zero_shares", "a ring of 32 bits", {**GIVEN, "ring_bits": 32, "sums": 1}),
    ("peers", "few nodes", {"openings": OPENINGS[:4], "colluding": 3, "node": 2}),
    ("peers", "many nodes, half may collude", {"openings": OPENINGS, "colluding": 33, "node": 2}),
    ("peers", "many nodes, all but one", {"openings": OPENINGS, "colluding": 65, "node": 2}),
]
BAD: Bad = [
    ("zero_shares", "a key of small order", {**GIVEN, "last_key": bytes(32)}),
    ("zero_shares", "a key one byte short", {**GIVEN, "last_key": counting(9, 31)}),
]
