"""Set-ups from roots: channels are correlated, a root serves once, and liars are named."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from tests.support.garbled import without_points
from tests.support.mpc_studies import seed_of
from tests.support.transfers import altered, bits_of, correlated, delta_of
from umpc.crypto.rounds import run_in_memory
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.mpc.transfers import chained_set_up, correlated_ot
from umpc.mpc.transfers.chained_set_up import (
    FOLD,
    chained_shapes,
    open_chained_receiver,
    open_chained_sender,
)
from umpc.mpc.transfers.correlated_ot import trees_bytes
from umpc.mpc.transfers.correlation_check import with_mask
from umpc.mpc.transfers.kept_roots import KEPT, LONGEST, NO_ROOT, SECONDS, KeptRoots, Root


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Pair:
    """Two processes that run studies with each other. "s" sends in transfers, "r" receives."""

    def __init__(self):
        self.clock = Clock()
        self.shelves = [KeptRoots(self.clock), KeptRoots(self.clock)]
        self.messages: list = []

    def parties(self, label: str, *, checked: bool = False) -> list:
        self.roots = [self.shelves[0].of(b"s", b"r", "g"), self.shelves[1].of(b"r", b"s", "e")]
        self.delta = delta_of(label)
        session = label.encode()
        return [
            open_chained_sender(
                seed_of(f"s {label}"), self.delta, session, "r", self.roots[0], checked=checked
            ),
            open_chained_receiver(
                seed_of(f"r {label}"), session, "s", self.roots[1], checked=checked
            ),
        ]

    def study(self, label: str, *, checked: bool = False, keep=(True, True), change=None):
        """One set-up, whose channel must be correlated. Returns: whether a root served it."""
        parties = self.parties(label, checked=checked)
        if change:
            party, step, how = change
            parties[party] = altered(parties[party], step, how)
        with without_points():
            (sender, receiver), self.messages = run_in_memory(parties)
        choices = bits_of(label, 300)
        t, message = receiver.extend(choices)
        assert correlated(sender.extend(message, 300), t, choices, self.delta)
        for roots, kept in zip(self.roots, keep, strict=True):
            roots.end(keep=kept)
        (choice,) = (line.message for line in self.messages if line.message.step == "ot_choice")
        return choice.payload[:32] != NO_ROOT


def test_a_study_uses_what_the_last_one_left():
    pair = Pair()
    assert [pair.study(f"study {n}") for n in range(4)] == [False, True, True, True]
    assert [len(shelf) for shelf in pair.shelves] == [1, 1]


@pytest.mark.parametrize("checked", [False, True])
def test_messages_have_one_shape_with_and_without_a_root(checked):
    pair = Pair()
    due = [(m.step, m.count, m.width, len(m.payload)) for _, m in chained_shapes(checked=checked)]
    for label in ("first", "second"):
        pair.study(label, checked=checked)
        sent = [line.message for line in pair.messages]
        assert [(m.step, m.count, m.width, len(m.payload)) for m in sent] == due


def test_a_root_serves_once():
    """A study that failed after it took a root leaves none, and both start anew."""
    pair = Pair()
    pair.study("first")
    claimed = pair.shelves[0].of(b"s", b"r", "g")
    taken = pair.shelves[1].of(b"r", b"s", "e").take(checked=False)
    assert taken is not None and claimed.claim(taken.id, checked=False) is not None
    assert claimed.claim(taken.id, checked=False) is None
    assert [len(shelf) for shelf in pair.shelves] == [0, 0]
    assert not pair.study("second") and pair.study("third")


def test_a_root_that_only_one_side_kept_is_not_used():
    for keep in ((True, False), (False, True), (False, False)):
        pair = Pair()
        pair.study("first", keep=keep)
        assert not pair.study("second") and pair.study("third")


def test_a_failed_study_drops_all_roots_with_that_peer_and_no_others():
    pair = Pair()
    pair.study("first")
    shelf = pair.shelves[0]
    shelf.put((b"s", b"another", "g"), Root(bytes(32), checked=False), None)
    pair.parties("failed")
    pair.roots[0].end(keep=False)
    assert len(shelf) == 1 and shelf.of(b"s", b"another", "g").take(checked=False)


def test_a_renewed_certificate_or_the_other_role_has_no_roots():
    pair = Pair()
    pair.study("first")
    for place in ((b"new", b"r", "g"), (b"s", b"new", "g"), (b"s", b"r", "e")):
        assert pair.shelves[0].of(*place).take(checked=False) is None
    assert pair.shelves[0].of(b"s", b"r", "g").take(checked=False) is not None


def test_roots_end_after_an_hour_however_often_they_were_renewed():
    pair = Pair()
    pair.study("first")
    for number in range(3):
        pair.clock.now += SECONDS / 4
        assert pair.study(f"renewed {number}")
    pair.clock.now += SECONDS / 4
    assert not pair.study("after an hour")


def test_a_chain_has_an_end_and_shelves_are_small():
    clock = Clock()
    shelf = KeptRoots(clock)
    place = (b"a", b"b", "g")
    for number in range(5):
        shelf.put(place, Root(bytes([number]) * 32, checked=False), None)
    assert len(shelf) == KEPT
    long = Root(bytes(32), checked=False, born=0.0, length=LONGEST - 1)
    shelf.drop(place)
    shelf.put(place, Root(b"x" * 32, checked=False), long)
    assert shelf.of(*place).take(checked=False) is None


def test_a_checked_study_takes_no_root_of_an_unchecked_one():
    pair = Pair()
    assert not pair.study("unchecked")
    assert not pair.study("checked", checked=True)
    assert pair.study("checked again", checked=True)
    assert pair.study("unchecked again")


def test_keys_and_offsets_of_two_studies_have_nothing_in_common():
    pair = Pair()
    seen = []
    keys = chained_set_up._keys

    def spy(blocks):
        found = keys(blocks)
        seen.append(found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chained_set_up, "_keys", spy)
        for number in range(4):
            pair.study(f"study {number}")
    known = [key for each in seen for key in each]
    # In each study with a root both sides compute the same: the root's pairs and one key of each,
    # and the new pairs and one key of each.
    counts = np.unique(known, return_counts=True)[1]
    assert len(counts) == 3 * 4 * 128 and set(counts.tolist()) == {1, 2}


def test_hashed_transfers_of_a_root_have_no_common_offset():
    """Blocks of a channel differ by Δ in all places; blocks of a root must not."""
    pair = Pair()
    keys = chained_set_up._keys
    for number in range(3):
        seen = []

        def spy(blocks, seen=seen):
            seen.append(blocks.copy())
            return keys(blocks)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chained_set_up, "_keys", spy)
            pair.study(f"study {number}")
        assert len(seen) == (6 if number else 0)
        for first, second in combinations(seen, 2):
            offsets = [row for row in (first ^ second).tolist() if any(row)]
            assert len(set(map(tuple, offsets))) == len(offsets)
            assert pair.delta.tolist() not in offsets


def test_each_root_has_choices_of_its_own():
    pair = Pair()
    found = []
    for number in range(4):
        pair.study(f"study {number}")
        (root,) = pair.shelves[1]._roots[b"r", b"s", "e"]
        assert root.choices is not None
        found.append(tuple(root.choices.tolist()))
        ones = sum(word.bit_count() for word in found[-1])
        assert 32 < ones < 96  # each bound is more than five standard deviations away
    assert len(set(found)) == 4


def test_every_check_hides_its_choices_under_a_mask_of_its_own():
    pair = Pair()
    masks = []

    def spy(choices, mask):
        masks.append(mask)
        return with_mask(choices, mask)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(correlated_ot, "with_mask", spy)
        for number in range(3):
            pair.study(f"study {number}", checked=True)
    # In each study the next root and one batch; in each but the first the root's extension, too.
    assert len(masks) == 3 * 2 + 2
    assert len(set(masks)) == len(masks) and all(len(set(mask)) > 4 for mask in masks)


# --- liars


def flipped(place: int):
    def change(message):
        payload = bytearray(message.payload)
        payload[place] ^= 1
        return replace(message, payload=bytes(payload))

    return change


@pytest.mark.parametrize("place", [32, 32 + 77 * 32, -1])
def test_a_sender_whose_use_of_a_root_does_not_hold_is_named(place):
    """`test_correlation_check.py` has senders that prove as well as they can."""
    pair = Pair()
    pair.study("first")
    with pytest.raises(RemoteProtocolError, match="do not fit together") as caught:
        pair.study("second", change=(0, "ot_choice", flipped(place)))
    assert (caught.value.culprit, caught.value.step) == ("s", "ot_extend")


@pytest.mark.parametrize("place", [trees_bytes(FOLD, checked=True), -1])
def test_a_receiver_whose_next_root_does_not_hold_is_named(place):
    with pytest.raises(RemoteProtocolError, match="do not fit together") as caught:
        Pair().study("first", checked=True, change=(1, "ot_trees", flipped(place)))
    assert caught.value.culprit == "r"


def test_bits_after_the_points_are_refused():
    with pytest.raises(RemoteProtocolError, match="after the points") as caught:
        Pair().study("first", change=(0, "ot_choice", flipped(-1)))
    assert (caught.value.culprit, caught.value.step) == ("s", "ot_choice")


def test_a_root_that_was_not_offered_is_refused():
    pair = Pair()
    parties = pair.parties("first")
    parties[0] = altered(parties[0], "ot_choice", flipped(3))
    with pytest.raises(RemoteProtocolError, match="not offered") as caught, without_points():
        run_in_memory(parties)
    assert (caught.value.culprit, caught.value.step) == ("s", "ot_choice")


def test_an_offered_root_that_the_peer_does_not_have_costs_nothing():
    pair = Pair()
    pair.study("first")
    assert not pair.study("second", change=(1, "ot_offer", flipped(64)))


def test_secrets_are_not_shown_and_sides_are_not_exchanged():
    pair = Pair()
    pair.study("first")
    (root,) = pair.shelves[0]._roots[b"s", b"r", "g"]
    assert "pairs" not in repr(root) and "keys" not in repr(root)
    with pytest.raises(LocalProtocolError, match="other side"):
        chained_set_up._pairs_of_root(root, b"", b"session", "s")
    (other,) = pair.shelves[1]._roots[b"r", b"s", "e"]
    with pytest.raises(LocalProtocolError, match="other side"):
        chained_set_up._root_receiver(other, b"session", seed_of("x"))
