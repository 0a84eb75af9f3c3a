"""The keys with which protocol code signs, and its checks of the certificates of others.

    credentials_of(identity)      a node signs, and checks what all nodes signed
    verifier_of(identity)            coordinator and dealer only check
    verifier_of_members(identity)         shufflers: also certificates that have ended since

Each call reads the clock, and the list of revoked certificates if there is one. Protocol code does
neither.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from cryptography import x509

from umpc.crypto.signing import Credentials, Holder, Verify, point_of, signer
from umpc.errors import CertificateError
from umpc.transport.certificates import (
    clock,
    parse_certificate,
    public_key_of,
    refusing,
    verify_certificate,
)
from umpc.transport.identity import Identity


def credentials_of(identity: Identity) -> Credentials:
    """The credentials of a process, by the certificate and key that its folder holds now.

    Raises: CertificateError where they are damaged.
    """
    latest = identity.latest()
    der, key = latest.pair
    return Credentials(latest.name, der, signer(key), _Verifier(latest))


def verifier_of(identity: Identity) -> Verify:
    """The check of a certificate: it is of the identity's authority, and counts now.

    The list of revoked certificates is the one that the identity's folder holds at each call.

    The error for another certificate names its holder as the culprit if it did count before.
    """
    return _Verifier(identity)


class _Verifier:
    """Args: now: the time that counts, with the identity's own list; None: always the present."""

    def __init__(self, identity: Identity, now: datetime | None = None):
        self._identity = identity
        self._now = now

    def __call__(self, der: bytes) -> Holder:
        identity = self._identity
        try:
            revoked = (identity if self._now else identity.latest()).revoked
            now = self._now or clock()
            names = verify_certificate(der, identity.ca_pem, now=now, revoked=revoked)
        except CertificateError as error:
            error.culprit = error.culprit or _former_holder(der, identity.ca_pem)
            raise
        return Holder(*names, _point(der))

    def as_of_now(self) -> Verify:
        """Return this check with the time and the list of now: it reads neither again."""
        return _Verifier(self._identity.latest(), clock())


def verifier_of_members(identity: Identity) -> Verify:
    """The check in members of an earlier run: of the identity's authority, whatever the date.

    A release is sent to shufflers again, maybe after a member's certificate has ended. Each node
    that calls then shows the certificate that it has now.
    """
    return lambda der: _holder(der, identity.ca_pem)


def _holder(der: bytes, ca_pem: bytes) -> Holder:
    """The holder of a certificate of the authority, as of the day of its issue.

    Raises: CertificateError.
    """
    with refusing("the bytes shown as a certificate are none in DER"):
        issued = x509.load_der_x509_certificate(der).not_valid_before_utc
    authority = parse_certificate(ca_pem, "the authority's ca.pem")
    name, role = verify_certificate(der, ca_pem, now=max(issued, authority.not_valid_before_utc))
    return Holder(name, role, _point(der))


@lru_cache(maxsize=1 << 13)  # the nodes of the largest study, and others
def _point(der: bytes) -> bytes:
    """The key of a certificate that was checked."""
    return point_of(public_key_of(der))


def _former_holder(der: bytes, ca_pem: bytes) -> str | None:
    try:
        return _holder(der, ca_pem).name
    except CertificateError:
        return None
