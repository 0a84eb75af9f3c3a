"""The two ends of a stream's call: the heartbeat of the side that calls, and the server's end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from umpc.transport.heartbeat import beat_to
from umpc.transport.services import Channel, Context

Request = TypeVar("Request")


class StreamHeart:
    """The heartbeat beside a call.

    Args: stopped: called with the reason when the peer has stopped.
    """

    def __init__(self, channel: Channel, address: str, stopped: Callable[[str], Awaitable[None]]):
        self._begun = asyncio.Event()
        self._task = asyncio.create_task(self._beat(channel, address, stopped))

    async def _beat(
        self, channel: Channel, address: str, stopped: Callable[[str], Awaitable[None]]
    ) -> None:
        await stopped(await beat_to(channel, address, self._begun))

    async def begun(self) -> None:
        """Wait until the first beat has left: a slow line would hold it up behind large data."""
        if self._begun.is_set():
            return
        begun = asyncio.create_task(self._begun.wait())
        await asyncio.wait({self._task, begun}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()

    async def stop(self) -> None:
        """Beat no more."""
        self._task.cancel()
        await asyncio.wait({self._task})


class AcceptedCall(Generic[Request]):
    """The server's end of a call, with the methods of a client's end."""

    def __init__(self, context: Context[Any, Request]):
        self._context = context

    async def read(self) -> Any:
        return await self._context.read()

    async def write(self, request: Request, /) -> None:
        await self._context.write(request)

    async def done_writing(self) -> None:
        """The stream ends when the handler returns, so nothing is to do."""

    def cancel(self) -> bool:
        """The stream ends when the handler returns, so nothing is to do."""
        return False

    def done(self) -> bool:
        return False
