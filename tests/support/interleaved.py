"""Whole evaluations in one thread, in an order that a seed draws: dealer, nodes, and lines.

The dealer's queues, each node's window and its chunks on their way are those of the programs. Only
the lines are the test's own. They hold a few bytes at most, as a hub does whose quota is small.
They deliver frames in any order, and some of them twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from itertools import permutations
from random import Random
from typing import Any

from tests.support.sessions import Run
from tests.support.spread import LinkInMemory
from tests.support.studies import Entropy
from umpc.compute.executor import Executor, InlineExecutor
from umpc.dealer import server
from umpc.dealer.server import AttemptRun
from umpc.dealer.session import DealerSession
from umpc.errors import RemoteProtocolError, UmpcError
from umpc.node.run.chunks import evaluate_chunks
from umpc.node.run.material import MaterialReader
from umpc.node.run.rounds import Rounds
from umpc.study.messages import Frame

SECONDS = 60
"""An evaluation that takes longer is taken for one whose nodes wait for each other."""
TWICE = 0.1
"""The part of all frames that comes a second time."""
MOST_PAUSE = 5
"""The most turns of the event loop that a step is late."""


async def pause(rng: Random) -> None:
    for _ in range(rng.randrange(MOST_PAUSE)):
        await asyncio.sleep(0)


class SlowPlace(InlineExecutor):
    """A place whose tasks take a while."""

    def __init__(self, rng: Random, at_once: int):
        self.at_once = at_once
        self._rng = rng

    async def run(self, function: Any, *arguments: Any, **named: Any) -> Any:
        await pause(self._rng)
        return function(*arguments, **named)


class Line:
    """One node's way out. Args: quota: the most bytes under way, unless it is one frame."""

    def __init__(self, rng: Random, quota: int):
        self._rng = rng
        self._quota = quota
        self._bytes = 0
        self._under_way: list[tuple[LinkInMemory, Frame]] = []
        self._changed = asyncio.Event()

    async def carry(self, link: LinkInMemory, frame: Frame) -> None:
        """Take a frame, when there is room for it."""
        size = len(frame.payload)
        while self._under_way and self._bytes + size > self._quota:
            await self._until_changed()
        self._bytes += size
        self._under_way.append((link, frame))
        self._changed.set()

    async def deliver(self) -> None:
        """Deliver any of the frames, one after the other, for ever."""
        while True:
            while not self._under_way:
                await self._until_changed()
            await pause(self._rng)
            place = self._rng.randrange(len(self._under_way))
            link, frame = self._under_way.pop(place)
            self._bytes -= len(frame.payload)
            self._changed.set()
            for _ in range(1 + (self._rng.random() < TWICE)):
                link.other.mailbox.put(frame)

    async def _until_changed(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class LinkOverLine(LinkInMemory):
    """A link whose frames go over a line. `sent` is told each of them first."""

    def __init__(self, peer: str, log: dict[Any, bytes], line: Line, sent: Callable[[], None]):
        super().__init__(peer, log)
        self._line = line
        self._tell = sent

    async def send(self, frame: Frame) -> None:
        assert frame.key not in self._sent, f"{frame.label} was sent twice"
        self._sent[frame.key] = frame.payload
        self._tell()
        await self._line.carry(self, frame)


class CallInMemory:
    """A node's call to the dealer, and its stream. Args: frames: what the dealer deals."""

    def __init__(self, frames: AsyncIterator[list[Frame]], rng: Random):
        self.stream = self
        self._frames = frames
        self._rng = rng

    async def next(self, step: str) -> list[Frame]:
        await pause(self._rng)
        return await anext(self._frames)

    def violation(self, action: str) -> RemoteProtocolError:
        return RemoteProtocolError(f"dealer {action}", culprit="dealer", step="prepare")


class Interleaved:
    """One attempt. Args: run: whose nodes have begun. places: of each node. dealer: of the dealer.

    quota: as of `Line`. sent: is called at every frame that a node sends.
    """

    def __init__(
        self,
        run: Run,
        rng: Random,
        places: Sequence[Executor | None],
        dealer: Executor | None,
        quota: int,
        sent: Callable[[], None] = lambda: None,
    ):
        self.run = run
        self.sent: dict[tuple[int, int], dict[Any, bytes]] = {}
        self._rng = rng
        self._places = places
        self._nodes = nodes = range(len(run.nodes))
        lines = [Line(rng, quota) for _ in nodes]
        self.links: dict[tuple[int, int], LinkOverLine] = {}
        for ends in permutations(nodes, 2):
            log = self.sent.setdefault(ends, {})
            self.links[ends] = LinkOverLine(f"node-{ends[1]}", log, lines[ends[0]], sent)
        for (one, other), link in self.links.items():
            link.other = self.links[other, one]
        self._lines = lines
        self._dealer = dealer

    async def evaluate(self) -> list[BaseException | None]:
        """Return how each node ended. Raises: TimeoutError where some wait for ever."""
        dealing = AttemptRun(self.run.attempt, lambda error: None, self._dealer)
        delivering = [asyncio.create_task(line.deliver()) for line in self._lines]
        try:
            async with asyncio.timeout(SECONDS):
                readers = [self._reader(dealing, node) for node in self._nodes]
                for node in self._nodes:
                    dealing.join(node)
                seeds = await asyncio.gather(*(reader.seed() for reader in readers))
                for node, seed in zip(self.run.nodes, seeds, strict=True):
                    node.receive_seed(seed)
                self.run.fields()
                ends = [self._node(node, reader) for node, reader in enumerate(readers)]
                return await asyncio.gather(*ends, return_exceptions=True)
        finally:
            dealing.fail(RemoteProtocolError("the test is over"))
            for task in delivering:
                task.cancel()

    def _reader(self, dealing: AttemptRun, node: int) -> MaterialReader:
        attempt = self.run.attempt
        call: Any = CallInMemory(dealing.frames(node), self._rng)
        return MaterialReader(attempt.study.dealer, call, attempt, node, self._chunks_of(node))

    def _chunks_of(self, node: int) -> list[Any]:
        return [*self.run.attempt.chunks_of(node)]

    async def _node(self, node: int, reader: MaterialReader) -> None:
        pump = asyncio.create_task(reader.pump())
        try:
            await reader.prefetched()
            links: Any = {other: self.links[node, other] for other in self._nodes if other != node}
            place = self._places[node]
            rounds = Rounds(self.run.nodes[node], links, reader, _here, _here, _quiet, place)
            rounds._step = "evaluate"
            await evaluate_chunks(rounds, self._chunks_of(node))
        except (UmpcError, ExceptionGroup) as ended:
            self._tell_others(node, ended)
            raise
        finally:
            pump.cancel()
            with suppress(asyncio.CancelledError):
                await pump

    def _tell_others(self, node: int, ended: Exception) -> None:
        """Tell all others why a node has ended, as the coordinator does.

        One that has all frames of a lost node would wait for the node that ended, for ever.
        """
        first: Any = ended.exceptions[0] if isinstance(ended, ExceptionGroup) else ended
        for other in set(self._nodes) - {node}:
            self.links[other, node].mailbox.fail(first)


def same_dealer(monkeypatch: Any) -> None:
    """Let every dealer draw the same seeds, so that runs can be compared."""
    monkeypatch.setattr(
        server, "_session_of", lambda attempt: DealerSession(attempt, Entropy("dealer"))
    )


def sums_of(run: Run) -> list[list[int]]:
    """The sums of each node's shares over all chunks."""
    return [[sum(column) for column in zip(*node._parts, strict=True)] for node in run.nodes]


async def _here(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


async def _quiet(done: int, of: int) -> None:
    """Nobody is told."""
