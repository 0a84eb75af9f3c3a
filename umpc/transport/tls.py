"""TLS 1.3 with certificates on both sides, for gRPC, and the identity of a caller.

grpcio (1.85) has no option for the lowest TLS version (grpc/grpc issue 37305; pull requests 43045
and 43080 are open). It has GRPC_SSL_CIPHER_SUITES, which BoringSSL applies to TLS 1.2 and never to
1.3. The only suite that is left to TLS 1.2 here needs a pre-shared key, which gRPC never sets. No
TLS 1.2 handshake can therefore succeed, in either direction, with any kind of certificate.

gRPC reads the variable once, on its first import. This explains the order of this file, and every
process takes `grpc` from here. If other code imported grpc first, `server_credentials` and
`channel_credentials` refuse to work. tests/transport/test_tls.py proves all of this with clients
and servers of the standard library.

*Services.* The generated stubs and servicers, with the types that gRPC itself does not have. The
Protocols describe the few methods of gRPC that umpc uses.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

TLS_1_2_SUITES = "ECDHE-PSK-AES128-CBC-SHA"
_VARIABLE = "GRPC_SSL_CIPHER_SUITES"
_too_late = "grpc" in sys.modules and os.environ.get(_VARIABLE) != TLS_1_2_SUITES
os.environ[_VARIABLE] = TLS_1_2_SUITES
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # `diagnose` explains failures in one line

import grpc  # noqa: E402  (after the line above, see the docstring)
import grpc.aio  # noqa: E402
from cryptography import x509  # noqa: E402

from umpc.errors import CertificateError, LocalProtocolError  # noqa: E402
from umpc.proto.v1 import umpc_pb2_grpc as rpc  # noqa: E402
from umpc.transport.certificates import (  # noqa: E402
    Revoked,
    SignedIn,
    check_validity,
    named_certificate,
    names_of,
    refusing,
    signed_in_of,
)
from umpc.transport.identity import Identity  # noqa: E402

__all__ = ["grpc", "rpc"]


@dataclass(frozen=True)
class Peer:
    """The other side of a call, as its verified certificate names it."""

    name: str
    role: str
    signed_in: SignedIn | None = None

    def __str__(self) -> str:
        return f"{self.role} {self.name!r}"

    def check_study(self, study: bytes) -> None:
        """Check that the certificate may ask a study, which all but those for hours may.

        Args: study: its hash, as `umpc.protocols.registry.allowed_as`. Raises: StudyError.
        """
        if self.signed_in is not None:
            self.signed_in.check(study, self.name)


def server_credentials(identity: Identity, *, public: bool = False) -> grpc.ServerCredentials:
    """Return credentials that show our certificate and demand one of the same authority.

    Args: public: anybody may call, and shows none.

    Every handshake uses the certificate that the identity's folder holds at that time.
    """
    _refuse_if_too_late()
    shown = identity.latest()

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        """Return the configuration for the next handshake, or None if it stays."""
        nonlocal shown
        former, shown = shown, identity.latest()
        return None if shown.cert_pem == former.cert_pem else _configuration(shown)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(shown),
        renewed,  # type: ignore[arg-type]  # gRPC documents None, the stubs do not know it
        require_client_authentication=not public,
    )


def _configuration(identity: Identity) -> grpc.ServerCertificateConfiguration:
    pair = (identity.key_pem, identity.cert_pem)
    return grpc.ssl_server_certificate_configuration([pair], root_certificates=identity.ca_pem)


def channel_credentials(identity: Identity, server_pem: bytes) -> grpc.ChannelCredentials:
    """Return credentials that show our certificate and trust exactly one server's certificate.

    gRPC for Python tells a client nothing about the server's certificate, so a client cannot look
    for it in the list of revoked ones. It therefore looks at the certificate first, over a
    connection of its own (`addresses.shown_certificate`), and then trusts that certificate alone.
    Without its key nobody completes a handshake on the channel, now or after a reconnect.

    Args: server_pem: the certificate, which `verify_certificate` accepted. identity: one of
        `identity.nobody` shows none.
    """
    _refuse_if_too_late()
    own = identity.key_pem or None, identity.cert_pem or None
    return grpc.ssl_channel_credentials(server_pem, *own)


def peer_of(
    context: AnyContext, *, now: datetime | None = None, revoked: Revoked | None = None
) -> Peer:
    """Return the name and role of the client of a call.

    The handshake verified the certificate when the connection began, or when the TLS session began
    that it resumes. The dates and the list of revoked certificates are therefore checked again
    here: a certificate ends at its date, and not at the end of the connection.

    Raises: CertificateError if the client showed no certificate, one of another form than ours, or
    one that is expired or revoked.
    """
    cert, peer = _shown_in(context)
    check_validity(cert, f"the certificate of {peer}", now)
    if revoked is not None:
        revoked.check(cert.serial_number, peer.name, peer.role)
    return peer


def _shown_in(context: AnyContext) -> tuple[x509.Certificate, Peer]:
    """Return the certificate of a caller. One that came through a hub was parsed already."""
    der = getattr(context, "certificate", None)
    if isinstance(der, bytes):
        cert, name, role = named_certificate(der)
        return cert, Peer(name, role, signed_in_of(cert))
    shown = list(context.auth_context().get("x509_pem_cert", ()))
    if len(shown) != 1:
        raise CertificateError(
            "a client without certificate called: expected mutual TLS; refuse the call"
        )
    return _read(bytes(shown[0]))


@lru_cache(maxsize=1024)
def _read(pem: bytes) -> tuple[x509.Certificate, Peer]:
    with refusing("a client showed a malformed certificate; refuse the call"):
        cert = x509.load_pem_x509_certificate(pem)
    return cert, Peer(*names_of(cert), signed_in_of(cert))


def _refuse_if_too_late() -> None:
    if _too_late:
        raise LocalProtocolError(
            "grpc was imported before umpc.transport.tls, so TLS 1.2 cannot be switched off: "
            "import it from umpc.transport.tls, or start the process with "
            f"{_VARIABLE}={TLS_1_2_SUITES}"
        )


# --- services -------------------------------------------------------------------------------------

Request = TypeVar("Request", contravariant=True)
Reply = TypeVar("Reply", covariant=True)
Sent = TypeVar("Sent", contravariant=True)
Message = TypeVar("Message")
Received = TypeVar("Received", covariant=True)

Blame = tuple[tuple[str, str], ...]
"""Metadata that go with a status."""
Channel = grpc.aio.Channel
EOF: object = grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs do not list it
"""The object that gRPC's `read` returns after the last message."""


class Readable(Protocol[Received]):
    """One end of a stream from which messages can be read."""

    async def read(self) -> Received: ...


async def read(stream: Readable[Message]) -> Message | None:
    """Return the next message of a stream, or None at its end."""
    message = await stream.read()
    return None if message is EOF else message


class Call(Protocol[Request, Reply]):
    """The client's end of a stream.

    A call whose method takes one request has no `write` and no `done_writing`: its `Request` is
    `Never`.
    """

    async def read(self) -> Reply: ...

    async def write(self, request: Request, /) -> None: ...

    async def done_writing(self) -> None: ...

    def cancel(self) -> bool: ...

    def done(self) -> bool: ...


class Context(Protocol[Received, Sent]):
    """The server's end of a call: it reads what the client sent and writes what the client gets."""

    async def read(self) -> Received: ...

    async def write(self, message: Sent, /) -> None: ...

    async def abort(
        self, code: grpc.StatusCode, details: str = "", metadata: Blame = (), /
    ) -> NoReturn: ...

    def auth_context(self) -> Mapping[str, Iterable[bytes]]: ...

    def peer(self) -> str: ...


AnyContext = Context[Any, Any]
Behaviour = Callable[[Any, AnyContext], Any]
"""The function that answers a method: a coroutine or an asynchronous generator function."""
CallDetails = grpc.HandlerCallDetails
Continuation = Callable[[CallDetails], Awaitable[Any]]
"""gRPC's search for the handler of a method."""
if TYPE_CHECKING:
    ServerInterceptor = grpc.aio.ServerInterceptor[Any, Any]
else:
    ServerInterceptor = grpc.aio.ServerInterceptor


_generated: Any = rpc
Stub = Callable[[Channel], Any]
"""The calls of one service, as `umpc/proto/v1/umpc.proto` lists them: their types stand there."""
node_stub: Stub = _generated.NodeStub
dealer_stub: Stub = _generated.DealerStub
shuffler_stub: Stub = _generated.ShufflerStub
hub_stub: Stub = _generated.HubStub
people_stub: Stub = _generated.PeopleStub
