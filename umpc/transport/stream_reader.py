"""The messages of one stream as they come, and the reason why the stream ended.

Cancelling a gRPC read cancels the whole call, and a cancelled call can no longer say why it failed.
A task of the reader's own therefore reads the call, and a caller that stops waiting cancels no
read.

Messages wait in an inbox until `next` asks for them. After `feed`, each goes straight to a sink.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from umpc.errors import MpcError, PeerLost, UmpcError
from umpc.transport.patience import cancelled
from umpc.transport.tls import EOF, Readable, grpc, read

Reply = TypeVar("Reply")
log = logging.getLogger("umpc.transport")


class StreamReader(Generic[Reply]):
    """The reader of one stream.

    Args:
        source: the call to read.
        decode: turns a message of the wire into a `Reply`.
        ahead: number of messages that are taken before `next` asks for them; None: no limit.
        reason: the error for what ended the stream: an exception, or None for the peer's own end.
            It may have none for the latter.
        lost: the error for a stream that ended without another reason.
    """

    def __init__(
        self,
        source: Readable[Any],
        decode: Callable[[Any], Reply],
        ahead: int | None,
        reason: Callable[[BaseException | None], UmpcError | None],
        lost: Callable[[], UmpcError],
    ):
        self.failure: UmpcError | None = None
        """Why the stream ended. Earlier messages may still wait in the inbox."""
        self.has_ended = asyncio.Event()
        self._decode = decode
        self._ahead = ahead
        self._reason = reason
        self._lost = lost
        self._inbox: deque[Reply] = deque()
        self._has_said_all = False
        self._waiting = 0
        self._arrived = asyncio.Event()
        self._wanted = asyncio.Event()
        self._sink: Callable[[Reply], None] | None = None
        self._takes: Callable[[], bool] = lambda: True
        self._task = asyncio.create_task(self._read(source))

    # ---- the user's side ---------------------------------------------------------------------

    async def next(self) -> Reply:
        """Return the next message. Raises: the reason why the stream ended."""
        self._waiting += 1
        self.want()
        try:
            while not self._inbox:
                self.raise_failure()
                self._arrived.clear()
                await self._arrived.wait()
            self._raise_violation()
            return self._inbox.popleft()
        finally:
            self._waiting -= 1
            if self._ahead:
                self.want()

    def early(self) -> Reply | None:
        """Return a message that waits, if there is one. Raises: as `next`."""
        self._raise_violation()
        if self._inbox:
            return self._inbox.popleft()
        self.raise_failure()
        return None

    def feed(self, sink: Callable[[Reply], None], takes: Callable[[], bool]) -> None:
        """Give each message to a sink from now on; `has_ended` then says when there are no more.

        Args:
            sink: takes a message. An UmpcError that it raises ends the stream.
            takes: whether the sink takes one more now. `want` asks again.
        """
        self._sink, self._takes = sink, takes
        self.want()

    def want(self) -> None:
        """Go on to read, if there is room now."""
        self._wanted.set()

    def raise_failure(self) -> None:
        """Raise the reason why the stream ended, if it has."""
        if self.failure is not None:
            raise self.failure

    def _raise_violation(self) -> None:
        """A peer that broke the protocol is not heard, whatever of its messages still waits."""
        if isinstance(self.failure, MpcError) and not self._has_said_all:
            raise self.failure

    def end(self, failure: UmpcError) -> None:
        """End the stream for a reason of this side's, unless it has ended."""
        self.failure = self.failure or failure
        self._arrived.set()

    async def ended_within(self, seconds: float) -> None:
        """Wait until the stream has ended, or the time is up."""
        if not self.has_ended.is_set():
            waiting = asyncio.create_task(self.has_ended.wait())
            await asyncio.wait({waiting}, timeout=seconds)
            waiting.cancel()

    async def stop(self) -> None:
        """Read no more."""
        await cancelled(self._task)

    # ---- the stream's side -------------------------------------------------------------------

    def _has_room(self) -> bool:
        if self._sink is not None:
            return self._takes()
        return self._ahead is None or len(self._inbox) < self._ahead + self._waiting

    def _keep(self, message: Any) -> None:
        reply = self._decode(message)
        if self._sink is not None:
            self._sink(reply)
        else:
            self._inbox.append(reply)
            self._arrived.set()

    async def _read(self, source: Readable[Any]) -> None:
        """Read until the stream ends."""
        error: BaseException | None = None
        is_told = False
        try:
            while True:
                while not self._has_room():
                    self._wanted.clear()
                    await self._wanted.wait()
                message = await read(source)
                if message is None:
                    is_told = True
                    return
                self._keep(message)
        except (UmpcError, grpc.aio.AioRpcError, grpc.aio.BaseError) as failure:
            error = failure
        except Exception as failure:
            # Whatever a peer sent: it ends this stream, and not the process with all others.
            log.warning("a message could not be read: %r", failure)
            error = failure
        finally:
            self._finish(error, told=is_told)

    def _finish(self, error: BaseException | None, *, told: bool) -> None:
        """Keep the reason. Args: told: the peer itself ended the stream."""
        if self.has_ended.is_set():
            return
        # messages before the peer's own end are heard, even if it ended too early
        self._has_said_all = told
        found = self._reason(error) if told or error is not None else None
        self.failure = found or self.failure or self._lost()
        self.has_ended.set()
        self._arrived.set()


def lost(peer: str, step: str, detail: object = "") -> PeerLost:
    """Return the error for a peer whose connection broke. `detail` is for the own log only."""
    return PeerLost(
        f"{peer} went away in step {step}: its connection broke or stopped answering; "
        "see that it runs, then run the study again",
        culprit=peer,
        step=step,
        detail=str(detail),
    )


Known = TypeVar("Known")
OF_CORE = "Internal error from Core"
"""The text of the status that gRPC sets itself."""
REASON_SECONDS = 1.0
"""Seconds that a failure waits for the reason why its call ended."""
LOOK_SECONDS = 0.01
"""Seconds between two looks at a call's status."""


def _is_of_core(status: grpc.aio.AioRpcError) -> bool:
    """It is gRPC's own; a peer that sends the same words has no others."""
    return status.code() is grpc.StatusCode.INTERNAL and status.details() == OF_CORE


class CallEnd:
    """One call's messages from the peer, and the reason why the peer ended it.

    Args: call: a `grpc.aio.Call` whose answer is a stream, of which nobody else reads.
    """

    def __init__(self, call: Any):
        self._call = call
        self._messages = call.__aiter__()
        self._said: grpc.aio.AioRpcError | None = None
        call.add_done_callback(self._note)

    async def read(self) -> Any:
        """Return the next message, or EOF. Raises: AioRpcError with the peer's own status."""
        try:
            return await anext(self._messages)
        except StopAsyncIteration:
            return EOF
        except grpc.aio.AioRpcError as failure:
            reason = await self.reason(failure)
            if reason is None:
                return EOF
            if reason is failure:
                raise
            raise reason from failure

    async def reason(self, failure: grpc.aio.AioRpcError) -> grpc.aio.AioRpcError | None:
        """Return why the call ended, or None where the peer ended it well.

        It is the failure itself, unless gRPC made that and the peer's own status comes within
        REASON_SECONDS. Args: failure: of a read or a write.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + REASON_SECONDS
        while _is_of_core(failure) and self._said is None and clock() < until:
            await asyncio.sleep(LOOK_SECONDS)
            self._note(self._call)
        if not _is_of_core(failure) or self._said is None:
            return failure
        return None if self._said.code() is grpc.StatusCode.OK else self._said

    def _note(self, call: Any) -> None:
        """Keep a call's status, if the peer said it."""
        code, details = _known(call.code()), _known(call.details())
        trailing = _known(call.trailing_metadata())
        if code is None or trailing is None or self._said is not None:
            return
        status = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, details, None)
        if not _is_of_core(status):
            self._said = status


def _known(asked: Coroutine[Any, Any, Known]) -> Known | None:
    """Return a fact of an ended call, for which nothing is waited; None if it has not ended."""
    try:
        asked.send(None)
    except StopIteration as found:
        known: Known = found.value
        return known
    asked.close()
    return None
