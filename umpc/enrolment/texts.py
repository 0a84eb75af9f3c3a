"""The texts that travel between a site and its authority: one line each, to paste or to send.

    umpc-invitation-1.<base64url of JSON>.<8 digits>     authority → site
    umpc-request-1.…                                     site → authority
    umpc-admission-1.…                                   authority → site

The last part is the beginning of a SHA-256, which finds a text that was cut or mistyped. It proves
nothing about the sender.

*What each text proves.* An invitation holds the authority's certificate and a one-time code. Its
sender chooses the authority, so it must come by a way that both sides trust. A request is signed by
its own key. If it answers an invitation, its HMAC under the code shows that its sender had the
invitation. An admission is a certificate, which the authority signed.

Every input may come from anybody. A function of this file returns, or raises a CertificateError of
one line.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import serialization as form

from umpc.errors import CertificateError
from umpc.transport.certificates import (
    check_name,
    load_request,
    names_of,
    p256_key_of,
    parse_certificate,
)

MOST_CHARACTERS = 1 << 20
CODE_BYTES = 16
GROUP = 4
FINGERPRINT_DIGITS = 32
"""128 bits, so that nobody finds a second key with the fingerprint of the first."""
CHECK_DIGITS = 8
TEXT = re.compile(r"umpc-([a-z]+)-([0-9]+)\.([A-Za-z0-9_-]+)\.([0-9a-f]{8})")
ADDRESS = re.compile(r"[!-~]{0,255}")


def json_object(content: bytes, refusal: str) -> dict[str, Any]:
    """Return an object of JSON. Args: refusal: what is said otherwise. Raises: CertificateError."""
    try:
        found = json.loads(content)
        if isinstance(found, dict):
            return found
    except (ValueError, RecursionError):
        pass
    raise CertificateError(refusal)


@dataclass(frozen=True)
class Text:
    """A text of one kind. Its fields are texts, and bytes that travel as base64."""

    KIND = ""

    def encode(self) -> str:
        """Return the text, one line."""
        content = {each.name: _packed(getattr(self, each.name)) for each in fields(self)}
        body = f"umpc-{self.KIND}-1.{base64_text(json.dumps(content).encode())}"
        return f"{body}.{check_of(body)}"

    @classmethod
    def decode(cls, text: str) -> Self:
        """Return what a text says. White space that a mail program put in is left out.

        Raises: CertificateError.
        """
        joined = "".join(text[:MOST_CHARACTERS].split())
        found = TEXT.fullmatch(joined)
        if found is None:
            raise cls._refusal("something else came, or a part of it is missing")
        if found[1] != cls.KIND:
            raise cls._refusal(f"the text of an {found[1]} came")
        if found[2] != "1":
            raise cls._refusal(f"one of version {found[2]} came, so install a newer umpc")
        if found[4] != check_of(joined.rpartition(".")[0]):
            raise cls._refusal("it was cut or changed on its way")
        try:
            content = json.loads(_bytes(found[3]))
            kinds = {each.name: each.type for each in fields(cls)}
            if not isinstance(content, dict) or content.keys() != kinds.keys():
                raise ValueError
            return cls(**{name: _unpacked(content[name], kinds[name]) for name in kinds})
        except (ValueError, TypeError, RecursionError):
            raise cls._refusal("its content is malformed") from None

    @classmethod
    def _refusal(cls, came: str) -> CertificateError:
        return CertificateError(
            f"the whole text of an {cls.KIND} was expected, which begins with umpc-{cls.KIND}-1, "
            f"and {came}: ask for it again"
        )


@dataclass(frozen=True)
class Invitation(Text):
    """An authority invites one process.

    authority: its certificate, DER. code: a secret that is used once. until: ISO 8601 in UTC.
    address: where the authority listens for requests, or "".
    """

    KIND = "invitation"
    name: str
    role: str
    authority: bytes
    code: bytes = field(repr=False)
    until: str
    address: str = ""

    def check(self, now: datetime | None) -> None:
        """Check the content. Args: now: None where its date does not count any more.

        Raises: CertificateError.
        """
        check_name(self.name, self.role)
        authority_of(self.authority)
        _check_address(self.address)
        if len(self.code) != CODE_BYTES:
            raise self._refusal("its code is too short")
        if now is not None and now > parse_time(self.until):
            raise CertificateError(
                f"the invitation of {self.role} {self.name!r} ended at {self.until}: ask the "
                "authority for a new one"
            )


@dataclass(frozen=True)
class Request(Text):
    """A site asks for a certificate.

    csr: its request, DER, signed by its own key. address: where others will reach the process, or
    "". proof: an HMAC under the invitation's code, or empty without an invitation.
    """

    KIND = "request"
    csr: bytes
    address: str = ""
    proof: bytes = b""

    def proven_by(self, code: bytes) -> Request:
        """Return this request with its proof of an invitation's code."""
        return Request(self.csr, self.address, self._mac(code))

    def proves(self, code: bytes) -> bool:
        """Whether the sender had the invitation with this code."""
        return hmac.compare_digest(self.proof, self._mac(code))

    def _mac(self, code: bytes) -> bytes:
        message = b"umpc request 1" + len(self.csr).to_bytes(4) + self.csr + self.address.encode()
        return hmac.digest(code, message, "sha256")

    @property
    def names(self) -> tuple[str, str]:
        """The name and the role that are asked for. Raises: CertificateError."""
        return names_of(self.document)

    @property
    def document(self) -> x509.CertificateSigningRequest:
        """The request, after its signature was checked. Raises: CertificateError."""
        _check_address(self.address)
        return load_request(pem_of(self.csr, "CERTIFICATE REQUEST"))

    @property
    def fingerprint(self) -> str:
        """The digits that both sides read aloud. Raises: CertificateError."""
        return fingerprint_of(self.document)


@dataclass(frozen=True)
class AdmissionText(Text):
    """The authority's answer. cert and authority: DER. revoked: its list in PEM, or empty."""

    KIND = "admission"
    cert: bytes
    authority: bytes
    revoked: bytes = b""

    @property
    def names(self) -> tuple[str, str]:
        """The certificate's name and role, which nothing has verified. Raises: CertificateError."""
        pem = pem_of(self.cert, "CERTIFICATE")
        return names_of(parse_certificate(pem, "the certificate of the admission"))


def fingerprint_of(request: x509.CertificateSigningRequest) -> str:
    """Return the digits of a request: of its name, its role and its key, in groups of four.

    Another request of the same key, name and role has the same digits. Raises: CertificateError.
    """
    name, role = names_of(request)
    public = p256_key_of(request).public_bytes(
        form.Encoding.X962, form.PublicFormat.UncompressedPoint
    )
    digits = hashlib.sha256(b"umpc request 1\0" + f"{role}\0{name}\0".encode() + public)
    return grouped(digits.hexdigest()[:FINGERPRINT_DIGITS])


def grouped(digits: str) -> str:
    """Return digits in groups of four, to read them aloud."""
    return " ".join(digits[at : at + GROUP] for at in range(0, len(digits), GROUP))


def are_same_digits(one: str, other: str) -> bool:
    """Whether two fingerprints are equal, whatever stands between their digits."""
    return _digits(one) == _digits(other) != ""


def _digits(text: str) -> str:
    return re.sub(r"[\s:-]", "", text.lower())


def authority_of(der: bytes) -> x509.Certificate:
    """Return an authority's certificate from DER. Raises: CertificateError."""
    cert = parse_certificate(pem_of(der, "CERTIFICATE"), "the authority's certificate")
    try:
        is_authority = cert.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        is_authority = False
    if not is_authority:
        raise CertificateError(
            "the certificate of an authority was expected, and one of a process came: ask the "
            "authority for the text again"
        )
    return cert


def pem_of(der: bytes, label: str) -> bytes:
    """Return DER as PEM."""
    body = base64.b64encode(der).decode()
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    text = "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])
    return text.encode()


def parse_time(text: str) -> datetime:
    """Return a time of ISO 8601 in UTC. Raises: CertificateError."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise CertificateError(f"a time in UTC was expected, and {text[:40]!a} came") from None
    return at.replace(tzinfo=at.tzinfo or UTC)


def _check_address(address: str) -> None:
    if not ADDRESS.fullmatch(address):
        raise CertificateError(
            f"an address HOST:PORT was expected, and {address[:60]!a} came: ask for the text again"
        )


def _packed(value: str | bytes) -> str:
    return base64_text(value) if isinstance(value, bytes) else value


def _unpacked(value: object, kind: object) -> str | bytes:
    if not isinstance(value, str):
        raise ValueError("a text was expected")
    return _bytes(value) if kind == "bytes" else value


def base64_text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("no base64") from None


def check_of(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:CHECK_DIGITS]
