"""umpc/transport/hub/agreed.py: sessions that two nodes make by themselves."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agreed_ends import MEETING, SECRET, Pair, User, link_of, made_at
from behind_hub import echo_behind, hub_of, run
from two_ends import NORTH, SOUTH

from umpc.errors import PeerLost, RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import agreed
from umpc.transport.hub import numbering as n
from umpc.transport.hub.agreed import ACK_SECONDS, PROBE_SECONDS
from umpc.transport.hub.sealing import agree

# ---- keys ------------------------------------------------------------------------------------


def test_no_two_sessions_and_no_two_directions_have_one_key():
    """Else a nonce would be used twice: numbers begin at 1 in each."""
    bodies, numbers = set(), set()
    places = [(NORTH, SOUTH), (SOUTH, NORTH), (NORTH, NORTH._replace(name="west"))]
    for ends in places:
        for meeting in (MEETING, b"n" * 32):
            for secret in (SECRET, b"t" * 32):
                for initiates in (True, False):
                    made = agree(secret, meeting, ends, "relay", initiates=initiates)
                    bodies.add(made.seal.close(pb.HUB_SEALED, bytes(64))[1][:64])
                    numbers.add(made.parties.session)
    assert len(bodies) == len(places) * 2 * 2 * 2 and len(numbers) == len(places) * 2 * 2


def test_only_the_two_nodes_can_tell_a_sessions_number():
    """A third node that knew it could say that it got an envelope of it, and blame the hub."""
    one, two = (made_at(at).parties.session for at in range(2))
    assert one == two and len(one) == 16
    assert made_at(0, secret=b"another secret").parties.session != one


def test_a_link_makes_one_session_for_a_meeting(site):
    async def scenario():
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("a")):
            link = link_of("a")
            link.agree("a", "b", MEETING, SECRET, User())
            with pytest.raises(Exception, match="there is a session with node 'b'"):
                link.agree("a", "b", MEETING, SECRET, User())

    run(scenario())


# ---- messages ---------------------------------------------------------------------------------


def test_messages_of_every_size_go_both_ways_without_any_other_envelope():
    async def scenario():
        pair = Pair()
        sizes = (0, 1, 1000, n.PART_BYTES, n.PART_BYTES + 1, 3 * n.PART_BYTES)
        sent = [bytes([size % 251]) * size for size in sizes]
        for message in sent:
            if not pair.north.write_now(message):
                await pair.north.write(message)
            assert pair.south.write_now(b"answer")
        count = pair.exchange()
        assert pair.users[1].got == sent and pair.users[0].got == [b"answer"] * len(sent)
        parts = sum(max(1, -(-size // n.PART_BYTES)) for size in sizes)
        assert count - parts - len(sent) <= 2, "but for acknowledgements of large messages"
        kinds = {envelope.kind for envelope in pair.envelopes}
        assert kinds == {pb.HUB_SEALED}

    asyncio.run(scenario())


def test_a_greeting_comes_once_and_is_short():
    pair = Pair()
    pair.north.greet(b"channel")
    pair.exchange()
    assert pair.users[1].greetings == [b"channel"]
    for word in (b"channel", bytes(agreed.MOST_GREETING + 1)):
        pair = Pair()
        pair.north.greet(b"" if len(word) < 10 else word)
        pair.north.greet(word)
        pair.exchange()
        (failure,) = pair.users[1].failures
        assert isinstance(failure, RemoteProtocolError) and failure.culprit == "north"


@pytest.mark.parametrize("kind", [n.CALL, n.END, n.REST, n.LASTING, n.CANCEL, n.HALF_CLOSE])
def test_a_record_of_a_call_has_no_place_here(kind):
    pair = Pair()
    pair.north._numbering.append(kind, b"")
    pair.exchange()
    (failure,) = pair.users[1].failures
    assert isinstance(failure, RemoteProtocolError) and failure.culprit == "north"
    assert [envelope.kind for envelope in pair.lines[1].refused] == [pb.HUB_REFUSE]


def test_a_message_that_its_user_refuses_ends_the_session():
    pair = Pair()
    pair.north.write_now(b"not a frame")
    pair.north.write_now(b"another")
    pair.exchange()
    assert pair.users[1].got == [] and pair.users[1].failures[0].message == "it sent no frame"
    assert pair.lines[1].gone and pair.lines[1].refused


def test_a_user_without_room_holds_its_writer_back():
    async def scenario():
        pair = Pair()
        pair.users[1].takes_some = False
        message = bytes(n.PART_BYTES)
        written = 0
        while pair.north.write_now(message):
            written += 1
            pair.exchange()
        assert written * (len(message) + n.RECORD_BYTES) <= n.WINDOW
        writing = asyncio.create_task(pair.north.write(message))
        await asyncio.sleep(0)
        assert pair.users[1].got == [] and not writing.done()
        pair.users[1].takes_some = True
        pair.south.deliver()
        pair.exchange()
        await writing
        pair.exchange()
        assert len(pair.users[1].got) == written + 1

    asyncio.run(scenario())


def test_a_dropped_session_says_nothing_and_ends_its_writers():
    async def scenario():
        pair = Pair()
        while pair.north.write_now(bytes(n.PART_BYTES)):
            pass
        writing = asyncio.create_task(pair.north.write(bytes(n.PART_BYTES)))
        await asyncio.sleep(0)
        pair.north.drop()
        with pytest.raises(EOFError):
            await writing
        assert not pair.north.write_now(b"more")
        assert pair.lines[0].gone and not pair.lines[0].refused and not pair.users[0].failures

    asyncio.run(scenario())


def test_whoever_waits_until_all_has_left_waits_for_the_line_only():
    async def scenario():
        pair = Pair()
        pair.north.write_now(b"last")
        leaving = asyncio.create_task(pair.north.left(60))
        await asyncio.sleep(0)
        assert not leaving.done()
        pair.exchange(loses=lambda envelope: True)
        await leaving

    asyncio.run(scenario())


# ---- time ------------------------------------------------------------------------------------


def test_a_session_without_news_is_silent_and_then_acknowledges_once():
    pair = Pair()
    pair.north.write_now(b"one")
    assert pair.exchange() == 1
    assert pair.pass_time(ACK_SECONDS - 1) == 0
    assert pair.pass_time(2) == 1
    assert pair.pass_time(10 * PROBE_SECONDS) == 0


def test_a_last_record_that_the_hub_dropped_is_noticed_by_a_question():
    pair = Pair()
    pair.north.write_now(b"one")
    pair.exchange()
    pair.north.write_now(b"two")
    pair.exchange(loses=lambda envelope: True)
    pair.pass_time(PROBE_SECONDS + 1)
    (failure,) = pair.users[1].failures
    assert isinstance(failure, RemoteProtocolError) and failure.culprit == "relay"


def test_a_peer_that_is_away_is_lost_after_the_grace_and_one_that_is_slow_is_not():
    slow, away = Pair(), Pair()
    for pair in (slow, away):
        pair.north.write_now(b"one")
        pair.north.pull()
    for second in range(31):
        assert not away.users[0].failures, second
        away.north.ask(absent=True)
        away.north.tick(1.0)
        slow.north.tick(1.0)
        slow.north.pull()
    (failure,) = away.users[0].failures
    assert isinstance(failure, PeerLost) and failure.culprit == "south"
    assert not slow.users[0].failures


# ---- early envelopes ------------------------------------------------------------------------


def test_the_first_gap_is_a_reason_to_ask_and_the_next_one_names_the_hub():
    pair = Pair()
    pair.north.write_now(b"one")
    pair.exchange(loses=lambda envelope: True)
    pair.north.write_now(b"two")
    pair.exchange()
    assert pair.users[1].got == [b"one", b"two"]
    pair.north.write_now(b"three")
    pair.exchange(loses=lambda envelope: True)
    pair.north.write_now(b"four")
    pair.exchange()
    (failure,) = pair.users[1].failures
    assert failure.culprit == "relay" and "missing" in failure.message


def test_envelopes_are_early_until_the_other_end_was_heard():
    pair = Pair()
    pair.north.write_now(b"one")
    pair.exchange()
    pair.north.write_now(b"two")
    pair.exchange()
    pair.south.write_now(b"answer")
    pair.exchange()
    pair.north.write_now(b"three")
    pair.exchange()
    assert [envelope.early for envelope in pair.envelopes] == [True, True, False, False]
    assert pair.north.peer.instance == pair.south.peer.instance == b"i" * 16
