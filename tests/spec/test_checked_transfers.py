"""Checked transfers: every byte of the proofs, and receivers that lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spec.cases.checked_transfers import GIVEN
from spec.checked_transfers import multiply
from spec.transfers import fresh_delta
from tests.spec.blocks import integers_of
from tests.spec.replaying import replay_tests
from tests.spec.test_transfers import channel_of


def checked(choices, sent=None, **given):
    sender, receiver, told = channel_of(checked=True, **given)
    mine, message = receiver.extend(np.array(choices, dtype=np.uint8))
    if sent is not None:
        message = replace(message, payload=sent)
    theirs = sender.extend(message, len(choices))
    return {
        "ot_trees": told["messages"]["ot_trees"],
        "extension": message.payload,
        "sender_blocks": integers_of(theirs.blocks),
        "receiver_blocks": integers_of(mine.blocks),
    }


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "checked_transfers", {"checked": checked}
)


def test_the_liars_of_the_vectors_did_not_guess_the_digit():
    assert fresh_delta(GIVEN["delta_seed"]) & 15


def test_multiplication_is_that_of_a_field():
    one, x, y, z = 1 << 127, 3 << 100 | 7, 5 << 64 | 1, (1 << 128) - 1
    assert multiply(one, x) == multiply(x, one) == x
    assert multiply(multiply(x, y), z) == multiply(x, multiply(y, z))
    assert multiply(x ^ y, z) == multiply(x, z) ^ multiply(y, z)
