"""The server's end of one call through a hub, with the methods of gRPC's context."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from ssl import DER_cert_to_PEM_cert
from typing import Any, NoReturn

from umpc.errors import UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import numbering as n
from umpc.transport.hub.session import Session
from umpc.transport.services import EOF
from umpc.transport.status import LocalFailure
from umpc.transport.tls import grpc

Metadata = Sequence[tuple[str, str]]


class HubContext:
    """The server's end of one call, with the methods of `services.Context`."""

    def __init__(self, session: Session):
        self._session = session
        self._has_ended = self._has_left = False
        self.decode: Callable[[bytes], Any] = _same
        self.encode: Callable[[Any], bytes] = _same

    async def read(self) -> Any:
        """Return the next request, or EOF after the last one. Raises: AioRpcError."""
        if self._has_ended:
            return EOF
        try:
            message = await self._session.read()
        except UmpcError as error:
            raise LocalFailure(error) from error
        return EOF if message is None else self.decode(message)

    async def requests(self) -> AsyncIterator[Any]:
        """Yield all requests."""
        while (request := await self.read()) is not EOF:
            yield request

    async def write(self, message: Any, /) -> None:
        """Write one reply. Raises: BaseError if the call has ended."""
        if self._has_ended:
            raise grpc.aio.BaseError("the call has ended")
        try:
            await self._session.write(self.encode(message))
        except (UmpcError, EOFError) as error:
            raise grpc.aio.BaseError(str(error)) from error

    async def abort(
        self, code: grpc.StatusCode, details: str = "", metadata: Metadata = (), /
    ) -> NoReturn:
        """End the call with a status."""
        self.end(code, details, metadata)
        raise grpc.aio.AbortError(details)

    def end(self, code: grpc.StatusCode, details: str, metadata: Metadata = ()) -> None:
        """Send the status of the call, unless it has one."""
        if self._has_ended:
            return
        self._has_ended = True
        if self._session.was_cancelled:
            return  # the caller has left, and reads no status
        words = [pb.HubWord(key=key, text=text) for key, text in metadata]
        end = pb.HubEnd(code=code.value[0], details=details, words=words)
        with suppress(UmpcError):
            self._session.send(n.END, end.SerializeToString())

    def leave(self) -> None:
        """Let the session go, once. A call without a status was cancelled."""
        if not self._has_left:
            self._has_left = True
            self.end(grpc.StatusCode.CANCELLED, "")
            self._session.close()

    def peer(self) -> str:
        """Return the caller's place, where gRPC has its address."""
        return f"hub:{self._session.parties.hub}/{self._session.other}"

    @property
    def certificate(self) -> bytes:
        """The caller's certificate in DER, which the handshake of its session has checked."""
        return self._session.certificate

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """Return the caller's certificate where gRPC has it."""
        pem = DER_cert_to_PEM_cert(self._session.certificate)
        return {"x509_pem_cert": [pem.encode()]}


def _same(value: Any) -> Any:
    return value
