"""A member's channels for coins: one to each other member, once, between the right two."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tests.support.garbled import without_points
from tests.support.mpc_studies import seed_of
from tests.support.transfers import WRONG_SHAPES
from umpc.crypto.ring import RINGS
from umpc.crypto.rounds import Message, run_in_memory, run_mesh
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.mpc.masked.material import CoinToss
from umpc.mpc.transfers.channel_set_up import open_receiver, open_sender
from umpc.mpc.transfers.channels import Channels
from umpc.mpc.transfers.coins_from_transfers import drawn_numbers, toss
from umpc.mpc.transfers.correlated_ot import fresh_delta
from umpc.mpc.transfers.message_shapes import TossPlan, link_shapes

NAMES = ["north", "south", "west"]
ATTEMPT = bytes(range(32))


@pytest.fixture
def fast():
    with without_points():
        yield


def links(label: str = "links", names=NAMES) -> list[Channels]:
    seeds = [seed_of(f"{label} {name}") for name in names]
    return [Channels(at, names, ATTEMPT, seed) for at, seed in enumerate(seeds)]


def set_up(members: list[Channels]) -> list:
    sent = []
    for one, two in combinations(range(len(members)), 2):
        _, lines = run_in_memory([members[one].set_up(two), members[two].set_up(one)])
        sent += [((one, two)[:: -1 if line.party else 1], line.message) for line in lines]
    return sent


@pytest.mark.usefixtures("fast")
def test_coins_over_these_channels_are_those_of_the_members_numbers():
    members = links()
    set_up(members)
    thresholds = (1 << 63, 3 << 61, 12345678901234567890)
    plan = TossPlan(3, RINGS[1], (CoinToss(thresholds, (1, 10, 100)),))
    seeds = [seed_of(f"numbers {name}") for name in NAMES]
    parties = [toss(plan, each.seat(), seed) for each, seed in zip(members, seeds, strict=True)]
    shares, _ = run_mesh(parties)
    u = [0, 0, 0]
    for seed in seeds:
        u = [a ^ int(b) for a, b in zip(u, drawn_numbers(seed, 3), strict=True)]
    expected = sum(w * (a < c) for a, c, w in zip(u, thresholds, (1, 10, 100), strict=True))
    assert RINGS[1].decode(sum(share for (share,) in shares)) == expected


@pytest.mark.usefixtures("fast")
def test_the_set_ups_messages_have_the_planned_shapes():
    sent = set_up(links())
    for pair in [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2)]:
        found = [(m.step, len(m.payload), m.width) for ends, m in sent if ends == pair and m.width]
        assert found == [(m.step, len(m.payload), m.width) for m in link_shapes(*pair)]


@pytest.mark.usefixtures("fast")
def test_no_seat_before_every_channel_and_no_channel_twice():
    members = links()
    run_in_memory([members[0].set_up(1), members[1].set_up(0)])
    with pytest.raises(LocalProtocolError, match="nothing is set up with west"):
        members[0].seat()
    with pytest.raises(LocalProtocolError, match="channel to south was set up before"):
        next(members[0].set_up(1))


@pytest.mark.parametrize("shape", ["one byte less", "nothing", "a huge count", "another step"])
@pytest.mark.parametrize(("liar", "step"), [(1, "ot_offer"), (0, "ot_choice"), (1, "ot_trees")])
def test_a_message_of_another_shape_names_its_sender(liar, step, shape):
    def lying(party):
        came = None
        while True:
            try:
                message = party.send(came)
            except StopIteration:
                return None
            is_told = message.step == step and message.width
            changed: Message = WRONG_SHAPES[shape](message) if is_told else message
            came = yield changed

    members = links()
    parties = [members[0].set_up(1), members[1].set_up(0)]
    parties[liar] = lying(parties[liar])
    with pytest.raises(RemoteProtocolError) as caught:
        run_in_memory(parties)
    assert (caught.value.culprit, caught.value.step) == (NAMES[liar], step)


def test_channels_of_other_attempts_or_seeds_have_nothing_in_common():
    """With curve points. A seed serves one attempt; the attempt is in every hash all the same."""
    two = NAMES[:2]
    own = [seed_of(f"links {name}") for name in two]
    other_attempt = [Channels(at, two, bytes(32), seed) for at, seed in enumerate(own)]
    runs = [links(names=two), links("other", two), other_attempt]
    sent = [set_up(members) for members in runs]
    trees = [m.payload for lines in sent for _, m in lines if m.step == "ot_trees" and m.payload]
    assert len(set(trees)) == len(trees) == 3
    points = [m.payload for lines in sent[:2] for _, m in lines if m.payload]
    assert len(set(points)) == len(points) == 2 * 3


def test_nothing_secret_is_shown():
    (member, *_) = links()
    assert "redacted" in repr(member) and seed_of("links north").hex() not in repr(member)


@pytest.mark.usefixtures("fast")
def test_forks_among_some_members_agree_and_have_sessions_of_their_own():
    """No two forks hash under one key, and a fork leads to the members that it is for."""
    members = links()
    set_up(members)
    sessions = set()
    for label in (("chunk", 1), ("chunk", 2), ("toss",)):
        first, last = (members[place].forked((0, 2), *label) for place in (0, 2))
        assert (first.number, last.number, first.names) == (0, 1, ["north", "west"])
        sender, receiver = first.senders[1], last.receivers[0]
        choices = np.array([0, 1, 1, 0], dtype=np.uint8)
        got, message = receiver.extend(choices)
        sent = sender.extend(message, 4)
        assert (got.blocks ^ sent.blocks == choices[:, None] * sender.delta).all()
        assert sender.session == receiver.session and sender.peer == "west"
        sessions.add(sender.session)
    assert len(sessions) == 3 and members[0].seat().senders[2].session not in sessions


def made_before(session: bytes = b"an earlier study") -> tuple:
    """Both ends of a channel that was made before the attempt."""
    seed = seed_of("made before")
    sender = open_sender(seed, fresh_delta(seed), session, NAMES[1])
    made, _ = run_in_memory([sender, open_receiver(seed, session, NAMES[0])])
    return made


@pytest.mark.usefixtures("fast")
def test_a_channel_that_was_made_before_serves_in_place_of_a_set_up():
    """The coins follow from the numbers; another attempt's messages over it are others."""
    plan = TossPlan(2, RINGS[1], (CoinToss((1 << 63, 3 << 61), (1, 10)),))
    seeds = [seed_of(f"numbers {name}") for name in NAMES[:2]]
    sent = []
    for attempt in (ATTEMPT, bytes(32)):
        ends = made_before()
        pair = [Channels(at, NAMES[:2], attempt, seeds[at]) for at in range(2)]
        pair[0].take_up(1, ends[0])
        pair[1].take_up(0, ends[1])
        tosses = [toss(plan, each.seat(), seed) for each, seed in zip(pair, seeds, strict=True)]
        shares, lines = run_mesh(tosses)
        sent.append(str(lines) + repr([line.message.payload for line in lines]))
        u = [int(a ^ b) for a, b in zip(*(drawn_numbers(seed, 2) for seed in seeds), strict=True)]
        expected = sum(w * (a < c) for a, c, w in zip(u, (1 << 63, 3 << 61), (1, 10), strict=True))
        assert RINGS[1].decode(sum(share for (share,) in shares)) == expected
    assert sent[0] != sent[1]


@pytest.mark.usefixtures("fast")
def test_a_channel_is_taken_up_once_and_at_the_right_end():
    sender, receiver = made_before()
    first = links(names=NAMES[:2])[0]
    with pytest.raises(LocalProtocolError, match="the other way round"):
        first.take_up(1, receiver)
    first.take_up(1, sender)
    with pytest.raises(LocalProtocolError, match="set up before"):
        first.take_up(1, sender)
    with pytest.raises(LocalProtocolError, match="set up before"):
        next(first.set_up(1))
