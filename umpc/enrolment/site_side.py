"""The site's side of an enrolment: join with a key of its own, and finish with the certificate.

*What the site trusts.* An invitation pins the authority: its certificate becomes the site's ca.pem.
Without an invitation nothing is pinned. Then a person compares the authority's fingerprint before
the site trusts it, and `finish` takes these digits.

The joining site asks the listening authority, and waits until a person has decided.

Whoever answers must show a certificate of the invitation's authority. Before that
the site sends nothing. The one-time code itself is never sent: the request proves it.

*Pinned tls.* TLS 1.3 between a joining site and the listening authority, pinned by the invitation.

The authority shows a certificate that it signed itself, for a name that no process can have. The
site trusts the one authority of its invitation and no other, so neither the public authorities nor
a member of the consortium can stand between the two. The site shows no certificate: it has none.

The key of this TLS is made anew at each start and is on disk for the moment of its loading only,
because the standard library reads it from a file. The authority's own key signs once, at the start.
"""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec

from umpc.enrolment.register import ADMITTED, ASKED, DECLINED, ConsortiumMember, parse_members
from umpc.enrolment.texts import (
    AdmissionText,
    Invitation,
    Request,
    Text,
    are_same_digits,
    authority_of,
    grouped,
    json_object,
    pem_of,
)
from umpc.errors import CertificateError, PeerUnavailable
from umpc.transport import authority
from umpc.transport.addresses import split_address
from umpc.transport.authority import Authority
from umpc.transport.certificates import (
    REMAKE,
    clock,
    fingerprint,
    load_key,
    load_request,
    names_of,
    p256_key_of,
    parse_certificate,
    verify_certificate,
)
from umpc.transport.diagnose import as_file
from umpc.transport.files import read_file, write_public
from umpc.transport.identity import Identity, load_identity, load_revoked
from umpc.transport.revocation import parse_revoked

JOIN_FIRST = "run `umpc enrol join` first, with the same --folder"


def join(
    folder: Path,
    name: str,
    role: str,
    *,
    invitation: Invitation | None = None,
    address: str = "",
    now: Callable[[], datetime] = clock,
) -> Request:
    """Make key.pem and request.csr in an identity's folder, and return the request.

    An existing key is kept, so the same call renews a certificate. A request of the same key and
    name is kept too, so that a call after an interruption asks with the same bytes. With an
    invitation, ca.pem is written too.

    Raises: CertificateError, ConfigError.
    """
    if invitation is not None:
        is_repeated = _has_request(folder, name, role)  # in time, perhaps, and it may still wait
        invitation.check(None if is_repeated else now())
        _pin(folder, invitation.authority)
    if not _has_request(folder, name, role):
        authority.request(name, role, folder)
    csr = load_request(read_file(folder / "request.csr", JOIN_FIRST))
    request = Request(csr.public_bytes(form.Encoding.DER), address)
    return request.proven_by(invitation.code) if invitation else request


def sign_in_request(folder: Path, name: str, authority_der: bytes) -> bytes:
    """Make a new request (DER) of a coordinator, of the key in its folder, and pin the authority.

    Raises: CertificateError, ConfigError.
    """
    _pin(folder, authority_der)
    path = authority.request(name, "coordinator", folder)
    return load_request(read_file(path, JOIN_FIRST)).public_bytes(form.Encoding.DER)


def _has_request(folder: Path, name: str, role: str) -> bool:
    """Whether the folder holds a request for this name and role by its own key."""
    key_path, path = folder / "key.pem", folder / "request.csr"
    if not key_path.exists() or not path.exists():
        return False
    public = load_key(key_path).public_key()
    try:
        held = load_request(read_file(path, JOIN_FIRST))
        return names_of(held) == (name, role) and p256_key_of(held) == public
    except CertificateError:
        return False  # a damaged request is made again


def _pin(folder: Path, der: bytes) -> None:
    """Write ca.pem, unless it is there. Raises: CertificateError if it is another authority's."""
    path, pem = folder / "ca.pem", pem_of(der, "CERTIFICATE")
    if path.exists():
        held = parse_certificate(read_file(path, REMAKE), str(path))
        if fingerprint(held) != fingerprint(authority_of(der)):
            raise CertificateError(
                f"{path} is of authority {fingerprint(held)}, and the text is of another one: join "
                "the other consortium with another --folder"
            )
        return
    write_public(path, pem)


def finish(
    folder: Path,
    admission: AdmissionText,
    *,
    expected: str = "",
    now: Callable[[], datetime] = clock,
) -> Identity:
    """Write cert.pem, ca.pem and maybe crl.pem, after every check, and return the identity.

    Args: expected: the authority's fingerprint, as its keeper reads it aloud. It is needed if no
        invitation has pinned the authority.

    Raises: CertificateError. The folder is then as before.
    """
    key = load_key(folder / "key.pem", JOIN_FIRST)
    trusted = _trusted(folder, admission.authority, expected)
    name, role = verify_certificate(admission.cert, trusted, now=now())
    cert_pem = pem_of(admission.cert, "CERTIFICATE")
    cert = parse_certificate(cert_pem, "the certificate of the admission")
    if p256_key_of(cert) != key.public_key():
        raise CertificateError(
            f"the admission is for {role} {name!r} with another key than {folder / 'key.pem'}: "
            "give the admission of the request that this folder made"
        )
    asked = names_of(load_request(read_file(folder / "request.csr", JOIN_FIRST)))
    if asked != (name, role):
        raise CertificateError(
            f"the admission is for {role} {name!r}, and this site asked to be {asked[1]} "
            f"{asked[0]!r}: ask the authority"
        )
    if admission.revoked:
        _write_list(folder / "crl.pem", admission.revoked, trusted)
    write_public(folder / "ca.pem", trusted)
    write_public(folder / "cert.pem", cert_pem)
    return load_identity(folder, role, now=now())


def _write_list(path: Path, content: bytes, ca_pem: bytes) -> None:
    """Write crl.pem, unless the folder has a later list. Raises: CertificateError."""
    offered = parse_revoked(content, ca_pem, "the admission's list of revoked certificates")
    held = load_revoked(path, ca_pem)
    if held is None or held.number < offered.number:
        write_public(path, content)


def _trusted(folder: Path, der: bytes, expected: str) -> bytes:
    """Return the authority's certificate in PEM, pinned or compared. Raises: CertificateError."""
    offered = fingerprint(authority_of(der))
    path = folder / "ca.pem"
    if expected and not are_same_digits(expected, offered):
        raise CertificateError(
            f"the admission is of authority {grouped(offered)}, and another fingerprint was given: "
            "ask the authority to read its own aloud"
        )
    if path.exists():
        _pin(folder, der)
        return read_file(path, REMAKE)
    if not expected:
        raise CertificateError(
            f"the admission is of authority {grouped(offered)}, which no invitation has named: "
            "compare these digits with the authority by telephone, and then give them with "
            "--fingerprint"
        )
    return pem_of(der, "CERTIFICATE")


# --- the call to the authority --------------------------------------------------------------------


SECONDS = 20
"""Longest time of one call."""
MOST_BYTES = 1 << 21
"""Longest answer: an admission with its list of revoked certificates, and the members."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 15.0
GROWTH = 1.5
HOUR = 3600
OFFLINE = "or add --offline and send the request by another way"


@dataclass(frozen=True)
class EnrolmentAnswer:
    """The authority's answer. admission: None while a person has yet to decide."""

    admission: AdmissionText | None = None
    members: tuple[ConsortiumMember, ...] = ()


def ask(invitation: Invitation, request: Text) -> EnrolmentAnswer:
    """Send a request to the invitation's authority, and return its answer.

    Raises: PeerUnavailable if nobody answers. CertificateError if somebody else answers, or if the
        authority refuses or declines.
    """
    status, content = post(invitation, request.encode().encode())
    found = _parse(invitation, content)
    if found.get("state") == ADMITTED and status == http.client.OK:
        members = tuple(parse_members(found.get("members")))
        return EnrolmentAnswer(AdmissionText.decode(str(found.get("admission"))), members)
    if found.get("state") == ASKED and status == http.client.OK:
        return EnrolmentAnswer()
    if found.get("state") == DECLINED:
        raise CertificateError(
            "the authority declined the request: call it, and ask for another invitation"
        )
    if status >= http.client.INTERNAL_SERVER_ERROR:
        raise PeerUnavailable(
            f"the authority at {invitation.address} cannot answer now: call it, {OFFLINE}"
        )
    raise CertificateError(f"the authority refused: {_plain(found.get('message'))}")


def wait_until_admitted(
    question: Callable[[], EnrolmentAnswer],
    hours: float,
    *,
    pause: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> EnrolmentAnswer:
    """Ask until the authority has admitted the site. The pauses become longer.

    After the first answer an authority that is away for a while is asked again.

    Raises: PeerUnavailable after so many hours; as `ask`.
    """
    until = now() + hours * HOUR
    answer, seconds = question(), FIRST_PAUSE
    while answer.admission is None:
        if now() + seconds > until:
            raise PeerUnavailable(
                f"the authority has not decided within {hours:g} hours. It has the request: run "
                "the same command again to go on"
            )
        pause(seconds)
        seconds = min(GROWTH * seconds, LONGEST_PAUSE)
        try:
            answer = question()
        except PeerUnavailable:
            continue
    return answer


def post(invitation: Invitation, body: bytes) -> tuple[int, bytes]:
    host, port = split_address(invitation.address)
    connection = PinnedConnection(host, port, invitation.authority)
    try:
        connection.request("POST", "/enrol", body, {"Content-Type": "text/plain"})
        answer = connection.getresponse()
        return answer.status, answer.read(MOST_BYTES)
    except ssl.SSLCertVerificationError as error:
        own = grouped(fingerprint(authority_of(invitation.authority)))
        raise CertificateError(
            f"the authority {own} of the invitation was expected at {invitation.address}, and "
            f"somebody else answers there ({error.verify_message}). Nothing was sent. Call the "
            f"authority: its address is wrong, or somebody is on the line; {OFFLINE}"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise PeerUnavailable(
            f"the authority at {invitation.address} was expected, and the connection failed "
            f"({reason}): let it run `umpc enrol listen`, and run the same command again, {OFFLINE}"
        ) from None
    finally:
        connection.close()


class PinnedConnection(http.client.HTTPSConnection):
    """HTTPS to any address, whose server must show the authority's own certificate."""

    def __init__(self, host: str, port: int, authority: bytes):
        self._pinned = pinned_tls(authority)
        super().__init__(host, port, timeout=SECONDS, context=self._pinned)

    def connect(self) -> None:
        """Connect, and check the certificate before a byte is sent."""
        http.client.HTTPConnection.connect(self)
        self.sock = self._pinned.wrap_socket(self.sock, server_hostname=HOST)


def _parse(invitation: Invitation, content: bytes) -> dict[str, Any]:
    return json_object(
        content,
        f"the answer of the authority at {invitation.address} is malformed: ask it for its "
        "version of umpc",
    )


def _plain(message: object) -> str:
    """Return text from the network as one printable line."""
    text = str(message)[:400]
    return "".join(each if each.isprintable() else "?" for each in text)


# --- pinned tls -----------------------------------------------------------------------------------

HOST = "authority.enrolment.umpc"
"""The name in the certificate. A process has `<name>.<role>.umpc`, and `enrolment` is no role."""
LISTENING_DAYS = 30


@dataclass(frozen=True)
class ListeningTls:
    """The settings of the authority's side, and the time until which its certificate is valid."""

    context: ssl.SSLContext
    until: datetime


def listening_tls(folder: Path, *, now: datetime | None = None) -> ListeningTls:
    """Make the authority's side, with a new key. The authority's key is not kept.

    Raises: CertificateError if the folder holds no usable authority.
    """
    at = now or clock()
    key = ec.generate_private_key(ec.SECP256R1())
    cert = Authority.open(folder).sign_listener(key.public_key(), HOST, days=LISTENING_DAYS, now=at)
    context = _tls_1_3(ssl.PROTOCOL_TLS_SERVER)
    secret = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    with as_file(secret + cert) as path:
        context.load_cert_chain(path)
    return ListeningTls(context, at + timedelta(days=LISTENING_DAYS))


def pinned_tls(authority: bytes) -> ssl.SSLContext:
    """Return the site's side. Args: authority: its certificate in DER, from the invitation."""
    context = _tls_1_3(ssl.PROTOCOL_TLS_CLIENT)  # checks the chain and the host name
    context.load_verify_locations(cadata=pem_of(authority, "CERTIFICATE").decode())
    return context


def _tls_1_3(kind: int) -> ssl.SSLContext:
    context = ssl.SSLContext(kind)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context
