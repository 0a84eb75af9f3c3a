"""The site's side of an enrolment: join with a key of its own, and finish with the certificate.

*What the site trusts.* An invitation pins the authority: its certificate becomes the site's ca.pem.
Without an invitation nothing is pinned. Then a person compares the authority's fingerprint before
the site trusts it, and `finish` takes these digits.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives import serialization as form

from umpc.enrolment.texts import (
    AdmissionText,
    Invitation,
    Request,
    are_same_digits,
    authority_of,
    grouped,
    pem_of,
)
from umpc.errors import CertificateError
from umpc.transport import authority
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
