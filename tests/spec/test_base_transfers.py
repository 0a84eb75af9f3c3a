"""Base transfers: all messages, and the seeds of both sides."""

from __future__ import annotations

from tests.spec.replaying import replaced, replay_tests
from umpc.crypto.rounds import run_in_memory
from umpc.mpc.transfers.channel_set_up import receive_seeds, send_seeds


def base_transfers(session, sender_seed, receiver_seed, choices, step="", payload=b""):
    parties = [
        send_seeds(sender_seed, len(choices), session, "receiver"),
        receive_seeds(receiver_seed, choices, session, "sender"),
    ]
    (pairs, chosen), transcript = run_in_memory([replaced(p, step, payload) for p in parties])
    return {
        "messages": {line.message.step: line.message.payload for line in transcript},
        "sender_pairs": [list(pair) for pair in pairs],
        "receiver_seeds": chosen,
    }


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "base_transfers", {"base_transfers": base_transfers}
)
