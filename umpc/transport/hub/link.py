"""The one connection of this process to a hub, for all its sessions.

The connection is a gRPC stream over mutual TLS 1.3 that this process dials. When it breaks, the
link dials again, and its sessions go on where they were. Only the log shows it. A session ends
when its peer, or the hub, stays away for longer than the hub's grace time.

The writer asks the sessions in turn for one envelope each. gRPC's flow control holds it back, so
no session fills the memory of this process or delays the others.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections import deque
from collections.abc import Callable
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
from umpc.transport.channels import LATE_SECONDS, connect
from umpc.transport.credentials import credentials_of
from umpc.transport.hub.address import HubAddress
from umpc.transport.hub.batches import gathered, scattered
from umpc.transport.hub.resting import RestingSessions
from umpc.transport.hub.sealing import SESSION_BYTES, End, Opening, Parties
from umpc.transport.hub.session import Session
from umpc.transport.identity import Identity
from umpc.transport.patience import processor_share, time_limit
from umpc.transport.services import Call, grpc, hub_stub, read
from umpc.transport.status import error_of

log = logging.getLogger("umpc.hub")

GRACE_SECONDS = 30
"""Seconds that a lost connection may take to come back, until the hub names its own number."""
MOST_GRACE = 600
TICK_SECONDS = 1.0
PULSE_TICKS = 5
"""Ticks in which nothing was sent, after which a sign of life goes to the hub."""
SILENT_SECONDS = 20
"""Seconds without any sign of life from the hub, after which the link dials again."""
DIAL_SECONDS = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
"""Seconds between two attempts to reach the hub: the first, the longest."""
FAREWELL_SECONDS = 5.0
"""Seconds for a word of farewell. Without it, all peers ask for the process for the grace time."""
ABSENT_PAUSE = 0.2
"""Seconds until a peer that is not connected is tried again."""
KNOWN_SECONDS = 1.0
"""Seconds in which the hub says that a peer is not connected. A peer that is may be slow."""
MOST_CONTROL = 4096
"""Frames that wait here and are repeated on demand. More come only from a peer that lies."""
BROKEN = (grpc.aio.AioRpcError, grpc.aio.BaseError, asyncio.InvalidStateError, EOFError)


class Listener(Protocol):
    """The part of a server that opens sessions for others."""

    def opened(self, envelope: pb.HubEnvelope) -> bytes | None:
        """Take an opening. Returns: the answer, or None if the session is refused."""


class HubLink:
    """This process at one hub. Args: listener: takes the sessions that others open."""

    def __init__(self, identity: Identity, hub: HubAddress, listener: Listener | None = None):
        self.identity = identity
        self.hub = hub
        self.grace: float = GRACE_SECONDS
        self.is_up = False
        self.sessions: dict[tuple[str, str, bytes], Session] = {}
        self._listener = listener
        self._resting = RestingSessions()
        self._instance = os.urandom(SESSION_BYTES)
        self._ready: dict[Session, None] = {}
        self._control: deque[pb.HubFrame] = deque()
        self._wanted = asyncio.Event()
        self._joined = asyncio.Event()
        self._why: UmpcError | None = None
        self._absent: dict[tuple[str, str], UmpcError] = {}
        self._silent = 0.0
        self._down = 0.0
        self._returned = -math.inf
        self._quiet_ticks = 0
        self._call: Call[pb.HubFrame, pb.HubFrame] | None = None
        self._tasks = [asyncio.create_task(self._stay()), asyncio.create_task(self._tick())]
        self.idle: Callable[[], None] | None = None
        self._is_leaving = False
        self.users = 0
        """Channels that are open, or being opened, over this link."""

    # ---- the owner's side --------------------------------------------------------------------

    async def joined(self, seconds: float) -> None:
        """Wait until the hub has let this process in.

        After `seconds`, an attempt that has not failed is still waited for: a machine is busy.

        Raises: PeerUnavailable, AddressInUse or what else the last attempt met; a CertificateError
            or ConfigError at once, since waiting does not mend it.
        """
        clock = asyncio.get_running_loop().time
        start = clock()
        while not self._joined.is_set():
            waited = clock() - start
            hopeless = isinstance(self._why, CertificateError | ConfigError)
            late = waited > seconds and (self._why is not None or waited > LATE_SECONDS)
            if hopeless or late:
                raise self._why or self._silence()
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_PAUSE):
                    await self._joined.wait()

    def _silence(self) -> PeerUnavailable:
        return PeerUnavailable(
            f"hub {self.hub.name!r} at {self.hub.address} did not answer in time; see that it runs",
            culprit=self.hub.name,
        )

    async def open_session(self, role: str, name: str) -> Session:
        """Return an open session with a process, which is waited for while it is not connected.

        Raises: CertificateError, or the responder's own refusal. It has no limit of time.
        """
        resting = self.resting_session(role, name)
        if resting is not None:
            return resting
        try:
            while True:
                session = await self._tried_session(End(role, name))
                if session.failure is None:
                    return session
                if not isinstance(session.failure, PeerUnavailable):
                    raise session.failure
                if session.may_return or self._is_fresh():
                    self._absent.pop((role, name), None)
                else:
                    self._absent[role, name] = session.failure
                await asyncio.sleep(ABSENT_PAUSE)
        finally:
            self._absent.pop((role, name), None)

    def _is_fresh(self) -> bool:
        """Return whether the hub was lost a moment ago: it may have been started again."""
        return asyncio.get_running_loop().time() < self._returned + self.grace

    def resting_session(self, role: str, name: str) -> Session | None:
        """Return the session of a former call to a process, if it may have another one."""
        if not self.is_up or not self._resting:
            return None
        return self._resting.take(role, name, credentials_of(self.identity))

    async def _tried_session(self, peer: End) -> Session:
        """Return a session that is open, or that has failed."""
        session = self._new_session(peer)
        try:
            await self._await_answer(session)
        except BaseException:
            self.forget(session)
            raise
        return session

    async def _await_answer(self, session: Session) -> None:
        self.sessions[session.key] = session
        self.ready(session)
        with suppress(TimeoutError):
            async with asyncio.timeout(KNOWN_SECONDS):
                await session.opened.wait()
        if not session.opened.is_set():
            peer = session.other
            self._absent.pop((peer.role, peer.name), None)  # it is there, and slow
            await session.opened.wait()

    def _new_session(self, peer: End) -> Session:
        own = End(self.identity.role, self.identity.name)
        parties = Parties(os.urandom(SESSION_BYTES), own, peer, self.hub.name)
        credentials = credentials_of(self.identity)
        opening = Opening(parties, credentials)
        target = pb.HubMember(role=peer.role, name=peer.name)
        session = Session(self, parties, target, opening=opening)
        session.own_certificate = credentials.certificate
        session.begun = asyncio.get_running_loop().time()
        return session

    def rest(self, session: Session) -> bool:
        """Keep the session of a call that ended well. Returns: False if it cannot stay.

        A process that only calls leaves the hub after its last call, so it keeps none.
        """
        return self._listener is not None and self.is_up and self._resting.add(session)

    def lacks(self, role: str, name: str) -> bool:
        """Return whether the hub is gone for good, or said that a process is not connected."""
        return self._down > self.grace or (role, name) in self._absent

    def why_not(self, role: str, name: str) -> UmpcError:
        """Return why no session with a process was opened in time."""
        if not self.is_up and self._why is not None:
            return self._why
        return self._absent.pop((role, name), None) or PeerUnavailable(
            f"{role} {name!r} did not answer in time through hub {self.hub.name!r}: see that it "
            "runs, then try again",
            culprit=name,
        )

    async def close(self, seconds: float = 1.0) -> None:
        """Leave the hub, after the sessions have sent what they had to send."""
        self._is_leaving = True
        self._resting.close()
        sessions = list(self.sessions.values())
        await asyncio.gather(*(session.settled(seconds) for session in sessions))
        call = self._call
        if call is not None and self.is_up:
            with suppress(*BROKEN, TimeoutError):
                async with asyncio.timeout(seconds and FAREWELL_SECONDS):
                    await self._farewell(call)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _farewell(self, call: Call[pb.HubFrame, pb.HubFrame]) -> None:
        """Say that this process does not come back, after all that waits, and see it leave."""
        self._control.append(pb.HubFrame(leave=pb.HubLeave()))
        self._wanted.set()
        while self.is_up and not call.done():
            await asyncio.sleep(0.01)

    # ---- the sessions' side ------------------------------------------------------------------

    def ready(self, session: Session) -> None:
        """Note that a session may have something to send."""
        self._ready[session] = None
        self._wanted.set()

    def forget(self, session: Session) -> None:
        """Drop a session that has ended."""
        self._ready.pop(session, None)
        self._resting.forget(session)
        if self.sessions.get(session.key) is session:
            del self.sessions[session.key]
        if not self.sessions and self.idle is not None:
            self.idle()

    def refuse(self, envelope: pb.HubEnvelope) -> None:
        """Send an envelope that is neither sealed nor repeated."""
        if self.is_up and len(self._control) < MOST_CONTROL:
            self._control.append(pb.HubFrame(envelope=envelope))
            self._wanted.set()

    # ---- the connection ----------------------------------------------------------------------

    async def _stay(self) -> None:
        """Stay connected for ever."""
        pause = FIRST_PAUSE
        while True:
            try:
                await self._once()
                self._why = None
            except UmpcError as error:
                self._why = error
            except BROKEN as error:
                self._why = self._reason(error)
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
        self._control.clear()
        if self._is_leaving:
            return
        reason = self._why.message if self._why is not None else "the hub ended it"
        log.info("the connection to hub %r is lost and dialled again: %s", self.hub.name, reason)
        for session in list(self.sessions.values()):
            session.connection_lost()

    async def _once(self) -> None:
        """Connect, join, and serve the connection until it ends."""
        hub = self.hub
        channel = await connect(self.identity, hub.name, "hub", hub.address, DIAL_SECONDS)
        call = hub_stub(channel).Join()
        writer: asyncio.Task[None] | None = None
        try:
            # A hub that greets all its members at once after a restart is late, and not gone.
            async with time_limit(SILENT_SECONDS):
                await self._join(call)
            writer = asyncio.create_task(self._write(call))
            reader = asyncio.create_task(self._read(call))
            tasks = {writer, reader}
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                ended = reader if reader.done() else writer
                if ended.cancelled():  # with the call, by `_tick`
                    raise self._silence()
                await ended
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        except TimeoutError:
            raise self._silence() from None
        finally:
            call.cancel()
            await channel.close(None)

    async def _join(self, call: Call[pb.HubFrame, pb.HubFrame]) -> None:
        listens = self._listener is not None
        join = pb.HubJoin(instance=self._instance, listens=listens)
        await call.write(pb.HubFrame(join=join))
        first = await read(call)
        if first is None or first.WhichOneof("body") != "welcome":
            raise RemoteProtocolError(
                f"hub {self.hub.name!r} did not answer the greeting", culprit=self.hub.name
            )
        self.grace = min(max(1, first.welcome.grace_seconds), MOST_GRACE)
        if self._call is not None:
            self._returned = asyncio.get_running_loop().time()
        self._silent = self._down = 0.0
        self._call = call
        self._why = None
        self.is_up = True
        self._joined.set()
        for session in list(self.sessions.values()):
            session.connection_back()

    async def _write(self, call: Call[pb.HubFrame, pb.HubFrame]) -> None:
        """Send control frames first, then one envelope of each session in turn."""
        while True:
            frame = gathered(self._next)
            if frame is None:
                self._wanted.clear()
                await self._wanted.wait()
            else:
                self._quiet_ticks = 0
                await call.write(frame)

    def _next(self) -> pb.HubFrame | None:
        """Return the next frame to send, or None if none is due."""
        if self._control:
            return self._control.popleft()
        while self._ready:
            session = next(iter(self._ready))
            del self._ready[session]
            envelope = session.pull()
            if envelope is not None:
                if session.failure is None:
                    self._ready[session] = None  # at the end of the queue
                return pb.HubFrame(envelope=envelope)
        return None

    async def _read(self, call: Call[pb.HubFrame, pb.HubFrame]) -> None:
        while (message := await read(call)) is not None:
            self._silent = 0.0
            for frame in scattered(message):
                body = frame.WhichOneof("body")
                if body == "envelope":
                    self._take(frame.envelope)
                elif body == "notice":
                    self._noticed(frame.notice)

    def _take(self, envelope: pb.HubEnvelope) -> None:
        source = envelope.source
        session = self.sessions.get((source.role, source.name, envelope.session))
        if envelope.kind == pb.HUB_OPEN:
            self._open(envelope)
        elif session is None:
            self._unknown(envelope)
        elif envelope.kind == pb.HUB_ACCEPT:
            session.accepted(envelope)
        elif envelope.kind == pb.HUB_REFUSE:
            session.fail(_refusal(session, envelope.body), tell=False)
        else:
            session.take(envelope)

    def _unknown(self, envelope: pb.HubEnvelope) -> None:
        """Take an envelope of a session that is not with its sender: it is over, or redirected."""
        for session in list(self.sessions.values()):
            if session.parties.session == envelope.session:
                session.fail(_redirected(session, envelope), tell=False)
                return
        if envelope.kind != pb.HUB_REFUSE:
            self._answer(envelope, pb.HUB_REFUSE, b"")

    def _open(self, envelope: pb.HubEnvelope) -> None:
        if self._listener is None:
            self._answer(envelope, pb.HUB_REFUSE, b"")
            return
        try:
            accepted = self._listener.opened(envelope)
        except UmpcError as error:
            log.warning(
                "a session of %s %r is refused: %s",
                *(envelope.source.role, envelope.source.name, error.message),
            )
            text = f"{type(error).__name__}: {error.message}"
            self._answer(envelope, pb.HUB_REFUSE, text.encode())
            return
        if accepted is not None:
            self._answer(envelope, pb.HUB_ACCEPT, accepted)

    def _answer(self, to: pb.HubEnvelope, kind: pb.HubKind, body: bytes) -> None:
        answer = pb.HubEnvelope(target=to.source, session=to.session, kind=kind, body=body)
        self.refuse(answer)

    def _noticed(self, notice: pb.HubNotice) -> None:
        """Take the hub's word that a peer cannot be reached now."""
        who = notice.member
        for key, session in list(self.sessions.items()):
            if key[:2] != (who.role, who.name):
                continue
            if notice.session and notice.session != key[2]:
                continue
            if session.peer.instance and session.peer.instance != who.instance:
                continue
            self._cannot_reach(session, notice.kind)

    def _cannot_reach(self, session: Session, kind: int) -> None:
        peer, hub = session.other, self.hub.name
        if kind == pb.HubNotice.CONGESTED and not session.opened.is_set():
            return  # the peer is connected, and the opening is sent again
        if not session.opened.is_set():
            words = f"{peer} is not connected to hub {hub!r}: start it there, or check its name"
            session.may_return = kind == pb.HubNotice.AWAY
            session.fail(PeerUnavailable(words, culprit=peer.name), tell=False)
        elif kind == pb.HubNotice.GONE:
            words = f"{peer.name} went away: it left hub {hub!r}; see that it runs"
            session.fail(PeerLost(words, culprit=peer.name), tell=False)
        else:
            session.ask(absent=kind == pb.HubNotice.ABSENT)

    # ---- time --------------------------------------------------------------------------------

    async def _tick(self) -> None:
        """Let the sessions' time pass. A late tick counts as one, so starvation ends nothing.

        Silence and absence count less on a busy machine, as for a heartbeat.
        """
        while True:
            await asyncio.sleep(TICK_SECONDS)
            counted = TICK_SECONDS * processor_share()
            self._resting.expire()
            for session in list(self.sessions.values()):
                session.tick(TICK_SECONDS, counted)
            if not self.is_up:
                self._down += counted
                continue
            self._silent += counted
            self._quiet_ticks += 1
            if self._quiet_ticks >= PULSE_TICKS:
                self._quiet_ticks = 0
                self._control.append(pb.HubFrame(pulse=pb.HubPulse()))
                self._wanted.set()
            if self._silent > SILENT_SECONDS and self._call is not None:
                self._call.cancel()


def _redirected(session: Session, envelope: pb.HubEnvelope) -> CertificateError:
    """Return the error for an opening that the hub took to another process."""
    hub, source = session.parties.hub, envelope.source
    return CertificateError(
        f"hub {hub!r} connected {source.role} {source.name!r}, expected {session.other}; "
        "look at the hub",
        culprit=hub,
    )


def _refusal(session: Session, body: bytes) -> UmpcError:
    """Return the error for a session that the other side refused, or has forgotten.

    Nobody signed a refusal, so its words are shown and no more than a loss is concluded from them.
    """
    peer, hub = session.other.name, session.parties.hub
    if session.opened.is_set():
        return PeerLost(
            f"{peer} went away: it knows nothing of the session through hub {hub!r}; its own log "
            "says why",
            culprit=peer,
        )
    said = body.decode("utf-8", "replace")[:500]
    shown = "".join(each if each.isprintable() else "?" for each in said) or "it does not listen"
    error = CertificateError if said.startswith("CertificateError: ") else PeerUnavailable
    words = shown.removeprefix("CertificateError: ")
    return error(f"{peer} refused a session through hub {hub!r}: {words}", culprit=peer)
