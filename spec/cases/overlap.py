"""The vectors of `overlap.py`."""

from __future__ import annotations

from typing import Any

from nacl import bindings as sodium

from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.overlap import comparison

RUN: Arguments = {
    "study": counting(1),
    "epsilon": [2, 1],
    "people": [["Anna", "Béla", "Chloé"], ["Béla", "Anna", "Dörte", "7"]],
    "seeds": [counting(5), counting(9)],
}
OTHER: Arguments = {"study": counting(4), "people": [["a"], ["b"]], "seeds": [counting(2)] * 2}
SENT = comparison(**RUN)["messages"][1]
ORDER_2 = b"\xec" + b"\xff" * 30 + b"\x7f"


def _second_sends(point: bytes) -> dict[str, Any]:
    return {**RUN, "sender": 1, "payload": point + SENT[32:]}


GOOD: Good = [
    ("comparison", "two of three and of four", RUN),
    ("comparison", "nobody, in another study", {**RUN, **OTHER}),
]
BAD: Bad = [
    ("comparison", "bytes off the curve", _second_sends(b"\2" + bytes(31))),
    (
        "comparison",
        "a point outside the group",
        _second_sends(sodium.crypto_core_ed25519_add(SENT[:32], ORDER_2)),
    ),
    ("comparison", "a point of order 2", _second_sends(ORDER_2)),
    ("comparison", "zero", _second_sends(b"\1" + bytes(31))),
]
