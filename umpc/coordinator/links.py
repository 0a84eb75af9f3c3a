"""Streams from the coordinator to the nodes: a message with a time limit, and the answer to it.

`each` does one step with all nodes at once. Where several nodes fail, `most_telling` chooses the
failure to show.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from umpc.coordinator.run_file import Note, no_note
from umpc.errors import ApprovalPending, PeerLost, StudyAborted, UmpcError
from umpc.proto import codec, frame_codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m
from umpc.study.messages import Frame
from umpc.study.parts import Participant
from umpc.transport.authority import Identity
from umpc.transport.services import node_stub
from umpc.transport.stream import RpcStream

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


class NodeLink:
    """The stream to one node. `tell` gets the node's progress messages, `note` also its steps."""

    def __init__(self, node: Participant, tell: Tell, note: Note = no_note):
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
        async with self._stream.deadline(step, seconds):
            self._note(self.node.name, step, 0, 1)
            await self._write(message)
            answer = await self._answer(step, kinds)
            self._note(self.node.name, step, 1, 1)
            return answer

    async def collect(
        self,
        step: str,
        message: Encoded,
        take: Callable[[Frame], bool],
        seconds: float,
    ) -> None:
        """Send a message, and take the frames that answer it until `take` has the last one.

        Raises: as `ask`, and what `take` raises.
        """
        async with self._stream.deadline(step, seconds):
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
    return tuple(frame_codec.cut(codec.encode_coordinator(message)))


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
