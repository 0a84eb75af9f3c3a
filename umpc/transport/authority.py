"""The consortium's certificate authority, and the requests of its sites.

Keys are made at the site and stay there:

    site$      umpc ca request …      key.pem (stays), request.csr (travels)
    authority$ umpc ca sign …         cert.pem and ca.pem (travel back)

`certificates.py` says what a certificate holds, and `identity.py` how a process uses its own.
Every function takes `now` as an argument and reads the clock only if it is left out.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from umpc.errors import CertificateError, ConfigError
from umpc.transport.certificates import (
    Key,
    PublicKey,
    alternative_names,
    check_name,
    check_validity,
    clock,
    fingerprint,
    issuer_fingerprint,
    key_digest,
    load_certificate,
    load_key,
    load_request,
    names_of,
    p256_key_of,
    verify_certificate,
)
from umpc.transport.identity import Identity, load_identity

__all__ = [
    "Authority",
    "Identity",
    "fingerprint",
    "issuer_fingerprint",
    "load_certificate",
    "load_identity",
    "load_key",
    "load_request",
    "names_of",
    "request",
    "verify_certificate",
    "write_public",
]

DAYS = 90
CA_DAYS = 3650
CLOCK_SKEW = timedelta(minutes=5)


class Authority:
    """The authority that signs one consortium's certificates. Its key never leaves its folder."""

    def __init__(self, cert: x509.Certificate, key: Key):
        self._key = key
        self.cert = cert
        self.ca_pem = cert.public_bytes(pem.Encoding.PEM)

    def __repr__(self) -> str:
        return f"Authority({fingerprint(self.cert)}, key=<redacted>)"

    @classmethod
    def create(cls, folder: Path | str, *, now: datetime | None = None) -> Authority:
        """Make ca-key.pem (mode 0600) and ca.pem in `folder`.

        Raises: ConfigError if the folder holds an authority already.
        """
        key_path = Path(folder) / "ca-key.pem"
        ca_path = Path(folder) / "ca.pem"
        for path in (key_path, ca_path):
            if path.exists():
                raise ConfigError(f"{path} exists already: expected a folder without an authority")
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject("umpc authority")
        public, life = key.public_key(), timedelta(days=CA_DAYS)
        # It may sign certificates and lists of revoked ones, and nothing else.
        sign_only = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        cert = (
            _builder(subject, public, subject, public, now, life)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(sign_only, critical=True)
            .sign(key, hashes.SHA256())
        )
        authority = cls(cert, key)
        _write_secret(key_path, key)
        write_public(ca_path, authority.ca_pem)
        return authority

    @classmethod
    def open(cls, folder: Path | str) -> Authority:
        """Read the files that `create` made.

        Raises: CertificateError if a file is missing or the two do not match.
        """
        key_path = Path(folder) / "ca-key.pem"
        ca_path = Path(folder) / "ca.pem"
        how = "make an authority with `umpc ca init`, or restore its folder"
        cert, key = load_certificate(ca_path, how), load_key(key_path, how)
        if key.public_key() != cert.public_key():
            raise CertificateError(
                f"{key_path} is not the key of {ca_path}: restore both from one backup"
            )
        return cls(cert, key)

    def sign(
        self, csr: bytes, *, name: str, role: str, days: int = DAYS, now: datetime | None = None
    ) -> bytes:
        """Return the certificate (PEM) for the key in a request.

        Only the key is taken from the request.

        Raises: CertificateError if the request is damaged, or if it is for another name, role or
        kind of key.
        """
        check_name(name, role)
        if days < 1:
            raise ConfigError(f"a certificate for {days} days is of no use: expected at least 1")
        check_validity(self.cert, "the authority's own ca.pem", now)
        request = load_request(csr)
        asked = names_of(request)
        if asked != (name, role):
            raise CertificateError(
                f"the request asks for {asked[1]} {asked[0]!r}, expected {role} {name!r}: "
                "let the site make a new request, or sign it as what it asks for"
            )
        life = min(
            timedelta(days=min(days, CA_DAYS)), self.cert.not_valid_after_utc - (now or clock())
        )
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        subject, key = _subject(name), p256_key_of(request)
        cert = (
            _builder(subject, key, self.cert.subject, self._key.public_key(), now, life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(alternative_names(name, role), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return cert.public_bytes(pem.Encoding.PEM)

    def issue(
        self,
        name: str,
        role: str,
        folder: Path | str,
        days: int = DAYS,
        *,
        now: datetime | None = None,
    ) -> None:
        """Write key, certificate and ca.pem into one folder.

        This is for demonstrations, where one person is both the authority and the site.
        """
        cert_path = Path(folder) / "cert.pem"
        check_name(name, role)
        if cert_path.exists() and (held := names_of(load_certificate(cert_path))) != (name, role):
            raise ConfigError(
                f"{cert_path} is of {held[1]} {held[0]!r}, not {role} {name!r}: use another folder"
            )
        csr = request(name, role, folder).read_bytes()
        write_public(cert_path, self.sign(csr, name=name, role=role, days=days, now=now))
        write_public(Path(folder) / "ca.pem", self.ca_pem)


def request(name: str, role: str, folder: Path | str) -> Path:
    """Make key.pem (mode 0600) and request.csr. An existing key is kept, so this also renews.

    Returns: the path of request.csr, the only file to send to the authority.
    """
    check_name(name, role)
    key_path = Path(folder) / "key.pem"
    path = Path(folder) / "request.csr"
    fresh = not key_path.exists()
    key = ec.generate_private_key(ec.SECP256R1()) if fresh else load_key(key_path)
    csr = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(_subject(name))
        .add_extension(alternative_names(name, role), critical=False)
        .sign(key, hashes.SHA256())
    )
    if fresh:
        _write_secret(key_path, key)
    write_public(path, csr.public_bytes(pem.Encoding.PEM))
    return path


def write_public(path: Path, content: bytes) -> None:
    """Write a file that holds no secret, and make its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(content)


def _write_secret(path: Path, key: Key) -> None:
    content = key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name,
    key: PublicKey,
    issuer: x509.Name,
    issuer_key: PublicKey,
    now: datetime | None,
    life: timedelta,
) -> x509.CertificateBuilder:
    now = now or clock()
    serial = x509.random_serial_number()
    own = x509.SubjectKeyIdentifier(key_digest(key))
    authority = x509.AuthorityKeyIdentifier(key_digest(issuer_key), None, None)
    return (
        x509.CertificateBuilder(issuer, subject, key, serial, now - CLOCK_SKEW, now + life)
        .add_extension(own, critical=False)
        .add_extension(authority, critical=False)
    )
