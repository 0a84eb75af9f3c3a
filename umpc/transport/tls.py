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
from umpc.transport.certificates import check_validity, names_of  # noqa: E402
from umpc.transport.identity import Identity  # noqa: E402

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
    """Return credentials that show our certificate and demand one of the same authority."""
    _refuse_if_too_late()
    pair = (identity.key_pem, identity.cert_pem)
    return grpc.ssl_server_credentials(
        [pair], root_certificates=identity.ca_pem, require_client_auth=True
    )


def channel_credentials(identity: Identity) -> grpc.ChannelCredentials:
    """Return credentials that show our certificate and trust servers of the same authority."""
    _refuse_if_too_late()
    return grpc.ssl_channel_credentials(identity.ca_pem, identity.key_pem, identity.cert_pem)


def peer_of(context: CallContext, *, now: datetime | None = None) -> Peer:
    """Return the name and role of the client of a call.

    The handshake verified the certificate when the connection began, or when the TLS session began
    that it resumes. The dates are therefore checked again here: a certificate ends at its date,
    and not at the end of the connection.

    Raises: CertificateError if the client showed no certificate, one of another form than ours, or
    an expired one.
    """
    shown = list(context.auth_context().get("x509_pem_cert", ()))
    if len(shown) != 1:
        raise CertificateError(
            "a client without certificate called: expected mutual TLS; refuse the call"
        )
    cert, peer = _read(bytes(shown[0]))
    check_validity(cert, f"the certificate of {peer}", now)
    return peer


@lru_cache(maxsize=1024)
def _read(pem: bytes) -> tuple[x509.Certificate, Peer]:
    cert = x509.load_pem_x509_certificate(pem)
    return cert, Peer(*names_of(cert))


def _refuse_if_too_late() -> None:
    if _too_late:
        raise LocalProtocolError(
            "grpc was imported before umpc.transport.tls, so TLS 1.2 cannot be switched off: "
            "import it from umpc.transport.tls, or start the process with "
            f"{_VARIABLE}={TLS_1_2_SUITES}"
        )
