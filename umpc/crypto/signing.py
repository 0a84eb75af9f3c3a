"""Signatures of processes: ECDSA on P-256 with SHA-256, by the key of a certificate.

Protocol code gets `Credentials`, or `Verify` where it only checks others. Both are calls that a
shell, a test or `MemoryAuthority` makes, so protocol code reads no file, no list and no clock.

*Digests.* Digests of several byte strings. It needs no numpy, so a process that only signs loads
none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from umpc.errors import CertificateError, LocalProtocolError

SIGNATURE_BYTES = 64
"""r and s of ECDSA, 32 bytes each, big-endian."""
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of P-256."""


@dataclass(frozen=True)
class Holder:
    """The process that a certificate names. key: its public key, an uncompressed point."""

    name: str
    role: str
    key: bytes = field(repr=False)


Sign = Callable[[bytes], bytes]
"""Statement → signature."""
Verify = Callable[[bytes], Holder]
"""Certificate → its holder.

Raises: CertificateError. Its culprit is the holder if the certificate is genuine and no longer
counts. Otherwise it has no culprit: anybody may have made such a certificate.
"""


def as_of_now(verify: Verify) -> Verify:
    """A check that stands still: its list of revoked certificates and its time are those of now.

    It serves one step, in which many certificates are checked together.
    """
    fixed: Callable[[], Verify] | None = getattr(verify, "as_of_now", None)
    return fixed() if fixed is not None else verify


@dataclass(frozen=True)
class Credentials:
    """The means by which a process signs, and checks what others signed.

    certificate: its own, in DER.
    """

    name: str
    certificate: bytes = field(repr=False)
    sign: Sign = field(repr=False)
    verify: Verify = field(repr=False)


def signer(key: ec.EllipticCurvePrivateKey) -> Sign:
    """The signing call of a key."""

    def sign(statement: bytes) -> bytes:
        # fixed length: r and s, 32 bytes each
        r, s = decode_dss_signature(key.sign(statement, _scheme()))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    return sign


def point_of(key: ec.EllipticCurvePublicKey) -> bytes:
    """A public key as an uncompressed point, as `Holder` has it."""
    return key.public_bytes(form.Encoding.X962, form.PublicFormat.UncompressedPoint)


@lru_cache(maxsize=1 << 14)  # one process may play all nodes, and each of them checks the same
def is_signature(key: bytes, statement: bytes, signature: bytes) -> bool:
    """Whether the holder of a key signed the statement."""
    if len(signature) != SIGNATURE_BYTES:
        return False
    try:
        # spec/joint_seed.py, `is_signature`
        read_point(key).verify(in_der(signature), statement, _scheme())
    except InvalidSignature:
        return False
    return True


@cache
def _scheme() -> ec.ECDSA:
    return ec.ECDSA(hashes.SHA256())


def in_der(signature: bytes) -> bytes:
    """r and s as `cryptography` reads them: the DER of Ecdsa-Sig-Value (RFC 3279, 2.2.3)."""
    body = _integer(signature[:32]) + _integer(signature[32:])
    return bytes((0x30, len(body))) + body


def _integer(word: bytes) -> bytes:
    """The DER of a nonnegative integer: the fewest bytes, of which the first is below 128."""
    shortest = word.lstrip(b"\0") or b"\0"
    if shortest[0] & 0x80:
        shortest = b"\0" + shortest
    return bytes((0x02, len(shortest))) + shortest


@lru_cache(maxsize=1 << 13)  # the nodes of the largest study: each signs several statements
def read_point(point: bytes) -> ec.EllipticCurvePublicKey:
    """The inverse of `point_of`, kept for the next signature."""
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)


def verify_nobody(certificate: bytes) -> Holder:
    """The `Verify` of estimates, in which no process takes part."""
    raise LocalProtocolError("a certificate came up in an estimate, which has none")


class MemoryAuthority:
    """An authority for processes in one memory: simulations and tests. It protects nothing.

    Its certificates are texts, and each key follows from the label, the name and the role.
    """

    def __init__(self, label: str):
        self._label = label
        self._holders: dict[bytes, Holder] = {}
        self._issued: dict[tuple[str, str], Credentials] = {}

    def credentials(self, name: str, role: str = "node") -> Credentials:
        """The credentials of a process, the same at every call."""
        if (name, role) not in self._issued:
            certificate = f"{self._label}: {role} {name}".encode()
            secret = int.from_bytes(digest(b"umpc key in memory 1", certificate), "big")
            key = ec.derive_private_key(secret % (ORDER - 1) + 1, ec.SECP256R1())
            self._holders[certificate] = Holder(name, role, point_of(key.public_key()))
            self._issued[name, role] = Credentials(name, certificate, signer(key), self.verify)
        return self._issued[name, role]

    def verify(self, certificate: bytes) -> Holder:
        """The holder of a certificate. Raises: CertificateError for one of another authority."""
        if certificate not in self._holders:
            raise CertificateError("a certificate of another authority came")
        return self._holders[certificate]


# --- digests --------------------------------------------------------------------------------------


def digest(*parts: bytes) -> bytes:
    """SHA-256 of the parts, each preceded by its length."""
    found: bytes = _digesting(parts).digest()
    return found


def begun_digest(*parts: bytes, rest: int) -> Any:
    """`digest` of these parts and of one more, of which `rest` bytes are still to come."""
    state = _digesting(parts)
    state.update(rest.to_bytes(8, "little"))
    return state


def _digesting(parts: Sequence[bytes]) -> Any:
    state = hashlib.sha256()
    for part in parts:
        # spec/prg.py, `digest`: lengths make it injective
        state.update(len(part).to_bytes(8, "little") + part)
    return state
