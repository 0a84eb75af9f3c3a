"""Two nodes whose chunks are computed at some place, over links in memory."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from tests.support.doors import limits
from tests.support.sessions import Run
from umpc.compute.executor import Executor
from umpc.crypto.rounds import Message
from umpc.dealer import server
from umpc.mpc.masked import plan
from umpc.mpc.masked.compiler import program_of
from umpc.mpc.masked.tasks import Heard, OwnerBatch, Said, TaskRounds
from umpc.node.run import chunks as running_chunks
from umpc.node.run import rounds
from umpc.node.run.link import Mailbox
from umpc.study.messages import Frame


@contextmanager
def small_chunks(material: int = 800) -> Iterator[None]:
    """Chunks of few edges, all of which are given away. A program has its sizes from its start."""
    program_of.cache_clear()
    with limits() as limit:
        limit(plan, MATERIAL_BYTES=material)
        limit(running_chunks, SMALLEST_TASK=1)
        limit(server, SMALLEST_TASK=1)
        yield
    program_of.cache_clear()


@dataclass(frozen=True)
class Evaluated:
    """Every frame between the nodes by its place, and each node's sums of shares."""

    sent: dict[Any, bytes]
    shares: list[list[int]]
    chunks: int


class LinkInMemory:
    """One end of a link. A frame that is sent twice fails the test."""

    def __init__(self, peer: str, sent: dict[Any, bytes]):
        self.peer = peer
        self.mailbox = Mailbox(peer)
        self.rounds_used: set = set()
        self.other: LinkInMemory
        self._sent = sent

    async def send(self, frame: Frame) -> None:
        key = (self.peer, frame.key)
        assert key not in self._sent, f"{frame.label} was sent twice"
        self._sent[key] = frame.payload
        self.other.mailbox.put(frame)

    def wanted(self, key: Any) -> asyncio.Future[Frame]:
        return self.mailbox.wanted(key)

    async def receive(self, key: Any) -> Message:
        frame = await self.mailbox.wanted(key)
        return Message(frame.step, frame.payload, frame.count, frame.width, frame.round)


class MaterialInMemory:
    """The dealer's material for one node."""

    dealer = "dealer"

    def __init__(self, payloads: list[bytes]):
        self._payloads = iter(payloads)

    async def next(self) -> bytes:
        return next(self._payloads)


class Dying(Executor):
    """Workers that die after each message: the next round is computed from the task again."""

    at_once = 4

    def begin(self, task: OwnerBatch) -> DyingRounds:
        return DyingRounds(task)


class DyingRounds:
    def __init__(self, task: OwnerBatch):
        self._task = pickle.dumps(task)

    async def after(self, heard: Heard) -> Said:
        lost, again = (TaskRounds(pickle.loads(self._task)) for _ in range(2))
        said = lost.after(heard)
        assert again.after(heard) == said
        return said

    def drop(self) -> None:
        self._task = b""


def evaluated(run: Run, *places: Executor | None) -> Evaluated:
    """The rounds of all nodes over all chunks, as real nodes drive them.

    Args: places: of each node; a single one is that of all.
    """
    run.fields()
    return asyncio.run(_evaluated(run, places))


async def _evaluated(run: Run, places: Sequence[Executor | None]) -> Evaluated:
    sent: dict[Any, bytes] = {}
    everybody = range(len(run.nodes))
    ends = {
        (one, other): LinkInMemory(f"node-{other}", sent)
        for one, other in permutations(everybody, 2)
    }
    for (one, other), end in ends.items():
        end.other = ends[other, one]
    of_all = places if len(places) > 1 else [*places] * len(everybody)
    links = [
        {other: ends[node, other] for other in everybody if other != node} for node in everybody
    ]
    await asyncio.gather(*(_node(run, node, links[node], of_all[node]) for node in everybody))
    parts = [node.parts for node in run.nodes]
    shares = [[sum(column) for column in zip(*each, strict=True)] for each in parts]
    return Evaluated(sent, shares, sum(1 for _ in run.attempt.chunks()))


async def _node(run: Run, node: int, links: dict[int, Any], place: Executor | None) -> None:
    chunks = [*run.attempt.chunks_of(node)]
    material: Any = MaterialInMemory([run.material(chunk, node) for chunk in chunks])
    driver = rounds.Rounds(run.nodes[node], links, material, _here, _here, _quiet, place)
    driver.begin_step("evaluate")
    await running_chunks.evaluate_chunks(driver, chunks)


async def _here(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


async def _quiet(done: int, of: int) -> None:
    """Nobody is told."""
