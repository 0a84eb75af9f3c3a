"""Whole sessions of real nodes in one process, with the times at which messages arrive.

Each node is a run with its threads, links, material and rounds, as in `umpc node start`. The
streams between processes are queues in memory, so a message arrives when it is sent. Ledgers are in
memory, so no disk blurs the times. The coordinator asks all other nodes first. It asks the last
node only when they can do nothing without it, so it has a clean clock for that node.

Two clocks run: the wall's, and the processor time of this process, in which other work on the
machine does not count. The second is sharper than any clock outside.

| time | from the coordinator's message to the last node | to the arrival of |
|---|---|---|
| `accepted` | Propose | the node's Accepted, at the coordinator |
| `opened` | Agree | Opened, at the coordinator |
| `link` | Begin | the node's link, at its peer |
| `prepared` | Begin | Prepared, at the coordinator |
| `frame 1`, … | Evaluate | the node's messages of the rounds, at its peer |
| `ready` | Evaluate | Ready, at the coordinator |
| `released` | Release | Released, at the coordinator |
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.kendall import kendall_study
from bench.memory_site import MemoryDealer, MemoryLedger, MemoryStream, NoParking
from umpc.crypto.prg import Stream
from umpc.crypto.ring import Ring
from umpc.dealer.material import MaterialDealer
from umpc.dp.calibration import DistributedLaplace
from umpc.dp.random_bits import RandomBits
from umpc.mpc import attempt
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.masked.compiler import compile_program
from umpc.node.records import Records
from umpc.node.run import study as study_run
from umpc.node.run.context import RunContext, Site
from umpc.node.run.coordinator import CoordinatorStream
from umpc.node.run.link import PeerLink
from umpc.node.run.study import run_study
from umpc.protocols.registry import protocol_of
from umpc.simulation import AUTHORITY
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.messages import Frame

NODES = 2
WATCHED = NODES - 1
"""The node whose times are measured. The other one is its peer."""
RECORDS = 3
IDLE_SECONDS = 0.0002
SESSION_SECONDS = 60

Times = dict[str, tuple[int, int]]
"""Name of a time → nanoseconds of the wall's clock and of the processor's."""
Draw = Callable[[RandomBits], int]


def small_study() -> Study:
    """A small study with two rounds on data, and noise of its own at every node."""
    return kendall_study(NODES, 3, "1/100", noise="distributed")


@contextmanager
def read_once(study: Study) -> Iterator[None]:
    """Read and compile the study in the first session only.

    Both follow from the study alone. They take most of a session's time and would blur the rest.
    """
    programs: dict[tuple[Any, ...], Any] = {}

    def compile_once(kernels: Any, ring: Ring, patterns: Iterable[Any], *, few: bool) -> Any:
        key = ring, frozenset(patterns), few
        if key not in programs:
            programs[key] = compile_program(kernels, ring, key[1], few=few)
        return programs[key]

    with ExitStack() as stack:
        stack.enter_context(patch.object(study_run, "decode_study", lambda _: study))
        stack.enter_context(patch.object(attempt, "compile_program", compile_once))
        yield


@contextmanager
def drawing(draw: Draw) -> Iterator[list[int]]:
    """Every node draws its noise by this function. Provides: all drawn values, in order."""
    drawn: list[int] = []

    def recorded(_: DistributedLaplace, bits: RandomBits) -> int:
        value = draw(bits)
        drawn.append(value)
        return value

    with patch.object(DistributedLaplace, "draw", recorded):
        yield drawn


class Session:
    """One session of all nodes. `times` is complete when `run` has ended."""

    def __init__(self, study: Study):
        self.study = study
        self.times: Times = {}
        self._side = protocol_of(study).coordinator(study, AUTHORITY.verify)
        self._inboxes: list[asyncio.Queue[Any]] = [asyncio.Queue() for _ in range(NODES)]
        self._answers: list[asyncio.Queue[Any]] = [asyncio.Queue() for _ in range(NODES)]
        self._links: dict[int, PeerLink] = {}
        self._met: dict[int, asyncio.Event] = {node: asyncio.Event() for node in range(NODES)}
        self._tasks: list[asyncio.Task[None]] = []
        self._asked = (0, 0)
        self._frames = 0
        self._dealt: list[deque[Frame]] = []
        self._streams = self._joined()

    async def run(self) -> None:
        """All steps of docs/protocol.md."""
        nodes = []
        for node in range(NODES):
            site = self._site(node)
            ends = self._inboxes[node].get, self._receiver(node)
            stream = CoordinatorStream(site.name, self.study.coordinator, *ends)
            nodes.append(asyncio.create_task(run_study(RunContext(site, stream))))
        try:
            async with asyncio.timeout(SESSION_SECONDS):
                await self._conduct()
                await asyncio.gather(*nodes)
        finally:
            for task in (*nodes, *self._tasks):
                task.cancel()
            await asyncio.gather(*nodes, *self._tasks, return_exceptions=True)

    async def _conduct(self) -> None:
        side = self._side
        accepted = await self._ask(side.propose())
        agree = side.agree(accepted)
        assert agree is not None
        begin = side.begin(await self._ask(agree))
        assert isinstance(side.attempt, SharedAttempt)
        self._deal(side.attempt)
        side.check_prepared(await self._ask(begin, self._wait_for_link))
        await self._ask(side.evaluate(), self._wait_for_frames)
        await self._ask(m.Release())

    async def _ask(self, message: Any, others_wait: Any = None) -> list[Any]:
        """Ask all nodes, the watched one last: when the others have answered, or wait for it."""
        answers = []
        for node in range(WATCHED):
            self._inboxes[node].put_nowait(message)
            if others_wait is None:
                answers.append(await self._answers[node].get())
        if others_wait is not None:
            await others_wait()
        self._asked = clocks()
        self._inboxes[WATCHED].put_nowait(message)
        last = await self._answers[WATCHED].get()
        while len(answers) < WATCHED:
            answers.append(await self._answers[len(answers)].get())
        return [*answers, last]

    async def _wait_for_link(self) -> None:
        await self._met[0].wait()

    async def _wait_for_frames(self) -> None:
        """Until the peer waits for the watched node, and nothing else runs."""
        self._frames = 0
        while not self._links[0].is_awaited:
            await asyncio.sleep(IDLE_SECONDS)

    def _receiver(self, node: int) -> Callable[[Any], Any]:
        """The coordinator's end of a node's stream: it notes when an answer arrives."""

        async def receive(message: Any) -> None:
            if isinstance(message, m.Progress):
                return
            if node == WATCHED:
                self._note(type(message).__name__.lower())
            self._answers[node].put_nowait(message)

        return receive

    def _note(self, name: str) -> None:
        wall, processor = clocks()
        self.times[name] = wall - self._asked[0], processor - self._asked[1]

    # --- the parts of a site -------------------------------------------------------------------

    def _joined(self) -> list[MemoryStream]:
        """Both ends of the stream between the two nodes."""

        def frame_arrived() -> None:
            self._frames += 1
            self._note(f"frame {self._frames}")

        peer = MemoryStream(f"node-{WATCHED}", lambda: None)
        watched = MemoryStream("node-0", frame_arrived)
        peer.other, watched.other = watched, peer
        return [peer, watched]

    def _site(self, node: int) -> Site:
        async def link(study: Study, peer: int, meeting: bytes, standing: Any) -> PeerLink:
            if node == WATCHED:
                self._note("link")
            self._met[node].set()
            await asyncio.gather(*(each.wait() for each in self._met.values()))
            stream: Any = self._streams[node]
            made = self._links[node] = PeerLink(stream)
            self._tasks.append(asyncio.create_task(made.pump()))
            return made

        async def dial_helper(call: Any) -> None:
            call.stream = MemoryDealer(lambda: self._dealt[node])

        def unused(*_: Any) -> Any:
            raise AssertionError("this study needs no such part")

        ledger: Any = MemoryLedger()
        parking: Any = NoParking()
        return Site(
            name=f"node-{node}",
            credentials=lambda: AUTHORITY.credentials(f"node-{node}"),
            ledger=ledger,
            parking=parking,
            admit=lambda _: None,
            load=lambda _: Records(table(), RECORDS, 0),
            permit=lambda *_: None,
            permit_delta=lambda _: None,
            dial=link,
            await_link=link,
            dial_helper=dial_helper,
            open_spool=unused,
        )

    def _deal(self, attempt: SharedAttempt) -> None:
        dealer = MaterialDealer(attempt, os.urandom)
        self._dealt = [deque([dealer.seed_frame(node)]) for node in range(NODES)]
        for chunk in attempt.chunks():
            for node, frame in dealer.deal_one(chunk):
                self._dealt[node].append(frame)


def table() -> dict[str, np.ndarray]:
    """Fresh random records."""
    stream = Stream(os.urandom(32))
    return {name: (stream.words(RECORDS) >> np.uint64(62)).astype(np.int64) for name in "xy"}


def clocks() -> tuple[int, int]:
    """The wall's clock and the processor's, in nanoseconds."""
    return time.perf_counter_ns(), time.process_time_ns()
