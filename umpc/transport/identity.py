"""The identity of one process: its certificate, its key, and the authority that it trusts.

An `Identity` is a snapshot of a folder with these files. `Identity.latest` returns the snapshot of
now, so a process uses renewed files and a new list of revoked certificates without a restart:

| file | what it is | a change that is not usable |
|---|---|---|
| ca.pem | the authority's certificate | the former one stays; another authority needs a restart |
| cert.pem, key.pem | this process's certificate and its key | the former pair stays in use |
| crl.pem | the list of revoked certificates; it may be absent | the former list stays in use |

A change that is not usable is logged as a warning, and the files are read again when they change.

*Expiry.* Warnings about the dates of an identity: certificates that end, and an overdue list.

*Credentials.* The keys with which protocol code signs, and its checks of the certificates of
others.

    credentials_of(identity)      a node signs, and checks what all nodes signed
    verifier_of(identity)            coordinator and dealer only check
    verifier_at_any_date(ca_pem)          shufflers: also certificates that have ended since

Each call reads the clock, and the list of revoked certificates if there is one. Protocol code does
neither.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization as form

from umpc.crypto.signing import Credentials, Holder, Verify, point_of, signer
from umpc.errors import CertificateError
from umpc.transport.certificates import (
    NEW_AUTHORITY,
    REMAKE,
    Key,
    Revoked,
    check_validity,
    clock,
    fingerprint,
    is_signed_by,
    issuer_fingerprint,
    names_of,
    parse_certificate,
    parse_key,
    public_key_of,
    refusing,
    renewal,
    signed_in_of,
    verify_certificate,
)
from umpc.transport.files import check_private, read_file
from umpc.transport.revocation import FETCH, check_follows, parse_revoked

log = logging.getLogger("umpc.identity")

FILES = ("ca.pem", "cert.pem", "key.pem", "crl.pem")
Stamp = tuple[int, int, int, int] | None
"""The file system's facts about a file; they change whenever the file's content does."""

Dial = Callable[..., Awaitable[Any]]
"""A way to other processes: it takes the arguments of `stream.connect`, and returns a channel
with the methods of gRPC's that the generated stubs use."""


@dataclass(frozen=True)
class Identity:
    """The certificate and key of a process, checked by `load_identity`.

    dial: how this process reaches others; None over TCP, directly or through a hub, as an address
        says.
    """

    name: str
    role: str
    ca_pem: bytes = field(repr=False)
    cert_pem: bytes = field(repr=False)
    key_pem: bytes = field(repr=False)
    not_after: datetime
    revoked: Revoked | None = field(default=None, repr=False)
    source: IdentityFolder | None = field(default=None, repr=False, compare=False)
    dial: Dial | None = field(default=None, repr=False, compare=False)

    def latest(self) -> Identity:
        """Return the identity that the folder holds now, or this one if there is no folder."""
        return self.source.latest() if self.source else self

    @property
    def certificate(self) -> x509.Certificate:
        """The certificate of this process."""
        return parse_certificate(self.cert_pem, "the identity's cert.pem")

    @cached_property
    def pair(self) -> tuple[bytes, Key]:
        """The certificate in DER, and its key. They are parsed once.

        Raises: CertificateError where they are damaged.
        """
        key = parse_key(self.key_pem, "the identity's key.pem")
        return self.certificate.public_bytes(form.Encoding.DER), key


def load_identity(
    folder: Path | str, expected_role: str | None = None, *, now: datetime | None = None
) -> Identity:
    """Read ca.pem, cert.pem and key.pem of a site, and crl.pem if it is there.

    Raises: CertificateError, with the reason why peers would refuse this identity and what to do.
    """
    return IdentityFolder(Path(folder), expected_role, now).latest()


def nobody(ca_pem: bytes) -> Identity:
    """The identity of a person's device: it shows no certificate, and trusts an authority."""
    return Identity("person", "person", ca_pem, b"", b"", datetime.max.replace(tzinfo=UTC))


class IdentityFolder:
    """The folder of one identity. Any thread may ask for the latest snapshot.

    Raises: CertificateError, from the constructor only.
    """

    def __init__(self, folder: Path, expected_role: str | None, now: datetime | None):
        self.folder = folder
        self._paths = [str(folder / name) for name in FILES]
        self._lock = threading.Lock()
        self._stamps = self._stamp_files()
        pair = _read_pair(folder, now)
        _check_role(pair, folder / "cert.pem", expected_role)
        revoked = load_revoked(folder / "crl.pem", pair.ca_pem)
        self._held = replace(pair, revoked=revoked, source=self)
        _check_own(self._held)

    def latest(self) -> Identity:
        """Return the identity of now. Only four calls of `stat` if no file has changed."""
        with self._lock:
            stamps = self._stamp_files()
            if stamps != self._stamps:
                before, self._stamps = self._stamps, stamps
                if stamps[-1] != before[-1]:
                    self._try(self._read_list, "the former list of revoked certificates")
                if stamps[:-1] != before[:-1]:
                    self._try(self._renew, "the former certificate")
                self._warn_if_revoked()
            return self._held

    def _try(self, change: Callable[[], None], what_stays: str) -> None:
        try:
            change()
        except CertificateError as error:
            log.warning("%s. %s stays in use", error.message, what_stays.capitalize())

    def _read_list(self) -> None:
        path = self.folder / "crl.pem"
        revoked = load_revoked(path, self._held.ca_pem)
        if revoked is None:
            raise CertificateError(f"{path} is gone: restore it")
        check_follows(revoked, self._held.revoked, str(path))
        self._held = replace(self._held, revoked=revoked)
        log.info(
            "%s: list %d of revoked certificates, of %s UTC, with %d entries, counts from now on",
            path,
            revoked.number,
            f"{revoked.made:%F %R}",
            len(revoked.serials),
        )

    def _renew(self) -> None:
        held, path = self._held, self.folder / "cert.pem"
        pair = _read_pair(self.folder, None)
        if (pair.name, pair.role) != (held.name, held.role):
            raise CertificateError(
                f"{path} is now of {pair.role} {pair.name!r}, but this is {held.role} "
                f"{held.name!r}: put the right certificate there, or restart"
            )
        if pair.ca_pem != held.ca_pem:
            raise CertificateError(
                f"{self.folder / 'ca.pem'} is now of another authority: restart to change it"
            )
        if (pair.cert_pem, pair.key_pem) == (held.cert_pem, held.key_pem):
            return
        renewed = replace(pair, revoked=held.revoked, source=self)
        _check_own(renewed)
        self._held = renewed
        log.info(
            "%s: the certificate until %s UTC is used from now on", path, f"{pair.not_after:%F %R}"
        )

    def _warn_if_revoked(self) -> None:
        try:
            _check_own(self._held)
        except CertificateError as error:
            log.error("%s", error.message)

    def _stamp_files(self) -> tuple[Stamp, ...]:
        return tuple(_stamp(path) for path in self._paths)


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)  # pathlib takes ten times as long
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read_pair(folder: Path, now: datetime | None) -> Identity:
    """Return the identity without its list. Every file is read once. Raises: CertificateError."""
    paths = [folder / name for name in FILES[:3]]
    ca_path, cert_path, key_path = paths
    check_private(key_path)
    ca_pem, cert_pem, key_pem = [read_file(path, REMAKE) for path in paths]
    ca = parse_certificate(ca_pem, str(ca_path))
    cert = parse_certificate(cert_pem, str(cert_path))
    key = parse_key(key_pem, str(key_path))
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
    check_validity(ca, str(ca_path), now, NEW_AUTHORITY)
    check_validity(cert, str(cert_path), now)
    return Identity(name, role, ca_pem, cert_pem, key_pem, cert.not_valid_after_utc)


def _check_role(identity: Identity, path: Path, expected: str | None) -> None:
    if expected is not None and identity.role != expected:
        raise CertificateError(
            f"{path} is for the role {identity.role} ({identity.name!r}), expected role "
            f"{expected}: give the folder of a {expected}, or request a certificate for that role"
        )


def _check_own(identity: Identity) -> None:
    """Check that the own certificate is not revoked. Raises: CertificateError."""
    if identity.revoked is not None and identity.certificate.serial_number in identity.revoked:
        again = "make a new key and request with `umpc enrol join`"
        if signed_in_of(identity.certificate) is not None:
            again = renewal(identity.certificate)
        raise CertificateError(
            f"the certificate of this process ({identity.role} {identity.name!r}) is revoked, so "
            "all others refuse it: ask the authority for the reason, then move key.pem away and "
            f"{again}",
            culprit=identity.name,
        )


# --- expiry ---------------------------------------------------------------------------------------

WARN_DAYS = 30
"""Days before the end of a certificate from which on every process warns."""
LOOK_SECONDS = 60
WARN_EVERY = timedelta(days=1)


def due(identity: Identity, now: datetime | None = None) -> list[str]:
    """Return a sentence for each thing that somebody must do, and none if all is well."""
    now = now or clock()
    found = []
    what = f"the certificate of this process ({identity.role} {identity.name!r})"
    renew = f"{renewal(identity.certificate)}; no restart is needed"
    if signed_in_of(identity.certificate) is None or now > identity.not_after:
        found += _ending(what, identity.not_after, renew, now)
    authority = parse_certificate(identity.ca_pem, "ca.pem")
    found += _ending("the authority's ca.pem", authority.not_valid_after_utc, NEW_AUTHORITY, now)
    revoked = identity.revoked
    if revoked is not None and identity.certificate.serial_number in revoked:
        found.append(f"{what} is revoked, so all others refuse it: ask the authority")
    if revoked is not None and now > revoked.next_update:
        found.append(
            f"the list of revoked certificates (number {revoked.number}) is overdue since "
            f"{revoked.next_update:%F %R} UTC, and what was revoked since is unknown: "
            "get a new crl.pem from the authority"
        )
    return found


def _ending(what: str, until: datetime, remedy: str, now: datetime) -> list[str]:
    if now > until:
        return [f"{what} expired, at {until:%F %R} UTC: {remedy}"]
    days = (until - now).days
    if days < WARN_DAYS:
        return [f"{what} expires in {days} days, at {until:%F %R} UTC: {remedy}"]
    return []


async def keep_watch(identity: Identity) -> None:
    """Read changed files within a minute, and warn of what is due now and once a day. Endless."""
    warned: datetime | None = None
    while True:
        now = clock()
        latest = identity.latest()
        if warned is None or now - warned >= WARN_EVERY:
            warned = now
            for sentence in due(latest, now):
                log.warning("%s", sentence)
        await asyncio.sleep(LOOK_SECONDS)


# --- credentials ----------------------------------------------------------------------------------


def credentials_of(identity: Identity) -> Credentials:
    """The credentials of a process, by the certificate and key that its folder holds now.

    Raises: CertificateError where they are damaged.
    """
    identity = identity.latest()
    der, key = identity.pair
    return Credentials(identity.name, der, signer(key), _Verifier(identity))


def verifier_of(identity: Identity) -> Verify:
    """The check of a certificate: it is of the identity's authority, and counts now.

    The list of revoked certificates is the one that the identity's folder holds at each call.

    The error for another certificate names its holder as the culprit if it did count before.
    """
    return _Verifier(identity)


class _Verifier:
    """Args: now: the time that counts, with the identity's own list; None: always the present."""

    def __init__(self, identity: Identity, now: datetime | None = None):
        self._identity = identity
        self._now = now

    def __call__(self, der: bytes) -> Holder:
        identity = self._identity
        try:
            revoked = (identity if self._now else identity.latest()).revoked
            now = self._now or clock()
            names = verify_certificate(der, identity.ca_pem, now=now, revoked=revoked)
        except CertificateError as error:
            error.culprit = error.culprit or _former_holder(der, identity.ca_pem)
            raise
        return Holder(*names, _point(der))

    def as_of_now(self) -> Verify:
        """Return this check with the time and the list of now: it reads neither again."""
        return _Verifier(self._identity.latest(), clock())


def verifier_at_any_date(ca_pem: bytes) -> Verify:
    """The check in members of an earlier run: of one authority, whatever the date.

    A release is sent to shufflers again, maybe after a member's certificate has ended. Each node
    that calls then shows the certificate that it has now.
    """
    return lambda der: _holder(der, ca_pem)


def certificate_in(path: Path) -> bytes:
    """The certificate of a file in PEM, in DER. Raises: CertificateError."""
    return parse_certificate(read_file(path, REMAKE), str(path)).public_bytes(form.Encoding.DER)


def _holder(der: bytes, ca_pem: bytes) -> Holder:
    """The holder of a certificate of the authority, as of the day of its issue.

    Raises: CertificateError.
    """
    with refusing("the bytes shown as a certificate are none in DER"):
        issued = x509.load_der_x509_certificate(der).not_valid_before_utc
    authority = parse_certificate(ca_pem, "the authority's ca.pem")
    name, role = verify_certificate(der, ca_pem, now=max(issued, authority.not_valid_before_utc))
    return Holder(name, role, _point(der))


@lru_cache(maxsize=1 << 13)  # the nodes of the largest study, and others
def _point(der: bytes) -> bytes:
    """The key of a certificate that was checked."""
    return point_of(public_key_of(der))


def _former_holder(der: bytes, ca_pem: bytes) -> str | None:
    try:
        return _holder(der, ca_pem).name
    except CertificateError:
        return None


def load_revoked(path: Path, ca_pem: bytes) -> Revoked | None:
    """Read crl.pem, or return None if there is no such file. Raises: CertificateError."""
    if not os.path.lexists(path):
        return None
    return parse_revoked(read_file(path, FETCH), ca_pem, str(path))
