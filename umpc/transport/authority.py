"""The consortium's certificate authority, and the identity of one process.

A certificate says CN=<name>, DNS:<name>.<role>.umpc and DNS:any.<role>.umpc; a client dials the first, so
name and role of its server are verified by the handshake whatever the address. Keys are
ECDSA P-256 and made at the site:

    site$      umpc ca request …      key.pem (stays), request.csr (travels)
    authority$ umpc ca sign …         cert.pem and ca.pem (travel back)

`now` is an argument everywhere: nothing here reads the clock unless it is left out.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from umpc.errors import CertificateError, ConfigError

ROLES = ("node", "dealer", "shuffler", "coordinator")
DAYS = 90
CA_DAYS = 3650
CLOCK_SKEW = timedelta(minutes=5)
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
REMAKE = "make it again with `umpc ca request` and `umpc ca sign`"

Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Identity:
    """What a process shows to its peers, already checked by `load_identity`."""

    name: str
    role: str
    ca_pem: bytes = field(repr=False)
    cert_pem: bytes = field(repr=False)
    key_pem: bytes = field(repr=False)
    not_after: datetime


def load_identity(
    folder: Path | str, expected_role: str | None = None, *, now: datetime | None = None
) -> Identity:
    """Reads ca.pem, cert.pem and key.pem of a site.

    Raises: CertificateError with the one reason why this identity would be refused, and what to do about it.
    """
    ca_path, cert_path, key_path = (
        Path(folder) / file for file in ("ca.pem", "cert.pem", "key.pem")
    )
    ca, cert, key = load_certificate(ca_path), load_certificate(cert_path), load_key(key_path)
    name, role = names_of(cert)
    if key.public_key() != cert.public_key():
        raise CertificateError(
            f"{key_path} is not the key of {cert_path}: restore the key of request.csr"
        )
    if not _signed_by(cert, ca):
        raise CertificateError(
            f"{cert_path} was not signed by {ca_path} (authority {fingerprint(ca)}), but by authority "
            f"{issuer_fingerprint(cert)}: get ca.pem and cert.pem from one and the same authority"
        )
    check_validity(ca, str(ca_path), now)
    check_validity(cert, str(cert_path), now)
    if expected_role is not None and role != expected_role:
        raise CertificateError(
            f"{cert_path} is for the role {role} ({name!r}), expected role {expected_role}: "
            f"give the folder of a {expected_role}, or request a certificate for that role"
        )
    content = [path.read_bytes() for path in (ca_path, cert_path, key_path)]
    return Identity(name, role, *content, cert.not_valid_after_utc)


class Authority:
    """Signs the certificates of one consortium. Its key never leaves its folder."""

    def __init__(self, cert: x509.Certificate, key: Key):
        self._key = key
        self.cert = cert
        self.ca_pem = cert.public_bytes(pem.Encoding.PEM)

    def __repr__(self) -> str:
        return f"Authority({fingerprint(self.cert)}, key=<redacted>)"

    @classmethod
    def create(cls, folder: Path | str, *, now: datetime | None = None) -> Authority:
        """Makes ca-key.pem (0600) and ca.pem in `folder`; refuses if it holds an authority already."""
        key_path, ca_path = Path(folder) / "ca-key.pem", Path(folder) / "ca.pem"
        for path in (key_path, ca_path):
            if path.exists():
                raise ConfigError(f"{path} exists already: expected a folder without an authority")
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "umpc authority")])
        sign_only = x509.KeyUsage(
            False, False, False, False, False, True, True, False, False
        )  # keys and CRLs
        cert = (
            _builder(
                subject, key.public_key(), subject, key.public_key(), now, timedelta(days=CA_DAYS)
            )
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
        """Reads what `create` made. Raises: CertificateError if a file is missing or they do not match."""
        key_path, ca_path = Path(folder) / "ca-key.pem", Path(folder) / "ca.pem"
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
        """Certificate (PEM) for the key in a request; nothing but the key is taken from the request.

        Raises: CertificateError if the request is damaged, or is for another name, role or kind of key.
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
        life = min(timedelta(days=days), self.cert.not_valid_after_utc - (now or _clock()))
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        subject, key = request.subject, request.public_key()
        cert = (
            _builder(subject, key, self.cert.subject, self._key.public_key(), now, life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(_alternative_names(name, role), critical=False)
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
        """Key, certificate and ca.pem in one folder: for demonstrations, where authority and site are one."""
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
    """Makes key.pem (0600) and request.csr; a key that exists is kept, so this also renews.

    Returns: the path of request.csr, the only file to send to the authority.
    """
    check_name(name, role)
    key_path, path = Path(folder) / "key.pem", Path(folder) / "request.csr"
    fresh = not key_path.exists()
    key = ec.generate_private_key(ec.SECP256R1()) if fresh else load_key(key_path)
    csr = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .add_extension(_alternative_names(name, role), critical=False)
        .sign(key, hashes.SHA256())
    )
    if fresh:
        _write_secret(key_path, key)
    write_public(path, csr.public_bytes(pem.Encoding.PEM))
    return path


def check_name(name: str, role: str) -> None:
    """Raises: ConfigError unless the name fits one DNS label and the role exists."""
    if role not in ROLES:
        raise ConfigError(f"role {role!r} is unknown: expected one of {', '.join(ROLES)}")
    if not NAME.fullmatch(name) or name == "any":
        raise ConfigError(
            f"{name!r} cannot be the name of a {role}: use 1 to 63 of a-z, 0-9 and '-', "
            "with no '-' at either end, and not the word 'any'"
        )


def host_name(name: str, role: str) -> str:
    """The DNS name that the handshake verifies."""
    return f"{name}.{role}.umpc"


def names_of(document: x509.Certificate | x509.CertificateSigningRequest) -> tuple[str, str]:
    """(name, role) of a certificate or request. Raises: CertificateError unless CN and DNS names agree."""
    common = [str(a.value) for a in document.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    try:
        found = document.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        found = x509.SubjectAlternativeName([])
    for role in ROLES:
        if len(common) == 1 and found == _alternative_names(common[0], role):
            check_name(common[0], role)
            return common[0], role
    raise CertificateError(
        f"a certificate or request of {common} has the names {found.get_values_for_type(x509.DNSName)}, "
        f"expected exactly <name>.<role>.umpc and any.<role>.umpc: {REMAKE}"
    )


def check_validity(cert: x509.Certificate, what: str, now: datetime | None = None) -> None:
    """Raises: CertificateError if `now` is outside the certificate's life."""
    now, since, until = now or _clock(), cert.not_valid_before_utc, cert.not_valid_after_utc
    if now > until:
        raise CertificateError(f"{what} expired, at {until:%F %R} UTC (now {now:%F %R}): {REMAKE}")
    if now < since:
        raise CertificateError(
            f"{what} is not yet valid, only from {since:%F %R} UTC (now {now:%F %R}): set your clock"
        )


def fingerprint(ca: x509.Certificate) -> str:
    """Identifies an authority's key (RFC 7093, method 1), to be compared by telephone."""
    return ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest.hex()


def issuer_fingerprint(cert: x509.Certificate) -> str:
    """The `fingerprint` of the authority that a certificate says it was signed by."""
    found = cert.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    return (found.key_identifier or b"").hex()


def load_certificate(path: Path, how: str = REMAKE) -> x509.Certificate:
    """Raises: CertificateError, also for a certificate without the extensions that `Authority` writes."""
    try:
        cert = x509.load_pem_x509_certificate(_read(path, how))
        fingerprint(cert), issuer_fingerprint(cert)
    except (ValueError, x509.ExtensionNotFound):
        raise CertificateError(
            f"{path} is not a certificate in PEM of an umpc authority: {how}"
        ) from None
    return cert


def load_key(path: Path, how: str = REMAKE) -> Key:
    """Raises: CertificateError unless the file holds a P-256 key."""
    try:
        key = pem.load_pem_private_key(_read(path, how), password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Key) or not isinstance(key.curve, ec.SECP256R1):
        raise CertificateError(f"{path} is not an unencrypted ECDSA P-256 key in PEM: {how}")
    return key


def load_request(csr: bytes) -> x509.CertificateSigningRequest:
    """Raises: CertificateError unless the request is signed by its own P-256 key."""
    try:
        found = x509.load_pem_x509_csr(csr)
        valid, key = found.is_signature_valid, found.public_key()
    except (ValueError, InvalidSignature):
        raise CertificateError(
            "this is not a certificate request in PEM: expected request.csr"
        ) from None
    if not valid:
        raise CertificateError(
            "the request's signature is wrong, it was changed on its way: send it again"
        )
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise CertificateError(
            "the request's key is not ECDSA P-256: make it with `umpc ca request`"
        )
    return found


def write_public(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(content)


def _write_secret(path: Path, key: Key) -> None:
    content = key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def _read(path: Path, how: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CertificateError(f"{path} is missing: {how}") from None
    except OSError as error:
        raise CertificateError(
            f"{path} cannot be read ({error.strerror}): check owner and mode"
        ) from None


def _builder(subject, key, issuer, issuer_key, now, life: timedelta) -> x509.CertificateBuilder:
    now, serial = now or _clock(), x509.random_serial_number()
    return (
        x509.CertificateBuilder(issuer, subject, key, serial, now - CLOCK_SKEW, now + life)
        .add_extension(x509.SubjectKeyIdentifier(_key_digest(key)), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier(_key_digest(issuer_key), None, None), critical=False
        )
    )


def _key_digest(key: ec.EllipticCurvePublicKey) -> bytes:
    digest = hashes.Hash(hashes.SHA256())
    digest.update(key.public_bytes(pem.Encoding.X962, pem.PublicFormat.UncompressedPoint))
    return digest.finalize()[:20]


def _alternative_names(name: str, role: str) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([x509.DNSName(host_name(n, role)) for n in (name, "any")])


def _signed_by(cert: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        cert.verify_directly_issued_by(ca)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _clock() -> datetime:
    return datetime.now(UTC)
