"""The material of one run: asked of the dealer, read as it comes, or kept on disk for a later run.

A node that makes its material with the other nodes keeps that on disk by the same means.

*Guard.* The guard of a study's steps: a violation by a peer or by the dealer ends them at once.

*Run compute.* The computation of one run: in a thread of its own, or in place where it takes a
moment.

*Compute threads.* Threads that compute for runs: each run has one of its own, which the next run
uses again.

A thread that ends leaves memory behind: FLINT keeps caches for each thread, and nothing frees them
when the thread ends. So threads are kept. There are as many as runs that ever computed at the same
time, and at most MOST_THREADS: more runs share a thread, and each still computes one step at a
time and in order.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from umpc.crypto.prg import SEED_BYTES
from umpc.errors import LocalProtocolError, MpcError
from umpc.failpoints import failpoint
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk
from umpc.node.attempts.material import (
    WINDOW_BYTES,
    DealerCall,
    DealerLine,
    MaterialReader,
    request_of,
)
from umpc.node.attempts.rounds import PROGRESS_EVERY
from umpc.node.attempts.site import Site
from umpc.node.attempts.spool import TAG_BYTES, Spool
from umpc.protocols.base.node import AsksEarly, MeshSide, NodeSide


class RunMaterial:
    """The material of one run. Args: guard: takes note of the dealer's violation."""

    def __init__(self, compute: RunCompute, guard: ViolationGuard):
        self.reader: MaterialReader | None = None
        """The dealer's stream, once it is open."""
        self.spool: Spool | None = None
        """The material on disk, where it is fetched or made ahead of the data."""
        self._compute = compute
        self._guard = guard
        self._line: DealerLine | None = None
        self._dialled: asyncio.Task[None] | None = None
        self._asked: DealerCall | None = None
        self._pump: asyncio.Task[None] | None = None

    @property
    def bytes_received(self) -> int:
        return self.reader.bytes_received if self.reader else 0

    def dial(self, site: Site, side: NodeSide) -> None:
        """Begin to connect to the dealer, where a study surely needs one, once the members agree.

        The coordinator waits for the other nodes meanwhile, and the dealer has nothing to do. One
        that cannot be reached is told of when it is asked.
        """
        dial, dealer, mesh = site.dial_dealer, side.study.dealer, side.mesh
        if dial is None or dealer is None or not isinstance(mesh, AsksEarly) or not mesh.asks_early:
            return
        self._line = DealerLine(dealer, side.study)
        self._dialled = asyncio.create_task(dial(self._line))
        self._dialled.add_done_callback(_look_away)

    async def ask_dealer(self, side: NodeSide, openings: tuple[bytes, ...]) -> None:
        """Ask the dealer that was dialled for material, before E is expanded.

        The dealer then expands E at the same time. All that it is told are public facts that every
        node has signed. Raises: PeerUnavailable, CertificateError.
        """
        mesh = side.mesh
        if self._line is None or self._dialled is None or not isinstance(mesh, AsksEarly):
            return
        request = request_of(side.study, mesh.members, openings, side.signatures)
        call = DealerCall(self._line, request)
        await self._dialled
        await call.ask()
        self._asked = call

    async def open(
        self,
        site: Site,
        attempt: SharedAttempt,
        openings: tuple[bytes, ...],
        signatures: tuple[bytes, ...],
        chunks: list[Chunk],
    ) -> bytes:
        """Begin to read. Returns: the node's seed: the dealer's, or its own if nothing is dealt."""
        if not attempt.needs_dealer:
            self.hang_up()
            return os.urandom(SEED_BYTES)
        facts = attempt, openings, signatures, chunks
        self.reader = await site.open_material(*facts, self._asked)
        seed = await self.reader.seed()
        self.reader.on_violation(self._guard.note)
        self._pump = asyncio.create_task(self.reader.pump())
        return seed

    async def open_spool(
        self,
        site: Site,
        mesh: MeshSide,
        chunks: Sequence[Chunk],
        size_of: Callable[[Any, int, int], int],
    ) -> Spool:
        """Room for this node's material, except that of the noise, which is used at once.

        Args: size_of: the bytes of a chunk's material, from its plan, party and number of edges.
        """
        attempt = mesh.attempt

        def opened() -> Spool:
            sizes = (
                size_of(attempt.plan(chunk), chunk.parties.index(mesh.index), chunk.count)
                + TAG_BYTES
                for chunk in chunks
                if not chunk.noise
            )
            return site.open_spool(attempt.study, sum(sizes))

        self.spool = await self._compute.in_thread(opened)
        return self.spool

    async def ready(self, chunks: int, tell: Callable[[int, int], Awaitable[None]]) -> None:
        """All of it on disk, if there is room for that, or as much as the window holds.

        Args: chunks: whose material is still to come. tell: reports progress, as (done, of).
        """
        if self.reader is None:
            return
        if self.spool is None:
            await self.reader.prefetched()
            return
        # The dealer's stream ends with the run.
        for done in range(chunks):
            await self._compute.in_thread(self.spool.add, await self.reader.next())
            failpoint("during-spool")
            if done % PROGRESS_EVERY == PROGRESS_EVERY - 1:
                await tell(done + 1, chunks)

    async def read_ahead(self) -> None:
        """Begin to read what an earlier run put on disk."""
        if self.spool:
            await self.spool.read_ahead(WINDOW_BYTES)

    def waited_for(self, step: str) -> list[str]:
        """The dealer's name, if its material is missing or may be, as in the step *prepare*."""
        if self.reader is not None and (self.reader.is_awaited or step == "prepare"):
            return [self.reader.dealer]
        return []

    def hang_up(self) -> None:
        """End the call to the dealer."""
        if self._pump:
            self._pump.cancel()
        if self._dialled:
            self._dialled.cancel()
        if self.reader:
            self.reader.close()
        elif self._line:
            self._line.close()

    def close(self, *, keep_spool: bool) -> None:
        """End all of it. Args: keep_spool: what is on disk stays."""
        self.hang_up()
        if self.spool and not keep_spool:
            self.spool.close()


def _look_away(dialled: asyncio.Task[None]) -> None:
    """A dealer that nobody asks any more need not have answered."""
    if not dialled.cancelled():
        dialled.exception()


# --- guard ----------------------------------------------------------------------------------------


class ViolationGuard:
    """The first violation of a study, and the end that it puts to the steps."""

    def __init__(self) -> None:
        self._violation: MpcError | None = None
        self._violated = asyncio.Event()
        self._has_settled = False

    async def run(self, steps: Coroutine[Any, Any, None]) -> None:
        """Run a study's steps; the violation of a peer or of the dealer ends them at once.

        A violation counts also while nobody waits for that process, but not after `settle`: what
        leaves the node is then made and may be paid.

        Raises: the violation, or the failure of the steps.
        """
        work = asyncio.create_task(steps)
        alarm = asyncio.create_task(self._violated.wait())
        try:
            await asyncio.wait({work, alarm}, return_when=asyncio.FIRST_COMPLETED)
            if self._violation is not None and not work.done() and not self._has_settled:
                raise self._violation
            await work
        finally:
            alarm.cancel()
            work.cancel()
            await asyncio.gather(work, alarm, return_exceptions=True)

    def note(self, error: MpcError) -> None:
        """Take note of a violation. Only the first one counts."""
        self._violation = self._violation or error
        self._violated.set()

    def settle(self) -> None:
        """Look for a violation for the last time, before the charge. Raises: the violation."""
        if self._violation is not None:
            raise self._violation
        self._has_settled = True


# --- run compute ----------------------------------------------------------------------------------

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

FEW_NODES = 8
"""The most nodes whose signatures the event loop checks itself: a millisecond's work."""
SMALL_STUDY = 1 << 15
"""The largest study whose brief computations the event loop does itself: its edges, its records,
or its cells as if they were edges."""


class RunCompute:
    """The computation of one run. The thread is taken when it is first needed."""

    def __init__(self) -> None:
        self.is_small = False
        """The attempt with other nodes has a size of at most SMALL_STUDY."""
        self._thread: ThreadPoolExecutor | None = None
        self._calls: list[Future[Any]] = []
        """Those that wait or are computed, and some that have ended."""
        self._is_closed = False

    async def in_thread(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Computation off the event loop, one at a time, in order.

        A call that is cancelled before it begins is left out.
        """
        if self._is_closed:
            raise LocalProtocolError("a run that has ended wanted to compute")
        if self._thread is None:
            self._thread = COMPUTE_THREADS.take()
        call = self._thread.submit(partial(function, *arguments, **named))
        self._calls = [each for each in self._calls if not each.done()]
        self._calls.append(call)
        return await asyncio.wrap_future(call)

    async def briefly(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Computation in proportion to the attempt's size: in place where that is small.

        A change of threads and back takes longer than a millisecond's work on a busy machine, and
        a small study has dozens. Never while another computation of this run goes on.
        """
        is_computing = any(not each.done() for each in self._calls)
        if self.is_small and not is_computing and not self._is_closed:
            return function(*arguments, **named)
        return await self.in_thread(function, *arguments, **named)

    async def for_nodes(
        self, function: Callable[[Sequence[Any]], Result], given: Sequence[Any]
    ) -> Result:
        """Computation in proportion to the number of nodes: in place where these are few.

        Args: given: the function's argument, which has an item for each node.
        """
        if len(given) <= FEW_NODES:
            return function(given)
        return await self.in_thread(function, given)

    def close(self) -> None:
        """Drop the calls that wait, and give the thread to other runs."""
        self._is_closed = True
        for call in self._calls:
            call.cancel()
        if self._thread is not None:
            COMPUTE_THREADS.give_back(self._thread)
            self._thread = None


def is_small(attempt: SharedAttempt) -> bool:
    """Whether work in proportion to the attempt's records, edges or cells takes a moment only."""
    return attempt.size <= SMALL_STUDY


# --- compute threads ------------------------------------------------------------------------------

MOST_THREADS = 16


class ComputeThreads:
    """The threads of a process. Args: most: how many there may be."""

    def __init__(self, most: int = MOST_THREADS) -> None:
        self._most = most
        self._free: list[ThreadPoolExecutor] = []
        self._runs: Counter[ThreadPoolExecutor] = Counter()
        self._lock = threading.Lock()

    def take(self) -> ThreadPoolExecutor:
        """Return an executor with one thread, which few others use until it is given back."""
        with self._lock:
            if self._free:
                thread = self._free.pop()
            elif len(self._runs) < self._most:
                thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="study")
            else:
                thread = min(self._runs, key=self._runs.__getitem__)
            self._runs[thread] += 1
            return thread

    def give_back(self, thread: ThreadPoolExecutor) -> None:
        """Let others use the thread, once the last computation of its run has ended."""

        def idle(_: Future[None]) -> None:
            with self._lock:
                self._runs[thread] -= 1
                if not self._runs[thread]:
                    self._free.append(thread)
                    del self._runs[thread]

        thread.submit(_nothing).add_done_callback(idle)


def _nothing() -> None:
    """Be the last in a thread's queue."""


COMPUTE_THREADS = ComputeThreads()
"""The threads of this process."""
