"""umpc/hub/relay.py: where envelopes go, how much may wait, and what is told about the rest."""

from __future__ import annotations

import pytest

from umpc.errors import AddressInUse, RemoteProtocolError
from umpc.hub import relay as r
from umpc.proto.v1 import umpc_pb2 as pb

BODY = bytes(1 << 18)


def seat(relay: r.Relay, name: str, instance: int = 1, *, listens: bool = True) -> r.Seat:
    join = pb.HubJoin(instance=bytes([instance]) * 16, listens=listens)
    return relay.join("node", name, join, 0.0)


def envelope(name: str, instance: int = 0, kind: int = pb.HUB_SEALED, body: bytes = b"x"):
    target = pb.HubMember(role="node", name=name, instance=bytes([instance]) * 16)
    if not instance:
        target.ClearField("instance")
    return pb.HubEnvelope(target=target, session=b"s" * 16, kind=kind, body=body)


def notices(seat: r.Seat) -> list[int]:
    found = []
    while (frame := seat.take()) is not None:
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
    assert notices(north) == [pb.HubNotice.ABSENT]


def test_who_is_away_is_absent_and_who_was_replaced_is_gone():
    relay = r.Relay()
    north, south = seat(relay, "north"), seat(relay, "south")
    relay.route(north, envelope("south"))
    assert relay.leave(south, for_good=False) == [north]
    relay.route(north, envelope("south", 1))
    seat(relay, "south", 2)
    relay.route(north, envelope("south", 1))
    assert notices(north) == [pb.HubNotice.ABSENT, pb.HubNotice.ABSENT, pb.HubNotice.GONE]


def test_who_leaves_for_good_is_gone_to_those_that_it_talked_with():
    relay = r.Relay()
    north, south, east = (seat(relay, name) for name in ("north", "south", "east"))
    relay.route(south, envelope("north"))
    assert relay.leave(south, for_good=True) == [north]
    north.take()
    assert notices(north) == [pb.HubNotice.GONE] and notices(east) == []


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
        assert slow.by_sender[sender.key] <= r.PAIR_BYTES
        assert notices(sender) == [pb.HubNotice.CONGESTED], "once, and not for each envelope"
        assert relay.route(sender, envelope("quick")) == [quick]
    assert slow.waiting <= r.MEMBER_BYTES
    for _ in range(1000):
        relay.route(senders[0], envelope("slow", kind=pb.HUB_RESUME, body=BODY))
    assert slow.waiting <= r.MEMBER_BYTES + r.SLACK_BYTES


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
    assert waiting == relayed == [0, 5 + r.FRAME_BYTES]
    assert [each.seconds for each in relay.status(9.0)] == [9, 9]
