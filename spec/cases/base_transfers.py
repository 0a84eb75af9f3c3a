"""The vectors of `base_transfers.py`."""

from __future__ import annotations

from typing import Any

from nacl import bindings as sodium

from spec.base_transfers import base_transfers
from spec.cases.vectors import Arguments, Bad, Good, counting

BASE: Arguments = {
    "session": counting(1, 16),
    "sender_seed": counting(2),
    "receiver_seed": counting(5),
    "choices": [0, 1, 1],
}
_SENT = base_transfers(**BASE)["messages"]
OFFER, KEYS = _SENT["ot_offer"], _SENT["ot_choice"]
ORDER_2 = b"\xec" + b"\xff" * 30 + b"\x7f"


def _outside(point: bytes) -> bytes:
    """A point of the curve that is not in the group."""
    return sodium.crypto_core_ed25519_add(point, ORDER_2)


def _first_key(key: bytes) -> dict[str, Any]:
    return {**BASE, "step": "ot_choice", "payload": key + KEYS[32:]}


def _offer(payload: bytes) -> dict[str, Any]:
    return {**BASE, "step": "ot_offer", "payload": payload}


GOOD: Good = [("base_transfers", "three transfers", BASE)]
BAD: Bad = [
    ("base_transfers", "a key off the curve", _first_key(b"\2" + bytes(31))),
    ("base_transfers", "a key outside the group", _first_key(_outside(KEYS[:32]))),
    ("base_transfers", "a key of order 2", _first_key(ORDER_2)),
    ("base_transfers", "a key of zero", _first_key(b"\1" + bytes(31))),
    ("base_transfers", "a key that is not reduced", _first_key(b"\xf0" + ORDER_2[1:])),
    ("base_transfers", "a key that is the offered point", _first_key(OFFER[:32])),
    ("base_transfers", "keys one byte short", {**_first_key(KEYS[:32]), "payload": KEYS[:-1]}),
    ("base_transfers", "C outside the group", _offer(_outside(OFFER[:32]) + OFFER[32:])),
    ("base_transfers", "A outside the group", _offer(OFFER[:32] + _outside(OFFER[32:]))),
    ("base_transfers", "an offer one byte long", _offer(OFFER + b"\0")),
]
