"""Streams from the coordinator to the nodes: a message with a time limit, and the answer to it.

`each` does one step with all nodes at once. Where several nodes fail, `most_telling` chooses the
failure to show.

*Losses.* The nodes that a study loses, and whether it goes on without them.

    study = losses.study                  propose it
    losses.hear(answers)                  the nodes' answers to the proposal
    losses.is_settled = True              before a release is asked for: from now on nobody is
                                          left out any more
    node = losses.returning(error)        the node that can finish the study if it starts again
    study = losses.after(error)           the study to propose next, or the error again

A node that is lost before the release is left out of a new attempt over the survivors
(`umpc/study/attempt.py`). Nothing of the attempt that ended was opened. A node that said *ready*
before holds its share, and drops it. If it is not known that nobody has charged, nothing is dropped
and the lost node must come back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from umpc.errors import (
    AlreadyReleased,
    ApprovalPending,
    CertificateError,
    PeerLost,
    PeerUnavailable,
    PreparationLost,
    StepTimeout,
    StudyAborted,
    StudyError,
    UmpcError,
)
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.base.coordinator import Proposed
from umpc.study import messages as m
from umpc.study.attempt import without
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.study.parts import Participant
from umpc.transport.identity import Identity
from umpc.transport.stream import RpcStream
from umpc.transport.tls import node_stub

Note = Callable[[str, str, int, int], None]
"""Takes notes of a run. Arguments: node, step, parts of it that are done, parts in all.

The step "connect" is done when the node is connected. Every other one is done with its answer.
"""


T = TypeVar("T")

GRACE_SECONDS = 0.5
"""Seconds that the first failure waits for a better one.

The failure of the process that died is better than that of a peer that misses it.
"""
ABORT_SECONDS = 1
"""Seconds that a node may take to hang up after it was told that the study has ended."""
GIVE_UP_SECONDS = 10
"""Seconds for that before an attempt over the survivors, which begins when this one has ended."""

MESSAGES_AHEAD = 8
"""Messages of a node that may wait unread: frames of masked vectors then do not fill the memory."""

UNCHARGED = "Nothing was released and no epsilon was charged in this run"
AGAIN = "Run the study again under its name: it then finishes, and no node charges twice"
WHAT_HOLDS = {
    "release": f"There is no result yet, and some nodes may have charged epsilon. {AGAIN}",
    "ask": (
        "There is no result yet, and all nodes have charged epsilon for their first message. "
        f"{AGAIN}"
    ),
}
"""The state that a failure in a step leaves behind."""

Encoded = tuple[pb.CoordinatorMessage, ...]
"""A message on the wire, in one part or more."""
Tell = Callable[[str, int, int], None]
"""Shows progress to people. Arguments: step, number of parts done, total number of parts."""


def silent(*_: object) -> None:
    """Progress that nobody looks at, and notes that nobody takes."""


class NodeLink:
    """The stream to one node. `tell` gets the node's progress messages, `note` also its steps."""

    def __init__(self, node: Participant, tell: Tell, note: Note = silent):
        self.node = node
        self.tell = tell
        self._note = note
        self._stream: RpcStream[pb.CoordinatorMessage, m.NodeMessage] = RpcStream(
            node.name, "connect", codec.decode_node, ahead=MESSAGES_AHEAD
        )

    async def open(
        self,
        identity: Identity,
        patience: float | None = None,
    ) -> None:
        """Connect and begin the study's call. Raises: PeerUnavailable, CertificateError.

        Args: patience: as of `RpcStream.connect`.
        """
        await self._stream.connect(identity, "node", self.node.address, patience)
        self._stream.begin(node_stub(self._stream.channel).Study())
        self._note(self.node.name, "connect", 1, 1)

    async def ask(
        self, step: str, message: Encoded, kinds: tuple[type[T], ...], seconds: float
    ) -> T:
        """Do one step: send a message and return the answer, which must be of one of `kinds`.

        Raises: the node's own failure as it sent it, PeerLost, StepTimeout, RemoteProtocolError.
        """
        self._note(self.node.name, step, 0, 1)
        answer = await self.deliver(step, [message], kinds, seconds)
        self._note(self.node.name, step, 1, 1)
        return answer

    async def collect(
        self,
        step: str,
        messages: Iterable[Encoded],
        take: Callable[[Frame], bool],
        seconds: float,
    ) -> None:
        """Send messages, and take the frames that answer them until `take` has the last one.

        Raises: as `ask`, and what `take` raises.
        """
        async with self._stream.deadline(step, seconds):
            for message in messages:
                await self._write(message)
            while not take((await self._answer(step, (m.Part,))).frame):
                pass

    async def deliver(
        self, step: str, parts: Iterable[Encoded], kinds: tuple[type[T], ...], seconds: float
    ) -> T:
        """Send encoded messages, and return the answer to all of them. Raises: as `ask`."""
        async with self._stream.deadline(step, seconds):
            for part in parts:
                await self._write(part)
            return await self._answer(step, kinds)

    async def _write(self, message: Encoded) -> None:
        for part in message:
            await self._stream.write(part)

    async def _answer(self, step: str, kinds: tuple[type[T], ...]) -> T:
        while True:
            answer = await self._stream.next(step)
            match answer:
                case m.Progress(of_step, done, total):
                    self.tell(f"{of_step} {self.node.name}", done, total)
                    self._note(self.node.name, step, min(done, total - 1), total)
                case m.Failure():
                    raise codec.error_of(answer)
                case _ if isinstance(answer, kinds):
                    return answer
                case _:
                    raise self._stream.violation(f"sent {type(answer).__name__}")

    async def abort(self, error: UmpcError, *, keep: bool, seconds: float = ABORT_SECONDS) -> None:
        """Tell the node why the study ends. A node that is gone gets no message.

        Args: keep: some node may have charged, so the node keeps an attempt that it holds.
            seconds: how long it may take to hang up.
        """
        if not self._stream.is_open:
            return
        reason = m.Abort(error.culprit or "", f"the study was ended: {error.message}", keep)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stream.write(codec.encode_coordinator(reason))
                await self._stream.finish(seconds)

    async def hang_up(self) -> None:
        """Ask nothing more. `close` waits until the node has ended the stream."""
        await self._stream.finish(0)

    async def close(self) -> None:
        """Hang up. A node that has answered gets a moment to finish its work."""
        await self._stream.finish(ABORT_SECONDS)
        await self._stream.close()


def encoded(message: m.CoordinatorMessage) -> Encoded:
    """A message for the wire, once for all nodes. Raises: RangeError where it is too large."""
    return tuple(codec.cut(codec.encode_coordinator(message)))


class AskedLink(Protocol):
    """A stream to one participant, as `each` needs it."""

    @property
    def node(self) -> Participant: ...


AnyLink = TypeVar("AnyLink", bound=AskedLink)


async def each(
    links: Sequence[AnyLink], step: str, job: Callable[[AnyLink], Coroutine[Any, Any, T]]
) -> list[T]:
    """Run the job for all links at once and return the results in the order of the links.

    The first failure waits GRACE_SECONDS for a more telling one and then cancels all other jobs.

    Raises: the most telling failure.
    """
    tasks = [asyncio.create_task(job(link)) for link in links]
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        if any(task.done() and task.exception() for task in tasks):
            await asyncio.wait(tasks, timeout=GRACE_SECONDS)
            raise most_telling(_failures(links, tasks), step)
        return [task.result() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _failures(
    links: Sequence[AskedLink], tasks: Sequence[asyncio.Task[T]]
) -> dict[str, BaseException]:
    """Return the failures of the tasks that have ended, by the participant's name."""
    failures = {}
    for link, task in zip(links, tasks, strict=True):
        error = task.exception() if task.done() else None
        if error is not None:
            failures[link.node.name] = error
    return failures


def most_telling(failures: Mapping[str, BaseException], step: str) -> UmpcError:
    """Return the failure to show: a refusal, a missing approval, a death, then a missed peer.

    A node that reports a failure is alive. A peer that misses this node saw a consequence only.
    The returned error says also what the failure leaves behind.

    Raises: the first failure that is no UmpcError.
    """
    known: dict[str, UmpcError] = {}
    for name, failure in failures.items():
        if not isinstance(failure, UmpcError):
            raise failure
        known[name] = failure
    alive = {name for name, error in known.items() if error.culprit != name}

    def rank(error: UmpcError) -> tuple[bool, bool, bool, bool]:
        lost, aborted = isinstance(error, PeerLost), isinstance(error, StudyAborted)
        return aborted, lost, isinstance(error, ApprovalPending), error.culprit in alive

    error = min(known.values(), key=rank)
    if isinstance(error, ApprovalPending):
        waiting = [name for name, each in known.items() if isinstance(each, ApprovalPending)]
        _name_all(error, known, waiting)
    return saying_what_holds(error, step)


def saying_what_holds(error: UmpcError, step: str) -> UmpcError:
    """Return a failure after it says also what it leaves behind."""
    error.message = f"{error.message.rstrip('.')}. {WHAT_HOLDS.get(step, UNCHARGED)}."
    error.args = (error.message,)
    error.step = error.step or step
    return error


def _name_all(
    error: ApprovalPending, known: Mapping[str, UmpcError], waiting: Sequence[str]
) -> None:
    """Let one error name all sites that have yet to decide."""
    error.waiting = tuple(sorted(waiting))
    others = [name for name in error.waiting if known[name] is not error]
    if others:
        error.message = f"{error.message.rstrip('.')}. It waits at {', '.join(others)}, too"


# --- losses ---------------------------------------------------------------------------------------

log = logging.getLogger("umpc.coordinator")
LOSSES = (PeerLost, PeerUnavailable, StepTimeout)
"""The failures by which a node counts as lost: it died, hangs, cannot be reached, or is too slow.
Another failure, such as a refusal, is an answer; the study ends with it."""


class Losses:
    """Args: study: with all its nodes."""

    def __init__(self, study: Study):
        self.study = study
        self.is_settled = False
        """Some node may have charged for this set of survivors, so it stays."""
        self.is_uncharged = False
        """All nodes that this run has asked said that they have charged nothing, and since then no
        release was asked for."""
        self.has_evaluated = False
        """This run has evaluated the attempt itself, so its result is no replay."""
        self._stored: tuple[str, ...] | None = None
        self._has_turned = False
        self._is_prepared = False
        """Some node has taken up what was prepared, so it is used up at that node."""
        self._preparations = len(study.nodes)
        """How often a preparation may be lost: a run that loses it uses one up."""

    def hear(self, answers: Sequence[Proposed]) -> None:
        """Compare the answers' survivors with the proposal's.

        Raises: AlreadyReleased where nodes have charged for another set; `after` then turns to it.
        PeerLost where a node that is left out may have charged for an attempt that others hold.
        """
        missing = self.study.names_missing
        released = {answer.missing for answer in answers if isinstance(answer, m.Released)}
        self.is_settled = self.is_settled or bool(released)
        self._is_prepared = any(isinstance(a, m.Accepted) and a.waiting for a in answers)
        if released - {missing}:
            found = sorted(released - {missing})
            self._stored = found[0] if len(released) == 1 else None
            raise AlreadyReleased(
                f"the study {self.study.name!r} was released {_without(found[0])}, and is proposed "
                f"{_without(missing)}; its stored result is that of the nodes that released it",
                step="propose",
            )
        if not self.is_uncharged:
            self._check_holders(answers)

    def _check_holders(self, answers: Sequence[Proposed]) -> None:
        """Raises: PeerLost naming who may have charged for an attempt that others hold."""
        for node, answer in zip(self.study.nodes, answers, strict=True):
            if not isinstance(answer, m.Held):
                continue
            away = [name for name in self.study.names_missing if name not in answer.missing]
            if away:
                self.is_settled = True
                raise PeerLost(
                    f"{node.name} holds a finished attempt of the study {self.study.name!r} "
                    f"together with {', '.join(away)}, which may have charged for it and cannot "
                    f"be asked; start {', '.join(away)}, and run the study again",
                    culprit=away[0],
                    step="propose",
                )

    def returning(self, error: UmpcError) -> Participant | None:
        """The node that was lost after it was ready, so that it holds its share on disk.

        A node that is too slow is not lost by a restart, so waiting for one is of no use.
        """
        if not self.is_settled or not isinstance(error, PeerLost | PeerUnavailable):
            return None
        return next((node for node in self.study.nodes if node.name == error.culprit), None)

    def after(self, error: UmpcError) -> Study:
        """The study to propose after a failure.

        Raises: the error, where the study ends with it.
        """
        if self._stored is not None and not self._has_turned:
            self._has_turned = True
            return self._turn_to(self._stored, error)
        # What was prepared has the certificates of then, and one of them may count no more.
        is_ahead, self._is_prepared = self._is_prepared, False
        is_void = is_ahead and isinstance(error, CertificateError) and not self.is_settled
        if self._preparations and (is_void or isinstance(error, PreparationLost)):
            self._preparations -= 1
            log.info("what was prepared is of no use, the study runs anew: %s", error.message)
            return self.study
        names = {node.name for node in self.study.nodes}
        is_loss = isinstance(error, LOSSES) and error.culprit in names
        if self.is_settled or not self.study.most_missing or not is_loss:
            raise error
        survivors = self._turn_to((*self.study.names_missing, error.culprit or ""), error)
        log.warning(
            "study %r goes on without %s, which was lost in step %s: %s",
            survivors.name,
            error.culprit,
            error.step,
            type(error).__name__,
        )
        return survivors

    def _turn_to(self, missing: Sequence[str], error: UmpcError) -> Study:
        """Raises: the error, where the study does not end without these nodes."""
        try:
            self.study = without(self.study, missing)
        except StudyError as refusal:
            error.message = f"{error.message.rstrip('.')}. It does not go on: {refusal.message}"
            error.args = (error.message,)
            raise error from refusal
        return self.study


def _without(missing: Sequence[str]) -> str:
    return f"without {', '.join(missing)}" if missing else "with all its nodes"
