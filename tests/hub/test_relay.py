"""umpc/hub/relay.py: where envelopes go, how much may wait, and what is told about the rest."""

from __future__ import annotations

import pytest

from umpc.errors import AddressInUse, RemoteProtocolError
from umpc.hub import relay as r
from umpc.proto.v1 import umpc_pb2 as pb

BODY = bytes(1 << 18)
AWAY, GONE = pb.HubNotice.AWAY, pb.HubNotice.GONE
"""Notices: a process that is not connected is expected, or it is not."""


def seat(relay: r.Relay, name: str, instance: int = 1, *, listens: bool = True) -> r.Seat:
    join = pb.HubJoin(instance=bytes([instance]) * 16, listens=listens)
    return relay.join("node", name, join, 0.0)[0]


def envelope(
    name: str, instance: int = 0, kind: int = pb.HUB_SEALED, body: bytes = b"x", session: int = 7
) -> pb.HubEnvelope:
    target = pb.HubMember(role="node", name=name, instance=bytes([instance]) * 16)
    if not instance:
        target.ClearField("instance")
    number = session.to_bytes(16, "big")
    return pb.HubEnvelope(target=target, session=number, kind=kind, body=body)


def notices(seat: r.Seat, relay: r.Relay | None = None) -> list[int]:
    found = []
    while (frame := relay.take(seat) if relay else seat.take()) is not None:
        assert frame.WhichOneof("body") == "notice"
        found.append(frame.notice.kind)
    return found


def test_an_envelope_goes_to_its_receiver_with_its_true_sender():
    relay = r.Relay()
    north, south = seat(relay, "north"), seat(relay, "south")
    forged = envelope("south")
    forged.source.name = "east"
    assert relay.route(north, forged) == [south]
    frame = south.take()
    assert frame.envelope.source.name == "north" and frame.envelope.body == b"x"
    assert south.take() is None and south.waiting == 0 and not south.by_sender


def test_an_instance_is_reached_by_its_own_number_and_a_caller_by_no_name():
    relay = r.Relay()
    north, caller = seat(relay, "north"), seat(relay, "caller", 7, listens=False)
    assert relay.route(north, envelope("caller", 7)) == [caller]
    assert relay.route(north, envelope("caller")) == [north]
    assert notices(north) == [GONE]


def test_who_is_away_is_expected_and_who_was_replaced_is_gone_at_once():
    relay = r.Relay()
    north, south = seat(relay, "north"), seat(relay, "south")
    relay.route(north, envelope("south"))
    assert relay.leave(south, for_good=False) == [north]
    relay.route(north, envelope("south", 1))
    assert notices(north) == [AWAY, AWAY]
    join = pb.HubJoin(instance=bytes([2]) * 16, listens=True)
    assert relay.join("node", "south", join, 0.0)[1] == [north], "nobody asked"
    relay.route(north, envelope("south", 1))
    assert notices(north) == [GONE, GONE]


def test_a_name_whose_connection_broke_is_expected_until_it_returns_or_its_time_is_over():
    relay = r.Relay()
    north, south = seat(relay, "north"), seat(relay, "south")
    relay.leave(south, for_good=False)
    relay.route(north, envelope("south"))
    again = seat(relay, "south")
    assert relay.route(north, envelope("south")) == [again]
    assert again.waiting
    relay.leave(again, for_good=False)
    assert not again.queue, "it is remembered without what waited for it"
    relay.expire(south)  # of its first connection, since which it was here
    relay.route(north, envelope("south"))
    assert relay.expire(again) == [north]
    relay.route(north, envelope("south"))
    assert notices(north) == [AWAY, AWAY, AWAY, GONE, GONE], "the last but one unasked"
    caller = seat(relay, "east", listens=False)
    relay.leave(caller, for_good=False)
    relay.leave(seat(relay, "west"), for_good=True)
    for name in ("east", "west"):
        relay.route(north, envelope(name))
    assert notices(north) == [GONE, GONE], "nobody can open a session with these"


@pytest.mark.parametrize("instance", [0, 1], ids=["its name", "its process"])
def test_a_hub_expects_everybody_while_it_is_young_but_who_left_it(instance):
    """It does not know who was connected to the hub before it."""
    is_young = True
    relay = r.Relay(lambda: is_young)
    north = seat(relay, "north")

    def told() -> int:
        relay.route(north, envelope("south", instance))
        (found,) = notices(north)
        return found

    assert told() == AWAY
    is_young = False
    assert told() == GONE, "it never came"
    is_young = True
    relay.leave(seat(relay, "south"), for_good=True)
    assert told() == GONE, "it said so"
    relay.leave(seat(relay, "south"), for_good=False)
    assert told() == AWAY, "it was here since"
    if instance:
        seat(relay, "south", 2)
        assert notices(north) == [GONE] and told() == GONE, "another process has its name"


def test_a_process_that_only_calls_is_expected_beside_one_that_listens():
    """`umpc node doctor` calls with the certificate of a node that runs."""
    relay = r.Relay()
    north, _ = seat(relay, "north"), seat(relay, "south")
    doctor = seat(relay, "south", 2, listens=False)
    relay.route(doctor, envelope("north"))
    north.take()
    relay.leave(doctor, for_good=False)
    relay.route(north, envelope("south", 2))
    assert notices(north) == [AWAY, AWAY] and relay.expire(doctor) == [north]
    assert notices(north) == [GONE]


def test_who_leaves_for_good_is_gone_to_those_that_it_talked_with():
    relay = r.Relay()
    north, south, east = (seat(relay, name) for name in ("north", "south", "east"))
    relay.route(south, envelope("north"))
    assert relay.leave(south, for_good=True) == [north]
    north.take()
    assert notices(north) == [GONE] and notices(east) == []


@pytest.mark.parametrize("asks", [False, True], ids=["talked before", "asked meanwhile"])
def test_who_stays_away_for_the_grace_is_gone_by_the_hubs_clock(asks):
    """A member's own time is longer where it shares its processor: 62 to 120 s for 30."""
    relay = r.Relay()
    north, caller, east = (seat(relay, name) for name in ("north", "caller", "east"))
    if not asks:
        relay.route(caller, envelope("north"))
        north.take()
    relay.leave(caller, for_good=False)
    if asks:
        relay.route(north, envelope("caller", 1))
    assert notices(north) == [AWAY] and relay.expire(caller) == [north]
    assert notices(north) == [GONE] and notices(east) == []
    assert relay.expire(caller) == [], "it is told once"


def test_who_came_back_or_has_a_successor_is_not_gone():
    relay = r.Relay()
    _, south, west = (seat(relay, name) for name in ("north", "south", "west"))
    for other in (south, west):
        relay.route(other, envelope("north"))
        relay.leave(other, for_good=False)
    seat(relay, "south")
    seat(relay, "west", 2)
    assert relay.expire(south) == relay.expire(west) == []


def test_a_process_that_comes_again_takes_its_own_place_and_no_other_does():
    relay = r.Relay()
    north, south = seat(relay, "north"), seat(relay, "south")
    relay.route(north, envelope("south"))
    again = seat(relay, "south")
    assert relay.leave(south, for_good=False) == [], "the old connection counts no more"
    assert relay.route(north, envelope("south")) == [again]
    assert relay.leave(again, for_good=False) == [north]
    seat(relay, "south")
    with pytest.raises(AddressInUse, match="another process of node 'south'"):
        seat(relay, "south", 2)
    with pytest.raises(RemoteProtocolError, match="instance"):
        relay.join("node", "east", pb.HubJoin(instance=b"short"), 0.0)


def test_a_slow_receiver_bounds_the_memory_and_holds_up_nobody_else():
    relay = r.Relay()
    senders = [seat(relay, f"sender-{i}") for i in range(12)]
    slow, quick = seat(relay, "slow"), seat(relay, "quick")
    for sender in senders:
        for _ in range(100):
            relay.route(sender, envelope("slow", body=BODY))
        assert slow.by_sender.get(sender.key[:2], 0) <= r.PAIR_BYTES
        assert notices(sender, relay) == [pb.HubNotice.CONGESTED], "once, and not for each envelope"
        assert relay.route(sender, envelope("quick")) == [quick]
    assert slow.waiting <= r.MEMBER_BYTES
    assert relay.waiting == slow.waiting + quick.waiting


def test_an_honest_envelope_waits_behind_one_of_each_other_member():
    """A member that floods with all its processes neither delays it nor takes its room."""
    relay = r.Relay()
    south, honest = seat(relay, "south"), seat(relay, "honest")
    for number in range(1, 20):
        liar = seat(relay, "liar", number, listens=False)
        for _ in range(100):
            relay.route(liar, envelope("south", body=BODY))
    assert liar.dropped == 100 * 17 and relay.processes_of(liar) == 19
    assert south.by_sender["node", "liar"] <= r.PAIR_BYTES
    for number in range(3):
        assert relay.route(honest, envelope("south", body=bytes([number]))) == [south]
    relay.leave(honest, for_good=True)
    found = [relay.take(south) for _ in range(8)]
    of_liar, of_honest = found[::2], found[1::2]
    assert {each.envelope.source.name for each in of_liar} == {"liar"}
    assert [each.envelope.body for each in of_honest[:3]] == [b"\0", b"\1", b"\2"]
    assert of_honest[3].notice.kind == GONE, "not before what it sent"


def test_notices_about_many_names_take_one_turn():
    relay = r.Relay()
    north, south = seat(relay, "north"), seat(relay, "south")
    for number in range(1000):
        relay.route(north, envelope(f"nobody-{number}"))
    relay.route(south, envelope("north"))
    assert len(north.queue) == 1001
    first, second = relay.take(north), relay.take(north)
    assert first.notice.kind == GONE
    assert second.envelope.source.name == "south", "it waits behind one notice"


def test_after_a_drop_nothing_of_a_session_passes_until_it_asks_to_resume():
    relay = r.Relay()
    north, south = seat(relay, "north"), seat(relay, "south")
    while north.take() is None:
        relay.route(north, envelope("south", body=BODY))
    while south.take() is not None:
        pass
    assert relay.route(north, envelope("south")) == [], "it would leave a gap"
    assert relay.route(north, envelope("south", kind=pb.HUB_RESUME)) == [south]
    assert relay.route(north, envelope("south")) == [south]


def test_the_status_counts_what_waits_and_what_was_sent():
    relay = r.Relay()
    north, south = seat(relay, "north"), seat(relay, "south")
    relay.route(north, envelope("south", body=b"12345"))
    waiting = [each.waiting for each in relay.status(9.0)]
    south.take()
    relayed = [each.relayed for each in relay.status(9.0)]
    assert waiting == [0, 5 + r.FRAME_BYTES] and relayed == [0, 5]
    assert [each.seconds for each in relay.status(9.0)] == [9, 9]


def test_a_lying_sender_takes_no_more_memory_than_its_share():
    """Questions to resume, large names and sessions, and empty bodies: all of them count."""
    relay = r.Relay()
    liar, honest = seat(relay, "liar"), seat(relay, "honest")
    slow = seat(relay, "slow")
    for number in range(6_000):
        kind = (pb.HUB_RESUME, pb.HUB_SEALED, pb.HUB_OPEN)[number % 3]
        relay.route(liar, envelope("slow", kind=kind, body=b"", session=number))
    assert slow.by_sender[liar.key[:2]] <= r.PAIR_BYTES + r.PAIR_SLACK_BYTES
    assert len(slow.queue) * 1700 < r.PAIR_BYTES + r.PAIR_SLACK_BYTES, "as a queue takes it"
    assert len(slow.held_up[liar.key]) <= r.MOST_HELD_UP
    assert relay.route(honest, envelope("slow")) == [slow]
    wide = bytes(r.RESUME_BYTES + 1)
    wrong = [envelope("slow", kind=pb.HUB_RESUME, body=wide), envelope("n" * 64), envelope("")]
    wrong += [envelope("slow"), envelope("slow"), envelope("slow")]
    wrong[3].session, wrong[4].target.role = bytes(1 << 20), "r" * (1 << 20)
    wrong[5].target.instance = bytes(1 << 20)
    for each in wrong:
        with pytest.raises(RemoteProtocolError, match="liar sent an envelope of a wrong form"):
            relay.route(liar, each)
    unknown = pb.HubEnvelope.FromString(
        envelope("honest").SerializeToString() + b"\x82\x7d\x80\x80\x40" + bytes(1 << 20)
    )
    relay.route(liar, unknown)
    assert honest.take().ByteSize() < 200, "fields that nobody knows are left out"


def test_a_certificate_has_few_connections_and_they_are_counted():
    relay = r.Relay()
    for number in range(r.MOST_SEATS):
        last = seat(relay, "north", number, listens=False)
    with pytest.raises(RemoteProtocolError, match="64 processes connected"):
        seat(relay, "north", 99, listens=False)
    assert seat(relay, "north", 5, listens=False) is not None, "it comes again"
    relay.leave(last, for_good=True)
    seat(relay, "north", 99, listens=False)


def test_a_full_hub_gives_every_receiver_its_share(limit):
    limit(r, HUB_BYTES=1 << 20)
    relay = r.Relay()
    sender, slow, quick = seat(relay, "sender"), seat(relay, "slow"), seat(relay, "quick")
    for number in range(99):
        relay.route(sender, envelope("slow", body=BODY[: 1 << 16], session=number))
    assert slow.waiting <= r.HUB_BYTES < relay.waiting + len(BODY), "the notices wait beside it"
    assert relay.route(sender, envelope("quick")) == [quick]
    while (
        sender.take() is not None or relay.take(slow) is not None or relay.take(quick) is not None
    ):
        pass
    for each in (sender, slow, quick):
        relay.leave(each, for_good=False)
    assert not relay.seats
    assert not any(relay.processes_of(each) for each in (sender, slow, quick))


def test_what_is_left_in_a_former_connection_is_dropped():
    """It would come after the question to resume, out of its order, and the hub would be blamed."""
    relay = r.Relay()
    former, south = seat(relay, "north"), seat(relay, "south")
    relay.route(former, envelope("south"))
    again = seat(relay, "north")
    assert again.replaces is former and former.is_replaced
    assert relay.route(again, envelope("south", kind=pb.HUB_RESUME)) == [south]
    assert relay.route(former, envelope("south")) == []
    assert [south.take().envelope.kind for _ in range(2)] == [pb.HUB_SEALED, pb.HUB_RESUME]
    assert south.take() is None


def test_nothing_is_kept_of_those_that_left():
    relay = r.Relay()
    south = seat(relay, "south")
    for number in range(1, 9):
        caller = seat(relay, f"caller-{number}", number, listens=False)
        for session in range(50):
            relay.route(caller, envelope("south", body=BODY, session=session))
        assert south.held_up
        relay.leave(caller, for_good=number % 2 == 0)
        while relay.take(south) is not None:
            pass
    assert not south.talked and not south.held_up and not south.by_sender
    assert relay.waiting == 0 and len(relay.seats) == 1


def test_nothing_is_kept_of_those_whose_every_envelope_was_dropped():
    """A member with a process that reads nothing could fill the hub's memory with such names."""
    relay = r.Relay()
    south = seat(relay, "south")
    south.waiting = r.MEMBER_BYTES
    for number in range(1, 9):
        caller = seat(relay, "caller", number, listens=False)
        assert relay.route(caller, envelope("south")) == [caller]
        assert south.held_up
        relay.leave(caller, for_good=number % 2 == 0)
    assert not south.held_up


def test_an_opening_that_found_no_room_is_tried_again_and_held_up_by_nothing():
    relay = r.Relay()
    north, south = seat(relay, "north"), seat(relay, "south")
    while not north.queue:
        relay.route(north, envelope("south", body=BODY))
    opening = envelope("south", kind=pb.HUB_OPEN, body=BODY, session=8)
    assert relay.route(north, opening) == [north]
    while relay.take(south) is not None:
        pass
    assert relay.route(north, opening) == [south]
