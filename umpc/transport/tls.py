"""TLS 1.3 with certificates on both sides, for gRPC, and the identity of a caller.

grpcio (1.85) has no option for the lowest TLS version (grpc/grpc issue 37305; pull requests 43045
and 43080 are open). It has GRPC_SSL_CIPHER_SUITES, which BoringSSL applies to TLS 1.2 and never to
1.3. The only suite that is left to TLS 1.2 here needs a pre-shared key, which gRPC never sets. No
TLS 1.2 handshake can therefore succeed, in either direction, with any kind of certificate.

gRPC reads the variable once, on its first import. This explains the order of this file, and every
process takes `grpc` from here. If other code imported grpc first, `server_credentials` and
`channel_credentials` refuse to work. tests/transport/test_tls.py proves all of this with clients
and servers of the standard library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Protocol

TLS_1_2_SUITES = "ECDHE-PSK-AES128-CBC-SHA"
_VARIABLE = "GRPC_SSL_CIPHER_SUITES"
_too_late = "grpc" in sys.modules and os.environ.get(_VARIABLE) != TLS_1_2_SUITES
os.environ[_VARIABLE] = TLS_1_2_SUITES
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # `diagnose` explains failures in one line

import grpc  # noqa: E402  (after the line above, see the docstring)
import grpc.aio  # noqa: E402
from cryptography import x509  # noqa: E402

from umpc.errors import CertificateError, LocalProtocolError  # noqa: E402
from umpc.transport.certificates import (  # noqa: E402
    check_validity,
    named_certificate,
    names_of,
    refusing,
)
from umpc.transport.identity import Identity  # noqa: E402
from umpc.transport.revoked import Revoked  # noqa: E402

__all__ = ["Peer", "channel_credentials", "grpc", "peer_of", "server_credentials"]


@dataclass(frozen=True)
class Peer:
    """The other side of a call, as its verified certificate names it."""

    name: str
    role: str

    def __str__(self) -> str:
        return f"{self.role} {self.name!r}"


class CallContext(Protocol):
    """The part of grpc.aio.ServicerContext that `peer_of` uses."""

    def auth_context(self) -> Mapping[str, Iterable[bytes]]: ...


def server_credentials(identity: Identity) -> grpc.ServerCredentials:
    """Return credentials that show our certificate and demand one of the same authority.

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
        require_client_authentication=True,
    )


def _configuration(identity: Identity) -> grpc.ServerCertificateConfiguration:
    pair = (identity.key_pem, identity.cert_pem)
    return grpc.ssl_server_certificate_configuration([pair], root_certificates=identity.ca_pem)


def channel_credentials(identity: Identity, server_pem: bytes) -> grpc.ChannelCredentials:
    """Return credentials that show our certificate and trust exactly one server's certificate.

    gRPC for Python tells a client nothing about the server's certificate, so a client cannot look
    for it in the list of revoked ones. It therefore looks at the certificate first, over a
    connection of its own (`diagnose.shown_certificate`), and then trusts that certificate alone.
    Without its key nobody completes a handshake on the channel, now or after a reconnect.

    Args: server_pem: the certificate, which `verify_certificate` accepted.
    """
    _refuse_if_too_late()
    return grpc.ssl_channel_credentials(server_pem, identity.key_pem, identity.cert_pem)


def peer_of(
    context: CallContext, *, now: datetime | None = None, revoked: Revoked | None = None
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


def _shown_in(context: CallContext) -> tuple[x509.Certificate, Peer]:
    """Return the certificate of a caller. One that came through a hub was parsed already."""
    der = getattr(context, "certificate", None)
    if isinstance(der, bytes):
        cert, name, role = named_certificate(der)
        return cert, Peer(name, role)
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
    return cert, Peer(*names_of(cert))


def _refuse_if_too_late() -> None:
    if _too_late:
        raise LocalProtocolError(
            "grpc was imported before umpc.transport.tls, so TLS 1.2 cannot be switched off: "
            "import it from umpc.transport.tls, or start the process with "
            f"{_VARIABLE}={TLS_1_2_SUITES}"
        )
