"""The client's end of a gRPC call, which keeps the status that the peer ended the call with.

Where a write fails because the call has ended, gRPC sets a status of its own, "Internal error from
Core", and the call counts as ended. Then `read` of gRPC asks for no further message, although some
wait, and the peer's status comes only behind them. Or the peer's has come, and gRPC's replaces it.
So this end reads by gRPC's iterator, which stops at the last message only. It keeps the first
status, of which gRPC tells its callbacks, and looks for a later one where that was gRPC's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NamedTuple, TypeVar

from umpc.transport.services import EOF, grpc

Known = TypeVar("Known")
OF_CORE = "Internal error from Core"
"""The text of the status that gRPC sets itself."""
REASON_SECONDS = 1.0
"""Seconds that a failure waits for the reason why its call ended."""
LOOK_SECONDS = 0.01
"""Seconds between two looks at a call's status."""


class Status(NamedTuple):
    """A status with which a call ended."""

    code: grpc.StatusCode
    details: str
    trailing: grpc.aio.Metadata

    @property
    def is_of_core(self) -> bool:
        """It is gRPC's own; a peer that sends the same words has no others."""
        return self.code is grpc.StatusCode.INTERNAL and self.details == OF_CORE

    def error(self) -> grpc.aio.AioRpcError:
        return grpc.aio.AioRpcError(
            self.code, grpc.aio.Metadata(), self.trailing, self.details, None
        )


class CallEnd:
    """One call's messages from the peer, and the reason why the peer ended it.

    Args: call: a `grpc.aio.Call` whose answer is a stream, of which nobody else reads.
    """

    def __init__(self, call: Any):
        self._call = call
        self._messages = call.__aiter__()
        self._said: Status | None = None
        call.add_done_callback(self._note)

    async def read(self) -> Any:
        """Return the next message, or EOF. Raises: AioRpcError with the peer's own status."""
        try:
            return await anext(self._messages)
        except StopAsyncIteration:
            return EOF
        except grpc.aio.AioRpcError as failure:
            reason = await self.reason(failure)
            if reason is None:
                return EOF
            if reason is failure:
                raise
            raise reason from failure

    async def reason(self, failure: grpc.aio.AioRpcError) -> grpc.aio.AioRpcError | None:
        """Return why the call ended, or None where the peer ended it well.

        It is the failure itself, unless gRPC made that and the peer's own status comes within
        REASON_SECONDS. Args: failure: of a read or a write.
        """
        clock = asyncio.get_running_loop().time
        shown = Status(failure.code(), failure.details() or "", grpc.aio.Metadata())
        until = clock() + REASON_SECONDS
        while shown.is_of_core and self._said is None and clock() < until:
            await asyncio.sleep(LOOK_SECONDS)
            self._note(self._call)
        if not shown.is_of_core or self._said is None:
            return failure
        return None if self._said.code is grpc.StatusCode.OK else self._said.error()

    def _note(self, call: Any) -> None:
        """Keep a call's status, if the peer said it."""
        code, details = _known(call.code()), _known(call.details())
        trailing = _known(call.trailing_metadata())
        if code is None or trailing is None or self._said is not None:
            return
        status = Status(code, details or "", trailing)
        if not status.is_of_core:
            self._said = status


def _known(asked: Coroutine[Any, Any, Known]) -> Known | None:
    """Return a fact of an ended call, for which nothing is waited; None if it has not ended."""
    try:
        asked.send(None)
    except StopIteration as found:
        known: Known = found.value
        return known
    asked.close()
    return None
