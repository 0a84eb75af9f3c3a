"""One gRPC stream to a peer: open, read, write, time limit, loss, violation and end.

A `RpcStream` owns its channel, its call, the reader of the call (`stream_reader.py`) and the
heartbeat beside it. When the stream ends, the reader keeps the reason, and
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

*Stream ends.* The two ends of a stream's call: the heartbeat of the side that calls, and the
server's end.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from umpc.errors import (
    EncodingError,
    LocalProtocolError,
    RemoteProtocolError,
    StepTimeout,
    UmpcError,
)
from umpc.transport import connections
from umpc.transport.addresses import is_behind_hub
from umpc.transport.connections import LATE_SECONDS
from umpc.transport.heartbeat import BROKEN, beat_to
from umpc.transport.identity import Identity
from umpc.transport.patience import cancelled, time_limit
from umpc.transport.status import error_of
from umpc.transport.stream_reader import REASON_SECONDS, CallEnd, StreamReader, lost
from umpc.transport.tls import Call, Channel, Context, grpc

Request = TypeVar("Request")
Reply = TypeVar("Reply")
Message = TypeVar("Message")
Answer = TypeVar("Answer")

log = logging.getLogger("umpc.transport")
CONNECT_SECONDS = 5
"""Seconds that a peer may take until its channel is ready, or until it answers a short call."""
BELIEVED = ("dealer", "shuffler")
"""The roles whose word counts on which process is at fault."""


async def connect(
    identity: Identity,
    name: str,
    role: str,
    address: str,
    timeout: float,
    patience: float = LATE_SECONDS,
) -> Channel:
    """Return a channel to exactly this name and role. The caller closes it.

    Args:
        address: "host:port", or `hub:NAME@HOST:PORT` for a process behind a hub.
        timeout: seconds that a peer which is not there yet has to come.
        patience: seconds that a peer has which answers, and is late because a machine is busy.

    Raises: CertificateError, PeerUnavailable, ConfigError.
    """
    if identity.dial is not None:
        channel: Channel = await identity.dial(identity, name, role, address, timeout, patience)
        return channel
    if is_behind_hub(address):
        from umpc.transport.hub.routes import connect_through  # most processes dial directly

        return await connect_through(identity, name, role, address, timeout, patience)
    return await connections.connect(identity, name, role, address, timeout, patience)


def as_received(message: Message) -> Message:
    """Leave a message as it is: the decoder of a stream whose user decodes."""
    return message


@dataclass(eq=False)
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

    peer: str
    step: str
    decode: Callable[[Any], Reply]
    ahead: int | None = field(default=None, kw_only=True)
    early_end: str = field(default="", kw_only=True)
    beats: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        self._address = ""
        self._own: str | None = None
        self._believed = False
        self._channel: Channel | None = None
        self._reader: StreamReader[Reply] | None = None
        self._call: Call[Request, Any] | None = None
        self._writing = asyncio.Lock()
        self._heart: StreamHeart | None = None
        self._end: CallEnd | None = None
        self._says_no_more = False
        self._closing: asyncio.Future[None] | None = None

    # ---- open ------------------------------------------------------------------------------

    async def connect(
        self,
        identity: Identity,
        role: str,
        address: str,
        patience: float | None = None,
    ) -> None:
        """Open a channel to the peer.

        Args:
            patience: the longest wait for a peer that answers and is late, in seconds; at least
                CONNECT_SECONDS, which is the wait for a peer that does not answer.

        Raises: PeerUnavailable, CertificateError, ConfigError.
        """
        self._own = identity.name
        self._believed = role in BELIEVED
        self._address = address
        patience = LATE_SECONDS if patience is None else max(patience, CONNECT_SECONDS)
        self._channel = await connect(identity, self.peer, role, address, CONNECT_SECONDS, patience)

    @property
    def channel(self) -> Channel:
        """The open channel, for stubs. Raises: LocalProtocolError before `connect`."""
        if self._channel is None:
            raise LocalProtocolError(f"the stream to {self.peer} was used before it was connected")
        return self._channel

    @property
    def certificate(self) -> bytes:
        """The peer's certificate (DER), as it was checked when the channel opened."""
        shown: bytes = getattr(self.channel, "certificate", b"")
        return shown

    def begin(self, call: Call[Request, Any]) -> None:
        """Start to read a call that this side made."""
        source = self._end_of(call)
        beats = self.beats and not self.is_through_hub  # a hub's session has its own
        if self._channel is not None and beats:
            self._heart = StreamHeart(self.channel, self._address, self._given_up)
        self._reader = StreamReader(source, self.decode, self.ahead, self._reason, self._lost)
        self._call = call

    def _end_of(self, call: Call[Request, Any]) -> Any:
        """Return what is read of a call: gRPC's own end keeps the peer's reason, too."""
        if isinstance(call, grpc.aio.Call):
            self._end = CallEnd(call)
            return self._end
        return call

    def accept(self, context: Context[Any, Request]) -> None:
        """Start to read a call that the peer made. The call ends when its handler returns."""
        self.begin(AcceptedCall(context))

    @property
    def is_through_hub(self) -> bool:
        """The peer is reached through a hub."""
        return is_behind_hub(self._address)

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
                return await self._begun.next()
        self.step = step
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
        return self._known(self._reader)

    @contextlib.asynccontextmanager
    async def deadline(self, step: str, seconds: float) -> AsyncIterator[None]:
        """Limit the time of a step, which may write and read. Raises: StepTimeout."""
        self.step = step
        try:
            async with time_limit(seconds):
                yield
        except TimeoutError as error:
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
                return self.violation(self.early_end) if self.early_end else None
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

    async def _given_up(self, reason: str) -> None:
        """End the stream, because its peer has stopped."""
        reader, call = self._begun, self._opened
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

    async def send(self, request: Request, step: str) -> None:
        """Write one message. Raises: PeerLost or the peer's own failure if the stream is broken."""
        call = self._opened
        try:
            await self._write(call, request)
        except grpc.aio.AioRpcError as error:
            ended = await self._end.reason(error) if self._end is not None else error
            if ended is None:
                raise lost(self.peer, step, "it had ended its call") from error
            raise error_of(ended, self.peer, step, self._own, believed=self._believed) from error
        except (asyncio.InvalidStateError, grpc.aio.BaseError) as error:
            # The call has ended. The reader gets the peer's own reason a moment later.
            reader = self._begun
            await reader.ended_within(REASON_SECONDS)
            raise reader.failure or lost(self.peer, step, repr(error)) from error

    @property
    def _opened(self) -> Call[Request, Any]:
        return self._known(self._call)

    def _known(self, part: Answer | None) -> Answer:
        """Return a part of a stream that has begun. Raises: LocalProtocolError before it has."""
        if part is None:
            raise LocalProtocolError(f"the stream to {self.peer} was used before it began")
        return part

    async def _write(self, call: Call[Request, Any], request: Request) -> None:
        """Write, one message after the other.

        Raises: as gRPC, and InvalidStateError where the stream was given up meanwhile. gRPC then
            raises CancelledError, although nobody cancelled the task that writes.
        """
        if self._heart is not None:
            await self._heart.begun()
        try:
            async with self._writing:
                await call.write(request)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._begun.failure is None or task is None or task.cancelling():
                raise
            raise asyncio.InvalidStateError("the call was cancelled") from None

    # ---- violation -------------------------------------------------------------------------

    def violation(self, action: str) -> RemoteProtocolError:
        """Return the error for a peer that broke the protocol. `action`: what the peer did."""
        return RemoteProtocolError(
            f"{self.peer} broke the protocol: {action}", culprit=self.peer, step=self.step
        )

    # ---- end -------------------------------------------------------------------------------

    async def finish(self, seconds: float) -> None:
        """Say that this side writes no more, and wait until the peer ends the stream."""
        if self._reader is None:
            return
        if not self._says_no_more and not self._reader.has_ended.is_set():
            self._says_no_more = True
            with contextlib.suppress(*BROKEN):
                await self._opened.done_writing()
        await self._reader.ended_within(seconds)

    def cancel(self) -> None:
        """End the stream now. Its connection ends in the background, and waiting `next` end."""
        if self._closing is None:
            if self._call is not None:
                self._call.cancel()
            self._closing = asyncio.get_running_loop().create_future()
            if self._reader is None and self._heart is None and self._channel is None:
                self._closing.set_result(None)
            else:
                self._closing = asyncio.create_task(self._end_all())

    async def close(self) -> None:
        """End the stream now, and return when its connection has ended."""
        self.cancel()
        if self._closing is not None:
            await asyncio.shield(self._closing)

    async def _end_all(self) -> None:
        if self._heart is not None:
            await self._heart.stop()
        if self._reader is not None:
            await self._reader.stop()
        if self._channel is not None:
            await self._channel.close(None)


# --- stream ends ----------------------------------------------------------------------------------


class StreamHeart:
    """The heartbeat beside a call.

    Args: stopped: called with the reason when the peer has stopped.
    """

    def __init__(self, channel: Channel, address: str, stopped: Callable[[str], Awaitable[None]]):
        self._begun = asyncio.Event()
        self._task = asyncio.create_task(self._beat(channel, address, stopped))

    async def _beat(
        self, channel: Channel, address: str, stopped: Callable[[str], Awaitable[None]]
    ) -> None:
        await stopped(await beat_to(channel, address, self._begun))

    async def begun(self) -> None:
        """Wait until the first beat has left: a slow line would hold it up behind large data."""
        if self._begun.is_set():
            return
        begun = asyncio.create_task(self._begun.wait())
        await asyncio.wait({self._task, begun}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()

    async def stop(self) -> None:
        """Beat no more."""
        await cancelled(self._task)


class AcceptedCall(Generic[Request]):
    """The server's end of a call, with the methods of a client's end."""

    def __init__(self, context: Context[Any, Request]):
        self._context = context

    async def read(self) -> Any:
        return await self._context.read()

    async def write(self, request: Request, /) -> None:
        await self._context.write(request)

    async def done_writing(self) -> None:
        """The stream ends when the handler returns, so nothing is to do."""

    def cancel(self) -> bool:
        """The stream ends when the handler returns, so nothing is to do."""
        return False

    def done(self) -> bool:
        return False
