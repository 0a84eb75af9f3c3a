"""The client's side: a channel through a hub, with the calls of a gRPC channel.

The generated stubs take this channel for one of gRPC. Each call has a session of its own; the first
call takes the one that `connect` opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from umpc.transport.hub.calls import Decode, Encode, HubCall, same
from umpc.transport.hub.link import HubLink
from umpc.transport.hub.session import Session

CLOSE_SECONDS = 1.0
"""Seconds that a channel waits for its last records to be received."""


class HubChannel:
    """A channel to one process behind a hub.

    Args: link: opens further sessions. first: an open session with it. closed: called when the
        channel is closed.
    """

    def __init__(self, link: HubLink, first: Session, closed: Callable[[], Awaitable[None]]):
        self._closed: Callable[[], Awaitable[None]] | None = closed
        self._link = link
        self._first: Session | None = first
        self._peer = first.other
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

    def unary_unary(
        self,
        method: str,
        request_serializer: Encode | None = None,
        response_deserializer: Decode | None = None,
        _registered_method: bool = False,
    ) -> Callable[..., HubCall]:
        """Return the call of a method with one request: await its reply, or read its replies."""
        return self._method(method, request_serializer, response_deserializer, has_request=True)

    unary_stream = unary_unary

    def stream_stream(
        self,
        method: str,
        request_serializer: Encode | None = None,
        response_deserializer: Decode | None = None,
        _registered_method: bool = False,
    ) -> Callable[..., HubCall]:
        """Return the call of a method with many requests and replies: write and read it."""
        return self._method(method, request_serializer, response_deserializer, has_request=False)

    def _method(
        self, method: str, encode: Encode | None, decode: Decode | None, *, has_request: bool
    ) -> Callable[..., HubCall]:
        def begin(request: Any = None, *, timeout: float | None = None) -> HubCall:
            call = HubCall(self, method, encode or same, decode or same, timeout)
            self._calls.add(call)
            call.begin([(encode or same)(request)] if has_request else None)
            return call

        return begin

    def ended(self, call: HubCall) -> None:
        """Forget a call that has left."""
        self._calls.discard(call)
