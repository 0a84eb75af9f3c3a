"""Certificates, keys and requests: how they are read, and how each is checked.

A certificate says `CN=<name>, DNS:<name>.<role>.umpc, DNS:any.<role>.umpc`. A client dials the
first DNS name, so the handshake verifies the name and role of the server at any address. Keys are
ECDSA P-256.

Every input may come from anybody. Whatever its bytes are, a function of this file returns or
raises a CertificateError of one line. Every function takes `now` as an argument and reads the
clock only if it is left out.

*Revoked.* The list of revoked certificates as a value: their serial numbers, and its dates.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from umpc.errors import CertificateError, ConfigError, StudyError
from umpc.transport.files import check_private, read_file

ROLES = ("node", "dealer", "shuffler", "coordinator", "hub")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
REMAKE = "make it again with `umpc enrol join` and `umpc enrol finish`"
NEW_AUTHORITY = "the members must make a new authority together, and all certificates again"
MAX_DER = 8192
"""Longest certificate that a peer may show."""
MALFORMED = (
    ValueError,
    TypeError,
    OverflowError,
    InvalidSignature,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""The exceptions with which `cryptography` answers malformed bytes. They have no common base."""

Key = ec.EllipticCurvePrivateKey
PublicKey = ec.EllipticCurvePublicKey
Document = x509.Certificate | x509.CertificateSigningRequest


def verify_certificate(
    der: bytes, ca_pem: bytes, *, now: datetime, revoked: Revoked | None = None
) -> tuple[str, str]:
    """Verify that our authority issued a certificate, and that the certificate counts now.

    Args:
        der: the certificate, as it came from anybody.
        ca_pem: the authority's certificate, from the own identity.
        revoked: the authority's list of revoked certificates, if there is one.

    Returns: (name, role). `public_key_of` returns the key.
    Raises: CertificateError.
    """
    name, role, cert = _issued(der, ca_pem)
    check_validity(_authority(ca_pem), "the authority's ca.pem", now, NEW_AUTHORITY)
    check_validity(cert, f"the certificate of {role} {name!r}", now)
    if revoked is not None:
        revoked.check(cert.serial_number, name, role)
    return name, role


@lru_cache(maxsize=1 << 13)
def public_key_of(der: bytes) -> PublicKey:
    """Return the P-256 key of a certificate that `verify_certificate` accepted.

    Raises: CertificateError.
    """
    return p256_key_of(named_certificate(der)[0])


@lru_cache(maxsize=1 << 13)  # the nodes of the largest study, and others
def _issued(der: bytes, ca_pem: bytes) -> tuple[str, str, x509.Certificate]:
    """Check all that does not change with time: form, names, key and the authority's signature."""
    cert, name, role = named_certificate(der)
    public_key_of(der)
    ca = _authority(ca_pem)
    if not is_signed_by(cert, ca):
        raise CertificateError(
            f"the certificate of {role} {name!r} was not signed by our authority "
            f"({fingerprint(ca)}): compare the authorities of both sides with `umpc ca show`"
        )
    with refusing("the certificate is malformed: " + REMAKE):
        basic = cert.extensions.get_extension_for_class(x509.BasicConstraints).value
        if basic.ca:
            raise ValueError("a site's certificate must not sign others")
    return name, role, cert


@lru_cache(maxsize=1 << 13)
def named_certificate(der: bytes) -> tuple[x509.Certificate, str, str]:
    """Parse a certificate, and read its (name, role). They say nothing until it was verified.

    Raises: CertificateError.
    """
    with refusing(f"the bytes shown as a certificate are none in DER: {REMAKE}"):
        if len(der) > MAX_DER:
            raise ValueError("too long")
        cert = x509.load_der_x509_certificate(der)
    return cert, *names_of(cert)


@lru_cache(maxsize=16)
def _authority(ca_pem: bytes) -> x509.Certificate:
    return parse_certificate(ca_pem, "the authority's ca.pem")


# ---- names, dates and keys -----------------------------------------------------------------


def check_name(name: str, role: str) -> None:
    """Check that the name fits one DNS label and that the role exists. Raises: ConfigError."""
    if role not in ROLES:
        raise ConfigError(f"role {role!r} is unknown: expected one of {', '.join(ROLES)}")
    if not is_name(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a {role}: use 1 to 63 of a-z, 0-9 and '-', "
            "with no '-' at either end, and not the word 'any'"
        )


def is_name(name: str) -> bool:
    """Whether a text can be the name of a process."""
    return NAME.fullmatch(name) is not None and name != "any"


def host_name(name: str, role: str) -> str:
    """Return the DNS name that the handshake verifies."""
    return f"{name}.{role}.umpc"


def alternative_names(
    name: str, role: str, signed_in: SignedIn | None = None
) -> x509.SubjectAlternativeName:
    """Return the DNS names of a certificate or request, and maybe who has signed in."""
    names: list[x509.GeneralName] = [x509.DNSName(host_name(n, role)) for n in (name, "any")]
    if signed_in is not None:
        names.append(x509.UniformResourceIdentifier(signed_in.uri()))
    return x509.SubjectAlternativeName(names)


def names_of(document: Document) -> tuple[str, str]:
    """Return (name, role) of a certificate or request.

    Raises: CertificateError unless the common name and the DNS names agree.
    """
    with refusing(f"the names of a certificate or request are malformed: {REMAKE}"):
        subject = document.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        found = list(alternative_names_in(document))
        shown = [each.value for each in found if isinstance(each, x509.DNSName)]
    common = [str(attribute.value) for attribute in subject]
    rest = 2
    if isinstance(document, x509.Certificate) and signed_in_of(document) is not None:
        rest = 3
    if len(common) == 1 and len(found) == rest and is_name(common[0]):
        for role in ROLES if rest == 2 else ("coordinator",):
            if shown == [host_name(common[0], role), host_name("any", role)]:
                return common[0], role
    raise CertificateError(
        f"a certificate or request of {_brief(common)} has the names {_brief(shown)}, "
        f"expected exactly <name>.<role>.umpc and any.<role>.umpc: {REMAKE}"
    )


def alternative_names_in(document: Document) -> x509.SubjectAlternativeName:
    try:
        return document.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return x509.SubjectAlternativeName([])


def _brief(names: list[str]) -> str:
    """Names for a message: one printable line of bounded length, whatever somebody wrote there."""
    text = ascii(names)
    return text if len(text) <= 200 else f"{text[:200]}…"


def renewal(cert: x509.Certificate) -> str:
    """Return what renews a process's certificate, as docs/site.md teaches it."""
    if signed_in_of(cert) is not None:
        return "sign in again with `umpc enrol sign-in`"
    name, role = names_of(cert)
    of_role = "" if role == "node" else f" --role {role}"
    return f"renew it with `umpc enrol join --name {name}{of_role}` and `umpc enrol finish`"


def check_validity(
    cert: x509.Certificate, what: str, now: datetime | None = None, how: str = ""
) -> None:
    """Check that `now` is within the certificate's life.

    Args: how: to get another one; by default as `renewal`. Raises: CertificateError.
    """
    now = now or clock()
    with refusing(f"{what} has malformed dates: {how or REMAKE}"):
        since, until = cert.not_valid_before_utc, cert.not_valid_after_utc
    if now > until:
        raise CertificateError(
            f"{what} expired, at {until:%F %R} UTC (now {now:%F %R}): {how or renewal(cert)}"
        )
    if now < since:
        raise CertificateError(
            f"{what} is not yet valid, only from {since:%F %R} UTC (now {now:%F %R}): "
            "compare the clocks of both machines"
        )


def p256_key_of(document: Document) -> PublicKey:
    """Return the key of a certificate or request. Raises: CertificateError unless P-256."""
    what = "certificate" if isinstance(document, x509.Certificate) else "request"
    key: object = None
    with contextlib.suppress(*MALFORMED):
        key = document.public_key()
    if not isinstance(key, PublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise CertificateError(
            f"the {what}'s key is not ECDSA P-256: make it with `umpc ca request`"
        )
    return key


def key_digest(key: PublicKey) -> bytes:
    """Return the 20-byte digest of a key (RFC 7093, method 1)."""
    point = key.public_bytes(pem.Encoding.X962, pem.PublicFormat.UncompressedPoint)
    return hashlib.sha256(point).digest()[:20]


def fingerprint(ca: x509.Certificate) -> str:
    """Return the digest of an authority's key (RFC 7093, method 1), to compare by telephone.

    It is of the key itself. Anybody can write the same digits into a certificate's extension.

    Raises: CertificateError unless the key is of P-256.
    """
    return key_digest(p256_key_of(ca)).hex()


def issuer_fingerprint(cert: x509.Certificate) -> str:
    """Return the `fingerprint` of the authority that, by its own words, signed a certificate.

    Nobody has checked these words: they help to find a mistake, and prove nothing.
    """
    found = cert.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    return (found.key_identifier or b"").hex()


def is_signed_by(cert: x509.Certificate, ca: x509.Certificate) -> bool:
    """Whether the key of this authority signed the certificate.

    The names do not count: who has the key could write any. So nothing of them is read, and the
    authority's key is parsed once, as nodes ask this of each other's certificates.
    """
    try:
        how = cert.signature_algorithm_parameters
        if not isinstance(how, ec.ECDSA):
            return False
        _key_of(ca).verify(cert.signature, cert.tbs_certificate_bytes, how)
    except MALFORMED:
        return False
    return True


@lru_cache(maxsize=16)
def _key_of(ca: x509.Certificate) -> PublicKey:
    """The key of an authority. Raises: ValueError, as one that `MALFORMED` has."""
    key = ca.public_key()
    if not isinstance(key, PublicKey):
        raise ValueError("an umpc authority signs keys of elliptic curves")
    return key


# ---- bytes ----------------------------------------------------------------------------------


def load_certificate(path: Path, how: str = REMAKE) -> x509.Certificate:
    """Read a certificate in PEM.

    Raises: CertificateError, also for a certificate without the extensions that `Authority` writes.
    """
    return parse_certificate(read_file(path, how), str(path), how)


def parse_certificate(content: bytes, what: str, how: str = REMAKE) -> x509.Certificate:
    """Return the certificate that is in PEM. Raises: CertificateError."""
    with refusing(f"{what} is not a certificate in PEM of an umpc authority: {how}"):
        cert = x509.load_pem_x509_certificate(content)
        fingerprint(cert), issuer_fingerprint(cert)
        _ = cert.subject, cert.issuer, cert.not_valid_before_utc, cert.not_valid_after_utc
        if not isinstance(cert.public_key(), PublicKey):
            raise ValueError("an umpc authority signs keys of elliptic curves")
    return cert


def load_key(path: Path, how: str = REMAKE) -> Key:
    """Read a P-256 key in PEM.

    Raises: CertificateError if the file holds none, or if others can read it.
    """
    check_private(path)
    return parse_key(read_file(path, how), str(path), how)


def parse_key(content: bytes, what: str, how: str = REMAKE) -> Key:
    """Return the P-256 key that is in PEM. Raises: CertificateError."""
    key: object = None
    if is_encrypted(content):
        raise CertificateError(
            f"{what} is encrypted, and no person is there to type its passphrase when a process "
            "starts: decrypt it with `openssl pkey -in OLD -out key.pem`, chmod 600, and keep it "
            "on an encrypted disk"
        )
    with contextlib.suppress(*MALFORMED):
        key = pem.load_pem_private_key(content, password=None)
    if isinstance(key, rsa.RSAPrivateKey):
        raise CertificateError(
            f"{what} is not an unencrypted ECDSA P-256 key in PEM, but an RSA key: move it away, "
            "make a new key with `umpc enrol join`, and get a certificate for it"
        )
    if not isinstance(key, Key) or not isinstance(key.curve, ec.SECP256R1):
        raise CertificateError(f"{what} is not an unencrypted ECDSA P-256 key in PEM: {how}")
    return key


def is_encrypted(content: bytes) -> bool:
    """Whether a key in PEM is encrypted, in the form of PKCS 8 or of OpenSSL."""
    return b"BEGIN ENCRYPTED PRIVATE KEY" in content or b"Proc-Type: 4,ENCRYPTED" in content


def load_request(csr: bytes) -> x509.CertificateSigningRequest:
    """Read a request in PEM. Raises: CertificateError unless its own P-256 key signed it."""
    with refusing("this is not a certificate request in PEM: expected request.csr"):
        found = x509.load_pem_x509_csr(csr)
        _ = found.subject, found.extensions
    p256_key_of(found)
    with refusing("the request's signature is malformed: send it again"):
        valid = found.is_signature_valid
    if not valid:
        raise CertificateError(
            "the request's signature is wrong, it was changed on its way: send it again"
        )
    return found


@contextlib.contextmanager
def refusing(message: str) -> Iterator[None]:
    """Turn every exception for malformed bytes into a CertificateError with this message."""
    try:
        yield
    except MALFORMED:
        raise CertificateError(message) from None


def clock() -> datetime:
    """Return the time now, in UTC."""
    return datetime.now(UTC)


# --- signed in ------------------------------------------------------------------------------------

SIGNED_IN = "umpc:signed-in?"


@dataclass(frozen=True)
class SignedIn:
    """The person behind a coordinator's certificate for hours (docs/sign_in.md).

    It is a URI among the names of the certificate: a umpc that does not know it refuses the
    certificate, and does not take it for one that may ask everything.

    Args:
        person: the claim `sub` of the institution's token.
        institution: its name in the authority's file.
        studies: the hashes of the studies that the person may ask, in hexadecimal. A hash covers
            statistic, columns, ε, name and nodes; a name alone would be the person's own word.
    """

    person: str
    institution: str
    studies: tuple[str, ...]

    def __str__(self) -> str:
        return f"signed in as {self.person!r} of {self.institution!r}"

    def uri(self) -> str:
        """Return the URI. Raises: ConfigError where a certificate has no room for it."""
        fields = [("person", self.person), ("institution", self.institution)]
        text = SIGNED_IN + urllib.parse.urlencode([*fields, *(("hash", s) for s in self.studies)])
        if len(text) > MAX_DER // 2:
            raise ConfigError(
                f"the studies of {self.person!r} fill {len(text)} characters of a certificate: "
                f"expected at most {MAX_DER // 2}"
            )
        return text

    def check(self, study: bytes, coordinator: str) -> None:
        """Check that the certificate names a study. Args: study: its hash. Raises: StudyError."""
        if study.hex() not in self.studies:
            raise StudyError(
                f"the certificate of {coordinator!r} ({self}) may ask other studies, and not the "
                f"one of hash {study.hex()}: let the authority's keeper read the study and add its "
                "hash to the person's studies, and sign in again",
                culprit=coordinator,
            )


def signed_in_of(cert: x509.Certificate) -> SignedIn | None:
    """Return who has signed in for a certificate, or None. Raises: CertificateError."""
    with refusing("the sign-in in a certificate is malformed: " + REMAKE):
        found = alternative_names_in(cert)
        values = [each.value for each in found if isinstance(each, x509.UniformResourceIdentifier)]
        uris = [value for value in values if value.startswith(SIGNED_IN)]
        if not uris:
            return None
        if len(uris) > 1:
            raise ValueError("one URI of umpc was expected")
        pairs = urllib.parse.parse_qsl(
            uris[0].removeprefix(SIGNED_IN), keep_blank_values=True, strict_parsing=True
        )
        (first, person), (second, institution), *rest = pairs
        if (first, second) != ("person", "institution") or any(key != "hash" for key, _ in rest):
            raise ValueError("other fields were expected")
        return SignedIn(person, institution, tuple(study for _, study in rest))


# --- revoked --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Revoked:
    """The content of one signed list of the authority.

    Args:
        number: grows with each list. A list with a smaller number is an older one.
        made: when the authority signed it.
        next_update: the time until which the authority promises a newer one.
        serials: when each certificate was revoked, by its serial number.
    """

    number: int
    made: datetime
    next_update: datetime
    serials: Mapping[int, datetime] = field(default_factory=lambda: MappingProxyType({}))

    def __contains__(self, serial: int) -> bool:
        return serial in self.serials

    def check(self, serial: int, name: str, role: str) -> None:
        """Check that a certificate is not on the list. Raises: CertificateError, with culprit."""
        since = self.serials.get(serial)
        if since is not None:
            raise CertificateError(
                f"the certificate of {role} {name!r} was revoked, at {since:%F %R} UTC "
                f"(serial number {serial:x}): leave {name!r} out, or get it a new certificate "
                "from the authority",
                culprit=name,
            )
