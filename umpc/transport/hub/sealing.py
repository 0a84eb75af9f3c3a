"""The keys of a session between two members of a hub, and its sealed envelopes.

The two sides exchange X25519 keys that are made for this session alone. Each side signs its key
with the key of its certificate (signed Diffie-Hellman, as ISO/IEC 9798-3 has it):

    initiator → responder   certificate, X25519 key, signature of (session, both names, key)
    responder → initiator   the same, and its signature also covers the initiator's whole message

HKDF-SHA256 turns the shared secret and both messages into one AES-256-GCM key per direction. The
keys are forgotten with the session, so a certificate's key that leaks later opens nothing.

The associated data of an envelope are its kind, its session, its sender and its receiver, and its
number is the nonce. A number is used once and must grow, so an envelope that was altered, repeated,
reordered or put into another session does not open.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from google.protobuf.message import DecodeError

from umpc.crypto.signing import Credentials, is_signature
from umpc.errors import CertificateError, RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb

LABEL = b"umpc hub session 1"
KEY_BYTES = 32
SESSION_BYTES = 16
MOST_HANDSHAKE_BYTES = 16_384


class End(NamedTuple):
    """One side of a session: the role and the name in its certificate."""

    role: str
    name: str

    def __str__(self) -> str:
        return f"{self.role} {self.name!r}"


@dataclass(frozen=True)
class Parties:
    """The places of a session. hub: the name of the hub, which the messages of errors blame."""

    session: bytes
    initiator: End
    responder: End
    hub: str


class Opening:
    """The initiator's side of a handshake. `message` goes to the responder, maybe repeatedly."""

    def __init__(self, parties: Parties, credentials: Credentials):
        self._parties = parties
        self._credentials = credentials
        self._secret, self.message = _drawn(parties, credentials, b"")

    def finish(self, answer: bytes) -> tuple[Seal, bytes]:
        """Check the responder's answer. Returns: the seal, and the responder's certificate.

        Raises: CertificateError unless the expected responder signed it for this session.
        """
        parties = self._parties
        shown = _checked(answer, self._credentials, parties, parties.responder, self.message)
        keys = _keys(self._secret, shown.key, parties, self.message, answer)
        return Seal(parties, keys, initiates=True), shown.certificate


def answer(parties: Parties, credentials: Credentials, opening: bytes) -> tuple[bytes, Seal, bytes]:
    """Answer an initiator. Returns: the message for it, the seal, and its certificate.

    Raises: CertificateError unless the named initiator signed the opening for this session.
    """
    shown = _checked(opening, credentials, parties, parties.initiator, b"")
    secret, message = _drawn(parties, credentials, opening)
    keys = _keys(secret, shown.key, parties, opening, message)
    return message, Seal(parties, keys, initiates=False), shown.certificate


class Seal:
    """Seals what this side sends, and opens what the other side sealed.

    Args: keys: of each direction, that from the initiator first.
    """

    def __init__(self, parties: Parties, keys: tuple[bytes, bytes], *, initiates: bool):
        abouts = _abouts(parties)
        there, back = AESGCM(keys[0]), AESGCM(keys[1])
        self._out, self._in = (there, back) if initiates else (back, there)
        self._about_out, self._about_in = abouts if initiates else abouts[::-1]
        self.peer = parties.responder if initiates else parties.initiator
        self._hub = parties.hub
        self._sent = 0
        self._seen = 0

    def close(self, kind: int, plain: bytes) -> tuple[int, bytes]:
        """Seal an envelope. Returns: its number and its body."""
        self._sent += 1
        about = bytes([kind]) + self._about_out
        return self._sent, self._out.encrypt(_nonce(self._sent), plain, about)

    def open(self, kind: int, number: int, body: bytes) -> bytes:
        """Open an envelope of the other side.

        Raises: RemoteProtocolError, whose culprit is the hub, for one that the other side did not
            seal, and for one that came before.
        """
        try:
            about = bytes([kind & 0xFF]) + self._about_in
            plain = self._in.decrypt(_nonce(number), body, about)
        except InvalidTag:
            raise self.fault("was altered, or belongs to another session") from None
        if number <= self._seen:
            raise self.fault("came a second time, or out of its order")
        self._seen = number
        return plain

    def fault(self, what: str) -> RemoteProtocolError:
        """Return the error for something that only the hub, or somebody on the way, can do."""
        return RemoteProtocolError(
            f"an envelope from {self.peer} through hub {self._hub!r} {what}; look at the hub, and "
            "run the study again over another one if this happens again",
            culprit=self._hub,
        )


# ---- the handshake ---------------------------------------------------------------------------


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "big")


def _framed(*parts: bytes | str) -> bytes:
    """Join parts so that no other parts give the same bytes."""
    joined = b""
    for part in parts:
        coded = part.encode() if isinstance(part, str) else part
        joined += len(coded).to_bytes(4, "big") + coded
    return joined


def _abouts(parties: Parties) -> tuple[bytes, bytes]:
    """The associated data of each direction."""
    session, one, two = parties.session, parties.initiator, parties.responder
    return _framed(LABEL, session, *one, *two), _framed(LABEL, session, *two, *one)


def _drawn(
    parties: Parties, credentials: Credentials, before: bytes
) -> tuple[X25519PrivateKey, bytes]:
    """Draw a key of a session, and sign it. Args: before: as of `_statement`."""
    secret = X25519PrivateKey.generate()
    key = secret.public_key().public_bytes_raw()
    signature = credentials.sign(_statement(parties, key, before))
    shown = pb.HubHandshake(certificate=credentials.certificate, key=key, signature=signature)
    return secret, shown.SerializeToString(deterministic=True)


def _statement(parties: Parties, key: bytes, before: bytes) -> bytes:
    """The bytes that an end signs. Args: before: the opening that it accepts; empty in its own."""
    kind = b"accept" if before else b"open"
    return _framed(
        LABEL, kind, parties.session, *parties.initiator, *parties.responder, key, before
    )


def _checked(
    message: bytes, credentials: Credentials, parties: Parties, expected: End, before: bytes
) -> pb.HubHandshake:
    """Return a handshake message of the expected end. Raises: CertificateError."""
    try:
        if len(message) > MOST_HANDSHAKE_BYTES:
            raise DecodeError("too long")
        shown = pb.HubHandshake.FromString(message)
    except DecodeError:
        raise CertificateError(
            f"hub {parties.hub!r} brought bytes that open no session with {expected}",
            culprit=parties.hub,
        ) from None
    holder = credentials.verify(shown.certificate)
    if (holder.role, holder.name) != expected:
        raise CertificateError(
            f"hub {parties.hub!r} connected {holder.role} {holder.name!r}, expected {expected}",
            culprit=parties.hub,
        )
    statement = _statement(parties, shown.key, before)
    if len(shown.key) != KEY_BYTES or not is_signature(holder.key, statement, shown.signature):
        raise CertificateError(
            f"{expected} did not sign the session that hub {parties.hub!r} brought: it was altered "
            "on its way, or was made for somebody else",
            culprit=parties.hub,
        )
    return shown


def _keys(
    secret: X25519PrivateKey, theirs: bytes, parties: Parties, opening: bytes, accepted: bytes
) -> tuple[bytes, bytes]:
    """Return the key of each direction: from the initiator, and to it."""
    try:
        shared = secret.exchange(X25519PublicKey.from_public_bytes(theirs))
    except ValueError:
        raise CertificateError("the other side's X25519 key is of small order") from None
    salt = hashlib.sha256(_framed(LABEL, parties.session, opening, accepted)).digest()
    derived = HKDF(hashes.SHA256(), 2 * KEY_BYTES, salt, LABEL).derive(shared)
    return derived[:KEY_BYTES], derived[KEY_BYTES:]
