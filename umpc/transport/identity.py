"""The identity of one process: its certificate, its key, and the authority that it trusts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from umpc.errors import CertificateError
from umpc.transport.certificates import (
    check_validity,
    fingerprint,
    is_signed_by,
    issuer_fingerprint,
    load_certificate,
    load_key,
    names_of,
)


@dataclass(frozen=True)
class Identity:
    """The certificate and key of a process, checked by `load_identity`."""

    name: str
    role: str
    ca_pem: bytes = field(repr=False)
    cert_pem: bytes = field(repr=False)
    key_pem: bytes = field(repr=False)
    not_after: datetime


def load_identity(
    folder: Path | str, expected_role: str | None = None, *, now: datetime | None = None
) -> Identity:
    """Read ca.pem, cert.pem and key.pem of a site.

    Raises: CertificateError, with the reason why peers would refuse this identity and what to do.
    """
    ca_path = Path(folder) / "ca.pem"
    cert_path = Path(folder) / "cert.pem"
    key_path = Path(folder) / "key.pem"
    ca = load_certificate(ca_path)
    cert = load_certificate(cert_path)
    key = load_key(key_path)
    name, role = names_of(cert)
    if key.public_key() != cert.public_key():
        raise CertificateError(
            f"{key_path} is not the key of {cert_path}: restore the key of request.csr"
        )
    if not is_signed_by(cert, ca):
        raise CertificateError(
            f"{cert_path} was not signed by {ca_path} (authority {fingerprint(ca)}), but by "
            f"authority {issuer_fingerprint(cert)}: get ca.pem and cert.pem from one and the same "
            "authority"
        )
    check_validity(ca, str(ca_path), now)
    check_validity(cert, str(cert_path), now)
    if expected_role is not None and role != expected_role:
        raise CertificateError(
            f"{cert_path} is for the role {role} ({name!r}), expected role {expected_role}: "
            f"give the folder of a {expected_role}, or request a certificate for that role"
        )
    return Identity(
        name=name,
        role=role,
        ca_pem=ca_path.read_bytes(),
        cert_pem=cert_path.read_bytes(),
        key_pem=key_path.read_bytes(),
        not_after=cert.not_valid_after_utc,
    )
