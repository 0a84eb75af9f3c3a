"""Channels from channels: correlated, without points, with nothing in common; liars are named."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from tests.support.garbled import without_points
from tests.support.mpc_studies import seed_of
from tests.support.transfers import altered, bits_of, correlated, delta_of
from umpc.crypto.rounds import run_in_memory
from umpc.errors import RemoteProtocolError
from umpc.mpc.transfers.channel_set_up import open_receiver, open_sender
from umpc.mpc.transfers.channels import chain_receiver, chain_sender, chained_shapes
from umpc.mpc.transfers.message_shapes import set_up_shapes
from umpc.testing import lying


class Pair:
    """Two processes with a channel. "s" sends in transfers, "r" receives."""

    def __init__(self):
        self.delta = delta_of("first")
        with without_points():
            opening = open_sender(seed_of("s"), self.delta, b"first", "r")
            parties = [opening, open_receiver(seed_of("r"), b"first", "s")]
            self.ends, self.messages = run_in_memory(parties)

    def chain(self, label: str, change=None) -> None:
        """Make the next channel, which must be correlated."""
        self.delta = delta_of(label)
        name = label.encode()
        sender, receiver = self.ends
        parties = [
            chain_sender(sender, seed_of(f"s {label}"), self.delta, name),
            chain_receiver(receiver, seed_of(f"r {label}"), name, "s"),
        ]
        if change:
            party, step, how = change
            parties[party] = altered(parties[party], step, how)
        self.ends, self.messages = run_in_memory(parties)
        sender, receiver = self.ends
        choices = bits_of(label, 300)
        t, message = receiver.fork("used").extend(choices)
        assert correlated(sender.fork("used").extend(message, 300), t, choices, self.delta)
        assert sender.session == receiver.session == name and sender.peer == "r"


def test_a_chain_of_channels_takes_no_points_and_has_the_shapes_that_are_told():
    pair = Pair()
    due = [(m.step, m.count, m.width, len(m.payload)) for _, m in chained_shapes()]

    def multiplied(*_):
        raise AssertionError("a chain multiplied a point")

    with lying("everybody", multiple=multiplied, base_multiple=multiplied):
        for number in range(4):
            pair.chain(f"channel {number}")
            sent = [line.message for line in pair.messages]
            assert [(m.step, m.count, m.width, len(m.payload)) for m in sent] == due


def test_both_kinds_of_set_up_have_as_many_messages_and_bytes():
    """A study's bytes do not depend on how its channel was set up."""
    kinds = set_up_shapes(), chained_shapes()
    senders = [[speaks for speaks, _ in shapes] for shapes in kinds]
    assert senders[0] == senders[1] == [False, True, False]
    sizes = [sum(len(message.payload) for _, message in shapes) for shapes in kinds]
    assert sizes[0] == sizes[1]


def test_keys_and_offsets_of_two_channels_have_nothing_in_common():
    pair = Pair()
    seen = []

    def spy(honest, blocks):
        found = honest(blocks)
        seen.append((blocks.copy(), found))
        return found

    for number in range(3):
        seen_before = len(seen)
        last = pair.delta
        with lying("node", keys_of=spy):
            pair.chain(f"channel {number}")
        # Blocks of a channel differ by Δ in all places; their hashes must not.
        assert len(seen) == seen_before + 6
        for (first, _), (second, _) in combinations(seen[seen_before:], 2):
            offsets = [row for row in (first ^ second).tolist() if any(row)]
            assert len(set(map(tuple, offsets))) == len(offsets)
            assert not {tuple(last.tolist()), tuple(pair.delta.tolist())} & {*map(tuple, offsets)}
    known = [key for _, found in seen for key in found]
    # Both pairs of keys, and the key of each that the other party has, too.
    counts = np.unique(known, return_counts=True)[1]
    assert len(counts) == 3 * 4 * 128 and set(counts.tolist()) == {1, 2}


def test_each_channel_has_choices_of_its_own():
    pair = Pair()
    drawn = []

    def spy(honest, receiver, choices):
        if len(choices) == 128:
            drawn.append(choices.tobytes())
        return honest(receiver, choices)

    with lying("node", extend=spy):
        for number in range(3):
            pair.chain(f"channel {number}")
    assert len(drawn) == len(set(drawn)) == 2 * 3
    assert all(32 < sum(choices) < 96 for choices in drawn)  # five standard deviations away


def test_every_check_hides_its_choices_under_a_mask_of_its_own():
    pair = Pair()
    masks = []

    def spy(honest, bits, mask):
        if any(mask):  # a sender adds its own bits without one
            masks.append(mask)
        return honest(bits, mask)

    with lying("node", packed_row=spy):
        for number in range(3):
            pair.chain(f"channel {number}")
    # For each channel the choices, the extension by Δ, and one batch that `chain` looks at.
    assert len(masks) == len(set(masks)) == 3 * 3 and all(len(set(mask)) > 4 for mask in masks)


# --- liars


def flipped(place: int):
    def change(message):
        payload = bytearray(message.payload)
        payload[place] ^= 1
        return replace(message, payload=bytes(payload))

    return change


@pytest.mark.parametrize("place", [0, 77 * 32, -1])
def test_a_sender_whose_extension_does_not_hold_is_named(place):
    """`test_correlation_check.py` has senders that prove as well as they can."""
    with pytest.raises(RemoteProtocolError, match="do not fit together") as caught:
        Pair().chain("next", change=(0, "ot_choice", flipped(place)))
    assert (caught.value.culprit, caught.value.step) == ("s", "ot_extend")


@pytest.mark.parametrize("step", ["ot_offer", "ot_trees"])
def test_a_receiver_that_deviates_in_a_chain_is_named(step):
    with pytest.raises(RemoteProtocolError, match="do not fit together") as caught:
        Pair().chain("next", change=(1, step, flipped(-1)))
    assert caught.value.culprit == "r"


@pytest.mark.parametrize(("party", "step"), [(1, "ot_offer"), (0, "ot_choice"), (1, "ot_trees")])
def test_a_message_of_another_length_is_refused(party, step):
    def longer(message):
        return replace(message, payload=message.payload + b"0", count=message.count + 1)

    with pytest.raises(RemoteProtocolError) as caught:
        Pair().chain("next", change=(party, step, longer))
    assert caught.value.culprit == "sr"[party]


def test_bits_after_the_trees_of_a_set_up_by_points_are_refused():
    opening = open_sender(seed_of("s"), delta_of("first"), b"first", "r")
    receiver = open_receiver(seed_of("r"), b"first", "s")
    parties = [opening, altered(receiver, "ot_trees", flipped(-1))]
    with pytest.raises(RemoteProtocolError, match="after its trees") as caught, without_points():
        run_in_memory(parties)
    assert (caught.value.culprit, caught.value.step) == ("r", "ot_trees")
