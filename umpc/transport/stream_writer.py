"""The writes to one stream, one after the other."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar

from umpc.transport.services import Call, grpc
from umpc.transport.stream_ends import StreamHeart
from umpc.transport.stream_reader import StreamReader

Request = TypeVar("Request")
BROKEN = (grpc.aio.AioRpcError, grpc.aio.BaseError, asyncio.InvalidStateError)
"""The exceptions that gRPC raises at a write or a half-close on a broken stream."""


class StreamWriter(Generic[Request]):
    """Writes to a call.

    Args: reader: of the same call. heart: of the side that calls, if it beats.
    """

    def __init__(
        self,
        call: Call[Request, Any],
        reader: StreamReader[Any],
        heart: StreamHeart | None,
    ):
        self.call = call
        self._reader = reader
        self._heart = heart
        self._writing = asyncio.Lock()

    async def write(self, request: Request) -> None:
        """Write. Raises: as gRPC, and InvalidStateError where the stream was given up meanwhile.

        gRPC then raises CancelledError, although nobody cancelled the task that writes.
        """
        if self._heart is not None:
            await self._heart.begun()
        try:
            async with self._writing:
                await self.call.write(request)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._reader.failure is None or task is None or task.cancelling():
                raise
            raise asyncio.InvalidStateError("the call was cancelled") from None
