"""Streams to nodes: questions with a deadline, their answers, and which of several failures is the one to show."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from umpc.errors import (
    EncodingError,
    PeerLost,
    RemoteProtocolError,
    StepTimeout,
    StudyAborted,
    UmpcError,
)
from umpc.proto import codec
from umpc.study import messages as m
from umpc.study.parts import Participant
from umpc.transport.authority import Identity
from umpc.transport.channels import connect
from umpc.transport.services import grpc, rpc
from umpc.transport.status import error_of, lost

T = TypeVar("T")
CONNECT_SECONDS = 5
GRACE_SECONDS = 0.5
"""How long the first failure waits for a better one: the process that died itself, not who missed it."""
ABORT_SECONDS = 1
"""How long a node that is told of the end may take to hang up."""

UNCHARGED = "Nothing was released and no epsilon was charged"
WHAT_HOLDS = {
    "release": "Nothing was released and some nodes may have charged epsilon",
    "ask": "There is no result, and all nodes have charged epsilon for their first message",
}
"""What a failure in a step leaves behind."""

Tell = Callable[[str, int, int], None]
"""step, done, total → nothing: progress, for people."""


class NodeLink:
    """The stream to one node.

    A task of its own reads the stream, because cancelling a read of gRPC cancels the call, and a call that is cancelled
    can no longer say why.
    """

    def __init__(self, node: Participant, tell: Tell):
        self.node, self.tell = node, tell
        self._channel: grpc.aio.Channel | None = None
        self._call = None
        self._answers: asyncio.Queue[m.NodeMessage | UmpcError] = asyncio.Queue()
        self._reader: asyncio.Task | None = None
        self._step = "connect"

    async def open(self, identity: Identity) -> None:
        self._channel = await connect(
            identity, self.node.name, "node", self.node.address, CONNECT_SECONDS
        )
        self._call = rpc.NodeStub(self._channel).Study()
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        """Everything the node says, and at last why it says no more."""
        try:
            while (message := await self._call.read()) is not grpc.aio.EOF:
                await self._answers.put(codec.decode_node(message))
            await self._answers.put(lost(self.node.name, self._step))
        except grpc.aio.AioRpcError as error:
            await self._answers.put(error_of(error, self.node.name, self._step))
        except EncodingError as error:
            await self._answers.put(self._violation(error.message))

    async def ask(
        self, step: str, message: m.CoordinatorMessage, kinds: tuple[type[T], ...], seconds: float
    ) -> T:
        """One step. Raises: the node's own failure as it sent it, PeerLost, StepTimeout, RemoteProtocolError."""
        self._step = step
        try:
            async with asyncio.timeout(seconds):
                with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    await self._call.write(
                        codec.encode_coordinator(message)
                    )  # the reader knows why it fails
                return await self._answer(kinds)
        except TimeoutError as error:
            raise StepTimeout(
                f"{self.node.name} did not finish step {step} within {seconds:.0f} s",
                culprit=self.node.name,
                step=step,
            ) from error

    async def _answer(self, kinds: tuple[type[T], ...]) -> T:
        while True:
            answer = await self._answers.get()
            match answer:
                case m.Progress(step, done, total):
                    self.tell(f"{step} {self.node.name}", done, total)
                case m.Failure():
                    raise codec.error_of(answer)
                case UmpcError():
                    raise answer
                case _ if isinstance(answer, kinds):
                    return answer
                case _:
                    raise self._violation(f"sent {type(answer).__name__}")

    async def abort(self, error: UmpcError) -> None:
        """Tell the node why the study ends; a node that is gone is not waited for."""
        if self._call is None or self._call.done():
            return
        reason = m.Abort(error.culprit or "", f"the study was ended: {error.message}")
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError, TimeoutError):
            async with asyncio.timeout(ABORT_SECONDS):
                await self._call.write(codec.encode_coordinator(reason))
                await self._call.done_writing()
                await asyncio.wait({self._reader})

    async def close(self) -> None:
        """Hang up: a node that has answered gets a moment to finish what it does."""
        if self._call is not None:
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await self._call.done_writing()
            await asyncio.wait({self._reader}, timeout=ABORT_SECONDS)
            self._call.cancel()
            await asyncio.wait({self._reader})
        if self._channel is not None:
            await self._channel.close()

    def _violation(self, what: str) -> RemoteProtocolError:
        name = self.node.name
        return RemoteProtocolError(
            f"{name} broke the protocol: {what}", culprit=name, step=self._step
        )


async def each(links: list[NodeLink], step: str, job: Callable) -> list:
    """The job for all nodes at once. The first failure waits a moment for a more telling one, then ends all."""
    tasks = [asyncio.create_task(job(link)) for link in links]
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        if any(task.done() and task.exception() for task in tasks):
            await asyncio.wait(tasks, timeout=GRACE_SECONDS)
            failed = {
                link.node.name: t.exception()
                for link, t in zip(links, tasks, strict=True)
                if t.done()
            }
            raise most_telling({name: error for name, error in failed.items() if error}, step)
        return [task.result() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def most_telling(failures: dict[str, BaseException], step: str) -> UmpcError:
    """Of the nodes' failures the one to show: a refusal, then who died, then who only missed somebody.

    A node that tells of a failure is alive, so a peer that misses it saw a consequence.
    """
    for error in failures.values():
        if not isinstance(error, UmpcError):
            raise error
    alive = {name for name, error in failures.items() if error.culprit != name}

    def rank(error: UmpcError) -> tuple[bool, bool, bool]:
        return isinstance(error, StudyAborted), isinstance(error, PeerLost), error.culprit in alive

    error = min(failures.values(), key=rank)
    error.message = f"{error.message.rstrip('.')}. {WHAT_HOLDS.get(step, UNCHARGED)}."
    error.args = (error.message,)
    error.step = error.step or step
    return error
