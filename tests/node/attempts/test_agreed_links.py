"""The links of a run over a common hub: who makes them, and the channels that both ends have."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.hub_wire import HUB, MEETING, NAMES, SECRET, Wire, run
from umpc.errors import PeerUnavailable, RemoteProtocolError
from umpc.node.attempts.agreed_links import AgreedLinks
from umpc.node.attempts.guard import ViolationGuard
from umpc.node.attempts.run_links import RunLinks
from umpc.transport.hub import routes


class Channels:
    """The channels of one node. has: the names of those that it has."""

    def __init__(self, *has: bytes):
        self.has = has

    async def offer(self, peer: str):
        return SimpleNamespace(name=self.has[0]) if self.has else None

    async def accept(self, peer: str, name: bytes):
        return SimpleNamespace(name=name) if name in self.has else None


def study_of(*addresses: str) -> Any:
    nodes = [
        SimpleNamespace(name=name, address=address)
        for name, address in zip((*NAMES, "west"), addresses, strict=False)
    ]
    return SimpleNamespace(nodes=nodes, index_of=lambda name: [n.name for n in nodes].index(name))


def mesh_of(index: int) -> Any:
    attempt = SimpleNamespace(program=SimpleNamespace(window=None))
    return SimpleNamespace(
        index=index,
        peers=(1 - index,),
        attempt=attempt,
        secrets_with=lambda peers, meeting: dict.fromkeys(peers, SECRET),
    )


def site_of(wire: Wire, at: int) -> Any:
    return SimpleNamespace(agreed=AgreedLinks(wire.lines[at].identity), dial=None, await_link=None)


@pytest.mark.parametrize(
    ("offers", "has", "taken"),
    [((b"one",), (b"one",), b"one"), ((b"one",), (), None), ((), (b"one",), None)],
)
def test_a_channel_is_taken_if_both_ends_have_it(offers, has, taken):
    async def scenario(wire: Wire) -> None:
        study = study_of(str(HUB), str(HUB))
        runs = [RunLinks(ViolationGuard()), RunLinks(ViolationGuard())]
        meetings = []
        for at, own in enumerate((Channels(*offers), Channels(*has))):
            given: Any = {1 - at: own}
            meeting = runs[at].connect(site_of(wire, at), mesh_of(at), study, MEETING, given)
            meetings.append(asyncio.create_task(meeting))
        while runs[1].waited_for() != ["north"]:
            await asyncio.sleep(0)
        while not all(each.done() for each in meetings):
            await asyncio.sleep(0)
            wire.exchange()
        for at in range(2):
            await meetings[at]
            channel = runs[at].made[1 - at].channel
            assert (channel.name if channel else None) == taken
            assert runs[at].waited_for() == []

    run(scenario)


def test_a_channel_that_was_not_offered_names_the_peer():
    async def scenario(wire: Wire) -> None:
        runs = RunLinks(ViolationGuard())
        given: Any = {1: Channels(b"one")}
        study = study_of(str(HUB), str(HUB))
        meeting = asyncio.create_task(
            runs.connect(site_of(wire, 0), mesh_of(0), study, MEETING, given)
        )
        wire.link(1).greet(b"two")
        while not meeting.done():
            await asyncio.sleep(0)
            wire.exchange()
        with pytest.raises(RemoteProtocolError, match="not offered") as caught:
            await meeting
        assert caught.value.culprit == "south"

    run(scenario)


def test_links_are_made_when_they_are_begun_and_nothing_is_sent_for_them():
    async def scenario(wire: Wire) -> None:
        runs = RunLinks(ViolationGuard())
        study = study_of(str(HUB), str(HUB))
        runs.begin_to_connect(site_of(wire, 0), mesh_of(0), study, MEETING)
        assert set(runs.made) == {1} and runs.has_begun
        await runs.connected()
        wire.exchange()
        assert wire.sent == []
        runs.close(keep=True)
        assert not wire.lines[0].sessions

    run(scenario)


def test_only_nodes_at_one_hub_agree():
    async def scenario(wire: Wire) -> None:
        own = AgreedLinks(wire.lines[0].identity)
        hub = str(HUB)
        assert list(own.reached(study_of(hub, hub), [1])) == [1]
        assert list(own.reached(study_of(hub, "hub:relay@another.address:1"), [1])) == [1]
        assert not own.reached(study_of(hub, "hub:another@127.0.0.1:7000"), [1])
        assert not own.reached(study_of(hub, "127.0.0.1:1"), [1])
        assert not own.reached(study_of("127.0.0.1:1", hub), [1])
        elsewhere = AgreedLinks(replace_name(wire.lines[0].identity, "west"))
        with pytest.raises(PeerUnavailable, match="west listens elsewhere"):
            elsewhere.reached(study_of(hub, hub, hub), [0])

    run(scenario)


def test_the_links_of_a_run_hold_back_a_peer_that_is_faster():
    async def scenario(wire: Wire) -> None:
        runs, mesh = RunLinks(ViolationGuard()), mesh_of(0)
        mesh.attempt.program.window = 1500
        runs.agree(site_of(wire, 0), mesh, study_of(str(HUB), str(HUB)), MEETING)
        assert runs.made[1].window == 1500

    run(scenario)


def test_members_of_one_process_meet_inside_it():
    """Their messages stay in its memory, as decision 74 says."""

    async def scenario(wire: Wire) -> None:
        own, hub = AgreedLinks(wire.lines[0].identity), str(HUB)
        servers: list[Any] = [
            SimpleNamespace(identity=line.identity, hub=HUB) for line in wire.lines
        ]
        routes.host(servers[0])
        assert list(own.reached(study_of(hub, hub), [1])) == [1]
        routes.host(servers[1])
        assert not own.reached(study_of(hub, hub), [1])

    run(scenario)


def replace_name(identity: Any, name: str) -> Any:
    return SimpleNamespace(role=identity.role, name=name)
