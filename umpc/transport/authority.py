"""The consortium's certificate authority, and the identity of one process.

A certificate says `CN=<name>, DNS:<name>.<role>.umpc, DNS:any.<role>.umpc`. A client dials the
first DNS name, so the handshake verifies the name and role of the server at any address. Keys are
ECDSA P-256 and are made at the site:

    site$      umpc ca request …      key.pem (stays), request.csr (travels)
    authority$ umpc ca sign …         cert.pem and ca.pem (travel back)

Every function takes `now` as an argument and reads the clock only if it is left out.
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
    if not _signed_by(cert, ca):
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
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "umpc authority")])
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
        life = min(timedelta(days=days), self.cert.not_valid_after_utc - (now or _clock()))
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        subject, key = request.subject, _p256_key(request)
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
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .add_extension(_alternative_names(name, role), critical=False)
        .sign(key, hashes.SHA256())
    )
    if fresh:
        _write_secret(key_path, key)
    write_public(path, csr.public_bytes(pem.Encoding.PEM))
    return path


def check_name(name: str, role: str) -> None:
    """Check that the name fits one DNS label and that the role exists. Raises: ConfigError."""
    if role not in ROLES:
        raise ConfigError(f"role {role!r} is unknown: expected one of {', '.join(ROLES)}")
    if not NAME.fullmatch(name) or name == "any":
        raise ConfigError(
            f"{name!r} cannot be the name of a {role}: use 1 to 63 of a-z, 0-9 and '-', "
            "with no '-' at either end, and not the word 'any'"
        )


def host_name(name: str, role: str) -> str:
    """Return the DNS name that the handshake verifies."""
    return f"{name}.{role}.umpc"


def names_of(document: x509.Certificate | x509.CertificateSigningRequest) -> tuple[str, str]:
    """Return (name, role) of a certificate or request.

    Raises: CertificateError unless the common name and the DNS names agree.
    """
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
        f"a certificate or request of {common} has the names "
        f"{found.get_values_for_type(x509.DNSName)}, "
        f"expected exactly <name>.<role>.umpc and any.<role>.umpc: {REMAKE}"
    )


def check_validity(cert: x509.Certificate, what: str, now: datetime | None = None) -> None:
    """Check that `now` is within the certificate's life. Raises: CertificateError."""
    now = now or _clock()
    since, until = cert.not_valid_before_utc, cert.not_valid_after_utc
    if now > until:
        raise CertificateError(f"{what} expired, at {until:%F %R} UTC (now {now:%F %R}): {REMAKE}")
    if now < since:
        raise CertificateError(
            f"{what} is not yet valid, only from {since:%F %R} UTC (now {now:%F %R}): "
            "set your clock"
        )


def fingerprint(ca: x509.Certificate) -> str:
    """Return the digest of an authority's key (RFC 7093, method 1), to compare by telephone."""
    return ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest.hex()


def issuer_fingerprint(cert: x509.Certificate) -> str:
    """Return the `fingerprint` of the authority that, by its own words, signed a certificate."""
    found = cert.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    return (found.key_identifier or b"").hex()


def load_certificate(path: Path, how: str = REMAKE) -> x509.Certificate:
    """Read a certificate in PEM.

    Raises: CertificateError, also for a certificate without the extensions that `Authority` writes.
    """
    try:
        cert = x509.load_pem_x509_certificate(_read(path, how))
        fingerprint(cert), issuer_fingerprint(cert)
    except (ValueError, x509.ExtensionNotFound):
        raise CertificateError(
            f"{path} is not a certificate in PEM of an umpc authority: {how}"
        ) from None
    return cert


def load_key(path: Path, how: str = REMAKE) -> Key:
    """Read a P-256 key in PEM. Raises: CertificateError if the file holds none."""
    key: object
    try:
        key = pem.load_pem_private_key(_read(path, how), password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Key) or not isinstance(key.curve, ec.SECP256R1):
        raise CertificateError(f"{path} is not an unencrypted ECDSA P-256 key in PEM: {how}")
    return key


def load_request(csr: bytes) -> x509.CertificateSigningRequest:
    """Read a request in PEM. Raises: CertificateError unless its own P-256 key signed it."""
    try:
        found = x509.load_pem_x509_csr(csr)
        valid = found.is_signature_valid
        found.public_key()  # raises ValueError for a damaged key
    except (ValueError, InvalidSignature):
        raise CertificateError(
            "this is not a certificate request in PEM: expected request.csr"
        ) from None
    if not valid:
        raise CertificateError(
            "the request's signature is wrong, it was changed on its way: send it again"
        )
    _p256_key(found)
    return found


def _p256_key(request: x509.CertificateSigningRequest) -> ec.EllipticCurvePublicKey:
    key = request.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise CertificateError(
            "the request's key is not ECDSA P-256: make it with `umpc ca request`"
        )
    return key


def write_public(path: Path, content: bytes) -> None:
    """Write a file that holds no secret, and make its folder if needed."""
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


def _builder(
    subject: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePublicKey,
    now: datetime | None,
    life: timedelta,
) -> x509.CertificateBuilder:
    now = now or _clock()
    serial = x509.random_serial_number()
    own = x509.SubjectKeyIdentifier(_key_digest(key))
    authority = x509.AuthorityKeyIdentifier(_key_digest(issuer_key), None, None)
    return (
        x509.CertificateBuilder(issuer, subject, key, serial, now - CLOCK_SKEW, now + life)
        .add_extension(own, critical=False)
        .add_extension(authority, critical=False)
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
