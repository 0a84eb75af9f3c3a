"""The vectors of `transfers.py`."""

from __future__ import annotations

from typing import Any

from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.transfers import correlated, fresh_delta, multiples, set_up


def products(numbers: list[int], width: int, **given: Any) -> dict[str, Any]:
    """Set a channel up as `correlated` does, and multiply over it."""
    seeds = given["sender_seed"], given["receiver_seed"]
    delta = fresh_delta(given["delta_seed"])
    channel = set_up(given["session"], given["fold"], delta, *seeds)
    return multiples(channel, numbers, given["choices"], width)


CORRELATED: Arguments = {
    "session": counting(3, 16),
    "fold": 2,
    "delta_seed": counting(4),
    "sender_seed": counting(6),
    "receiver_seed": counting(9),
    "choices": [1, 0, 0, 1, 1, 0, 1, 0, 1, 1],
    "forks": [],
}
_RUN = correlated(**CORRELATED)
_TREES, _SENT = _RUN["messages"]["ot_trees"], _RUN["extension"]
LABELS: list[int | str] = ["coins", 0, 1, 2]
NUMBERS = [5, 2**40 + 1, 0, 2**64 - 1, 77, 1, 2, 3, 4, 2**63]
GOOD: Good = [
    ("correlated", "ten transfers of fold 2", CORRELATED),
    ("correlated", "one transfer of fold 1", {**CORRELATED, "fold": 1, "choices": [1]}),
    (
        "correlated",
        "fold 4, more than a block",
        {**CORRELATED, "fold": 4, "choices": [1, 0, 1] * 50},
    ),
    ("correlated", "a fork", {**CORRELATED, "forks": [LABELS]}),
    ("correlated", "a fork of a fork", {**CORRELATED, "forks": [LABELS, LABELS]}),
    ("products", "numbers of 64 bits", {**CORRELATED, "numbers": NUMBERS, "width": 64}),
    ("products", "numbers of 5 bits", {**CORRELATED, "numbers": NUMBERS, "width": 5}),
]
BAD: Bad = [
    ("correlated", "an extension one byte short", {**CORRELATED, "sent": _SENT[:-1]}),
    ("correlated", "an extension one byte long", {**CORRELATED, "sent": _SENT + b"\0"}),
    ("correlated", "trees one byte short", {**CORRELATED, "trees": _TREES[:-1]}),
    ("correlated", "bits after the trees", {**CORRELATED, "trees": _TREES[:-1] + b"\1"}),
]
