"""Nodes that compute small chunks in batches say and end as nodes that compute each chunk alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.support.sessions import Run
from tests.support.spread import Dying, LinkInMemory, MaterialInMemory
from tests.support.studies import SKEWNESS
from umpc.compute.executor import Executor
from umpc.errors import PeerLost, RemoteProtocolError
from umpc.mpc import chunks as chunks_module
from umpc.node.run import chunks as running_chunks
from umpc.node.run.rounds import Rounds
from umpc.study.messages import frame_of
from umpc.testing import lying

NODES = range(4)
PAIRS: dict[str, Any] = {"edges": "60"}
TRIPLES: dict[str, Any] = {"kernels": SKEWNESS, "degree": 3, "edges": "60"}
both = pytest.mark.parametrize("changes", [PAIRS, TRIPLES], ids=["pairs", "triples"])


class Consortium:
    """Four nodes, links in memory between all of them, and their material."""

    def __init__(self, **changes):
        self.run = Run((6, 5, 7, 4), "running", **changes).agree().begin().seed().fields()
        self.sent: dict[tuple[int, int], dict[Any, bytes]] = {}
        self.links: list[dict[int, LinkInMemory]] = [{} for _ in NODES]
        for one in NODES:
            for two in range(one):
                self._connect(one, two)

    def _connect(self, one: int, two: int) -> None:
        ways = (one, two), (two, one)
        ends = [LinkInMemory(f"node-{to}", self._log(at, to)) for at, to in ways]
        ends[0].other, ends[1].other = ends[1], ends[0]
        self.links[one][two], self.links[two][one] = ends

    def _log(self, sender: int, receiver: int) -> dict[Any, bytes]:
        return self.sent.setdefault((sender, receiver), {})

    async def node(self, index: int, workers: Executor | None) -> None:
        chunks = list(self.run.attempt.chunks_of(index))
        material: Any = MaterialInMemory([self.run.material(chunk, index) for chunk in chunks])
        links: Any = self.links[index]
        rounds = Rounds(self.run.nodes[index], links, material, _here, _here, _quiet, workers)
        rounds.begin_step("evaluate")
        await running_chunks.evaluate_chunks(rounds, chunks)

    def evaluate(self, workers: Executor | None = None) -> tuple[dict, list[list[int]]]:
        """Return all frames, and the sum of each node's shares."""

        async def all_nodes() -> None:
            async with asyncio.timeout(60):
                await asyncio.gather(*(self.node(index, workers) for index in NODES))

        asyncio.run(all_nodes())
        parts = [node.parts for node in self.run.nodes]
        return self.sent, [[sum(column) for column in zip(*each, strict=True)] for each in parts]


async def _here(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


async def _quiet(done: int, of: int) -> None:
    """Nobody is told."""


def alone(**changes) -> tuple[dict, list[list[int]]]:
    """Return all frames and shares of nodes that compute each chunk alone."""
    with lying("everybody", small_cell=lambda _: 0):
        return Consortium(**changes).evaluate()


@both
def test_batches_send_each_chunks_messages_and_end_with_its_shares(changes):
    begun = []

    async def noted(honest, running, batch, given):
        begun.append(len(batch))
        await honest(running, batch, given)

    with lying("process", finish_given=noted):
        expected = alone(**changes)
        assert not begun and sum(map(len, expected[0].values())) >= 12
        assert Consortium(**changes).evaluate() == expected
    assert len(begun) >= 4 and min(begun) > 1


@both
def test_workers_take_batches_and_one_that_dies_changes_nothing(changes, limit):
    expected = alone(**changes)
    limit(running_chunks, SMALLEST_TASK=1)
    for workers in (Executor(), Dying()):
        assert Consortium(**changes).evaluate(workers) == expected


@both
def test_nodes_with_little_room_end_all_waves(changes, limit):
    """Every wave has few cells, and each node has room for one large chunk only."""
    expected = alone(**changes)
    attempt = Consortium(**changes).run.attempt
    counts = sorted(chunk.count for chunk in attempt.chunks())
    size = max(plan.chunk_edges for plan in attempt.program.plans.values())
    limit(chunks_module, WAVE_CHUNKS=2 * counts[-2] / size)
    with lying("everybody", small_cell=lambda _: counts[-2], chunks_in_flight=lambda _: 1):
        made = Consortium(**changes)
        numbers = {chunk.wave for chunk in made.run.attempt.chunks()}
        assert numbers >= {0, 1, 2}
        sent, shares = made.evaluate()
    assert sent == expected[0] and shares == expected[1]


def evaluate_with(changed: Any) -> None:
    """Node 0 evaluates; node 3 changes or withholds its frames to it; node 2 sends nothing."""
    made = Consortium(**PAIRS)

    async def scenario() -> None:
        node = asyncio.create_task(made.node(0, None))
        for _ in range(5):
            await asyncio.sleep(0)
        assert {made.links[0][peer].mailbox.is_awaited for peer in (1, 2, 3)} == {True}
        changed(made)
        async with asyncio.timeout(5):
            await node

    asyncio.run(scenario())


def test_a_batch_waits_for_all_its_peers_and_ends_with_the_first_that_is_lost():
    def lose(made: Consortium) -> None:
        made.links[0][3].mailbox.fail(PeerLost("node-3 went away", culprit="node-3"))

    with pytest.raises(PeerLost, match="node-3"):
        evaluate_with(lose)


def test_a_message_of_a_wrong_length_in_a_batch_names_its_sender():
    def lie(made: Consortium) -> None:
        for chunk in made.run.attempt.chunks_of(0):
            (peer,) = (node for node in chunk.parties if node)
            shape = made.run.attempt.plan(chunk).shape_to(1, 1, 0, chunk.count)
            payload = shape.payload + b"\0" * (peer == 2)
            frame = frame_of(replace(shape, payload=payload), chunk.place, chunk.number)
            made.links[0][peer].mailbox.put(frame)

    with pytest.raises(RemoteProtocolError) as caught:
        evaluate_with(lie)
    assert caught.value.culprit == "node-2"
