"""Channels and servers of umpc: limits, keepalive, and the roles that may call each method.

Both sides notice a stopped process or a cut cable after keepalive time + timeout, at most 7 s. This
takes three settings: gRPC also waits for `ping_timeout_ms` (60 s by default), so the first two
alone take 61.6 s.

A busy process does not count as a stopped one: gRPC answers pings from its own threads while Python
computes. These threads wait for a processor too. When 64 nodes shared two cores and connected to
each other all at once, some answered after more than 3 s.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import ssl
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any

from umpc.errors import AddressInUse, CertificateError, UmpcError
from umpc.transport.certificates import clock, host_name, verify_certificate
from umpc.transport.diagnose import explain, find_fault, shown_certificate, split_address
from umpc.transport.identity import Identity
from umpc.transport.listening import refuse_if_taken
from umpc.transport.services import (
    AnyContext,
    Behaviour,
    CallDetails,
    Continuation,
    ServerInterceptor,
)
from umpc.transport.tls import channel_credentials, grpc, peer_of, server_credentials

MAX_FRAME = 1 << 20
MAX_MESSAGE = MAX_FRAME + 4096  # a full frame and its header fields
MAX_STREAMS = 64  # per connection
PING_EVERY_MS = 2000
PING_ANSWER_MS = 3000
HANDSHAKE_MS = 10_000
FIRST_WRITE_SECONDS = 0.5
"""Seconds that a refused stream waits for its client's first message, before it says why."""
LATE_SECONDS = 60
"""Seconds for which a peer is tried again that answers and whose channel is not ready in time."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0
"""Seconds between two attempts to reach a peer that is not there yet: the first, the longest."""

KEEPALIVE = (
    ("grpc.keepalive_time_ms", PING_EVERY_MS),
    ("grpc.keepalive_timeout_ms", PING_ANSWER_MS),
    ("grpc.http2.ping_timeout_ms", PING_ANSWER_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)
COMMON = (
    *KEEPALIVE,
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.max_receive_message_length", MAX_MESSAGE),
)
SERVER = (
    *COMMON,
    ("grpc.so_reuseport", 0),  # otherwise two processes could share a port and split its calls
    ("grpc.http2.min_ping_interval_without_data_ms", PING_EVERY_MS // 2),
    ("grpc.http2.max_ping_strikes", 0),  # our clients ping often, on purpose
    ("grpc.max_concurrent_streams", MAX_STREAMS),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
)
CHANNEL = (
    *COMMON,
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),  # the session decides about a lost call: resend or a new attempt
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)

Allowed = Mapping[str, Collection[str]]


async def connect(
    identity: Identity, name: str, role: str, address: str, timeout: float
) -> grpc.aio.Channel:
    """Return a channel to exactly this name and role, ready for calls. The caller closes it.

    It waits up to `timeout` seconds for a peer that is not there yet. A wrong certificate ends the
    wait at once, because it stays wrong. If the time is up and the peer answers then, it is late
    because a machine is busy: it is tried again for up to LATE_SECONDS.

    The channel trusts one certificate only: the one that the peer showed a moment before, after it
    was verified and looked for in the list of revoked ones (`tls.channel_credentials`).

    Raises: CertificateError, PeerUnavailable, ConfigError as `diagnose.explain` finds them.
    """
    split_address(address)
    attempt = _Attempt(identity, name, role, address, min(3.0, timeout))
    clock_of_loop = asyncio.get_running_loop().time
    latest = clock_of_loop() + LATE_SECONDS
    while True:
        try:
            async with asyncio.timeout(timeout):
                return await attempt.until_ready()
        except TimeoutError:
            fault = await attempt.fault()
            if fault is not None:
                raise fault from None
            if clock_of_loop() >= latest:
                raise await attempt.reason() from None


class _Attempt:
    """The way to a channel: look at the server's certificate, trust it alone, and connect."""

    def __init__(self, identity: Identity, name: str, role: str, address: str, seconds: float):
        self._identity = identity.latest()
        self._name = name
        self._role = role
        self._address = address
        self._seconds = seconds

    async def until_ready(self) -> grpc.aio.Channel:
        """Try until a channel is ready. Raises: CertificateError, if trying again is of no use."""
        pause = FIRST_PAUSE
        while True:
            self._identity = self._identity.latest()
            shown = await shown_certificate(self._address, self._seconds)
            channel = None if shown is None else await self._connect(await self._verified(shown))
            if channel is not None:
                return channel
            error = await self.reason()
            if isinstance(error, CertificateError):
                raise error
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _verified(self, der: bytes) -> bytes:
        """Return the certificate in PEM. Raises: CertificateError unless it is our peer's."""
        us = self._identity
        try:
            name, role = verify_certificate(der, us.ca_pem, now=clock(), revoked=us.revoked)
            if role != self._role or self._name not in (name, "any"):
                raise CertificateError(
                    f"at {self._address} is {role} {name!r}, expected {self._role} {self._name!r}: "
                    "check the address, or the name in the study"
                )
        except CertificateError as error:
            told = await self.reason()
            raise told if isinstance(told, CertificateError) else error from None
        return ssl.DER_cert_to_PEM_cert(der).encode()

    async def _connect(self, server_pem: bytes) -> grpc.aio.Channel | None:
        """Return a ready channel to the server with this certificate, or None if there is none."""
        host, port = split_address(self._address)
        target = f"dns:///{f'[{host}]' if ':' in host else host}:{port}"
        override = ("grpc.ssl_target_name_override", host_name(self._name, self._role))
        credentials = channel_credentials(self._identity, server_pem)
        channel = grpc.aio.secure_channel(target, credentials, options=(*CHANNEL, override))
        try:
            if await _is_ready(channel):
                return channel
        except BaseException:
            await channel.close(None)
            raise
        await channel.close(None)
        return None

    async def fault(self) -> UmpcError | None:
        """Return what is wrong with the connection, or None if it works now."""
        parts = (self._identity, self._name, self._role, self._address, self._seconds)
        return await asyncio.to_thread(find_fault, *parts)

    async def reason(self) -> UmpcError:
        """Return what is wrong with the connection, or that it works now."""
        parts = (self._identity, self._name, self._role, self._address, self._seconds)
        return await asyncio.to_thread(explain, *parts)


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
            role may call a method that is missing here.
    """
    return grpc.aio.server(interceptors=[RoleGuard(identity, allowed)], options=SERVER)


async def bind(server: grpc.aio.Server, identity: Identity, listen: str) -> str:
    """Bind the server to "host:port" (port 0: any free one), before `server.start()`.

    Returns: "host:port" with the port that it got.
    Raises: AddressInUse, or ConfigError if the address is not one of this machine.
    """
    host, port = split_address(listen)
    refuse_if_taken(host, port, listen)
    shown = f"[{host}]" if ":" in host else host
    try:
        bound = server.add_secure_port(f"{shown}:{port}", server_credentials(identity))
    except RuntimeError:
        raise AddressInUse(f"cannot listen on {listen}: just taken; choose another port") from None
    return f"{shown}:{bound}"


class RoleGuard(ServerInterceptor):
    """An interceptor that refuses a method to roles for which it is not listed.

    The role is the one in the caller's certificate. A revoked certificate has none.
    """

    def __init__(self, identity: Identity, allowed: Allowed):
        self._identity = identity
        self._self = f"{identity.role} {identity.name!r}"
        self._allowed = {method: frozenset(roles) for method, roles in allowed.items()}

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
                async with contextlib.aclosing(inner(request, context)) as replies:
                    async for reply in replies:
                        yield reply

            return stream

        async def call(request: Any, context: AnyContext) -> Any:
            await self._check(context, method, streams)
            return await inner(request, context)

        return call

    async def _check(self, context: AnyContext, method: str, streams: bool) -> None:
        refusal = self._refusal(context, method)
        if refusal is None:
            return
        if streams:
            # A client of gRPC loses the status of a call that ends while it writes.
            with contextlib.suppress(TimeoutError, grpc.aio.BaseError):
                async with asyncio.timeout(FIRST_WRITE_SECONDS):
                    await context.read()
        await context.abort(*refusal)

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


def _with_behaviour(handler: Any, wrap: Callable[[Behaviour], Behaviour]) -> Any:
    """Return a copy of a handler whose behaviour is wrapped."""
    sides = (handler.request_streaming, handler.response_streaming)
    kind = "_".join("stream" if streaming else "unary" for streaming in sides)
    make = getattr(grpc, f"{kind}_rpc_method_handler")
    return make(
        wrap(getattr(handler, kind)), handler.request_deserializer, handler.response_serializer
    )
