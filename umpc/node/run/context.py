"""The parts of a process and of a study that a run needs.

*Guard.* A violation by a peer or by the dealer ends a study's steps at once.

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
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar, TypeVarTuple

from umpc.compute.executor import Executor
from umpc.crypto.signing import Credentials
from umpc.errors import LocalProtocolError, MpcError
from umpc.mpc.attempt import SharedAttempt
from umpc.node.audit.trail import Record, nothing
from umpc.node.budget.ledger import Ledger
from umpc.node.records import Records
from umpc.node.run.coordinator import CoordinatorStream
from umpc.node.spool import Spool
from umpc.node.standing import PreparedAttempt, PreparedAttempts, Standing
from umpc.study.document import Study
from umpc.transport.patience import cancelled

NO_COST = (Fraction(0), Fraction(0))
"""ε and δ of what is sent again."""
PROGRESS_EVERY = 64
"""Number of chunks between two reports of a step's progress."""


@dataclass(frozen=True)
class Site:
    """The parts of its process that a run needs, for one of the node's data sets.

    credentials: what the node signs with and checks others by, as its files are now.
    check: whether the study is about a data set of the node.
    admit: whether the site's rules and its administrator allow a study, before any data is read;
        returns these rules, in words for the coordinator.
    load: the study's records, once its ε is reserved.
    permit: whether the rules still allow it, over so many records; returns them, too.
    permit_delta: whether the rules allow a release of so much δ.
    released: is told when a release has left, and its data is of no further use.
    checking: is told before the check of a total is opened, and whether it has passed.
    dial: a link to a peer that comes later in the study.
    await_link: the link that an earlier peer dials. Both take the study, the peer's index, the
        meeting's name, and the `StandingWith` the peer where the run may use a channel, or None.
    dial_helper: connects a `DealerCall`, an `AnswerCall` or the `ShufflerStreams`.
    open_spool: room on disk for so many bytes.
    record: appends rows to the audit trail, on disk when it returns.
    keep: puts evidence of a lie into a file, and returns its path.
    add_charge: appends the row of a released study's charge where the trail has none.
    charging: held from a charge until its row is in the trail, and while one is looked for.
    workers: computes chunks of edges beside the run's own thread, if there is such a place.
    written_at: when the table's files were last written, in seconds since 1970; 0 if unknown.
    standing: what the process keeps with other nodes between studies, if it keeps anything.
    """

    name: str
    credentials: Callable[[], Credentials]
    ledger: Ledger
    parking: PreparedAttempts
    admit: Callable[[Study], str]
    load: Callable[[Study], Records]
    permit: Callable[[Study, int], str]
    permit_delta: Callable[[Fraction], None]
    dial: Callable[..., Awaitable[Any]]
    await_link: Callable[..., Awaitable[Any]]
    dial_helper: Callable[..., Coroutine[Any, Any, None]]
    open_spool: Callable[[Study, int], Spool]
    check: Callable[[Study], None] = lambda study: None
    released: Callable[[Study], None] = lambda study: None
    checking: Callable[[Study, bool], None] = lambda study, passed: None
    record: Record = nothing
    keep: Callable[[bytes], str] = lambda evidence: ""
    add_charge: Callable[[bytes], None] = lambda study: None
    charging: threading.Lock = field(default_factory=threading.Lock)
    written_at: Callable[[], float] = lambda: 0.0
    workers: Executor | None = None
    standing: Standing | None = None


SiteOf = Callable[[Study], Site]
"""Finds the parts of the process for a study's data set; the first one's where it has none."""


class RunContext:
    """One run: the parts of its process, its coordinator, and its computation.

    Args:
        site: the parts of the process, until `site_of` has found those for the study's data set.
        stream: to the study's coordinator.
    """

    def __init__(self, site: Site, stream: CoordinatorStream, site_of: SiteOf | None = None):
        self.site = site
        self.stream = stream
        self.site_of = site_of
        self.guard = ViolationGuard()
        self.compute = RunCompute()
        self.policy = ""
        """The rules of the site that let this run through, in words for the coordinator."""
        self.missing: list[str] = []
        """The names whose messages were missing when the time of a step was up."""
        self.parked: PreparedAttempt | None = None
        """The attempt that waits for another run: this run ended, the study did not."""

    @property
    def study(self) -> Study:
        """The study, once it is proposed."""
        return self.stream.study

    @property
    def charged_as(self) -> bytes:
        """The hash under which the study is reserved and charged, whoever survives."""
        return self.study.whole.hash


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
            await cancelled(work, alarm)

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

Arguments = TypeVarTuple("Arguments")
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
        self, function: Callable[[*Arguments], Result], *arguments: *Arguments
    ) -> Result:
        """Computation off the event loop, one at a time, in order.

        A call that is cancelled before it begins is left out.
        """
        if self._is_closed:
            raise LocalProtocolError("a run that has ended wanted to compute")
        if self._thread is None:
            self._thread = COMPUTE_THREADS.take()
        call = self._thread.submit(function, *arguments)
        self._calls = [each for each in self._calls if not each.done()]
        self._calls.append(call)
        return await asyncio.wrap_future(call)

    async def briefly(
        self, function: Callable[[*Arguments], Result], *arguments: *Arguments
    ) -> Result:
        """Computation in proportion to the attempt's size: in place where that is small.

        A change of threads and back takes longer than a millisecond's work on a busy machine, and
        a small study has dozens. Never while another computation of this run goes on.
        """
        is_computing = any(not each.done() for each in self._calls)
        if self.is_small and not is_computing and not self._is_closed:
            return function(*arguments)
        return await self.in_thread(function, *arguments)

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
        self._runs: Counter[ThreadPoolExecutor] = Counter()
        self._lock = threading.Lock()

    def take(self) -> ThreadPoolExecutor:
        """Return an executor with one thread, which few others use until it is given back."""
        with self._lock:
            thread = min(self._runs, key=self._runs.__getitem__, default=None)
            if thread is None or (self._runs[thread] and len(self._runs) < self._most):
                thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="study")
            self._runs[thread] += 1
            return thread

    def give_back(self, thread: ThreadPoolExecutor) -> None:
        """Let others use the thread, once the last computation of its run has ended."""

        def idle(_: Future[None]) -> None:
            with self._lock:
                self._runs[thread] -= 1

        thread.submit(lambda: None).add_done_callback(idle)  # the last in its queue


COMPUTE_THREADS = ComputeThreads()
"""The threads of this process."""
