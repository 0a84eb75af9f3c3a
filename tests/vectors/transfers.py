"""Vectors of oblivious transfers: the base transfers, and correlated ones made from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from nacl import bindings as sodium

from tests.vectors.part import Bad, Part, Values, fixed, texts_of, with_message
from umpc.crypto.rounds import Message, Protocol, run_in_memory
from umpc.errors import EncodingError, RemoteProtocolError
from umpc.mpc.transfers.base_ot import receive_seeds, send_seeds
from umpc.mpc.transfers.channel_set_up import open_receiver, open_sender
from umpc.mpc.transfers.correlated_ot import fresh_delta
from umpc.mpc.transfers.message_shapes import CHOICE, EXTEND


def changed(parties: list[Protocol[Any]], inputs: Values) -> list[Protocol[Any]]:
    """Replace one message, where `replaced` says which: party, step, and payload."""
    if (replaced := inputs.get("replaced")) is not None:
        party, payload = replaced["party"], bytes.fromhex(replaced["payload"])
        parties[party] = with_message(parties[party], replaced["step"], payload)
    return parties


def base(inputs: Values) -> Values:
    """Run all base transfers. Party 0 sends two seeds for each, party 1 chooses one."""
    session, choices = bytes.fromhex(inputs["session"]), inputs["choices"]
    seeds = [bytes.fromhex(inputs[name]) for name in ("sender_seed", "receiver_seed")]
    parties: list[Protocol[Any]] = [
        send_seeds(seeds[0], len(choices), session, "receiver"),
        receive_seeds(seeds[1], choices, session, "sender"),
    ]
    (pairs, chosen), transcript = run_in_memory(changed(parties, inputs))
    return {
        "messages": {line.message.step: line.message.payload.hex() for line in transcript},
        "sender_pairs": [[seed.hex() for seed in pair] for pair in pairs],
        "receiver_seeds": [seed.hex() for seed in chosen],
    }


def correlated(inputs: Values) -> Values:
    """Set both sides up and make one batch. `batch` replaces the batch's number in its message.

    `forks` holds the labels of a fork, of a fork of this fork, and so on; the last makes the batch.
    """
    session, fold = bytes.fromhex(inputs["session"]), inputs["fold"]
    delta = fresh_delta(bytes.fromhex(inputs["delta_seed"]))
    parties: list[Protocol[Any]] = [
        open_sender(bytes.fromhex(inputs["sender_seed"]), delta, session, "receiver", fold),
        open_receiver(bytes.fromhex(inputs["receiver_seed"]), session, "sender", fold),
    ]
    (sender, receiver), transcript = run_in_memory(changed(parties, inputs))
    for labels in inputs.get("forks", []):
        sender, receiver = sender.fork(*labels), receiver.fork(*labels)
    choices = np.array(inputs["choices"], dtype=np.uint8)
    mine, message = receiver.extend(choices)
    payload = bytes.fromhex(inputs["extension"]) if "extension" in inputs else message.payload
    round_number = inputs.get("batch", message.round)
    changed_message = Message(EXTEND, payload, message.count, message.width, round_number)
    theirs = sender.extend(changed_message, len(choices))
    return {
        "delta": texts_of(delta)[0],
        "messages": {line.message.step: line.message.payload.hex() for line in transcript},
        "extension": message.payload.hex(),
        "sender_blocks": texts_of(theirs.blocks),
        "receiver_blocks": texts_of(mine.blocks),
    }


BASE = {
    "session": fixed(1, 16),
    "sender_seed": fixed(2),
    "receiver_seed": fixed(5),
    "choices": [0, 1, 1],
}
SENT = base(BASE)["messages"]
KEYS = SENT[CHOICE]
POINT = 2 * 32
"""Hexadecimal digits of a point."""
SECOND_ORDER = "ec" + "ff" * 30 + "7f"
"""The point of order 2: y = −1."""


def choice(payload: str) -> Values:
    return {**BASE, "replaced": {"party": 1, "step": CHOICE, "payload": payload}}


def key(point: str) -> Bad:
    """Replace the first key."""
    return Bad(choice(point + KEYS[POINT:]), EncodingError, CHOICE, "receiver")


def outside(point: str) -> str:
    """A point that differs from this one by the point of order 2."""
    return sodium.crypto_core_ed25519_add(bytes.fromhex(point), bytes.fromhex(SECOND_ORDER)).hex()


CORRELATED = {
    "session": fixed(3, 16),
    "fold": 2,
    "delta_seed": fixed(4),
    "sender_seed": fixed(6),
    "receiver_seed": fixed(9),
    "choices": [1, 0, 0, 1, 1, 0, 1, 0, 1, 1],
}
EXTENSION = correlated(CORRELATED)["extension"]

PARTS = {
    "base_transfers": Part(
        "Base oblivious transfers on edwards25519. Party 0 offers two points, party 1 answers with "
        "a point for each choice. Points are of prime order and encoded as in RFC 8032, section "
        "5.1.2. A scalar is 64 bytes of the party's stream modulo the order, little-endian.",
        base,
        {"three_transfers": BASE},
        {
            "key_off_the_curve": key("02" + "00" * 31),
            "key_outside_the_group": key(outside(KEYS[:POINT])),
            "key_of_order_2": key(SECOND_ORDER),
            "key_is_zero": key("01" + "00" * 31),
            "key_not_reduced": key("f0" + "ff" * 30 + "7f"),
            "offer_outside_the_group": Bad(
                {
                    **BASE,
                    "replaced": {
                        "party": 0,
                        "step": "ot_offer",
                        "payload": outside(SENT["ot_offer"][:POINT]) + SENT["ot_offer"][POINT:],
                    },
                },
                EncodingError,
                "ot_offer",
                "sender",
            ),
            "key_is_the_offered_point": Bad(
                choice(SENT["ot_offer"][:POINT] + KEYS[POINT:]),
                EncodingError,
                CHOICE,
                "receiver",
            ),
            "keys_one_byte_short": Bad(choice(KEYS[:-2]), RemoteProtocolError, CHOICE, "receiver"),
            "offer_one_byte_long": Bad(
                {
                    **BASE,
                    "replaced": {
                        "party": 0,
                        "step": "ot_offer",
                        "payload": SENT["ot_offer"] + "00",
                    },
                },
                RemoteProtocolError,
                "ot_offer",
                "sender",
            ),
        },
    ),
    "correlated_transfers": Part(
        "SoftSpokenOT (Roy 2022) with the repetition code, semi-honest. For every transfer the "
        "sender gets q, the receiver t = q ⊕ r·Δ for its choice r. In the set-up the sender of "
        "the correlated transfers receives the base transfers.",
        correlated,
        {
            "ten_transfers_of_fold_2": CORRELATED,
            "one_transfer_of_fold_1": {**CORRELATED, "fold": 1, "choices": [1]},
            "ten_transfers_of_a_fork": {**CORRELATED, "forks": [["coins", 0, 1, 2]]},
            "ten_transfers_of_a_fork_of_a_fork": {
                **CORRELATED,
                "forks": [["coins", 0, 1, 2], ["coins", 0, 1, 2]],
            },
        },
        {
            "extension_one_byte_short": Bad(
                {**CORRELATED, "extension": EXTENSION[:-2]},
                RemoteProtocolError,
                EXTEND,
                "receiver",
            ),
            "extension_of_another_batch": Bad(
                {**CORRELATED, "batch": 2}, RemoteProtocolError, EXTEND, "receiver"
            ),
        },
    ),
}
