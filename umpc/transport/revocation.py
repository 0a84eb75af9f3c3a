"""The authority's signed list of revoked certificates: an X.509 CRL (RFC 5280, section 5) in PEM.

The file is crl.pem. It travels like ca.pem, into the folder of every identity. It is no secret.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from types import MappingProxyType

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as pem

from umpc.errors import CertificateError
from umpc.transport.certificates import (
    Key,
    Revoked,
    clock,
    fingerprint,
    key_digest,
    parse_certificate,
    refusing,
)

LIST_DAYS = 30
"""Days until the next list is due. An older list still counts, but everybody warns."""
FETCH = "get crl.pem from the authority, which makes it with `umpc ca crl`"
KNOWN_EXTENSIONS = {x509.CRLNumber.oid, x509.AuthorityKeyIdentifier.oid}


def parse_revoked(content: bytes, ca_pem: bytes, what: str) -> Revoked:
    """Return what a list says.

    Raises: CertificateError unless our authority signed a complete list.
    """
    ca = parse_certificate(ca_pem, "ca.pem")
    with refusing(f"{what} is not a list of revoked certificates in PEM: {FETCH}"):
        found = x509.load_pem_x509_crl(content)
        key = ca.public_key()
        signed = found.issuer == ca.subject and found.is_signature_valid(key)  # type: ignore[arg-type]
    if not signed:
        raise CertificateError(
            f"{what} was not signed by our authority ({fingerprint(ca)}), or was changed: {FETCH}"
        )
    with refusing(f"{what} is a list of a kind that umpc does not make: {FETCH}"):
        number = found.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
        if {extension.oid for extension in found.extensions} - KNOWN_EXTENSIONS:
            raise ValueError("a part of a list, for example, is not the list")
        made, due = found.last_update_utc, found.next_update_utc
        if due is None:
            raise ValueError("a list must say when the next one is due")
        serials = {entry.serial_number: entry.revocation_date_utc for entry in found}
    return Revoked(number, made, due, MappingProxyType(serials))


def sign_revoked(revoked: Revoked, ca: x509.Certificate, key: Key) -> bytes:
    """Return the signed list in PEM."""
    own = x509.AuthorityKeyIdentifier(key_digest(key.public_key()), None, None)
    builder = (
        x509.CertificateRevocationListBuilder(ca.subject, revoked.made, revoked.next_update)
        .add_extension(x509.CRLNumber(revoked.number), critical=False)
        .add_extension(own, critical=False)
    )
    for serial, since in sorted(revoked.serials.items()):
        entry = x509.RevokedCertificateBuilder(serial, since).build()
        builder = builder.add_revoked_certificate(entry)
    return builder.sign(key, hashes.SHA256()).public_bytes(pem.Encoding.PEM)


def next_list(
    former: Revoked | None,
    serials: set[int],
    *,
    days: int = LIST_DAYS,
    now: datetime | None = None,
) -> Revoked:
    """Return the list that follows: the former certificates, which stay on it, and new ones.

    One that is named again stays revoked since its first list.
    """
    now = (now or clock()).replace(microsecond=0)
    before = former.serials if former else {}
    number = former.number + 1 if former else 1
    all_of_them = dict.fromkeys(serials, now) | dict(before)
    return Revoked(number, now, now + timedelta(days=days), MappingProxyType(all_of_them))


def check_follows(later: Revoked, former: Revoked | None, what: str) -> None:
    """Check that a list may replace the former one. Raises: CertificateError.

    An older list would bring back certificates that were revoked since. So would a list of an
    authority that lost its own file.
    """
    if former is None:
        return
    if (later.number, later.made) < (former.number, former.made):
        raise CertificateError(
            f"{what} is an older list (number {later.number}, of {later.made:%F %R} UTC) than the "
            f"one in use (number {former.number}, of {former.made:%F %R} UTC): {FETCH}"
        )
    if missing := former.serials.keys() - later.serials.keys():
        raise CertificateError(
            f"{what} lacks {len(missing)} certificates that the list in use names as revoked: "
            "give a former crl.pem back to the authority, and " + FETCH
        )
