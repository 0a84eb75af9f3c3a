"""One gRPC stream to a peer: open, read, write, time limit, loss, violation and end.

A `RpcStream` owns its channel, its call and the task that reads the call. Cancelling a gRPC read
cancels the whole call, and a cancelled call can no longer say why it failed. The reads therefore
run in a task of their own, and a caller that stops waiting cancels no read.

The reader puts messages into an inbox. When the stream ends, the reader keeps the reason, and
every later `next` raises it: after a violation at once, else when the inbox is empty. The reason is
one of these:

| the stream ended because | error |
|---|---|
| the peer sent a failure of its own in the gRPC status | the same class as at the peer |
| the peer ended its side, its connection broke, or this side closed the stream | PeerLost |
| the peer has stopped: it sent neither a heartbeat nor data | PeerLost |
| a message did not decode | RemoteProtocolError |

A time limit that passes raises StepTimeout and leaves the stream as it is. It counts the time in
which this process could run (`patience.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Generic, TypeVar

from umpc.errors import (
    EncodingError,
    LocalProtocolError,
    RemoteProtocolError,
    StepTimeout,
    UmpcError,
)
from umpc.transport.channels import LATE_SECONDS
from umpc.transport.heartbeat import beat_to
from umpc.transport.hub.address import is_behind_hub
from umpc.transport.hub.calls import HubCall
from umpc.transport.identity import Identity
from umpc.transport.kept import KeptConnections, Lease
from umpc.transport.patience import time_limit
from umpc.transport.services import Call, Channel, Context, Told, grpc
from umpc.transport.status import error_of, lost
from umpc.transport.stream_reader import StreamReader

Request = TypeVar("Request")
Reply = TypeVar("Reply")
Message = TypeVar("Message")
Answer = TypeVar("Answer")

log = logging.getLogger("umpc.transport")
CONNECT_SECONDS = 5
"""Seconds that a peer may take until its channel is ready, or until it answers a short call."""
REASON_SECONDS = 1
"""Seconds that a write to an ended call waits for the reason why the call ended."""
BELIEVED = ("dealer", "shuffler")
"""The roles whose word counts on which process is at fault."""
BROKEN = (grpc.aio.AioRpcError, grpc.aio.BaseError, asyncio.InvalidStateError)
"""The exceptions that gRPC raises at a write or a half-close on a broken stream."""
EARLY_BYTES = 1 << 14
"""Bytes after which a stream beats at once: on a line of 16 kB a second they take a second."""


def as_received(message: Message) -> Message:
    """Leave a message as it is: the decoder of a stream whose user decodes."""
    return message


class RpcStream(Generic[Request, Reply]):
    """A stream to one peer. `Request` is what this side writes, `Reply` what `next` returns.

    Use `connect` and `begin` on the side that calls, `accept` on the side that was called.

    Args:
        peer: the peer's name, the culprit of every failure.
        step: the study's step at the beginning. Failures name the step; `next` changes it.
        decode: turns a message of the wire into a `Reply`. An EncodingError is a violation.
        ahead: number of messages that the reader takes before `next` asks for them. None means
            no limit. 0 means that it reads only while a `next` waits: a peer that sends faster
            is then held back by gRPC's flow control, but its loss is noticed later.
        early_end: if given, the peer must not end the stream, and these words say in the
            RemoteProtocolError what it did. Otherwise the peer counts as lost.
        beats: the side that calls exchanges heartbeats with the peer while the stream lasts.
    """

    def __init__(
        self,
        peer: str,
        step: str,
        decode: Callable[[Any], Reply],
        *,
        ahead: int | None = None,
        early_end: str = "",
        beats: bool = True,
    ):
        self.peer = peer
        self.step = step
        self._decode = decode
        self._ahead = ahead
        self._early_end = early_end
        self._beats = beats
        self._address = ""
        self._own: str | None = None
        self._believed = False
        self._kept: KeptConnections | None = None
        self._lease: Lease | None = None
        self._is_sound = True
        self._call: Call[Request, Any] | None = None
        self._reader: StreamReader[Reply] | None = None
        self._heart: asyncio.Task[None] | None = None
        self._beat_due = asyncio.Event()
        self._beat_begun = asyncio.Event()
        self._written = 0
        self._says_no_more = False
        self._closing: asyncio.Future[None] | None = None
        self._writing = asyncio.Lock()
        self._write_now: Callable[[Request], bool] | None = None

    # ---- open ------------------------------------------------------------------------------

    async def connect(
        self,
        identity: Identity,
        role: str,
        address: str,
        patience: float | None = None,
        kept: KeptConnections | None = None,
    ) -> None:
        """Take a kept connection to the peer, or open one.

        Args:
            patience: the longest wait for a peer that answers and is late, in seconds; at least
                CONNECT_SECONDS, which is the wait for a peer that does not answer.
            kept: where the connection is taken from and given back to, if there is such a place.

        Raises: PeerUnavailable, CertificateError, ConfigError.
        """
        self._own = identity.name
        self._believed = role in BELIEVED
        self._address = address
        patience = LATE_SECONDS if patience is None else max(patience, CONNECT_SECONDS)
        self._kept = kept
        self._lease = await (kept or KeptConnections()).take(
            identity, self.peer, role, address, CONNECT_SECONDS, patience
        )

    @property
    def channel(self) -> Channel:
        """The open channel, for stubs. Raises: LocalProtocolError before `connect`."""
        if self._lease is None:
            raise LocalProtocolError(f"the stream to {self.peer} was used before it was connected")
        return self._lease.connection.channel

    def begin(self, call: Call[Request, Any]) -> None:
        """Start to read a call that this side made."""
        self._call = call
        if isinstance(call, HubCall):
            call.lasts = self._kept is not None
        source = call.read_from if isinstance(call, _Accepted) else call
        self._write_now = source.write_now if isinstance(source, Told) else None
        self._reader = StreamReader(source, self._decode, self._ahead, self._reason, self._lost)
        beats = self._beats and not is_behind_hub(self._address)  # a hub's session has its own
        if self._lease is not None and beats:
            self._heart = asyncio.create_task(self._watch(self.channel, call))

    def accept(self, context: Context[Any, Request]) -> None:
        """Start to read a call that the peer made. The call ends when its handler returns."""
        self.begin(_Accepted(context))

    @property
    def is_open(self) -> bool:
        """A call was begun and has not ended."""
        return self._call is not None and not self._call.done()

    # ---- read ------------------------------------------------------------------------------

    async def next(self, step: str, seconds: float | None = None) -> Reply:
        """Return the peer's next message.

        Raises: StepTimeout after `seconds`; the reason why the stream ended (see the table above):
        a violation at once, any other reason when the inbox is empty.
        """
        if seconds is not None:
            async with self.deadline(step, seconds):
                return await self._take()
        self.step = step
        return await self._take()

    async def _take(self) -> Reply:
        return await self._begun.next()

    def feed(self, sink: Callable[[Reply], None], takes: Callable[[], bool]) -> StreamReader[Reply]:
        """Give each message to a sink in place of `next`. Args: as of `StreamReader.feed`.

        Returns: the reader, which says when the stream has ended, and why.
        """
        reader = self._begun
        reader.feed(sink, takes)
        return reader

    @property
    def _begun(self) -> StreamReader[Reply]:
        if self._reader is None:
            raise LocalProtocolError(f"the stream to {self.peer} was used before it began")
        return self._reader

    @contextlib.asynccontextmanager
    async def deadline(self, step: str, seconds: float) -> AsyncIterator[None]:
        """Limit the time of a step, which may write and read. Raises: StepTimeout."""
        self.step = step
        try:
            async with time_limit(seconds):
                yield
        except TimeoutError as error:
            self._is_sound = False
            raise StepTimeout(
                f"{self.peer} did not finish step {step} within {seconds:.0f} s",
                culprit=self.peer,
                step=step,
            ) from error

    async def beside(self, call: Coroutine[Any, Any, Answer]) -> Answer:
        """Return the result of another call to the peer, made while this stream is open.

        Raises: as the call; the reason why the stream ended, if it ends first.
        """
        other = asyncio.create_task(call)
        ended = asyncio.create_task(self._begun.has_ended.wait())
        try:
            await asyncio.wait({other, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not other.done():
                self._begun.raise_failure()
            return await other
        finally:
            other.cancel()
            ended.cancel()

    def early(self) -> Reply | None:
        """Return a message that came before `next` asked for it, if there is one.

        Raises: the reason why the stream ended.
        """
        return self._begun.early()

    def _reason(self, ended_by: BaseException | None) -> UmpcError | None:
        """Return the error for what ended the stream. Args: ended_by: None for the peer's end."""
        match ended_by:
            case None:
                return self.violation(self._early_end) if self._early_end else None
            case EncodingError():
                return self.violation(ended_by.message)
            case UmpcError():
                return ended_by
            case grpc.aio.AioRpcError():
                own, believed = self._own, self._believed
                return error_of(ended_by, self.peer, self.step, own, believed=believed)
            case _:
                # gRPC raises this at the server's end of a stream that broke.
                return lost(self.peer, self.step, repr(ended_by))

    def _lost(self) -> UmpcError:
        return lost(self.peer, self.step)

    async def _watch(self, channel: Channel, call: Call[Request, Any]) -> None:
        """Beat until the peer has stopped, and end the stream then."""
        reason = await beat_to(channel, self._address, self._beat_due, self._beat_begun)
        self._is_sound = False
        reader = self._begun
        if not call.done():
            # The stream may have ended for a reason of its own, which is on its way.
            await reader.ended_within(REASON_SECONDS)
        if not call.done() and reader.failure is None:
            log.info("the connection to %s is given up: %s", self.peer, reason)
            reader.end(lost(self.peer, self.step, reason))
            call.cancel()

    # ---- write -----------------------------------------------------------------------------

    async def write(self, request: Request) -> None:
        """Write one message. A stream that is broken raises nothing here: `next` has the reason."""
        call = self._opened
        with contextlib.suppress(*BROKEN):
            await self._write(call, request)

    async def _write(self, call: Call[Request, Any], request: Request) -> None:
        """Write. Raises: as gRPC, and InvalidStateError where the stream was given up meanwhile.

        gRPC then raises CancelledError, although nobody cancelled the task that writes.
        """
        if self._heart is not None and not self._beat_due.is_set():
            await self._beat_before(request, self._heart)
        write_now = None if self._writing.locked() else self._write_now
        if write_now is not None and write_now(request):
            return
        try:
            async with self._writing:
                await call.write(request)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._begun.failure is None or task is None or task.cancelling():
                raise
            raise asyncio.InvalidStateError("the call was cancelled") from None

    async def _beat_before(self, request: Any, heart: asyncio.Task[None]) -> None:
        """Let the first beat leave before the line is filled, however slow it is."""
        self._written += len(request) if isinstance(request, bytes) else request.ByteSize()
        if self._written > EARLY_BYTES:
            self._beat_due.set()
            begun = asyncio.create_task(self._beat_begun.wait())
            await asyncio.wait({heart, begun}, return_when=asyncio.FIRST_COMPLETED)
            begun.cancel()

    async def send(self, request: Request, step: str) -> None:
        """Write one message. Raises: PeerLost or the peer's own failure if the stream is broken."""
        call = self._opened
        try:
            await self._write(call, request)
        except grpc.aio.AioRpcError as error:
            raise error_of(error, self.peer, step, self._own, believed=self._believed) from error
        except (asyncio.InvalidStateError, grpc.aio.BaseError) as error:
            # The call has ended. The reader gets the peer's own reason a moment later.
            reader = self._begun
            await reader.ended_within(REASON_SECONDS)
            raise reader.failure or lost(self.peer, step, repr(error)) from error

    @property
    def _opened(self) -> Call[Request, Any]:
        if self._call is None:
            raise LocalProtocolError(f"the stream to {self.peer} was used before it began")
        return self._call

    # ---- violation -------------------------------------------------------------------------

    def violation(self, action: str) -> RemoteProtocolError:
        """Return the error for a peer that broke the protocol. `action`: what the peer did."""
        self._is_sound = False
        return RemoteProtocolError(
            f"{self.peer} broke the protocol: {action}", culprit=self.peer, step=self.step
        )

    # ---- end -------------------------------------------------------------------------------

    async def finish(self, seconds: float) -> None:
        """Say that this side writes no more, and wait until the peer ends the stream."""
        if self._reader is None:
            return
        if not self._says_no_more:
            self._says_no_more = True
            with contextlib.suppress(*BROKEN):
                await self._opened.done_writing()
        await self._reader.ended_within(seconds)

    def cancel(self, *, keep: bool = False) -> None:
        """End the stream now. Its connection ends in the background, and waiting `next` end.

        Args: keep: the run ended well, so a later run may have the connection.
        """
        if self._closing is None:
            if keep and self._is_sound and isinstance(self._call, HubCall):
                self._call.rest()
            elif self._call is not None:
                self._call.cancel()
            self._closing = self._ending(keep and self._is_sound)

    async def close(self, *, keep: bool = False) -> None:
        """End the stream now, and return when its connection has ended. Args: as of `cancel`."""
        self.cancel(keep=keep)
        if self._closing is not None:
            await asyncio.shield(self._closing)

    def _ending(self, keep: bool) -> asyncio.Future[None]:
        """End the tasks and the connection. Returns: done when both have ended."""
        is_over = self._reader is None or self._reader.let_go()
        if is_over and self._heart is None and self._lease is None:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done
        return asyncio.create_task(self._end(keep))

    async def _end(self, keep: bool) -> None:
        if self._heart is not None:
            self._heart.cancel()
            await asyncio.wait({self._heart})
        if self._reader is not None:
            await self._reader.stop()
        if self._lease is None:
            return
        if self._kept is None:
            await self.channel.close(None)
        else:
            await self._kept.give_back(self._lease, keep=keep)


class _Accepted(Generic[Request]):
    """The server's end of a call, with the methods of a client's end."""

    def __init__(self, context: Context[Any, Request]):
        self.read_from = context

    async def read(self) -> Any:
        return await self.read_from.read()

    async def write(self, request: Request, /) -> None:
        await self.read_from.write(request)

    async def done_writing(self) -> None:
        """The stream ends when the handler returns, so nothing is to do."""

    def cancel(self) -> bool:
        """The stream ends when the handler returns, so nothing is to do."""
        return False

    def done(self) -> bool:
        return False
