"""The vectors of `checked_transfers.py`: a batch of fold 4, and receivers that lie."""

from __future__ import annotations

from typing import Any

from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.checked_transfers import extend
from spec.prg import derive
from spec.transfers import fresh_delta, set_up


def checked(
    session: bytes,
    fold: int,
    delta_seed: bytes,
    sender_seed: bytes,
    receiver_seed: bytes,
    choices: list[int],
    trees: bytes | None = None,
    sent: bytes | None = None,
    lie: int = 0,
) -> dict[str, Any]:
    """Set a checked channel up, and make one batch. Args: lie: as in `extend`."""
    seeds = sender_seed, receiver_seed
    channel = set_up(session, fold, fresh_delta(delta_seed), *seeds, trees, True)
    found = extend(channel, choices, derive(receiver_seed, "channel check"), lie, sent)
    return {"ot_trees": channel["messages"]["ot_trees"]} | found


def message_of_a_liar(lie: int) -> bytes:
    """The message of a receiver that chooses otherwise in the first digit, and proves its r.

    The digit of Δ is not 0 here, so the liar did not guess it.
    """
    delta = fresh_delta(GIVEN["delta_seed"])
    channel = set_up(GIVEN["session"], 4, delta, GIVEN["sender_seed"], GIVEN["receiver_seed"])
    blind = {**channel, "sender": channel["receiver"], "delta": 0}
    seed = derive(GIVEN["receiver_seed"], "channel check")
    found: bytes = extend(blind, GIVEN["choices"], seed, lie)["extension"]
    return found


GIVEN: Arguments = {
    "session": counting(3, 16),
    "fold": 4,
    "delta_seed": counting(4),
    "sender_seed": counting(6),
    "receiver_seed": counting(9),
    "choices": [1, 0, 0, 1, 1, 0, 1, 0, 1, 1],
}
_RUN = checked(**GIVEN)
TREES, SENT = _RUN["ot_trees"], _RUN["extension"]


def _flipped(data: bytes, place: int) -> bytes:
    """The data with one bit turned."""
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


GOOD: Good = [
    ("checked", "ten transfers of fold 4", GIVEN),
    ("checked", "150 transfers of fold 2", {**GIVEN, "fold": 2, "choices": [1, 0, 1] * 50}),
]
BAD: Bad = [
    ("checked", "another choice in one digit", {**GIVEN, "sent": message_of_a_liar(1)}),
    ("checked", "other masks in one digit", {**GIVEN, "sent": message_of_a_liar(1 << 200)}),
    ("checked", "h of the choices is changed", {**GIVEN, "sent": _flipped(SENT, len(SENT) - 48)}),
    ("checked", "h of the columns is changed", {**GIVEN, "sent": _flipped(SENT, len(SENT) - 1)}),
    ("checked", "a batch without its proof", {**GIVEN, "sent": SENT[:-48]}),
    ("checked", "a tree's sums fit one digit only", {**GIVEN, "trees": _flipped(TREES, 0)}),
    ("checked", "bits after the trees", {**GIVEN, "trees": _flipped(TREES, len(TREES) - 1)}),
]
