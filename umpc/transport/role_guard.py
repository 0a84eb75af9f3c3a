"""The roles that may call each method of a server, and the end of calls with their connection.

A caller is checked before its message is read. Bytes that are no message end its call with a status
that names it.

*Own end.* Whether this process is being stopped: what ends with it is then not the fault of a peer.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any, NoReturn

from umpc.errors import CertificateError, EncodingError, PeerLost, StudyAborted, UmpcError
from umpc.transport.heartbeat import METHOD, Calls
from umpc.transport.identity import Identity
from umpc.transport.status import refusal_of
from umpc.transport.tls import (
    AnyContext,
    Behaviour,
    CallDetails,
    Continuation,
    ServerInterceptor,
    grpc,
    peer_of,
)

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


def _decoding(decode: Callable[[bytes], Any], *, streams: bool) -> Callable[[bytes], Any]:
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


def _with_behaviour(handler: Any, wrap: Callable[[Behaviour], Behaviour]) -> Any:
    """Return a copy of a handler whose behaviour is wrapped."""
    sides = (handler.request_streaming, handler.response_streaming)
    kind = "_".join("stream" if streaming else "unary" for streaming in sides)
    make = getattr(grpc, f"{kind}_rpc_method_handler")
    decode = handler.request_deserializer
    if decode is not None:
        decode = _decoding(decode, streams=handler.request_streaming)
    return make(wrap(getattr(handler, kind)), decode, handler.response_serializer)


# --- own end --------------------------------------------------------------------------------------

_STOPPED = threading.Event()
"""Set once, when the process begins to end. It has one for all its servers."""


def begin_end() -> None:
    """Note that this process is being stopped, by a signal or after its last study."""
    _STOPPED.set()


def of_own_end(error: UmpcError) -> UmpcError:
    """Return why a study ended: a peer's end is a consequence, where this process is being stopped.

    Args: error: what the study ended with.
    """
    if not _STOPPED.is_set() or not isinstance(error, PeerLost | StudyAborted):
        return error
    return StudyAborted(
        "this process was stopped while the study ran; start it again, then run the study again",
        step=error.step,
        detail=error.message,
    )
