"""The client's end of one call through a hub, with the methods of gRPC's calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Protocol

from umpc.errors import UmpcError
from umpc.transport.hub import numbering as n
from umpc.transport.hub.session import Session
from umpc.transport.services import EOF
from umpc.transport.status import LocalFailure
from umpc.transport.tls import grpc

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]
CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


def same(value: Any) -> Any:
    """Return a message as it is: it is bytes already."""
    return value


class Sessions(Protocol):
    """The part of a `HubChannel` that its calls use."""

    async def session(self) -> Session:
        """Return a session for one call."""

    def ended(self, call: HubCall) -> None:
        """Forget a call that has left."""


class HubCall:
    """The client's end of one call, with the methods of `services.Call`."""

    def __init__(
        self,
        channel: Sessions,
        method: str,
        encode: Encode,
        decode: Decode,
        timeout: float | None,
    ):
        self._channel = channel
        self._method = method
        self._encode = encode
        self._decode = decode
        self._timeout = timeout
        self._session: Session | None = None
        self._is_done = False
        self._begun: asyncio.Task[Session] | None = None

    def begin(self, requests: list[bytes] | None) -> None:
        """Begin the call. Args: requests: all there are, or None if `write` brings them."""
        self._begun = asyncio.create_task(self._begin(requests))
        self._begun.add_done_callback(self._note)

    async def _begin(self, requests: list[bytes] | None) -> Session:
        session = await self._channel.session()
        self._session = session
        session.begin_call(self._method)
        if requests is not None:
            with suppress(EOFError):  # the call has ended already, and `read` says how
                for request in requests:
                    await session.write(request)
            session.send(n.HALF_CLOSE)
        return session

    def _note(self, task: asyncio.Task[Session]) -> None:
        """Take note of a failed beginning; `read` and `write` raise it."""
        with suppress(asyncio.CancelledError):
            task.exception()

    async def _open(self) -> Session:
        if self._begun is None:
            raise asyncio.InvalidStateError("the call was used before it began")
        return await asyncio.shield(self._begun)

    async def read(self) -> Any:
        """Return the next reply, or EOF at the end. Raises: AioRpcError."""
        try:
            session = await self._open()
            message = await session.read()
        except UmpcError as error:
            self._is_done = True
            raise LocalFailure(error) from error
        except asyncio.CancelledError:
            if self._is_done:
                raise _cancelled() from None
            raise
        if message is not None:
            return self._decode(message)
        return self._ended(session)

    def _ended(self, session: Session) -> object:
        """Return EOF for a call that ended well. Raises: AioRpcError."""
        self._is_done = True
        self._leave()
        end = session.end
        if end is not None and end.code != 0:
            words = tuple((word.key, word.text) for word in end.words)
            code = CODES.get(end.code, grpc.StatusCode.UNKNOWN)
            raise _rpc_error(code, end.details, words)
        return EOF

    async def write(self, request: Any, /) -> None:
        """Write one request. Raises: InvalidStateError after the call's end, AioRpcError."""
        try:
            session = await self._open()
            await session.write(self._encode(request))
        except asyncio.CancelledError:
            if self._session is not None and self._session.is_torn:
                self.cancel()
            raise
        except UmpcError as error:
            raise LocalFailure(error) from error
        except EOFError:
            raise asyncio.InvalidStateError("the call has ended") from None

    async def done_writing(self) -> None:
        """Say that no request follows."""
        try:
            (await self._open()).send(n.HALF_CLOSE)
        except UmpcError as error:
            raise LocalFailure(error) from error

    def cancel(self) -> bool:
        """End the call now."""
        if self._is_done:
            return False
        self._is_done = True
        if self._session is not None:
            self._session.cancel()
        elif self._begun is not None:
            self._begun.cancel()
        return True

    def done(self) -> bool:
        """Return whether the call has ended."""
        session = self._session
        if session is None:
            return self._is_done or (self._begun is not None and self._begun.done())
        return self._is_done or session.end is not None or session.failure is not None

    def _leave(self) -> None:
        if self._session is not None:
            self._session.close()
        self._channel.ended(self)

    async def left(self, seconds: float) -> None:
        """Wait until the other side has received all records, or the time is up."""
        if self._session is not None:
            await self._session.settled(seconds)
        self._channel.ended(self)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._single().__await__()

    async def _single(self) -> Any:
        """Return the one reply of a call. Raises: AioRpcError."""
        try:
            async with asyncio.timeout(self._timeout):
                reply = await self.read()
                if reply is not EOF:
                    await self.read()  # its status
        except TimeoutError:
            self.cancel()
            words = f"the call took longer than {self._timeout:g} s" if self._timeout else ""
            raise _rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, words) from None
        except asyncio.CancelledError:
            self.cancel()
            raise
        if reply is EOF:
            raise _rpc_error(grpc.StatusCode.INTERNAL, "the call ended without a reply")
        return reply


def _rpc_error(
    code: grpc.StatusCode, details: str, words: tuple[tuple[str, str], ...] = ()
) -> grpc.aio.AioRpcError:
    metadata = grpc.aio.Metadata(*words)
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), metadata, details, None)


def _cancelled() -> grpc.aio.AioRpcError:
    return _rpc_error(grpc.StatusCode.CANCELLED, "the call was cancelled here")
