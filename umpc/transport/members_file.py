"""members.pem: the certificates of a consortium, which a process checks ahead.

In a first study a node checks the certificates of all others (`python -m bench.hub`, with and
without `--strangers`). A process that finds members.pem beside its ca.pem does so at its start,
while nobody waits. It trusts nobody for that: the file names no one a member, the authority's
signature alone counts, and dates and the list of revoked certificates are checked at each use, as
before. A certificate that is not in the file is checked when it is first shown.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization as form

from umpc.errors import CertificateError
from umpc.transport.certificates import names_of, refusing
from umpc.transport.credentials import check_ahead
from umpc.transport.files import read_file, write_public
from umpc.transport.identity import Identity
from umpc.transport.revoked import Revoked

log = logging.getLogger("umpc.transport")

FILE = "members.pem"
MOST_BYTES = 1 << 23
"""More than the certificates of the largest study take, each of about a kilobyte in PEM."""
HOW = "ask the authority for another, or remove it: it only saves time"


def certificates_of_members(
    issued: Iterable[x509.Certificate], revoked: Revoked | None, now: datetime
) -> list[x509.Certificate]:
    """The certificates that count now: the newest of each name and role, ordered by them."""
    newest: dict[tuple[str, str], x509.Certificate] = {}
    for cert in sorted(issued, key=lambda cert: cert.not_valid_before_utc):
        is_void = revoked is not None and cert.serial_number in revoked
        if cert.not_valid_after_utc > now and not is_void:
            newest[names_of(cert)] = cert
    return [newest[names] for names in sorted(newest)]


def write_members(folders: Iterable[Path], certificates: Iterable[x509.Certificate]) -> None:
    """Write them in PEM, behind each other, into a file of each folder."""
    content = b"".join(cert.public_bytes(form.Encoding.PEM) for cert in certificates)
    for folder in folders:
        write_public(folder / FILE, content)


def check_members_ahead(identity: Identity) -> int:
    """Check the certificates in the members.pem of an identity's folder, if it is there.

    A fault of the file is logged, and changes nothing: it says only whom to expect.

    Returns: how many of them count now.
    """
    if identity.source is None:
        return 0
    path = identity.source.folder / FILE
    if not os.path.lexists(path):
        return 0
    counted, faults = 0, []
    try:
        for cert in _read(path):
            try:
                check_ahead(identity, cert.public_bytes(form.Encoding.DER))
                counted += 1
            except CertificateError as error:
                faults.append(error.message)
    except CertificateError as error:
        log.warning("%s. It is left out", error.message)
    if faults:
        first = f"{len(faults)} certificates do not count, the first because {faults[0]}"
        log.warning("%s: %s. They are left out; maybe the file is old", path, first)
    log.debug("%s: %d certificates were checked ahead", path, counted)
    return counted


def _read(path: Path) -> list[x509.Certificate]:
    content = read_file(path, HOW, MOST_BYTES)
    with refusing(f"{path} holds no certificates in PEM: {HOW}"):
        return x509.load_pem_x509_certificates(content)
