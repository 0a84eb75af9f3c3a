"""The authority's side of an enrolment: invite, receive a request, approve it.

*What the authority trusts.* Only the fingerprint that a person compares decides. A request that
proves the one-time code comes from somebody who had the invitation. The first such request binds
the code to its key. A request of another key with the same code is refused, because one of the two
senders stole the invitation, and the person must ask which.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives import serialization as form

from umpc.enrolment.register import (
    ADMITTED,
    ASKED,
    DECLINED,
    INVITED,
    Enrolment,
    Register,
    RequestReceiver,
)
from umpc.enrolment.texts import (
    CODE_BYTES,
    AdmissionText,
    Invitation,
    Request,
    are_same_digits,
    pem_of,
)
from umpc.errors import CertificateError, ConfigError
from umpc.transport.authority import DAYS, Authority
from umpc.transport.certificates import (
    NEW_AUTHORITY,
    SignedIn,
    check_name,
    check_validity,
    clock,
    key_digest,
    names_of,
    p256_key_of,
    parse_certificate,
)
from umpc.transport.files import read_file

INVITATION_DAYS = 14


@dataclass(frozen=True)
class Waiting:
    """A request that waits for a person's decision.

    former: the dates of valid certificates that the process has for another key. revoked: the
    latest certificate of the process is revoked. signs_in: the process got certificates for hours,
    with a limit of studies, and this one would have no limit.
    """

    enrolment: Enrolment
    fingerprint: str
    former: tuple[str, ...]
    revoked: bool
    signs_in: bool


class EnrolmentOffice:
    """The enrolments of one authority. Args: folder: which `umpc ca init` made."""

    def __init__(self, folder: Path, now: Callable[[], datetime] = clock):
        self.authority = Authority.open(folder)
        self.register = Register(folder / "enrolments")
        self._now = now

    def invite(
        self, name: str, role: str, *, days: int = INVITATION_DAYS, address: str = ""
    ) -> Invitation:
        """Return a new invitation. An earlier one of the same process no longer counts.

        Raises: ConfigError, CertificateError.
        """
        check_name(name, role)
        if not 1 <= days <= 365:
            raise ConfigError(f"an invitation for {days} days: expected 1 to 365")
        own = self.authority.cert
        check_validity(own, "the authority's own ca.pem", self._now(), NEW_AUTHORITY)
        until = (self._now() + timedelta(days=days)).isoformat(timespec="seconds")
        code = secrets.token_bytes(CODE_BYTES)
        der = own.public_bytes(form.Encoding.DER)
        invitation = Invitation(name, role, der, code, until, address)
        invitation.check(self._now())
        with self.register.locked():
            known = self.register.find(name, role)
            fresh = Enrolment(name, role, INVITED, self._time(), code=code.hex(), until=until)
            self.register.put(fresh.changed(listed=known.member_address if known else ""))
        return invitation

    def receive(self, request: Request) -> Enrolment:
        """Record a request, which then waits for a person. See `RequestReceiver.receive`."""
        return RequestReceiver(self.register, self._now).receive(request)

    def former_admission(self, request: Request) -> AdmissionText | None:
        """Return the admission that was made for this very request, while it is of use, or None.

        Such a request has used its invitation up. One without an invitation asks for a new
        certificate each time, so it has none here. Raises: CertificateError.
        """
        known = self.register.find(*request.names)
        if not request.proof or known is None or known.state != ADMITTED:
            return None
        if known.request != request.encode():
            return None
        admission = AdmissionText.decode(known.admission)
        pem = pem_of(admission.cert, "CERTIFICATE")
        cert = parse_certificate(pem, "the certificate of the admission")
        revoked = self.authority.revoked()
        is_revoked = revoked is not None and cert.serial_number in revoked
        return admission if not is_revoked and cert.not_valid_after_utc > self._now() else None

    def waiting(self, name: str, role: str | None = None) -> Waiting:
        """Return the request of a name that waits. Raises: ConfigError if there is none."""
        found = [
            entry
            for entry in self.register.all()
            if entry.name == name and entry.state == ASKED and role in (None, entry.role)
        ]
        if len(found) == 1:
            return self.view(found[0])
        if found:
            roles = " and of a ".join(entry.role for entry in found)
            raise ConfigError(f"{name!r} is the name of a {roles}: give --role")
        raise ConfigError(
            f"no request of {name!r} waits: give the text of its request, or see `umpc ca list`"
        )

    def view(self, entry: Enrolment) -> Waiting:
        """Return a request as a person must see it. Raises: CertificateError."""
        request = Request.decode(entry.request)
        own = key_digest(p256_key_of(request.document))
        revoked = self.authority.revoked()
        former = [
            f"{cert.not_valid_after_utc:%Y-%m-%d}"
            for cert in self.authority.issued.all()
            if names_of(cert) == (entry.name, entry.role)
            and cert.not_valid_after_utc > self._now()
            and not (revoked and cert.serial_number in revoked)
            and key_digest(p256_key_of(cert)) != own
        ]
        names = entry.name, entry.role
        last_is_revoked = self.authority.last_is_revoked(*names)
        signs_in = self.authority.signs_in(*names)
        return Waiting(entry, request.fingerprint, tuple(former), last_is_revoked, signs_in)

    def approve(self, waiting: Waiting, fingerprint: str, *, days: int = DAYS) -> AdmissionText:
        """Sign a request whose fingerprint a person has compared.

        Raises: CertificateError if the fingerprint is another one, if the request has changed since
            it was shown, or as `Authority.sign`.
        """
        entry = waiting.enrolment
        if not are_same_digits(fingerprint, waiting.fingerprint):
            raise CertificateError(
                f"the request of {entry.role} {entry.name!r} has the fingerprint "
                f"{waiting.fingerprint}, and another one was given: ask the site to read its own "
                "aloud; if they differ, somebody else made this request",
                culprit=entry.name,
            )
        csr = pem_of(Request.decode(entry.request).csr, "CERTIFICATE REQUEST")
        with self.register.locked():
            self._check_unchanged(entry)
            cert = self.authority.sign(
                csr, name=entry.name, role=entry.role, days=days, now=self._now()
            )
            admission = self._admission(cert)
            self._decided(entry, ADMITTED, admission.encode())
        return admission

    def admit_signed_in(
        self, csr: bytes, name: str, hours: float, signed_in: SignedIn
    ) -> AdmissionText:
        """Sign the request (PEM) of a coordinator whose token was checked (`sign_in.py`).

        Raises: CertificateError, as `Authority.sign`.
        """
        return self._admission(
            self.authority.sign(
                csr,
                name=name,
                role="coordinator",
                days=hours / 24,
                now=self._now(),
                signed_in=signed_in,
            )
        )

    def decline(self, entry: Enrolment) -> None:
        """Refuse a request. Its invitation no longer counts. Raises: CertificateError."""
        with self.register.locked():
            self._check_unchanged(entry)
            self._decided(entry, DECLINED)

    def _check_unchanged(self, shown: Enrolment) -> None:
        """Check that the register still holds what a person saw. Raises: CertificateError.

        A request may come over the network while the person compares the digits.
        """
        if self.register.find(shown.name, shown.role) != shown:
            raise CertificateError(
                f"the request of {shown.role} {shown.name!r} has changed since it was shown: look "
                "at it again, and at its warnings",
                culprit=shown.name,
            )

    def _decided(self, entry: Enrolment, state: str, admission: str = "") -> None:
        self.register.put(
            entry.changed(state=state, at=self._time(), code="", until="", admission=admission)
        )

    def _admission(self, cert_pem: bytes) -> AdmissionText:
        cert = parse_certificate(cert_pem, "the new certificate").public_bytes(form.Encoding.DER)
        own = self.authority.cert.public_bytes(form.Encoding.DER)
        has_list = self.authority.revoked() is not None
        revoked = read_file(self.authority.list_path, "sign it again") if has_list else b""
        return AdmissionText(cert, own, revoked)

    def _time(self) -> str:
        return self._now().isoformat(timespec="seconds")
