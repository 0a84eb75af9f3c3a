"""The vectors of `transfers.py`."""

from __future__ import annotations

from typing import Any

from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.transfers import (
    columns,
    extend,
    fork,
    fresh_delta,
    multiples,
    proof_of,
    row_hash,
    set_up,
)


def correlated(
    choices: list[int],
    forks: list[list[int | str]],
    trees: bytes | None = None,
    sent: bytes | None = None,
    **given: Any,
) -> dict[str, Any]:
    """Set a channel up, and make one batch: of the channel itself, or of a fork of forks."""
    delta = fresh_delta(given["delta_seed"])
    seeds = given["sender_seed"], given["receiver_seed"]
    channel = set_up(given["session"], given["fold"], delta, *seeds, trees)
    for labels in forks:
        channel = fork(channel, *labels)
    found = {key: channel[key] for key in ("delta", "messages")} | extend(channel, choices, sent)
    del found["first"]
    return found


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


def changed(data: bytes, place: int) -> bytes:
    """The data with one bit turned."""
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def lie(digit: int) -> bytes:
    """An extension with another first choice in one digit, and the best proof that there is.

    It holds if all bits of Δ in the digit are 0.
    """
    seeds = CORRELATED["sender_seed"], CORRELATED["receiver_seed"]
    delta = fresh_delta(CORRELATED["delta_seed"])
    channel = set_up(CORRELATED["session"], CORRELATED["fold"], delta, *seeds)
    channel["batches"] = 1
    rows, sums = columns(channel, "receiver", 32)
    r = int.from_bytes(_SENT[:32], "little") ^ sums[0]
    sent = changed(_SENT[: 32 * len(sums)], 32 * digit)
    h = row_hash(channel, sent, 32)
    return sent + proof_of(h(r), [h(row) for row in rows])


_DIGITS = [_RUN["delta"] >> place & 3 for place in range(0, 128, 2)]
_GUESSED = _DIGITS.index(0)
_SUM = 32 * (1 - (_DIGITS[0] >> 1))
"""The place of the first digit's sum that the sender reads."""
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
    ("correlated", "a lie about bits that are zero", {**CORRELATED, "sent": lie(_GUESSED)}),
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
    ("correlated", "a sum of a tree is changed", {**CORRELATED, "trees": changed(_TREES, _SUM)}),
    ("correlated", "a proof of trees is changed", {**CORRELATED, "trees": changed(_TREES, 4096)}),
    ("correlated", "another choice in the first digit", {**CORRELATED, "sent": lie(0)}),
    ("correlated", "another choice in the last digit", {**CORRELATED, "sent": lie(63)}),
    ("correlated", "the hash of other choices", {**CORRELATED, "sent": changed(_SENT, -40)}),
    ("correlated", "the hash of other columns", {**CORRELATED, "sent": changed(_SENT, -1)}),
]
