"""The two ends of a stream's call: the heartbeat of the side that calls, and the server's end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from umpc.transport.heartbeat import beat_to
from umpc.transport.services import Channel, Context

Request = TypeVar("Request")
EARLY_BYTES = 1 << 14
"""Bytes after which a stream beats at once: on a line of 16 kB a second they take a second."""
LEAST_SECONDS = 0.01
"""The shortest time over which the speed of a line is judged."""
SECONDS_OF_ANSWERS = 1 / 4
"""A stream on which D bytes a second came since its call began may first write so many seconds of
them: over a line that is 16 times slower in this direction they take 4 s, half of the silence that
a peer may keep."""


class StreamHeart:
    """The heartbeat beside a call.

    Args: stopped: called with the reason when the peer has stopped.
    """

    def __init__(self, channel: Channel, address: str, stopped: Callable[[str], Awaitable[None]]):
        self._due = asyncio.Event()
        self._begun = asyncio.Event()
        self._written = 0
        self._came = 0
        self._since = time.monotonic()
        self._task = asyncio.create_task(self._beat(channel, address, stopped))

    async def _beat(
        self, channel: Channel, address: str, stopped: Callable[[str], Awaitable[None]]
    ) -> None:
        await stopped(await beat_to(channel, address, self._due, self._begun))

    async def before(self, request: Any) -> None:
        """Let the first beat leave before the line is filled, however slow it is.

        Args: request: what is written next.
        """
        if self._due.is_set():
            return
        self._written += len(request) if isinstance(request, bytes) else request.ByteSize()
        if self._written > max(EARLY_BYTES, self._passes_soon()):
            self._due.set()
            begun = asyncio.create_task(self._begun.wait())
            await asyncio.wait({self._task, begun}, return_when=asyncio.FIRST_COMPLETED)
            begun.cancel()

    def came(self, reply: Any) -> None:
        """Take note of what the peer wrote: so fast is the line, at least."""
        if not self._due.is_set():
            self._came += len(reply) if isinstance(reply, bytes) else reply.ByteSize()

    def _passes_soon(self) -> float:
        """Bytes that pass soon, judged by those that came so far."""
        speed = self._came / max(time.monotonic() - self._since, LEAST_SECONDS)
        return speed * SECONDS_OF_ANSWERS

    async def stop(self) -> None:
        """Beat no more."""
        self._task.cancel()
        await asyncio.wait({self._task})


class AcceptedCall(Generic[Request]):
    """The server's end of a call, with the methods of a client's end."""

    def __init__(self, context: Context[Any, Request]):
        self.read_from = context

    async def read(self) -> Any:
        return await self.read_from.read()

    async def write(self, request: Request, /) -> None:
        await self.read_from.write(request)

    async def done_writing(self) -> None:
        """The stream ends when the handler returns, so nothing is to do."""

    def cancel(self) -> bool:
        """The stream ends when the handler returns, so nothing is to do."""
        return False

    def done(self) -> bool:
        return False
