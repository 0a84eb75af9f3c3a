"""Channels of correlated transfers, their batches, and products over them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.spec.blocks import integers_of
from tests.spec.replaying import replaced, replay_tests
from umpc.crypto.rounds import run_in_memory
from umpc.mpc.transfers.channel_set_up import open_receiver, open_sender
from umpc.mpc.transfers.correlated_ot import fresh_delta
from umpc.mpc.transfers.ot_products import receive_multiples, send_multiples


def channel_of(session, fold, delta_seed, sender_seed, receiver_seed, trees=None, checked=False):
    delta = fresh_delta(delta_seed)
    parties = [
        open_sender(sender_seed, delta, session, "receiver", fold, checked=checked),
        open_receiver(receiver_seed, session, "sender", fold, checked=checked),
    ]
    if trees is not None:
        parties[1] = replaced(parties[1], "ot_trees", trees)
    (sender, receiver), transcript = run_in_memory(parties)
    messages = {line.message.step: line.message.payload for line in transcript}
    return sender, receiver, {"delta": integers_of(delta)[0], "messages": messages}


def correlated(choices, forks, trees=None, sent=None, **given):
    sender, receiver, told = channel_of(trees=trees, **given)
    for labels in forks:
        sender, receiver = sender.fork(*labels), receiver.fork(*labels)
    mine, message = receiver.extend(np.array(choices, dtype=np.uint8))
    if sent is not None:
        message = replace(message, payload=sent)
    theirs = sender.extend(message, len(choices))
    return told | {
        "extension": message.payload,
        "sender_blocks": integers_of(theirs.blocks),
        "receiver_blocks": integers_of(mine.blocks),
    }


def products(numbers, width, choices, forks, **given):
    sender, receiver, _ = channel_of(**given)
    parties = [
        send_multiples(sender, np.array(numbers, dtype=np.uint64), width),
        receive_multiples(receiver, np.array(choices, dtype=np.uint8), width, "sender"),
    ]
    (theirs, mine), transcript = run_in_memory(parties)
    (corrections,) = (line.message for line in transcript if line.message.step == "ot_multiples")
    return {
        "corrections": corrections.payload,
        "sender_shares": theirs.tolist(),
        "receiver_shares": mine.tolist(),
    }


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "transfers", {"correlated": correlated, "products": products}
)
