"""The one connection of this process to a hub, which it dials again whenever it breaks.

The connection is a gRPC stream over mutual TLS 1.3 that this process dials. The writer asks the
member for one frame after the other. gRPC's flow control holds the writer back, so no session fills
the memory of this process or delays the others.

*Messages.* Several frames go in one message: each message costs a hub more than the bytes of a
small frame.

*Who is connected.* The question to a hub, which needs no session.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from umpc.errors import (
    CertificateError,
    ConfigError,
    PeerLost,
    PeerUnavailable,
    RemoteProtocolError,
    UmpcError,
)
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.addresses import HubAddress
from umpc.transport.connections import FIRST_PAUSE, LATE_SECONDS, LONGEST_PAUSE, connect
from umpc.transport.heartbeat import BROKEN
from umpc.transport.hub.sealing import SESSION_BYTES
from umpc.transport.identity import Identity
from umpc.transport.patience import cancelled, processor_share, time_limit
from umpc.transport.status import error_of
from umpc.transport.stream_reader import CallEnd
from umpc.transport.tls import Call, grpc, hub_stub, read

log = logging.getLogger("umpc.hub")

GRACE_SECONDS = 30
"""Seconds that a lost connection may take to come back, until the hub names its own number."""
MOST_GRACE = 600
"""Seconds that nobody who is away is waited for beyond, whatever a hub says."""
TICK_SECONDS = 1.0
PULSE_TICKS = 5
"""Ticks in which nothing was sent, after which a sign of life goes to the hub."""
SILENT_SECONDS = 20
"""Seconds without any sign of life from the hub, after which the link dials again."""
DIAL_SECONDS = 5
TELL_SECONDS = 3.0
"""Seconds without a connection after which the log says that the hub is still dialled, and why."""
FAREWELL_SECONDS = 5.0
"""Seconds for a word of farewell. Without it, all peers ask for the process for the grace time."""
MOST_CONTROL = 4096
"""Frames that wait here and are repeated on demand. More come only from a peer that lies."""
ENDED = (*BROKEN, EOFError)


class ConnectionUser(Protocol):
    """The user of a connection, who has the sessions."""

    def next_frame(self) -> pb.HubFrame | None:
        """Return the next frame to send, or None if none is due."""

    def take(self, frame: pb.HubFrame) -> None:
        """Take a frame that came."""

    def came_up(self) -> None:
        """Take note that the connection stands, perhaps again."""

    def went_down(self) -> None:
        """Take note that the connection broke, and is dialled again."""

    def passed(self, seconds: float, counted: float) -> None:
        """Let time pass. Args: counted: less than `seconds` where this machine is busy."""


class HubConnection:
    """This process's connection to one hub. Args: listens: others may open sessions with it."""

    def __init__(
        self, identity: Identity, hub: HubAddress, member: ConnectionUser, *, listens: bool
    ):
        self.identity = identity
        self.hub = hub
        self.grace: float = GRACE_SECONDS
        """Seconds that a lost connection may take to come back."""
        self.is_up = False
        self.down = 0.0
        """Seconds since the connection broke."""
        self.why: UmpcError | None = None
        """The failure of the last attempt to connect, if it failed."""
        self.silent = 0.0
        """Seconds without any sign of life from the hub, while the connection stands."""
        self.waiting: deque[pb.HubFrame] = deque()
        """Frames that go in turn with those of the member, at most MOST_CONTROL and few others."""
        self._member = member
        self._listens = listens
        self._instance = os.urandom(SESSION_BYTES)
        self._is_controls_turn = False
        self._wanted = asyncio.Event()
        self._joined = asyncio.Event()
        self._quiet_ticks = 0
        self._call: Call[pb.HubFrame, pb.HubFrame] | None = None
        self._is_leaving = False
        self._has_told = False
        self._tasks = [asyncio.create_task(self._stay()), asyncio.create_task(self._tick())]

    # ---- the member's side -------------------------------------------------------------------

    async def joined(self, seconds: float) -> None:
        """Wait until the hub has let this process in.

        After `seconds`, an attempt that has not failed is still waited for: a machine is busy. One
        line of the log says what is waited for.

        Raises: PeerUnavailable, AddressInUse or what else the last attempt met; a CertificateError
            or ConfigError at once, since waiting does not mend it.
        """
        clock = asyncio.get_running_loop().time
        start = clock()
        while not self._joined.is_set():
            waited = clock() - start
            hopeless = isinstance(self.why, CertificateError | ConfigError)
            late = waited > seconds and (self.why is not None or waited > LATE_SECONDS)
            if hopeless or late:
                raise self.why or self._silence()
            if waited > (2 * DIAL_SECONDS if self.why is None else TELL_SECONDS):
                self._tell()
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_PAUSE):
                    await self._joined.wait()

    def _tell(self) -> None:
        """Say once that the hub is still dialled, and why the last attempt failed."""
        if self._has_told:
            return
        self._has_told = True
        reason = self.why.message if self.why is not None else "it has not answered so far"
        log.info("still dialling hub %r at %s: %s", self.hub.name, self.hub.address, reason)

    def _silence(self) -> PeerUnavailable:
        return PeerUnavailable(
            f"hub {self.hub.name!r} at {self.hub.address} did not answer in time; see that it runs",
            culprit=self.hub.name,
        )

    def want(self) -> None:
        """Note that the member may have a frame to send."""
        self._wanted.set()

    def control(self, frame: pb.HubFrame) -> None:
        """Send a frame in turn with those of the member, if the connection stands."""
        if self.is_up and len(self.waiting) < MOST_CONTROL:
            self.waiting.append(frame)
            self._wanted.set()

    def leave(self) -> None:
        """Take the end of the connection from now on as meant."""
        self._is_leaving = True

    async def close(self, farewell_seconds: float) -> None:
        """Leave the hub. Args: farewell_seconds: 0 for leaving without a word."""
        call = self._call
        if call is not None and self.is_up:
            with suppress(*ENDED, TimeoutError):
                async with asyncio.timeout(farewell_seconds):
                    await self._farewell(call)
        await cancelled(*self._tasks)

    async def _farewell(self, call: Call[pb.HubFrame, pb.HubFrame]) -> None:
        """Say that this process does not come back, after all that waits, and see it leave."""
        self.waiting.append(pb.HubFrame(leave=pb.HubLeave()))
        self._wanted.set()
        while self.is_up and not call.done():
            await asyncio.sleep(0.01)

    # ---- the connection ----------------------------------------------------------------------

    async def _stay(self) -> None:
        """Stay connected for ever."""
        pause = FIRST_PAUSE
        while True:
            try:
                await self._once()
                self.why = None
            except UmpcError as error:
                self.why = error
            except ENDED as error:
                self.why = self._reason(error)
            if self.is_up:
                pause = FIRST_PAUSE
                self._went_down()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _reason(self, error: BaseException) -> UmpcError:
        if isinstance(error, grpc.aio.AioRpcError):
            return error_of(error, self.hub.name, "connect", self.identity.name)
        return PeerLost(f"the connection to hub {self.hub.name!r} broke", culprit=self.hub.name)

    def _went_down(self) -> None:
        self.is_up = False
        self._joined.clear()
        self.waiting.clear()
        if self._is_leaving:
            return
        reason = self.why.message if self.why is not None else "the hub ended it"
        log.info("the connection to hub %r is lost and dialled again: %s", self.hub.name, reason)
        self._member.went_down()

    async def _once(self) -> None:
        """Connect, join, and serve the connection until it ends."""
        hub = self.hub
        channel = await connect(self.identity, hub.name, "hub", hub.address, DIAL_SECONDS)
        call = hub_stub(channel).Join()
        end = CallEnd(call)
        try:
            # A hub that greets all its members at once after a restart is late, and not gone.
            async with time_limit(SILENT_SECONDS):
                await self._join(call, end)
            writer = asyncio.create_task(self._write(call))
            reader = asyncio.create_task(self._read(end))
            tasks = {writer, reader}
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                ended = reader if reader.done() else writer
                if ended.cancelled():  # with the call, by `_tick`
                    raise self._silence()
                await ended
            except grpc.aio.AioRpcError as error:
                reason = await end.reason(error)
                if reason is error:
                    raise
                if reason is not None:
                    raise reason from error
            finally:
                await cancelled(*tasks)
        except TimeoutError:
            raise self._silence() from None
        finally:
            call.cancel()
            await channel.close(None)

    async def _join(self, call: Call[pb.HubFrame, pb.HubFrame], end: CallEnd) -> None:
        join = pb.HubJoin(instance=self._instance, listens=self._listens)
        await call.write(pb.HubFrame(join=join))
        first = await read(end)
        if first is None or first.WhichOneof("body") != "welcome":
            raise RemoteProtocolError(
                f"hub {self.hub.name!r} did not answer the greeting", culprit=self.hub.name
            )
        self.grace = min(MOST_GRACE, max(1, first.welcome.grace_seconds))
        self.silent = self.down = 0.0
        self._call = call
        self.why = None
        self.is_up = True
        self._joined.set()
        self._member.came_up()

    async def _write(self, call: Call[pb.HubFrame, pb.HubFrame]) -> None:
        """Send a control frame and an envelope by turns, and one of each session in turn."""
        while True:
            frame = gathered(self.next_frame)
            if frame is None:
                self._wanted.clear()
                await self._wanted.wait()
            else:
                self._quiet_ticks = 0
                await call.write(frame)

    def next_frame(self) -> pb.HubFrame | None:
        """Return the next frame to send, or None if none is due.

        A peer that asks without end for answers here does not keep the sessions from sending.
        """
        self._is_controls_turn = not self._is_controls_turn
        if self._is_controls_turn and self.waiting:
            return self.waiting.popleft()
        frame = self._member.next_frame()
        if frame is None and self.waiting:
            return self.waiting.popleft()
        return frame

    async def _read(self, end: CallEnd) -> None:
        while (message := await read(end)) is not None:
            self.silent = 0.0
            for frame in scattered(message):
                self._member.take(frame)

    # ---- time --------------------------------------------------------------------------------

    async def _tick(self) -> None:
        """Let time pass. A late tick counts as one, so starvation ends nothing.

        Silence and absence count less on a busy machine, as for a heartbeat.
        """
        while True:
            await asyncio.sleep(TICK_SECONDS)
            counted = TICK_SECONDS * processor_share()
            self._member.passed(TICK_SECONDS, counted)
            if not self.is_up:
                self.down += counted
                continue
            self.silent += counted
            self._quiet_ticks += 1
            if self._quiet_ticks >= PULSE_TICKS:
                self._quiet_ticks = 0
                self.waiting.append(pb.HubFrame(pulse=pb.HubPulse()))
                self._wanted.set()
            if self.silent > SILENT_SECONDS and self._call is not None:
                self._call.cancel()


# --- messages -------------------------------------------------------------------------------------

MOST_FRAMES = 256
MOST_BYTES = 1 << 17
"""Bytes after which no further frame joins a message."""


def gathered(take: Callable[[], pb.HubFrame | None]) -> pb.HubFrame | None:
    """Return what waits, as one frame, or None if nothing does. Args: take: the next one."""
    frames: list[pb.HubFrame] = []
    size = 0
    while len(frames) < MOST_FRAMES and size < MOST_BYTES:
        frame = take()
        if frame is None:
            break
        frames.append(frame)
        size += len(frame.envelope.body)
    if len(frames) < 2:
        return frames[0] if frames else None
    message = pb.HubFrame()
    message.batch.frames.extend(frames)
    return message


def scattered(frame: pb.HubFrame) -> Sequence[pb.HubFrame]:
    """Return the frames of a message."""
    return frame.batch.frames if frame.WhichOneof("body") == "batch" else (frame,)


# --- who is connected -----------------------------------------------------------------------------


async def ask_status(identity: Identity, hub: HubAddress, seconds: float) -> pb.HubStatusReply:
    """Return who is connected. Raises: PeerUnavailable, CertificateError, StepTimeout."""
    channel = await connect(identity, hub.name, "hub", hub.address, seconds)
    try:
        reply: pb.HubStatusReply
        reply = await hub_stub(channel).Status(pb.HubStatusRequest(), timeout=seconds)
        return reply
    except grpc.aio.AioRpcError as error:
        raise error_of(error, hub.name, "status", identity.name) from error
    finally:
        await channel.close(None)
