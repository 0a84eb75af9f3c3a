"""The hub's gRPC server: one stream for each connected process.

| call | by | purpose |
|---|---|---|
| Join | every role | the process's one connection, over which its envelopes go and come |
| Status | every role | who is connected, and how much waits for whom |
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from umpc.errors import CertificateError, RemoteProtocolError, UmpcError
from umpc.failpoints import failpoint, is_armed
from umpc.hub.relay import Relay, Seat
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub.connection import MOST_FRAMES, gathered, scattered
from umpc.transport.identity import Identity
from umpc.transport.patience import cancelled, counted_sleep, time_limit
from umpc.transport.status import refusal_of, status_of
from umpc.transport.tls import AnyContext, Context, peer_of, read, rpc

log = logging.getLogger("umpc.hub")

MEMBERS = {"node", "dealer", "shuffler", "coordinator"}
ALLOWED = {"/umpc.v1.Hub/Join": MEMBERS, "/umpc.v1.Hub/Status": MEMBERS | {"hub"}}
JOIN_SECONDS = 20
PULSE_SECONDS = 5
SILENT_SECONDS = 20
"""Seconds without a sign of life, after which a process counts as disconnected."""

GATHER_SECONDS, GATHER_EACH = 0.01, 0.0002
"""The hub waits so long before it writes to a process, at most, and for each one connected: what
comes meanwhile joins the message, which costs hub and process more than all the envelopes in it."""
FEW_BYTES = 1 << 14
"""It waits only where less than this is there, `FRAME_BYTES` for each envelope included: bulk data
fills its messages by itself."""

CONGESTED_SECONDS = 0.05
"""Seconds for which the hub does not read from a process after a message of MOST_FRAMES small
envelopes without room, for each process of its member. Fewer envelopes cost less. A member that
floods would otherwise keep the hub busy."""
MESSAGE_COST = 16
"""The cost of such a message itself, in small envelopes.

A session may have eight large messages on their way when its receiver becomes slow. If each cost as
much as a full one, a coordinator of 24 studies would be unheard for longer than a heartbeat allows.
"""

JoinContext = Context[pb.HubFrame, pb.HubFrame]


class HubServer(rpc.HubServicer):
    """The calls to a hub.

    Args: identity: its folder has the list of revoked certificates. grace: seconds that a member's
        connection may be away. ended: called when a connection has ended.
    """

    def __init__(self, identity: Identity, grace: int, ended: Callable[[], None] = lambda: None):
        self.relay = Relay(self.is_young)
        self._identity = identity
        self._ended = ended
        self._grace = grace
        self._count = 0
        self._started = time.monotonic()
        self._changed: dict[Seat, asyncio.Event] = {}

    def is_young(self) -> bool:
        """Return whether this hub is younger than its grace time, so that everybody may come."""
        return time.monotonic() < self._started + self._grace

    async def Status(self, request: pb.HubStatusRequest, context: AnyContext) -> pb.HubStatusReply:
        """Say who is connected."""
        now = time.monotonic()
        seats = self.relay.status(now)
        memory, most = memory_of_this_process()
        return pb.HubStatusReply(
            seats=seats,
            seconds=int(now - self._started),
            waiting=self.relay.waiting,
            memory=memory,
            most_memory=most,
        )

    async def Join(self, requests: object, context: JoinContext) -> None:
        """Serve a process for as long as its connection lives."""
        peer = peer_of(context)
        try:
            seat = await self._seated(peer.role, peer.name, context)
        except UmpcError as error:
            log.warning("%s is not let in: %s", peer, error.message)
            await context.abort(*refusal_of(error, peer.name))
        changed = self._changed[seat] = asyncio.Event()
        if seat.replaces is not None:
            self._wake([seat.replaces])
            seat.replaces = None
        log.info("%s is connected", peer)
        refusal: CertificateError | None = None
        has_left = False
        try:
            welcome = pb.HubWelcome(grace_seconds=self._grace)
            await context.write(pb.HubFrame(welcome=welcome))
            has_left = await self._serve(seat, changed, context)
        except CertificateError as error:
            refusal = error
        finally:
            # A process that has a new certificate by now dials anew, so a refused one is expected.
            del self._changed[seat]
            self._wake(self.relay.leave(seat, for_good=has_left))
            later = asyncio.get_running_loop().call_later
            later(self._grace, lambda: self._wake(self.relay.expire(seat)))
            self._ended()
            if refusal is None:
                log.info("%s has left" if has_left else "the connection of %s broke", peer)
        if refusal is not None:
            log.warning("the connection of %s is ended: %s", peer, refusal.message)
            await context.abort(*status_of(refusal))

    async def _serve(self, seat: Seat, changed: asyncio.Event, context: JoinContext) -> bool:
        """Relay from and to a process. Returns: whether it left by its own will.

        Raises: CertificateError where the process's certificate does not count any more.
        """
        writer = asyncio.create_task(self.write_to(seat, changed, context))
        reader = asyncio.create_task(self.read_from(seat, context))
        watch = asyncio.create_task(self.watch(seat, context))
        tasks = {writer, reader, watch}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            fault = reader.exception() if reader.done() else None
            if isinstance(fault, UmpcError):
                log.warning("%s", fault.message)
                await context.abort(*refusal_of(fault, seat.key[1]))
            if watch.done():
                watch.result()
            return reader.done() and fault is None and reader.result()
        finally:
            await cancelled(*tasks)

    async def _seated(self, role: str, name: str, context: JoinContext) -> Seat:
        try:
            async with time_limit(JOIN_SECONDS):
                first = await read(context)
        except TimeoutError:
            first = None
        if first is None or first.WhichOneof("body") != "join":
            raise RemoteProtocolError(f"{name} did not begin with its instance", culprit=name)
        seat, told = self.relay.join(role, name, first.join, time.monotonic())
        self._wake(told)
        return seat

    async def read_from(self, seat: Seat, context: JoinContext) -> bool:
        """Relay what a process sends. Returns: whether it left by its own will."""
        while True:
            frame = await read(context)
            if frame is None or seat.is_replaced:
                return False
            seat.heard = time.monotonic()
            frames = scattered(frame)
            if len(frames) > MOST_FRAMES:  # nobody else is heard meanwhile
                raise RemoteProtocolError(
                    f"{seat.key[1]} sent {len(frames)} frames in one message to the hub, and at "
                    f"most {MOST_FRAMES} were expected; see which version runs there",
                    culprit=seat.key[1],
                )
            before = seat.dropped
            for each in frames:
                body = each.WhichOneof("body")
                if body == "envelope":
                    self._count += 1
                    if is_armed():
                        failpoint(f"relayed-{self._count}")
                    self._wake(self.relay.route(seat, each.envelope))
                elif body == "leave":
                    return True
            if seat.dropped > before:
                cost = (MESSAGE_COST + seat.dropped - before) / MOST_FRAMES
                await asyncio.sleep(CONGESTED_SECONDS * cost * self.relay.processes_of(seat))

    async def write_to(self, seat: Seat, changed: asyncio.Event, context: JoinContext) -> None:
        """Send what waits for a process, and a sign of life where nothing does."""
        take = partial(self.relay.take, seat)
        while not seat.is_replaced:
            if 0 < seat.waiting < FEW_BYTES:
                await asyncio.sleep(min(GATHER_SECONDS, GATHER_EACH * len(self.relay.seats)))
                if seat.is_replaced:
                    return
            frame = gathered(take)
            if frame is None:
                changed.clear()
                try:
                    async with asyncio.timeout(PULSE_SECONDS):
                        await changed.wait()
                except TimeoutError:
                    frame = pb.HubFrame(pulse=pb.HubPulse())
            if frame is not None:
                await context.write(frame)

    async def watch(self, seat: Seat, context: JoinContext) -> None:
        """Wait until a process has been silent for too long, in seconds that this hub had time for.

        Where it was late itself, the process's word may wait behind those of many others.

        Raises: CertificateError as soon as its certificate is revoked, or has ended.
        """
        silent = 0.0
        while silent < SILENT_SECONDS:
            heard = seat.heard
            passed = await counted_sleep(PULSE_SECONDS)
            silent = silent + passed if seat.heard == heard else 0.0
            peer_of(context, revoked=self._identity.latest().revoked)

    def _wake(self, seats: list[Seat]) -> None:
        for seat in seats:
            changed = self._changed.get(seat)
            if changed is not None:
                changed.set()


def memory_of_this_process() -> tuple[int, int]:
    """Return the bytes of memory that this process has, and had at most; 0 where nobody says."""
    found = {"VmRSS": 0, "VmHWM": 0}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            name, _, rest = line.partition(":")
            if name in found:
                found[name] = int(rest.split()[0]) * 1024
    return found["VmRSS"], found["VmHWM"]
