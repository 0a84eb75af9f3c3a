"""umpc/transport/hub/agreed.py: sessions that two nodes make by themselves."""

from __future__ import annotations

import asyncio
import random
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from behind_hub import echo_behind, hub_of, run
from two_ends import NORTH, SOUTH, Here

from umpc.errors import CertificateError, PeerLost, RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import agreed, early, routes
from umpc.transport.hub import numbering as n
from umpc.transport.hub.agreed import ACK_SECONDS, PROBE_SECONDS, AgreedSession
from umpc.transport.hub.sealing import agree

MEETING, SECRET = b"m" * 32, b"s" * 32


class User:
    """The user of a session. takes_some: it has room."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.greetings: list[bytes] = []
        self.failures: list[Exception] = []
        self.takes_some = True
        self.news = asyncio.Event()

    def takes(self) -> bool:
        return self.takes_some

    def came(self, message: bytes) -> None:
        if message == b"not a frame":
            raise RemoteProtocolError("it sent no frame", culprit="north")
        self.got.append(message)
        self.news.set()

    def greeted(self, word: bytes) -> None:
        self.greetings.append(word)

    def failed(self, error: Exception) -> None:
        self.failures.append(error)
        self.news.set()

    async def until(self, count: int) -> list[bytes]:
        """Wait for so many messages, or a failure."""
        while len(self.got) < count and not self.failures:
            self.news.clear()
            await self.news.wait()
        return self.got


class Line(Here):
    """A connection on which refusals are noted."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[pb.HubEnvelope] = []

    def refuse(self, envelope: pb.HubEnvelope) -> None:
        self.refused.append(envelope)


def made_at(at: int, meeting: bytes = MEETING, secret: bytes = SECRET):
    """The session as north, or south, makes it."""
    return agree(secret, meeting, (NORTH, SOUTH), "relay", initiates=not at)


class Pair:
    """Both ends of a session, on a line that loses what it is told to."""

    def __init__(self, meeting: bytes = MEETING, secret: bytes = SECRET):
        self.users = User(), User()
        self.lines = Line(), Line()
        self.north, self.south = (
            AgreedSession(self.lines[at], made_at(at, meeting, secret), self.users[at])
            for at in range(2)
        )
        self.envelopes: list[pb.HubEnvelope] = []

    def exchange(self, *, loses=lambda envelope: False) -> int:
        """Deliver all that is due. Returns: the number of envelopes that left."""
        before = len(self.envelopes)
        is_moving = True
        while is_moving:
            is_moving = False
            for source, target in ((self.north, self.south), (self.south, self.north)):
                while (envelope := source.pull()) is not None:
                    is_moving = True
                    envelope.source.role, envelope.source.name = target.other
                    envelope.source.instance = b"i" * 16
                    self.envelopes.append(envelope)
                    if not loses(envelope):
                        target.take(envelope)
        return len(self.envelopes) - before

    def pass_time(self, seconds: float) -> int:
        """Let time pass. Returns: the number of envelopes that left in it."""
        sent = 0
        for _ in range(int(seconds)):
            self.north.tick(1.0)
            self.south.tick(1.0)
            sent += self.exchange()
        return sent


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


class Walk:
    """Two ends on a line that breaks, of which the second one is made later. Seeded."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.users = User(), User()
        self.ends: list[AgreedSession | None] = [self._end(0), None]
        self.queues: tuple[list[pb.HubEnvelope], list[pb.HubEnvelope]] = ([], [])
        self.is_marked = False
        self.written: tuple[list[bytes], list[bytes]] = ([], [])

    def _end(self, at: int) -> AgreedSession:
        return AgreedSession(Line(), made_at(at), self.users[at])

    def make(self) -> None:
        if self.ends[1] is None:
            self.ends[1] = self._end(1)
            if self.is_marked:
                self.ends[1].ask()

    def write(self, at: int) -> None:
        end = self.ends[at]
        if end is not None:
            message = bytes([len(self.written[at]) % 256]) * self.draw.choice((1, 300_000))
            if end.write_now(message):
                self.written[at].append(message)

    def send(self, at: int) -> None:
        end = self.ends[at]
        if end is not None and (envelope := end.pull()) is not None:
            envelope.source.role, envelope.source.name = (NORTH, SOUTH)[at]
            envelope.source.instance = b"i" * 16
            self.queues[1 - at].append(envelope)

    def deliver(self, at: int) -> None:
        if self.queues[at]:
            envelope, end = self.queues[at].pop(0), self.ends[at]
            if end is not None:
                end.take(envelope)
            else:
                assert envelope.early, "a process refuses what it does not know"
                self.is_marked = True

    def breaks(self) -> None:
        for queue in self.queues:
            queue.clear()
        for end in self.ends:
            if end is not None:
                end.connection_lost()
                end.connection_back()

    def step(self) -> None:
        at = self.draw.randrange(2)
        what = self.draw.random()
        if what < 0.03:
            self.breaks()
        elif what < 0.06:
            self.make()
        elif what < 0.2:
            self.write(at)
        elif what < 0.6:
            self.send(at)
        else:
            self.deliver(at)

    def end(self) -> None:
        """Let everything arrive, in which time passes if it must."""
        self.make()
        for _ in range(200):
            for at in (0, 1):
                for _ in range(20):
                    self.send(at)
                    self.deliver(1 - at)
            for each in self.ends:
                assert each is not None
                each.tick(1.0)


def test_after_any_order_of_sending_making_and_breaking_all_messages_are_there_once():
    for seed in range(120):
        walk = Walk(seed)
        for _ in range(walk.draw.randrange(300)):
            walk.step()
        walk.end()
        for at in (0, 1):
            assert not walk.users[at].failures, (seed, walk.users[at].failures)
            assert walk.users[at].got == walk.written[1 - at], seed


def link_of(name: str):
    return next(link for link in routes._here().values() if link.identity.name == name)


def ends_of(one: str, two: str, meeting: bytes = MEETING):
    """Make both ends of a session over the links of two members. Returns: them and their users."""
    users = User(), User()
    ends = [
        link_of(name).agree(one, two, meeting, SECRET, user)
        for name, user in zip((one, two), users, strict=True)
    ]
    return ends, users


@pytest.mark.parametrize("is_remembered", [True, False])
@pytest.mark.parametrize("restarts", [False, True])
def test_what_comes_before_its_session_is_asked_for_when_it_is_made(
    site, monkeypatch, is_remembered, restarts
):
    monkeypatch.setattr(agreed, "PROBE_SECONDS", 1e9 if is_remembered else 1.0)

    async def scenario():
        relay = site("relay", "hub")
        async with hub_of(relay) as hub, echo_behind(hub, site("a")), echo_behind(hub, site("b")):
            first, second = User(), User()
            waiting = link_of("a").agree("a", "b", MEETING, SECRET, first)
            waiting.greet(b"word")
            assert waiting.write_now(b"one") and waiting.write_now(b"two")
            while not len(link_of("b")._early):
                await asyncio.sleep(0.01)
            if restarts:
                await hub.stop()
                await hub.start()
                while not (link_of("a").is_up and link_of("b").is_up):
                    await asyncio.sleep(0.01)
            if not is_remembered:
                link_of("b")._early._of.clear()
            late = link_of("b").agree("a", "b", MEETING, SECRET, second)
            assert await second.until(2) == [b"one", b"two"] and second.greetings == [b"word"]
            assert late.write_now(b"answer")
            assert await first.until(1) == [b"answer"] and not first.failures

    run(scenario())


def test_names_of_early_sessions_take_bounded_room(monkeypatch):
    monkeypatch.setattr(early, "MOST_EACH", 3)
    monkeypatch.setattr(early, "MOST_SENDERS", 2)
    sessions = early.EarlySessions()
    sessions.add(("node", "honest", b"one"))
    for number in range(9):
        sessions.add(("node", "liar", bytes([number])))
    assert len(sessions) == 1 + 3
    assert sessions.forget(("node", "honest", b"one")), "a liar takes its own room only"
    assert not sessions.forget(("node", "honest", b"one"))
    assert not sessions.forget(("node", "liar", bytes([1])))
    for name in ("a", "b", "c"):
        sessions.add(("node", name, b"one"))
    assert len(sessions) == 2


def test_an_envelope_of_a_session_that_is_over_ends_the_writers_end(site):
    """Its run ended: nothing was said, and whoever writes hears it."""

    async def scenario():
        relay = site("relay", "hub")
        async with hub_of(relay) as hub, echo_behind(hub, site("a")), echo_behind(hub, site("b")):
            (one, two), users = ends_of("a", "b")
            two.write_now(b"hello")
            await users[0].until(1)
            two.drop()
            assert one.write_now(b"late")
            await users[0].until(2)
            (failure,) = users[0].failures
            assert isinstance(failure, PeerLost) and failure.culprit == "b"
            assert not link_of("a").sessions and not link_of("b").sessions

    run(scenario())


def test_a_process_that_was_started_again_is_lost_at_once(site):
    async def scenario():
        relay = site("relay", "hub")
        async with hub_of(relay) as hub, echo_behind(hub, site("a")):
            async with echo_behind(hub, site("b")):
                (one, two), users = ends_of("a", "b")
                two.write_now(b"hello")
                await users[0].until(1)
            async with echo_behind(hub, site("b")):
                one.write_now(b"late")
                await users[0].until(2)
            (failure,) = users[0].failures
            assert isinstance(failure, PeerLost) and failure.culprit == "b"

    run(scenario())


# ---- lies of a hub --------------------------------------------------------------------------


def changed(envelope, **parts):
    other = pb.HubEnvelope()
    other.CopyFrom(envelope)
    for key, value in parts.items():
        setattr(other, key, value)
    return other


LIES = {
    "alter": (lambda e: [changed(e, body=e.body[:-1] + bytes([e.body[-1] ^ 1]))], "altered"),
    "number": (lambda e: [changed(e, number=e.number + 1)], "altered"),
    "kind": (lambda e: [changed(e, kind=pb.HUB_RESUME)], "altered"),
    "no kind": (lambda e: [changed(e, kind=0)], "altered"),
    "repeat": (lambda e: [e, e], "second time"),
    "drop": (lambda e: [], "missing"),
}


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_of_a_hub_is_noticed_and_blamed_on_it(site, lie):
    tells, words = LIES[lie]

    async def scenario():
        relay = site("relay", "hub")
        async with hub_of(relay) as hub, echo_behind(hub, site("a")), echo_behind(hub, site("b")):
            (one, _), users = ends_of("a", "b")
            one.write_now(b"0")
            await users[1].until(1)
            hub.relay.mangle = lambda e: tells(e) if e.number == 2 else [e]
            one.write_now(b"1")
            one.write_now(b"2")
            await users[1].until(9)
            failure = users[1].failures[0]
            assert isinstance(failure, RemoteProtocolError) and failure.culprit == "relay"
            assert re.search(words, failure.message)
            assert users[1].got in ([b"0"], [b"0", b"1"])

    run(scenario())


def test_an_envelope_is_good_for_its_direction_and_its_session_only():
    pair, other = Pair(), Pair(b"n" * 32)
    pair.north.write_now(b"one")
    envelope = pair.north.pull()
    for target, user in (
        (pair.north, pair.users[0]),
        (other.south, other.users[1]),
        (other.north, other.users[0]),
    ):
        target.take(envelope)
        assert user.failures[0].culprit == "relay" and user.got == []


def test_a_hub_that_redirects_is_named_once_all_have_met(site):
    async def scenario():
        relay = site("relay", "hub")
        names = [site(name) for name in "abc"]
        async with (
            hub_of(relay) as hub,
            echo_behind(hub, names[0]),
            echo_behind(hub, names[1]),
            echo_behind(hub, names[2]),
        ):
            (one, _), users = ends_of("a", "b")

            def redirect(envelope):
                if envelope.target.name == "b":
                    envelope.target.name = "c"
                    envelope.target.ClearField("instance")
                return [envelope]

            hub.relay.mangle = redirect
            one.is_early = False
            one.write_now(b"one")
            await users[0].until(1)
            (failure,) = users[0].failures
            assert isinstance(failure, CertificateError) and failure.culprit == "relay"

    run(scenario())


def test_the_hub_sees_neither_the_content_nor_anything_but_messages(site):
    seen = []

    async def scenario():
        relay = site("relay", "hub")
        async with hub_of(relay) as hub, echo_behind(hub, site("a")), echo_behind(hub, site("b")):
            hub.relay.mangle = lambda e: (seen.append(changed(e)), [e])[1]
            (one, two), users = ends_of("a", "b")
            one.write_now(b"secret words")
            two.write_now(b"secret words")
            await users[0].until(1)
            await users[1].until(1)
            one.drop()
            two.drop()

    run(scenario())
    assert [envelope.kind for envelope in seen] == [pb.HUB_SEALED] * 2
    assert not any(b"secret words" in envelope.SerializeToString() for envelope in seen)
