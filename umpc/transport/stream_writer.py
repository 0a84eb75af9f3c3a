"""The writes to one stream, one after the other."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar

from umpc.transport.services import Call, Told, grpc
from umpc.transport.stream_ends import StreamHeart
from umpc.transport.stream_reader import StreamReader

Request = TypeVar("Request")
BROKEN = (grpc.aio.AioRpcError, grpc.aio.BaseError, asyncio.InvalidStateError)
"""The exceptions that gRPC raises at a write or a half-close on a broken stream."""


class StreamWriter(Generic[Request]):
    """Writes to a call.

    Args: source: the end that is read, which may have the methods of `Told`. reader: of the same
        call. heart: of the side that calls, if it beats.
    """

    def __init__(
        self,
        call: Call[Request, Any],
        source: Any,
        reader: StreamReader[Any],
        heart: StreamHeart | None,
    ):
        self.call = call
        self._write_now = source.write_now if isinstance(source, Told) else None
        self._reader = reader
        self._heart = heart
        self._writing = asyncio.Lock()
        self._writers = 0
        """Writes that hold the lock, or wait for it: the next one goes behind them."""

    async def write(self, request: Request) -> None:
        """Write. Raises: as gRPC, and InvalidStateError where the stream was given up meanwhile.

        gRPC then raises CancelledError, although nobody cancelled the task that writes.
        """
        if self._heart is not None:
            await self._heart.begun()
        write_now = None if self._writers else self._write_now
        if write_now is not None and write_now(request):
            return
        self._writers += 1
        try:
            async with self._writing:
                await self.call.write(request)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._reader.failure is None or task is None or task.cancelling():
                raise
            raise asyncio.InvalidStateError("the call was cancelled") from None
        finally:
            self._writers -= 1
