"""The hubs at which this process is, and the way to another process through one of them.

A process has one connection to each hub: the one over which it listens, or one that lasts as long
as its calls do. A hub is found by the name in its certificate, so each site may reach it at an
address of its own.

*Channel.* The generated stubs take a channel through a hub for one of gRPC. Each call has a session
of its own; the first call takes the one that `connect` opened.

*Calls.* The client's end of one call through a hub, with the methods of gRPC's calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from functools import partialmethod
from typing import Any, cast
from weakref import WeakKeyDictionary

from umpc.errors import UmpcError
from umpc.transport.addresses import parse_hub
from umpc.transport.hub import numbering as n
from umpc.transport.hub.link import HubClient
from umpc.transport.hub.session import Session
from umpc.transport.identity import Identity
from umpc.transport.status import LocalFailure
from umpc.transport.tls import EOF, Channel, grpc

CLOSE_SECONDS = 1.0
"""Seconds that a channel waits for its last records to be received."""

Place = tuple[str, str, str]
"""(our role, our name, the hub's name)"""
_links: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Place, HubClient]] = WeakKeyDictionary()
_leaving: set[asyncio.Task[None]] = set()


def links_here() -> dict[Place, HubClient]:
    return _links.setdefault(asyncio.get_running_loop(), {})


def _place(link: HubClient) -> Place:
    return link.identity.role, link.identity.name, link.hub.name


def register(link: HubClient) -> None:
    """Use a link for all calls through its hub."""
    links_here()[_place(link)] = link


def unregister(link: HubClient) -> None:
    """Use a link no more."""
    if links_here().get(_place(link)) is link:
        del links_here()[_place(link)]


async def connect_through(
    identity: Identity, name: str, role: str, address: str, timeout: float, patience: float
) -> Channel:
    """Return a channel through a hub to exactly this name and role. The caller closes it.

    Raises: as `connections.connect`.
    """
    link = _link_to(identity, address)
    link.users += 1

    async def closed() -> None:
        link.users -= 1
        if link.idle is not None and not link.users:
            await asyncio.shield(_leave(link))

    try:
        await link.connection.joined(timeout)
        # a peer that is there may be late, because a machine is busy
        session = await _open(link, role, name, timeout + patience)
    except BaseException:
        await closed()
        raise
    # It has the methods of gRPC's channel that the stubs use.
    return cast(Channel, HubRoute(link, session, closed))


async def _open(link: HubClient, role: str, name: str, seconds: float) -> Session:
    """Open a session in time. Raises: PeerUnavailable, CertificateError."""
    try:
        async with asyncio.timeout(seconds):
            return await link.open_session(role, name)
    except TimeoutError:
        raise link.why_not(role, name) from None


def _link_to(identity: Identity, address: str) -> HubClient:
    hub = parse_hub(address)
    place = identity.role, identity.name, hub.name
    if place not in links_here():
        link = HubClient(identity, hub)
        link.idle = lambda: _leave_if_idle(link)
        register(link)
    return links_here()[place]


def _leave_if_idle(link: HubClient) -> None:
    """Leave a hub at which this process only calls, after its last call."""
    if link.idle is not None and not link.sessions and not link.users:
        _leave(link)


def _leave(link: HubClient) -> asyncio.Task[None]:
    """Leave a hub with a word of farewell: without one, peers wait for this process to return."""
    unregister(link)
    link.idle = None
    task = asyncio.create_task(link.close())
    _leaving.add(task)
    task.add_done_callback(_leaving.discard)
    return task


# --- channel --------------------------------------------------------------------------------------


class HubRoute:
    """A channel to one process behind a hub.

    Args: link: opens further sessions. first: an open session with it. closed: called when the
        channel is closed.
    """

    def __init__(self, link: HubClient, first: Session, closed: Callable[[], Awaitable[None]]):
        self._closed: Callable[[], Awaitable[None]] | None = closed
        self._link = link
        self._first: Session | None = first
        self._peer = first.other
        self.certificate = first.certificate
        self._calls: set[HubCall] = set()

    async def session(self) -> Session:
        """Return a session for one call."""
        first, self._first = self._first, None
        if first is not None and first.failure is None:
            return first
        return await self._link.open_session(*self._peer)

    async def close(self, grace: float | None = None) -> None:
        """End all calls, and let their last records leave."""
        if self._first is not None:
            self._first.cancel()
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        closed, self._closed = self._closed, None
        try:
            await asyncio.gather(*(call.left(CLOSE_SECONDS) for call in calls))
        finally:
            if closed is not None:
                await closed()

    # ---- the calls of a stub -----------------------------------------------------------------

    def _method(
        self,
        has_request: bool,
        method: str,
        request_serializer: Encode | None = None,
        response_deserializer: Decode | None = None,
        _registered_method: bool = False,
    ) -> Callable[..., HubCall]:
        """Return the call of a method with one request, or with requests that are written."""
        encode, decode = request_serializer or same, response_deserializer or same

        def begin(request: Any = None, *, timeout: float | None = None) -> HubCall:
            call = HubCall(self, method, encode, decode, timeout)
            self._calls.add(call)
            call.begin(encode(request) if has_request else None)
            return call

        return begin

    unary_unary = unary_stream = partialmethod(_method, True)
    """One request: await its reply, or read its replies."""
    stream_stream = stream_unary = partialmethod(_method, False)
    """Many requests: write them, and read the replies or await the one."""

    def ended(self, call: HubCall) -> None:
        """Forget a call that has left."""
        self._calls.discard(call)


# --- calls ----------------------------------------------------------------------------------------

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]
CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


def same(value: Any) -> Any:
    """Return a message as it is: it is bytes already."""
    return value


@dataclass(eq=False)
class HubCall:
    """The client's end of one call, with the methods of `tls.Call`."""

    channel: HubRoute
    method: str
    encode: Encode
    decode: Decode
    timeout: float | None
    _session: Session | None = None
    _is_done: bool = False
    _begun: asyncio.Task[Session] | None = None

    def begin(self, request: bytes | None) -> None:
        """Begin the call. Args: requests: all there are, or None if `write` brings them."""
        self._begun = asyncio.create_task(self._begin(request))
        self._begun.add_done_callback(self._note)

    async def _begin(self, request: bytes | None) -> Session:
        session = await self.channel.session()
        self._session = session
        session.begin_call(self.method)
        if request is not None:
            with suppress(EOFError):  # the call has ended already, and `read` says how
                await session.write(request)
            session.send(n.HALF_CLOSE)
        return session

    def _note(self, task: asyncio.Task[Session]) -> None:
        """Take note of a failed beginning; `read` and `write` raise it."""
        with suppress(asyncio.CancelledError):
            task.exception()

    async def _open(self) -> Session:
        if self._begun is None:
            raise asyncio.InvalidStateError("the call was used before it began")
        return await asyncio.shield(self._begun)

    async def read(self) -> Any:
        """Return the next reply, or EOF at the end. Raises: AioRpcError."""
        try:
            session = await self._open()
            message = await session.read()
        except UmpcError as error:
            self._is_done = True
            raise LocalFailure(error) from error
        except asyncio.CancelledError:
            if self._is_done:
                words = "the call was cancelled here"
                raise _rpc_error(grpc.StatusCode.CANCELLED, words) from None
            raise
        if message is not None:
            return self.decode(message)
        return self._ended(session)

    def _ended(self, session: Session) -> object:
        """Return EOF for a call that ended well. Raises: AioRpcError."""
        self._is_done = True
        self._leave()
        end = session.end
        if end is not None and end.code != 0:
            words = tuple((word.key, word.text) for word in end.words)
            code = CODES.get(end.code, grpc.StatusCode.UNKNOWN)
            raise _rpc_error(code, end.details, words)
        return EOF

    async def write(self, request: Any, /) -> None:
        """Write one request. Raises: InvalidStateError after the call's end, AioRpcError."""
        try:
            session = await self._open()
            await session.write(self.encode(request))
        except asyncio.CancelledError:
            if self._session is not None and self._session.is_torn:
                self.cancel()
            raise
        except UmpcError as error:
            raise LocalFailure(error) from error
        except EOFError:
            raise asyncio.InvalidStateError("the call has ended") from None

    async def done_writing(self) -> None:
        """Say that no request follows."""
        try:
            (await self._open()).send(n.HALF_CLOSE)
        except UmpcError as error:
            raise LocalFailure(error) from error

    def cancel(self) -> bool:
        """End the call now."""
        if self._is_done:
            return False
        self._is_done = True
        if self._session is not None:
            self._session.cancel()
        elif self._begun is not None:
            self._begun.cancel()
        return True

    def done(self) -> bool:
        """Return whether the call has ended."""
        session = self._session
        if session is None:
            return self._is_done or (self._begun is not None and self._begun.done())
        return self._is_done or session.end is not None or session.failure is not None

    def _leave(self) -> None:
        if self._session is not None:
            self._session.close()
        self.channel.ended(self)

    async def left(self, seconds: float) -> None:
        """Wait until the other side has received all records, or the time is up."""
        if self._session is not None:
            await self._session.settled(seconds)
        self.channel.ended(self)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._single().__await__()

    async def _single(self) -> Any:
        """Return the one reply of a call. Raises: AioRpcError."""
        try:
            async with asyncio.timeout(self.timeout):
                reply = await self.read()
                if reply is not EOF:
                    await self.read()  # its status
        except TimeoutError:
            self.cancel()
            words = f"the call took longer than {self.timeout:g} s" if self.timeout else ""
            raise _rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, words) from None
        except asyncio.CancelledError:
            self.cancel()
            raise
        if reply is EOF:
            raise _rpc_error(grpc.StatusCode.INTERNAL, "the call ended without a reply")
        return reply


def _rpc_error(
    code: grpc.StatusCode, details: str, words: tuple[tuple[str, str], ...] = ()
) -> grpc.aio.AioRpcError:
    metadata = grpc.aio.Metadata(*words)
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), metadata, details, None)
