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
import errno
import inspect
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from typing import Any

from umpc.errors import AddressInUse, CertificateError, ConfigError, UmpcError
from umpc.transport.certificates import host_name
from umpc.transport.diagnose import explain, split_address
from umpc.transport.identity import Identity
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
SocketAddress = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]


async def connect(
    identity: Identity, name: str, role: str, address: str, timeout: float
) -> grpc.aio.Channel:
    """Return a channel to exactly this name and role, ready for calls. The caller closes it.

    It waits up to `timeout` seconds for a peer that is not there yet. A wrong certificate ends the
    wait at once, because it stays wrong.

    Raises: CertificateError, PeerUnavailable, ConfigError as `diagnose.explain` finds them.
    """
    host, port = split_address(address)
    target = f"dns:///{f'[{host}]' if ':' in host else host}:{port}"
    options = (*CHANNEL, ("grpc.ssl_target_name_override", host_name(name, role)))
    channel = grpc.aio.secure_channel(target, channel_credentials(identity), options=options)

    async def reason() -> UmpcError:
        seconds = min(3.0, timeout)
        return await asyncio.to_thread(explain, identity, name, role, address, seconds)

    try:
        async with asyncio.timeout(timeout):
            await _ready(channel, reason)
    except TimeoutError:
        await channel.close(None)
        raise await reason() from None
    except BaseException:
        await channel.close(None)
        raise
    return channel


async def _ready(channel: grpc.aio.Channel, reason: Callable[[], Awaitable[UmpcError]]) -> None:
    """Wait until the channel is ready. Raises: CertificateError, if that is the reason."""
    states = grpc.ChannelConnectivity
    while (state := channel.get_state(try_to_connect=True)) is not states.READY:
        if state is states.TRANSIENT_FAILURE:
            error = await reason()
            if isinstance(error, CertificateError):
                raise error
        await channel.wait_for_state_change(state)


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
    _refuse_if_taken(host, port, listen)
    shown = f"[{host}]" if ":" in host else host
    try:
        bound = server.add_secure_port(f"{shown}:{port}", server_credentials(identity))
    except RuntimeError:
        raise AddressInUse(f"cannot listen on {listen}: just taken; choose another port") from None
    return f"{shown}:{bound}"


def _refuse_if_taken(host: str, port: int, listen: str) -> None:
    """Check that all addresses of the host name are free. gRPC would be content with one.

    Raises: AddressInUse, ConfigError.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ConfigError(
            f"cannot listen on {listen}: {error.strerror}; give an address of this machine"
        ) from None
    failures = [_failure(family, address) for family, _, _, _, address in found]
    if errno.EADDRINUSE in failures:
        raise AddressInUse(
            f"cannot listen on {listen}: another process does already; stop it "
            f"(`ss -ltnp 'sport = {port}'` shows which), or choose another port"
        )
    if all(failures):
        raise ConfigError(
            f"cannot listen on {listen}: {errno.errorcode[failures[0]]}; "
            "give an address of this machine, and a port above 1023"
        )


def _failure(family: int, address: SocketAddress) -> int:
    """Return 0, or the errno of binding there."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


class RoleGuard(ServerInterceptor):
    """An interceptor that refuses a method to roles for which it is not listed.

    The role is the one in the caller's certificate.
    """

    def __init__(self, identity: Identity, allowed: Allowed):
        self._self = f"{identity.role} {identity.name!r}"
        self._allowed = {method: frozenset(roles) for method, roles in allowed.items()}

    async def intercept_service(self, continuation: Continuation, details: CallDetails) -> Any:
        """Return the method's handler behind the check, or a handler that refuses."""
        if details.method not in self._allowed:
            return grpc.stream_stream_rpc_method_handler(self._guarded(_never, details.method))
        handler = await continuation(details)
        return handler and _with_behaviour(
            handler, lambda inner: self._guarded(inner, details.method)
        )

    def _guarded(self, inner: Behaviour, method: str) -> Behaviour:
        """Return the behaviour of a method with the check before it."""
        if inspect.isasyncgenfunction(inner):

            async def stream(request: Any, context: AnyContext) -> AsyncIterator[Any]:
                await self._check(context, method)
                async with contextlib.aclosing(inner(request, context)) as replies:
                    async for reply in replies:
                        yield reply

            return stream

        async def call(request: Any, context: AnyContext) -> Any:
            await self._check(context, method)
            return await inner(request, context)

        return call

    async def _check(self, context: AnyContext, method: str) -> None:
        try:
            peer = peer_of(context)
        except CertificateError as error:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, error.message)
        if peer.role not in self._allowed.get(method, ()):
            await context.abort(
                grpc.StatusCode.PERMISSION_DENIED, f"{self._self} does not let {peer} call {method}"
            )


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
