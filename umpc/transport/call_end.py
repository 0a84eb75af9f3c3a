"""The client's end of a gRPC call, which keeps the status that the peer ended the call with.

Where a write fails because the call has ended, gRPC sets a status of its own, "Internal error from
Core". It comes before the peer's status, or replaces it, and then nobody hears why the peer ended
the call. Each status passes the call's callbacks, though, so the peer's is taken there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from umpc.transport.services import EOF, grpc

Known = TypeVar("Known")
OF_CORE = "Internal error from Core"
"""The text of the status that gRPC sets itself."""
REASON_SECONDS = 1.0
"""Seconds that a failure waits for the reason why its call ended."""


class CallEnd:
    """One call's messages from the peer, and the reason why the peer ended it.

    Args: call: a `grpc.aio.Call` whose answer is a stream.
    """

    def __init__(self, call: Any):
        self._call = call
        self._said: grpc.aio.AioRpcError | None = None
        self._ended = asyncio.Event()
        call.add_done_callback(self._note)

    async def read(self) -> Any:
        """Return the next message, or EOF. Raises: AioRpcError with the peer's own status."""
        try:
            return await self._call.read()
        except grpc.aio.AioRpcError as failure:
            reason = await self.reason(failure)
            if reason.code() is grpc.StatusCode.OK:
                return EOF
            raise reason from failure

    async def reason(self, failure: grpc.aio.AioRpcError) -> grpc.aio.AioRpcError:
        """Return why the call ended. Args: failure: of a read or a write.

        It is the failure itself, unless gRPC made that and the peer's own status comes within
        REASON_SECONDS.
        """
        if not _is_of_core(failure.code(), failure.details()):
            return failure
        with suppress(TimeoutError):
            async with asyncio.timeout(REASON_SECONDS):
                await self._ended.wait()
        return self._said or failure

    def _note(self, call: Any) -> None:
        """Keep a status that was just set, if the peer said it."""
        code, details = _known(call.code()), _known(call.details())
        if self._said is None and not _is_of_core(code, details):
            trailing = _known(call.trailing_metadata())
            self._said = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, details, None)
            self._ended.set()


def _is_of_core(code: grpc.StatusCode, details: str | None) -> bool:
    return code is grpc.StatusCode.INTERNAL and details == OF_CORE


def _known(asked: Coroutine[Any, Any, Known]) -> Known:
    """Return a fact of an ended call, for which nothing is waited."""
    try:
        asked.send(None)
    except StopIteration as found:
        known: Known = found.value
        return known
    asked.close()
    raise RuntimeError("an ended call has no status")
