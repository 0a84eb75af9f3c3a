"""The server's side: a process that answers calls which come to it through a hub.

`ServerBehindHub` takes a generated servicer as a gRPC server does, and `RoleGuard` lets only the
allowed roles call each method. A caller is known by the certificate with which it signed its
session, so the hub's word about it counts for nothing.

*Context.* The server's end of one call through a hub, with the methods of gRPC's context.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from umpc.errors import PeerUnavailable, RemoteProtocolError, UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.addresses import HubAddress
from umpc.transport.connections import MAX_STREAMS, Allowed, RoleGuard, kind_of
from umpc.transport.heartbeat import Calls
from umpc.transport.hub import numbering as n
from umpc.transport.hub.link import HubClient
from umpc.transport.hub.routes import register, same, unregister
from umpc.transport.hub.sealing import SESSION_BYTES, End, Parties, answer
from umpc.transport.hub.session import Session
from umpc.transport.identity import Identity, credentials_of
from umpc.transport.patience import cancelled
from umpc.transport.status import LocalFailure
from umpc.transport.tls import EOF, grpc

if TYPE_CHECKING:
    Handlers = grpc.GenericRpcHandler[Any, Any]

log = logging.getLogger("umpc.hub")

REMEMBERED = 4096
"""Sessions that are remembered after their end, so that a repeated opening is recognised."""
WAIT_SECONDS = 25.0
"""Seconds between two warnings that the hub is not there. A connection that died without a word
counts as alive at the hub for less than this."""
LATER_SECONDS = 0.5
"""Seconds between the failure of a session, which its reader sees, and the end of its handler."""


@dataclass(frozen=True)
class Details:
    """The part of `grpc.HandlerCallDetails` that `RoleGuard` and the handlers use."""

    method: str


class ServerBehindHub:
    """A server behind a hub. Args: allowed: as for `connections.make_server`."""

    def __init__(self, identity: Identity, allowed: Allowed, hub: HubAddress):
        self.identity = identity
        self.hub = hub
        self._guard = RoleGuard(identity, allowed, Calls())
        self._handlers: list[Handlers] = []
        self._guarded: dict[str, Any] = {}
        self._link: HubClient | None = None
        self._answers: dict[tuple[str, str, bytes], tuple[bytes, bytes]] = {}
        self._former: OrderedDict[tuple[str, str, bytes], None] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def add_generic_rpc_handlers(self, handlers: Iterable[Handlers]) -> None:
        """Add the methods of a servicer, as the generated code does."""
        self._handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Take the same methods a second time, for which gRPC has a faster way."""

    async def start(self) -> str:
        """Join the hub, and wait for it as long as it takes. Returns: the address of this server.

        Raises: CertificateError, ConfigError; AddressInUse if another process of this name stays.
        """
        self._link = HubClient(self.identity, self.hub, self)
        register(self._link)
        while not self._link.is_up:
            try:
                await self._link.connection.joined(WAIT_SECONDS)
            except PeerUnavailable as error:
                log.warning("waiting for the hub: %s", error.message)
        return str(self.hub)

    async def stop(self, grace: float | None = None) -> None:
        """End all calls and leave the hub."""
        await cancelled(*self._tasks)
        if self._link is not None:
            unregister(self._link)
            await self._link.close(grace or 0.0)

    # ---- sessions ----------------------------------------------------------------------------

    def opened(self, envelope: pb.HubEnvelope) -> bytes | None:
        """Answer the opening of a session. A repeated opening gets the same answer.

        Raises: CertificateError, RemoteProtocolError.
        """
        source, session_id, link = envelope.source, envelope.session, self._link
        key = (source.role, source.name, session_id)
        if link is None or len(session_id) != SESSION_BYTES:
            return None
        if key in link.sessions:
            opening, accepted = self._answers.get(key, (b"", b""))
            return accepted if opening == envelope.body else None
        if key in self._former:
            raise RemoteProtocolError(
                f"hub {self.hub.name!r} repeated an opening of {source.role} {source.name!r}",
                culprit=self.hub.name,
            )
        if sum(other[:2] == key[:2] for other in link.sessions) >= MAX_STREAMS:
            raise RemoteProtocolError(
                f"{source.name} has {MAX_STREAMS} sessions open already", culprit=source.name
            )
        own = End(self.identity.role, self.identity.name)
        parties = Parties(session_id, End(source.role, source.name), own, self.hub.name)
        message, seal, certificate = answer(parties, credentials_of(self.identity), envelope.body)
        session = Session(link, parties, source, seal=seal)
        session.certificate = certificate
        session.called = lambda method: self.begin(session, method)
        link.sessions[key] = session
        self._answers[key] = (envelope.body, message)
        self._forget_ended(link)
        self._former[key] = None
        while len(self._former) > REMEMBERED:
            self._former.popitem(last=False)
        return message

    def _forget_ended(self, link: HubClient) -> None:
        if len(self._answers) > 2 * len(link.sessions):
            for key in [key for key in self._answers if key not in link.sessions]:
                del self._answers[key]

    def begin(self, session: Session, method: str) -> None:
        """Answer the call that the other side of a session begins, in a task of its own."""
        context = HubContext(session)
        task = asyncio.create_task(self._serve(session, context, Details(method)))
        self._tasks.add(task)

        def done(ended: asyncio.Task[None]) -> None:
            self._tasks.discard(ended)
            context.leave()  # a task that is cancelled before it begins does nothing itself

        task.add_done_callback(done)
        loop = asyncio.get_running_loop()

        def cancelled() -> None:
            if session.failure is None:
                task.cancel()
            else:  # the handler's reader says why, before the handler is ended
                loop.call_later(LATER_SECONDS, task.cancel)

        session.cancelled = cancelled

    # ---- calls -------------------------------------------------------------------------------

    async def _serve(self, session: Session, context: HubContext, details: Details) -> None:
        """Answer one call, and send its status."""
        try:
            handler = await self._handler(details)
            if handler is None:
                context.end(grpc.StatusCode.UNIMPLEMENTED, f"{details.method} is unknown")
                return
            context.decode = handler.request_deserializer or context.decode
            context.encode = handler.response_serializer or context.encode
            await _answer(handler, context)
            context.end(grpc.StatusCode.OK, "")
        except grpc.aio.AbortError:
            pass  # the status is on its way
        except Exception as error:
            if session.failure is None:
                log.exception("a call of %s failed", session.other)
            context.end(grpc.StatusCode.UNKNOWN, f"Unexpected {type(error).__name__}")
        finally:
            context.leave()

    async def _handler(self, details: Details) -> Any:
        """Return the method's handler behind the guard's check, which is made at each call."""
        found = self._guarded.get(details.method)
        if found is None:
            found = await self._guard.intercept_service(
                self._find,
                details,  # type: ignore[arg-type]  # the part of it that is used
            )
            # a caller may name any method, and few are kept
            if found is not None and await self._find(details) is not None:
                self._guarded[details.method] = found
        return found

    async def _find(self, details: Any) -> Any:
        for each in self._handlers:
            handler = each.service(details)
            if handler is not None:
                return handler
        return None


async def _answer(handler: Any, context: HubContext) -> None:
    """Run the behaviour of a method, whatever its kind."""
    behaviour: Callable[[Any, HubContext], Any] = getattr(handler, kind_of(handler))
    request: Any = context.requests() if handler.request_streaming else await context.read()
    if request is EOF:
        context.end(grpc.StatusCode.INVALID_ARGUMENT, "the call came without a request")
        return
    if not inspect.isasyncgenfunction(behaviour):
        reply = await behaviour(request, context)
        if not handler.response_streaming:
            await context.write(reply)
        return
    replies = behaviour(request, context)
    try:
        async for reply in replies:
            await context.write(reply)
    finally:
        await replies.aclose()


# --- context --------------------------------------------------------------------------------------

Metadata = Sequence[tuple[str, str]]


class HubContext:
    """The server's end of one call, with the methods of `tls.Context`."""

    def __init__(self, session: Session):
        self._session = session
        self._has_ended = self._has_left = False
        self.decode: Callable[[bytes], Any] = same
        self.encode: Callable[[Any], bytes] = same

    async def read(self) -> Any:
        """Return the next request, or EOF after the last one. Raises: AioRpcError."""
        if self._has_ended:
            return EOF
        try:
            message = await self._session.read()
        except UmpcError as error:
            raise LocalFailure(error) from error
        return EOF if message is None else self.decode(message)

    async def requests(self) -> AsyncIterator[Any]:
        """Yield all requests."""
        while (request := await self.read()) is not EOF:
            yield request

    async def write(self, message: Any, /) -> None:
        """Write one reply. Raises: BaseError if the call has ended."""
        if self._has_ended:
            raise grpc.aio.BaseError("the call has ended")
        try:
            await self._session.write(self.encode(message))
        except (UmpcError, EOFError) as error:
            raise grpc.aio.BaseError(str(error)) from error

    async def abort(
        self, code: grpc.StatusCode, details: str = "", metadata: Metadata = (), /
    ) -> NoReturn:
        """End the call with a status."""
        self.end(code, details, metadata)
        raise grpc.aio.AbortError(details)

    def end(self, code: grpc.StatusCode, details: str, metadata: Metadata = ()) -> None:
        """Send the status of the call, unless it has one."""
        if self._has_ended:
            return
        self._has_ended = True
        if self._session.was_cancelled:
            return  # the caller has left, and reads no status
        words = [pb.HubWord(key=key, text=text) for key, text in metadata]
        end = pb.HubEnd(code=code.value[0], details=details, words=words)
        with suppress(UmpcError):
            self._session.send(n.END, end.SerializeToString())

    def leave(self) -> None:
        """Let the session go, once. A call without a status was cancelled."""
        if not self._has_left:
            self._has_left = True
            self.end(grpc.StatusCode.CANCELLED, "")
            self._session.close()

    def peer(self) -> str:
        """Return the caller's place, where gRPC has its address."""
        return f"hub:{self._session.parties.hub}/{self._session.other}"

    @property
    def certificate(self) -> bytes:
        """The caller's certificate in DER, which the handshake of its session has checked."""
        return self._session.certificate
