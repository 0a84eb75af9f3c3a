"""Connections and servers of umpc: limits, options of gRPC, and the way to a peer.

The heartbeat notices stopped processes and cut lines (`heartbeat.py`). Between two nodes, which do
not beat, the kernel notices a cut line: data that stay unacknowledged for LINE_SECONDS end the
connection (TCP_USER_TIMEOUT). A starved process loses no connection by this, because its kernel
acknowledges for it. gRPC sets the option from `keepalive_timeout_ms`, and only if it also pings.
Its pings therefore wait for a day: an answer to one waits behind bulk data on a slow line, and
behind other threads on a busy machine.

*Role guard.* The roles that may call each method of a server, and the end of calls with their
connection.

A caller is checked before its message is read. Bytes that are no message end its call with a status
that names it.

*Own end.* Whether this process is being stopped: what ends with it is then not the fault of a peer.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import ssl
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from umpc.errors import (
    AddressInUse,
    CertificateError,
    EncodingError,
    PeerLost,
    PeerUnavailable,
    StudyAborted,
    UmpcError,
)
from umpc.transport.addresses import proxy_to, refuse_if_taken, shown_certificate, split_address
from umpc.transport.certificates import ROLES, clock, host_name, verify_certificate
from umpc.transport.diagnose import explain, find_fault
from umpc.transport.heartbeat import BEATEN, METHOD, Calls
from umpc.transport.identity import Identity
from umpc.transport.patience import own_lag, time_limit
from umpc.transport.status import refusal_of
from umpc.transport.tls import (
    AnyContext,
    Behaviour,
    CallDetails,
    Continuation,
    ServerInterceptor,
    channel_credentials,
    grpc,
    peer_of,
    server_credentials,
)

MAX_FRAME = 1 << 20
MAX_MESSAGE = MAX_FRAME + 4096  # a full frame and its header fields
MAX_STREAMS = 64  # per connection
LINE_SECONDS = 60
"""Seconds for which sent data may stay unacknowledged until the line counts as cut.

The kernel counts data too for which the receiver has no room. A proxy before a slow line closes its
window for seconds: with a limit of 5 s, every study over 1 Mbit/s was lost.
"""
DAY_MS = 24 * 3600 * 1000
NEVER_MS = (1 << 31) - 1
HANDSHAKE_MS = 30_000
LATE_SECONDS = 60
"""Seconds for which a peer is waited for that answers and whose channel is not ready in time."""
DIAGNOSIS_SECONDS = 5.0
"""Seconds that a peer may take for each answer of a look at it."""
STARVED_SECONDS = 1.0
"""If this process was late by more during a look, the look says nothing about the peer."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0
"""Seconds between two attempts to reach a peer that is not there yet: the first, the longest."""

COMMON = (
    ("grpc.keepalive_time_ms", DAY_MS),
    ("grpc.keepalive_timeout_ms", LINE_SECONDS * 1000),
    ("grpc.http2.ping_timeout_ms", NEVER_MS),
    ("grpc.http2.max_pings_without_data", 0),  # it also pings to measure a line, for its windows
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.max_receive_message_length", MAX_MESSAGE),
)
SERVER = (
    *COMMON,
    ("grpc.so_reuseport", 0),  # otherwise two processes could share a port and split its calls
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.max_concurrent_streams", MAX_STREAMS),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
)
CHANNEL = (
    *COMMON,
    ("grpc.enable_retries", 0),  # the session decides about a lost call: resend or a new attempt
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


async def connect(
    identity: Identity,
    name: str,
    role: str,
    address: str,
    timeout: float,
    patience: float = LATE_SECONDS,
) -> grpc.aio.Channel:
    """Return a channel to exactly this name and role. The caller closes it.

    A peer that is not there yet has `timeout` seconds to come. A peer that answers, and is late
    because a machine is busy, has `patience` seconds. A wrong certificate ends the wait at once,
    because it stays wrong. Only time in which this process could run counts.

    The channel trusts one certificate only, after it was verified and looked for in the list of
    revoked ones (`tls.channel_credentials`): the one that it shows to a look a moment before,
    because gRPC shows a client no certificate of the server.

    Raises: CertificateError, PeerUnavailable, ConfigError as `diagnose.explain` finds them.
    """
    split_address(address)
    attempt = _Dial(identity.latest(), name, role, address, min(DIAGNOSIS_SECONDS, timeout))
    trying = asyncio.create_task(attempt.until_ready())
    channel: grpc.aio.Channel | None = None
    try:
        async with time_limit(patience):
            while not await _ends_within(trying, timeout):
                fault = await attempt.fault()
                if fault is not None and not trying.done():
                    raise fault
        channel = trying.result()
        return channel
    except TimeoutError:
        raise await attempt.reason() from None
    finally:
        if channel is None:
            await _give_up(trying)


async def _ends_within(task: asyncio.Task[grpc.aio.Channel], seconds: float) -> bool:
    """Wait for a task, and return whether it has ended."""
    with contextlib.suppress(TimeoutError):
        async with time_limit(seconds):
            await asyncio.wait({task})
    return task.done()


async def _give_up(trying: asyncio.Task[grpc.aio.Channel]) -> None:
    """End an attempt, and close its channel if it just got one."""
    trying.cancel()
    await asyncio.wait({trying})
    if not trying.cancelled() and trying.exception() is None:
        await trying.result().close(None)


@dataclass
class _Dial:
    """The way to a channel: look at the server's certificate, trust it alone, and connect."""

    identity: Identity
    name: str
    role: str
    address: str
    seconds: float

    async def until_ready(self) -> grpc.aio.Channel:
        """Try until a channel is ready. Raises: CertificateError, if trying again is of no use."""
        pause = FIRST_PAUSE
        while True:
            self.identity = self.identity.latest()
            shown = await shown_certificate(self.address, self.seconds, self.role)
            channel = None if shown is None else await self._connect(await self._verified(shown))
            if channel is not None:
                # the one that it trusts; gRPC does not keep it
                channel.certificate = shown  # type: ignore[attr-defined]
                return channel
            error = await self.reason()
            if isinstance(error, CertificateError):
                raise error
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _verified(self, der: bytes) -> bytes:
        """Return the certificate in PEM. Raises: CertificateError unless it is our peer's."""
        try:
            return self._check(der)
        except CertificateError as error:
            told = await self.reason()
            raise told if isinstance(told, CertificateError) else error from None

    def _check(self, der: bytes) -> bytes:
        """Return the certificate in PEM. Raises: CertificateError unless it is our peer's."""
        us = self.identity
        name, role = verify_certificate(der, us.ca_pem, now=clock(), revoked=us.revoked)
        if role != self.role or self.name not in (name, "any"):
            raise CertificateError(
                f"at {self.address} is {role} {name!r}, expected {self.role} {self.name!r}: "
                "check the address, or the name in the study"
            )
        return ssl.DER_cert_to_PEM_cert(der).encode()

    async def _connect(self, server_pem: bytes) -> grpc.aio.Channel | None:
        """Return a ready channel to the server with this certificate, or None if there is none."""
        host, port = split_address(self.address)
        target = f"dns:///{f'[{host}]' if ':' in host else host}:{port}"
        override = ("grpc.ssl_target_name_override", host_name(self.name, self.role))
        credentials = channel_credentials(self.identity, server_pem)
        options = (*CHANNEL, override, *_proxied(self.role, host, port))
        channel = grpc.aio.secure_channel(target, credentials, options=options)
        try:
            if await _is_ready(channel):
                return channel
        except BaseException:
            await channel.close(None)
            raise
        await channel.close(None)
        return None

    async def fault(self) -> UmpcError | None:
        """Return what is wrong with the connection, or None if it works now.

        A peer that did not answer while this process could not run may work: also None.
        """
        lag = own_lag()
        begun = lag.begin()
        try:
            fault = await asyncio.to_thread(find_fault, *vars(self).values())
            was_late = lag.since(begun) > STARVED_SECONDS
        finally:
            lag.end()
        return None if was_late and isinstance(fault, PeerUnavailable) else fault

    async def reason(self) -> UmpcError:
        """Return what is wrong with the connection, or that it works now."""
        return await asyncio.to_thread(explain, *vars(self).values())


def _proxied(role: str, host: str, port: int) -> tuple[tuple[str, int | str], ...]:
    """Return gRPC's options for the way to a server: through the site's proxy, or past it."""
    proxy = proxy_to(role, host, port)
    if proxy is None:
        return (("grpc.enable_http_proxy", 0),)
    return ("grpc.enable_http_proxy", 1), ("grpc.http_proxy", proxy.url)


async def _is_ready(channel: grpc.aio.Channel) -> bool:
    """Wait until the channel is ready, or until its first handshake fails."""
    states = grpc.ChannelConnectivity
    while (state := channel.get_state(try_to_connect=True)) is not states.READY:
        if state is states.TRANSIENT_FAILURE:
            return False
        await channel.wait_for_state_change(state)
    return True


def make_server(identity: Identity, allowed: Allowed) -> grpc.aio.Server:
    """Return a server that answers each method only to the roles that `allowed` names for it.

    Args:
        allowed: maps "/package.Service/Method" to roles, as in {"/umpc.v1.Node/Peer": {"node"}}. No
            role may call a method that is missing here, except for heartbeats.
    """
    calls = Calls(BEATEN)
    guard = RoleGuard(identity, {METHOD: ROLES, **allowed}, calls)
    server = grpc.aio.server(interceptors=[guard], options=SERVER)
    server.add_generic_rpc_handlers((calls.handler(),))
    return server


async def bind(
    server: grpc.aio.Server, identity: Identity, listen: str, *, public: bool = False
) -> str:
    """Bind the server to "host:port" (port 0: any free one), before `server.start()`.

    Args: public: as of `server_credentials`.
    Returns: "host:port" with the port that it got.
    Raises: AddressInUse, or ConfigError if the address is not one of this machine.
    """
    host, port = split_address(listen)
    refuse_if_taken(host, port, listen)
    shown = f"[{host}]" if ":" in host else host
    try:
        credentials = server_credentials(identity, public=public)
        bound = server.add_secure_port(f"{shown}:{port}", credentials)
    except RuntimeError:
        raise AddressInUse(f"cannot listen on {listen}: just taken; choose another port") from None
    return f"{shown}:{bound}"


# --- role guard -----------------------------------------------------------------------------------

log = logging.getLogger("umpc.rpc")
MOST_TOLD = 5
TOLD_SECONDS = 60.0
"""The log has at most so many lines about unreadable messages of one caller in so many seconds."""
FIRST_WRITE_SECONDS = 0.5
"""Seconds that a refused stream waits for its client's first message, before it says why."""
Allowed = Mapping[str, Collection[str]]


class RoleGuard(ServerInterceptor):
    """An interceptor that refuses a method to roles for which it is not listed.

    The role is the one in the caller's certificate. A revoked certificate has none. The calls that
    it lets through end when their caller's heartbeat does.
    """

    def __init__(self, identity: Identity, allowed: Allowed, calls: Calls):
        self._identity = identity
        self._calls = calls
        self._self = f"{identity.role} {identity.name!r}"
        self._allowed = {method: frozenset(roles) for method, roles in allowed.items()}
        self._unreadable: Counter[str] = Counter()
        """The unreadable messages of each caller since `_told_since`."""
        self._told_since = 0.0

    async def intercept_service(self, continuation: Continuation, details: CallDetails) -> Any:
        """Return the method's handler behind the check, or a handler that refuses."""
        if details.method not in self._allowed:
            never = self._guarded(_never, details.method, streams=True)
            return grpc.stream_stream_rpc_method_handler(never)
        handler = await continuation(details)
        return handler and _with_behaviour(
            handler,
            lambda inner: self._guarded(inner, details.method, streams=handler.request_streaming),
        )

    def _guarded(self, inner: Behaviour, method: str, *, streams: bool) -> Behaviour:
        """Return the behaviour of a method with the check before it."""
        if inspect.isasyncgenfunction(inner):

            async def stream(request: Any, context: AnyContext) -> AsyncIterator[Any]:
                await self._check(context, method, streams)
                try:
                    with self._calls.running(context.peer(), method):
                        async with contextlib.aclosing(inner(_read(request), context)) as replies:
                            async for reply in replies:
                                yield reply
                except EncodingError as error:
                    await self._end_unreadable(context, method, error)

            return stream

        async def call(request: Any, context: AnyContext) -> Any:
            await self._check(context, method, streams)
            if method == METHOD:
                return await inner(request, context)
            try:
                with self._calls.running(context.peer(), method):
                    return await inner(_read(request), context)
            except EncodingError as error:
                await self._end_unreadable(context, method, error)

        return call

    async def _check(self, context: AnyContext, method: str, streams: bool) -> None:
        refusal = self._refusal(context, method)
        if refusal is None:
            return
        if streams:
            # A client of gRPC loses the status of a call that ends while it writes.
            with contextlib.suppress(TimeoutError, grpc.aio.BaseError, EncodingError):
                async with asyncio.timeout(FIRST_WRITE_SECONDS):
                    await context.read()
        await context.abort(*refusal)

    async def _end_unreadable(
        self, context: AnyContext, method: str, error: EncodingError
    ) -> NoReturn:
        """End a call whose caller sent bytes that are no message."""
        caller = peer_of(context)
        error.message = f"{caller} called {method}, and {error.message}"
        now = time.monotonic()
        if now - self._told_since >= TOLD_SECONDS:
            self._unreadable.clear()
            self._told_since = now
        self._unreadable[str(caller)] += 1
        if self._unreadable[str(caller)] <= MOST_TOLD:
            log.warning("%s", error.message)
        await context.abort(*refusal_of(error, caller.name))

    def _refusal(self, context: AnyContext, method: str) -> tuple[grpc.StatusCode, str] | None:
        """Return the status of a call that is refused, or None if it is allowed."""
        try:
            peer = peer_of(context, revoked=self._identity.latest().revoked)
        except CertificateError as error:
            return grpc.StatusCode.UNAUTHENTICATED, error.message
        if peer.role in self._allowed.get(method, ()):
            return None
        words = f"{self._self} does not let {peer} call {method}"
        return grpc.StatusCode.PERMISSION_DENIED, words


async def _never(request: Any, context: AnyContext) -> None:
    raise AssertionError("a method that is not listed was let through")


def _read(request: Any) -> Any:
    """Return a call's one request, or the iterator of its requests. Raises: EncodingError."""
    if isinstance(request, EncodingError):
        raise request
    return request


def decoding(decode: Callable[[bytes], Any], *, streams: bool) -> Callable[[bytes], Any]:
    """Return a deserialiser whose failure is an EncodingError.

    It raises the error into the reader of a stream. The one request of other calls is read by gRPC,
    before the caller is checked, so there the error takes the request's place.
    """

    def decoded(data: bytes) -> Any:
        try:
            return decode(data)
        except Exception as failure:
            error = EncodingError("bytes that are no message of this call came")
            if streams:
                raise error from failure
            return error

    return decoded


def kind_of(handler: Any) -> str:
    """Return the kind of a method as gRPC's names have it, for example "unary_stream"."""
    sides = (handler.request_streaming, handler.response_streaming)
    return "_".join("stream" if streaming else "unary" for streaming in sides)


def _with_behaviour(handler: Any, wrap: Callable[[Behaviour], Behaviour]) -> Any:
    """Return a copy of a handler whose behaviour is wrapped."""
    kind = kind_of(handler)
    make = getattr(grpc, f"{kind}_rpc_method_handler")
    decode = handler.request_deserializer
    if decode is not None:
        decode = decoding(decode, streams=handler.request_streaming)
    return make(wrap(getattr(handler, kind)), decode, handler.response_serializer)


# --- own end --------------------------------------------------------------------------------------

STOPPED = threading.Event()
"""Set once, when the process begins to end. It has one for all its servers."""


def begin_end() -> None:
    """Note that this process is being stopped, by a signal or after its last study."""
    STOPPED.set()


def of_own_end(error: UmpcError) -> UmpcError:
    """Return why a study ended: a peer's end is a consequence, where this process is being stopped.

    Args: error: what the study ended with.
    """
    if not STOPPED.is_set() or not isinstance(error, PeerLost | StudyAborted):
        return error
    return StudyAborted(
        "this process was stopped while the study ran; start it again, then run the study again",
        step=error.step,
        detail=error.message,
    )
