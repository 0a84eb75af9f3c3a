"""umpc_papers.shuffler.server: access, and frames that are late, repeated or wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from tests.support.limits import small_heaps
from tests.support.local import local_tables
from tests.support.protocols import make_node, messages_of, run_own_steps, with_facts
from tests.support.shuffled import shuffled_study
from tests.support.studies import Entropy
from umpc.coordinator.shufflers import ShufflerLink
from umpc.errors import (
    PeerLost,
    RemoteProtocolError,
    StepTimeout,
    StudyAborted,
    StudyError,
    UmpcError,
)
from umpc.node.shufflers import ShufflerStream, ShufflerStreams
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.simulation import AUTHORITY
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.study.parts import Participant
from umpc.transport.authority import Authority
from umpc.transport.connections import bind, connect, make_server
from umpc.transport.identity import Identity, load_identity
from umpc.transport.tls import grpc, rpc
from umpc_papers.ghazi_shuffle.node import frames_to
from umpc_papers.shuffler import run as shuffling
from umpc_papers.shuffler.server import ALLOWED, ShufflerServer

COUNTS = (20, 25)
ROLES = {"node-0": "node", "node-1": "node", "coordinator": "coordinator", "stranger": "node"}
ROLES |= {"shuffler-1": "shuffler", "shuffler-2": "shuffler", "other": "coordinator"}


@pytest.fixture(scope="module")
def identities(tmp_path_factory) -> dict[str, Identity]:
    folder = tmp_path_factory.mktemp("authority")
    authority = Authority.create(folder / "authority")
    for name, role in ROLES.items():
        authority.issue(name, role, folder / name)
    return {name: load_identity(folder / name) for name in ROLES}


@dataclass
class Place:
    """Two shufflers that run, and a study over them with what its nodes would deliver."""

    identities: dict[str, Identity]
    study: Study
    deliveries: list[m.Delivery]
    ended: dict[str, list[UmpcError | None]] = field(default_factory=dict)
    closing: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def attempt(self) -> bytes:
        return self.deliveries[0].attempt

    async def node(self, number: int, caller: str = "") -> ShufflerStreams:
        kept = self.deliveries[number]
        delivery = self.streams(kept)
        self.closing.callback(delivery.close)
        await delivery.connect(self.identities[caller or f"node-{number}"])
        return delivery

    def streams(self, kept: m.Delivery) -> ShufflerStreams:
        agreed = kept.members, kept.openings, kept.signatures
        return ShufflerStreams(self.study, kept.attempt, *agreed)

    def frames(self, number: int, **changes) -> list[list[Frame]]:
        kept = replace(self.deliveries[number], **changes)
        return [list(frames_to(place, number, self.study, kept)) for place in (0, 1)]

    async def link(self, place: int, caller: str = "coordinator") -> ShufflerLink:
        link = ShufflerLink(self.study, place)
        await link.open(self.identities[caller])
        self.closing.push_async_callback(link.close)
        return link

    async def coordinator(self) -> list[ShufflerLink]:
        links = [await self.link(place) for place in (0, 1)]
        runs = await asyncio.gather(*(link.begin(self.attempt, 10) for link in links))
        assert runs[0] == runs[1]
        return links


@asynccontextmanager
async def place(identities: dict[str, Identity], **changes) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        shufflers, ended = [], {}
        for name in ("shuffler-1", "shuffler-2"):
            server = make_server(identities[name], ALLOWED)
            ended[name] = []
            rpc.add_ShufflerServicer_to_server(
                ShufflerServer(identities[name], ended[name].append, AUTHORITY.verify), server
            )
            shufflers.append(Participant(name, await bind(server, identities[name], "127.0.0.1:0")))
            await server.start()
            stack.push_async_callback(server.stop, 0)
        study = with_facts(shuffled_study(2), shufflers=tuple(shufflers), **changes)
        here = Place(identities, study, delivered(study), ended)
        await stack.enter_async_context(here.closing)
        yield here


def delivered(study: Study) -> list[m.Delivery]:
    nodes = [
        make_node(node.name, study, table, count, Entropy(node.name))
        for node, table, count in zip(study.nodes, local_tables(study, COUNTS), COUNTS, strict=True)
    ]
    members = [node.accept() for node in nodes]
    openings = [node.agree(members) for node in nodes]
    signatures = [node.sign_members() for node in nodes]
    for node in nodes:
        node.check_agreed(signatures)
        node.begin(openings)
        run_own_steps(node)
    return [node.release() for node in nodes]


def run(identities, scenario, **changes) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), place(identities, **changes) as here:
            await scenario(here)

    asyncio.run(main())


async def collect(links: list[ShufflerLink]) -> list[list[Frame]]:
    heaps: list[list[Frame]] = [[], []]

    def receive(place: int, frame: Frame) -> bool:
        heaps[place].append(frame)
        return True  # one frame holds it

    await asyncio.gather(*(link.collect(receive, 10) for link in links))
    return heaps


def test_nothing_leaves_before_all_nodes_have_delivered(identities):
    async def scenario(here: Place) -> None:
        links = await here.coordinator()
        nodes = [await here.node(number) for number in (0, 1)]
        sent = await nodes[0].send(here.frames(0))
        assert [each.step for each in sent] == ["shares", "pad"]
        with pytest.raises(StepTimeout):
            await links[0].collect(lambda place, frame: True, 0.3)
        with pytest.raises(StepTimeout):
            await links[1].collect(lambda place, frame: True, 0.1)
        await nodes[1].send(here.frames(1))
        heaps = await collect(links)
        assert [[frame.step for frame in heap] for heap in heaps] == [["heap"], ["heap"]]
        for name in ("shuffler-1", "shuffler-2"):
            while not here.ended[name]:
                await asyncio.sleep(0.01)
        assert here.ended == {"shuffler-1": [None], "shuffler-2": [None]}

    run(identities, scenario)


def test_large_messages_come_in_several_frames(identities, limit):
    small_heaps(limit)

    async def scenario(here: Place) -> None:
        links, counts = await here.coordinator(), [(0, count) for count in COUNTS]
        sent = [await (await here.node(number)).send(here.frames(number)) for number in (0, 1)]
        of = messages_of(here.study, counts)
        for number, steps in enumerate(sent):
            assert {each.step: each.bytes for each in steps} == of.sent_bytes(
                number, counts[number]
            )
        inboxes = [of.heap_inbox(place) for place in (0, 1)]

        def receive(place: int, frame: Frame) -> bool:
            inboxes[place].take(frame)
            return inboxes[place].is_complete

        await asyncio.gather(*(link.collect(receive, 10) for link in links))
        assert [inbox.wire_bytes for inbox in inboxes] == [of.heap_bytes(place) for place in (0, 1)]
        assert len(here.frames(0)[0]) > 3

    run(identities, scenario)


def test_a_node_that_delivers_the_same_twice_is_taken_and_the_run_can_be_repeated(identities):
    async def scenario(here: Place) -> None:
        links = await here.coordinator()
        for number in (0, 0, 1):
            await (await here.node(number)).send(here.frames(number))
        first = await collect(links)
        again = await here.coordinator()
        for number in (1, 0):
            await (await here.node(number)).send(here.frames(number))
        second = await collect(again)
        assert [len(heap) for heap in first] == [len(heap) for heap in second] == [1, 1]
        assert all(
            one[0].payload != other[0].payload for one, other in zip(first, second, strict=True)
        ), "a new order"

    run(identities, scenario)


@pytest.mark.parametrize("again", [False, True], ids=["in one run", "in another run"])
def test_a_node_that_delivers_something_else_is_named_to_all(identities, again):
    async def scenario(here: Place) -> None:
        links = await here.coordinator()
        await (await here.node(0)).send(here.frames(0))
        if again:
            await (await here.node(1)).send(here.frames(1))
            await collect(links)
            links = await here.coordinator()
        other = await here.node(0)
        with pytest.raises(
            RemoteProtocolError, match="node-0 delivered two different messages in one attempt"
        ):
            await other.send(here.frames(0, seed=bytes(32)))
        with pytest.raises(RemoteProtocolError, match="node-0 delivered two different messages"):
            await links[1].collect(lambda place, frame: True, 10)

    run(identities, scenario)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda frame: replace(frame, chunk=1), "chunk 1, .* came"),
        (lambda frame: replace(frame, owners=(1,)), r"of cell \(1,\)"),
        (lambda frame: replace(frame, step="heap"), "heap of cell .* came"),
        (lambda frame: replace(frame, count=8, width=8, payload=bytes(8)), "8 × 8 bits, came"),
        (lambda frame: replace(frame, payload=frame.payload[:-1]), "do not take"),
    ],
)
def test_a_wrong_frame_ends_the_run_and_names_the_node(identities, spoil, reason):
    async def scenario(here: Place) -> None:
        links = await here.coordinator()
        node = await here.node(0)
        (shares,), pad = here.frames(0)
        with pytest.raises(RemoteProtocolError, match=f"node-0: .*{reason}"):
            await node.send([[spoil(shares)], pad])
        with pytest.raises(RemoteProtocolError, match="node-0: "):
            await links[0].collect(lambda place, frame: True, 10)

    run(identities, scenario)


def test_a_node_that_goes_away_is_named_and_what_the_others_gave_is_not_used(identities):
    async def scenario(here: Place) -> None:
        links = await here.coordinator()
        first, second = [await here.node(number) for number in (0, 1)]
        await first.send(here.frames(0))
        second.close()
        for link in links:
            with pytest.raises(PeerLost, match="node-1 went away") as caught:
                await link.collect(lambda place, frame: True, 10)
            assert (caught.value.culprit, caught.value.step) == ("node-1", "release")

    run(identities, scenario)


async def refusal_of(node: ShufflerStreams, kind: type[UmpcError]) -> UmpcError:
    """Wait until the node's check of its link to the shuffler fails, and return how."""
    async with asyncio.timeout(60):
        while True:
            try:
                node.check()
            except kind as error:
                return error
            await asyncio.sleep(0.01)


def test_a_coordinator_that_goes_away_ends_the_nodes_streams_before_they_charge(identities):
    async def scenario(here: Place) -> None:
        links = await here.coordinator()
        node = await here.node(0)
        node.check()
        await links[0].close()
        assert "coordinator went away" in (await refusal_of(node, PeerLost)).message

    run(identities, scenario)


def test_who_never_comes_is_waited_for_for_a_while_and_named(identities, limit):
    limit(shuffling, PATIENCE_SECONDS=-0.5)

    async def scenario(here: Place) -> None:
        links = await here.coordinator()
        node = await here.node(0)
        with pytest.raises(StepTimeout, match="node-1 did not come"):
            await links[0].collect(lambda place, frame: True, 10)
        refusal = await refusal_of(node, StepTimeout)
        assert "node-1 did not come" in refusal.message and refusal.culprit == "node-1"

    run(identities, scenario, seconds_per_step=1)


def test_only_those_of_the_study_may_take_part_each_in_its_role(identities):
    async def scenario(here: Place) -> None:
        with pytest.raises(RemoteProtocolError, match="names 'coordinator' as its coordinator"):
            await (await here.link(0, "other")).begin(here.attempt, 10)
        with pytest.raises(StudyError, match="'stranger' is not one of the study's nodes"):
            await here.node(0, "stranger")
        address = here.study.shufflers[1].address
        order = pb.OrderRequest(study=here.study.encode(), attempt=here.attempt, seed=bytes(32))
        for caller, call in (
            ("node-0", "Order"),
            ("node-0", "Collect"),
            ("coordinator", "Deliver"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await refused(identities[caller], address, call, order)
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        with pytest.raises(
            grpc.aio.AioRpcError, match="shuffler-2 draws no order for this shuffler"
        ):
            await refused(identities["shuffler-2"], address, "Order", order)

    async def refused(identity: Identity, address: str, call: str, order: pb.OrderRequest) -> None:
        channel = await connect(identity, "shuffler-2", "shuffler", address, 5)
        stub = rpc.ShufflerStub(channel)
        try:
            if call == "Order":
                await stub.Order(order, timeout=10)
            elif call == "Collect":
                await stub.Collect(
                    pb.CollectRequest(study=order.study, attempt=order.attempt), timeout=10
                ).read()
            else:
                await stub.Deliver(timeout=10).read()
        finally:
            await channel.close()

    run(identities, scenario)


@pytest.mark.parametrize("first", [True, False], ids=["before the nodes", "after them"])
def test_an_attempt_is_collected_for_its_own_study_only(identities, first):
    """Another coordinator, with a study of its own over the same shufflers, gets no heap."""

    async def scenario(here: Place) -> None:
        false = with_facts(here.study, coordinator="other")
        links = [] if first else await here.coordinator()
        stranger = ShufflerLink(false, 0)
        await stranger.open(here.identities["other"])
        here.closing.push_async_callback(stranger.close)
        if first:
            await stranger.begin(here.attempt, 10)
            with pytest.raises(RemoteProtocolError, match="begun for another study"):
                await here.node(0)
            return
        with pytest.raises(RemoteProtocolError, match="begun for another study"):
            await stranger.begin(here.attempt, 10)
        for number in (0, 1):
            await (await here.node(number)).send(here.frames(number))
        assert [len(heap) for heap in await collect(links)] == [1, 1]

    run(identities, scenario)


def test_a_first_shuffler_that_draws_no_order_is_not_waited_for_for_ever(identities, limit):
    """All others are there. shuffler-2 alone is asked, so nobody tells it the order."""
    limit(shuffling, PATIENCE_SECONDS=-0.8)

    async def scenario(here: Place) -> None:
        link = await here.link(1)
        begun = [link.begin(here.attempt, 10)]
        for number in (0, 1):
            kept = here.deliveries[number]
            agreed = kept.members, kept.openings, kept.signatures
            begin = codec.deal_request(here.study.encode(), *agreed)
            stream = ShufflerStream(here.study.shufflers[1], kept.attempt, 10)
            here.closing.callback(stream.close)
            begun.append(stream.open(here.identities[f"node-{number}"], begin))
        found = await asyncio.gather(*begun, return_exceptions=True)
        assert [type(error) for error in found] == [StepTimeout] * 3
        assert all("shuffler-1" in error.message for error in found)

    run(identities, scenario, seconds_per_step=1)


def test_a_new_run_takes_the_place_of_one_whose_coordinator_is_gone(identities):
    """The old one is told; the new one has another order."""

    async def scenario(here: Place) -> None:
        old = await here.coordinator()
        new = await here.coordinator()
        with pytest.raises(StudyAborted, match="a new run of the attempt has begun"):
            await old[0].collect(lambda place, frame: True, 10)
        for number in (0, 1):
            await (await here.node(number)).send(here.frames(number))
        assert [len(heap) for heap in await collect(new)] == [1, 1]

    run(identities, scenario)
