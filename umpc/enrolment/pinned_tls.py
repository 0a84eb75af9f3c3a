"""TLS 1.3 between a joining site and the listening authority, pinned by the invitation.

The authority shows a certificate that it signed itself, for a name that no process can have. The
site trusts the one authority of its invitation and no other, so neither the public authorities nor
a member of the consortium can stand between the two. The site shows no certificate: it has none.

The key of this TLS is made anew at each start and is on disk for the moment of its loading only,
because the standard library reads it from a file. The authority's own key signs once, at the start.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec

from umpc.enrolment.texts import pem_of
from umpc.transport.authority import Authority
from umpc.transport.certificates import clock

HOST = "authority.enrolment.umpc"
"""The name in the certificate. A process has `<name>.<role>.umpc`, and `enrolment` is no role."""
LISTENING_DAYS = 30


@dataclass(frozen=True)
class ListeningTls:
    """The settings of the authority's side, and the time until which its certificate is valid."""

    context: ssl.SSLContext
    until: datetime


def listening_tls(folder: Path, *, now: datetime | None = None) -> ListeningTls:
    """Make the authority's side, with a new key. The authority's key is not kept.

    Raises: CertificateError if the folder holds no usable authority.
    """
    at = now or clock()
    key = ec.generate_private_key(ec.SECP256R1())
    cert = Authority.open(folder).sign_listener(key.public_key(), HOST, days=LISTENING_DAYS, now=at)
    context = _tls_1_3(ssl.PROTOCOL_TLS_SERVER)
    secret = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".listening-") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(secret + cert)
        file.flush()
        context.load_cert_chain(file.name)
    return ListeningTls(context, at + timedelta(days=LISTENING_DAYS))


def pinned_tls(authority: bytes) -> ssl.SSLContext:
    """Return the site's side. Args: authority: its certificate in DER, from the invitation."""
    context = _tls_1_3(ssl.PROTOCOL_TLS_CLIENT)  # checks the chain and the host name
    context.load_verify_locations(cadata=pem_of(authority, "CERTIFICATE").decode())
    return context


def _tls_1_3(kind: int) -> ssl.SSLContext:
    context = ssl.SSLContext(kind)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context
