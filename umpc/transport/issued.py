"""The certificates that an authority issued, one file each, in the folder `issued` of its own.

The record makes it possible to revoke all certificates of a name, and to refuse a new certificate
for a key that was revoked. Certificates of an authority of umpc 0.2.0 or older are not in it until
one of them is revoked by its file.
"""

from __future__ import annotations

import re
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization as pem

from umpc.errors import ConfigError
from umpc.transport.certificates import (
    key_digest,
    load_certificate,
    names_of,
    p256_key_of,
)
from umpc.transport.files import write_public

SERIAL = re.compile(r"(0x)?[0-9a-f]{16,40}")
"""A serial number as `umpc ca show` prints it. umpc draws them from 159 bits."""
HOW = "restore the authority's folder from a backup"


class Issued:
    """The record in one folder."""

    def __init__(self, folder: Path):
        self._folder = folder

    def add(self, cert: x509.Certificate) -> None:
        """Record a certificate, before it leaves the authority."""
        path = self._folder / f"{cert.serial_number:040x}.pem"
        write_public(path, cert.public_bytes(pem.Encoding.PEM))

    def all(self) -> list[x509.Certificate]:
        """Return every recorded certificate. Raises: CertificateError if a file is damaged."""
        return [load_certificate(path, HOW) for path in sorted(self._folder.glob("*.pem"))]

    def of_key(self, key: bytes) -> list[x509.Certificate]:
        """Return the certificates for a key, given by its `key_digest`."""
        return [cert for cert in self.all() if key_digest(p256_key_of(cert)) == key]

    def find(self, which: str, role: str | None = None) -> set[int]:
        """Return the serial numbers that a serial number or a name stands for.

        Raises: ConfigError if there is none, or if the name has several roles and none is given.
        """
        by_serial = {cert.serial_number: names_of(cert) for cert in self.all()}
        serial = _serial(which)
        if serial in by_serial:
            return {serial}
        fitting = {s for s, of in by_serial.items() if of[0] == which and role in (None, of[1])}
        roles = sorted({by_serial[s][1] for s in fitting})
        if len(roles) > 1:
            raise ConfigError(f"{which!r} is the name of a {' and of a '.join(roles)}: give --role")
        if fitting:
            return fitting
        if serial is not None:
            return {serial}
        raise ConfigError(
            f"{which!r} is no file, no serial number, and not the name of a certificate that this "
            f"authority recorded in {self._folder}: give the certificate's file"
        )

    def describe(self, serial: int) -> str:
        """Return a certificate's role, name, date and serial number, as far as they are known."""
        for cert in self.all():
            if cert.serial_number == serial:
                name, role = names_of(cert)
                until = cert.not_valid_after_utc
                return f"{role} {name!r}, valid until {until:%Y-%m-%d}, serial number {serial:x}"
        return f"serial number {serial:x}, whose certificate this authority did not record"


def _serial(text: str) -> int | None:
    digits = text.lower().replace(":", "")
    return int(digits, 16) if SERIAL.fullmatch(digits) else None
