"""`umpc ca list`: all certificates, invitations and requests of an authority."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from umpc.cli.show import print_columns
from umpc.enrolment.authority_side import EnrolmentOffice
from umpc.enrolment.register import ADMITTED, INVITED
from umpc.transport.certificates import clock, names_of

HEAD = ("state", "role", "name", "until", "address", "serial or fingerprint")


def print_list(folder: Path) -> None:
    """Print one line for each certificate, invitation and request.

    Raises: CertificateError if a file of the authority is damaged.
    """
    office = EnrolmentOffice(folder)
    print_columns([HEAD, *_enrolments(office), *_certificates(office, clock())])


def _enrolments(office: EnrolmentOffice) -> Iterator[tuple[str, ...]]:
    """Rows of the processes that have no certificate of their last request yet."""
    for entry in office.register.all():
        if entry.state == ADMITTED:
            continue
        digits = "" if entry.state == INVITED else office.view(entry).fingerprint
        until = entry.until[:10] or "-"
        state = f"{entry.state}, rival" if entry.rival else entry.state
        yield state, entry.role, entry.name, until, entry.address or "-", digits or "-"


def _certificates(office: EnrolmentOffice, now: datetime) -> Iterator[tuple[str, ...]]:
    revoked = office.authority.revoked()
    addresses = {(entry.name, entry.role): entry.member_address for entry in office.register.all()}
    issued = office.authority.issued.all()
    for cert in sorted(issued, key=lambda cert: (*names_of(cert)[::-1], cert.not_valid_after_utc)):
        name, role = names_of(cert)
        state = "expired" if cert.not_valid_after_utc < now else "valid"
        if revoked is not None and cert.serial_number in revoked:
            state = "revoked"
        until = f"{cert.not_valid_after_utc:%Y-%m-%d}"
        yield (
            state,
            role,
            name,
            until,
            addresses.get((name, role)) or "-",
            (f"{cert.serial_number:x}"),
        )
