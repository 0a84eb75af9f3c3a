"""Sessions of a meeting in any order: made late, on a line that breaks, at a new hub."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agreed_ends import MEETING, SECRET, Line, User, link_of, made_at
from behind_hub import echo_behind, hub_of, run
from two_ends import NORTH, SOUTH

from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import agreed, early
from umpc.transport.hub.agreed import AgreedSession


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
