"""The consortium's certificate authority, and the requests of its sites.

Keys are made at the site and stay there:

    site$      umpc ca request …      key.pem (stays), request.csr (travels)
    authority$ umpc ca sign …         cert.pem and ca.pem (travel back)
    authority$ umpc ca revoke …       crl.pem (travels to every site)

`certificates.py` says what a certificate holds, and `identity.py` how a process uses its own.
Every function takes `now` as an argument and reads the clock only if it is left out.

*Issued.* The certificates that an authority issued, one file each, in the folder `issued` of its
own.

Those of coordinators who signed in (`umpc/enrolment/sign_in.py`) last for hours, so the record
keeps them until then, or for good once they are revoked.

The record makes it possible to revoke all certificates of a name, and to refuse a new certificate
for a key that was revoked. Certificates of an authority of umpc 0.2.0 or older are not in it until
one of them is revoked by its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from umpc.errors import CertificateError, ConfigError
from umpc.transport.certificates import (
    NEW_AUTHORITY,
    Key,
    PublicKey,
    Revoked,
    SignedIn,
    alternative_names,
    check_name,
    check_validity,
    clock,
    fingerprint,
    is_signed_by,
    key_digest,
    load_certificate,
    load_key,
    load_request,
    names_of,
    p256_key_of,
    signed_in_of,
)
from umpc.transport.files import read_file, write_public, write_secret
from umpc.transport.identity import load_revoked
from umpc.transport.revocation import FETCH, LIST_DAYS, next_list, sign_revoked

DAYS = 90
CA_DAYS = 3650
CLOCK_SKEW = timedelta(minutes=5)


class Authority:
    """The authority that signs one consortium's certificates. Its key never leaves its folder."""

    def __init__(self, cert: x509.Certificate, key: Key, folder: Path):
        self._key = key
        self.cert = cert
        self.issued = Issued(folder / "issued")
        self.signed_in = folder / "signed-in"
        """A file for each coordinator's name that ever signed in at an institution."""
        self.list_path = folder / "crl.pem"
        self.ca_pem = cert.public_bytes(pem.Encoding.PEM)

    def __repr__(self) -> str:
        return f"Authority({fingerprint(self.cert)}, key=<redacted>)"

    @classmethod
    def create(cls, folder: Path | str, *, now: datetime | None = None) -> Authority:
        """Make ca-key.pem (mode 0600) and ca.pem in `folder`.

        Raises: ConfigError if the folder holds an authority already.
        """
        key_path = Path(folder) / "ca-key.pem"
        ca_path = Path(folder) / "ca.pem"
        for path in (key_path, ca_path):
            if path.exists():
                raise ConfigError(f"{path} exists already: expected a folder without an authority")
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject("umpc authority")
        public, life = key.public_key(), timedelta(days=CA_DAYS)
        # It may sign certificates and lists of revoked ones, and nothing else.
        sign_only = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        cert = (
            _builder(subject, public, subject, public, now, life)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(sign_only, critical=True)
            .sign(key, hashes.SHA256())
        )
        authority = cls(cert, key, Path(folder))
        write_secret(key_path, _in_pem(key))
        try:
            write_public(ca_path, authority.ca_pem)
        except CertificateError:
            key_path.unlink()  # half an authority would stand in the way of a whole one
            raise
        return authority

    @classmethod
    def open(cls, folder: Path | str) -> Authority:
        """Read the files that `create` made.

        Raises: CertificateError if a file is missing or the two do not match.
        """
        key_path = Path(folder) / "ca-key.pem"
        ca_path = Path(folder) / "ca.pem"
        how = "make an authority with `umpc ca init`, or restore its folder"
        cert, key = load_certificate(ca_path, how), load_key(key_path, how)
        if key.public_key() != cert.public_key():
            raise CertificateError(
                f"{key_path} is not the key of {ca_path}: restore both from one backup"
            )
        return cls(cert, key, Path(folder))

    def sign(
        self,
        csr: bytes,
        *,
        name: str,
        role: str,
        days: float = DAYS,
        now: datetime | None = None,
        signed_in: SignedIn | None = None,
    ) -> bytes:
        """Return the certificate (PEM) for the key in a request, and record it.

        Only the key is taken from the request. Args: signed_in: who stands behind a coordinator.

        Raises: CertificateError if the request is damaged, or if it is for another name, role or
        kind of key, or for the key of a revoked certificate.
        """
        check_name(name, role)
        if days <= 0:
            raise ConfigError(f"a certificate for {days} days is of no use: expected at least 1")
        check_validity(self.cert, "the authority's own ca.pem", now, NEW_AUTHORITY)
        request = load_request(csr)
        asked = names_of(request)
        if asked != (name, role):
            raise CertificateError(
                f"the request asks for {asked[1]} {asked[0]!r}, expected {role} {name!r}: "
                "let the site make a new request, or sign it as what it asks for"
            )
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        key = p256_key_of(request)
        self._refuse_revoked(key, name)
        names = alternative_names(name, role, signed_in)
        cert = self._signed(name, key, usages, names, days, now)
        if signed_in is not None:
            self.issued.forget_ended(now or clock(), self.revoked())
        self.issued.add(cert)
        return cert.public_bytes(pem.Encoding.PEM)

    def sign_listener(
        self, key: PublicKey, host: str, *, days: int, now: datetime | None = None
    ) -> bytes:
        """Return a certificate (PEM) for the listening authority's own TLS key.

        It names no role, so no process takes it for a member's, and it is not recorded.

        Raises: CertificateError if the authority's own certificate does not count.
        """
        check_validity(self.cert, "the authority's own ca.pem", now, NEW_AUTHORITY)
        names = x509.SubjectAlternativeName([x509.DNSName(host)])
        cert = self._signed(host, key, [ExtendedKeyUsageOID.SERVER_AUTH], names, days, now)
        return cert.public_bytes(pem.Encoding.PEM)

    def _signed(
        self,
        name: str,
        key: PublicKey,
        usages: list[x509.ObjectIdentifier],
        names: x509.SubjectAlternativeName,
        days: float,
        now: datetime | None,
    ) -> x509.Certificate:
        """Return a certificate that may not sign others, and ends with the authority's own."""
        left = self.cert.not_valid_after_utc - (now or clock())
        life = min(timedelta(days=min(days, CA_DAYS)), left)
        own = self._key.public_key()
        return (
            _builder(_subject(name), key, self.cert.subject, own, now, life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(names, critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _refuse_revoked(self, key: PublicKey, name: str) -> None:
        """Whoever stole a key could use the new certificate too. Raises: CertificateError."""
        if any(p256_key_of(cert) == key for cert, _ in self._revoked_ones()):
            raise CertificateError(
                f"the request of {name!r} is for the key of a revoked certificate: let the site "
                "move its key.pem away and make a new one with the same command",
                culprit=name,
            )

    def _revoked_ones(self) -> Iterator[tuple[x509.Certificate, datetime]]:
        """Yield each recorded certificate that is revoked, and since when."""
        revoked = self.revoked()
        for serial, since in revoked.serials.items() if revoked else ():
            for cert in self.issued.of(serial):
                yield cert, since

    def last_revocation(self, name: str, role: str) -> datetime | None:
        """Return when a certificate of a process was revoked last; None if none was.

        The list keeps the date of the first time. A keeper who readmits a person, and revokes
        again before there is another certificate, names the same one a second time.

        Raises: CertificateError.
        """
        found = [
            max(since, *self.issued.revocations(cert.serial_number))
            for cert, since in self._revoked_ones()
            if names_of(cert) == (name, role)
        ]
        return max(found, default=None)

    def signs_in(self, name: str, role: str) -> bool:
        """Whether a process got certificates for hours, with a limit of studies, so far."""
        return role == "coordinator" and (self.signed_in / name).exists()

    def last_is_revoked(self, name: str, role: str) -> bool:
        """Whether the latest certificate of a process is revoked. Raises: CertificateError."""
        revoked = self.revoked()
        issued = [cert for cert in self.issued.all() if names_of(cert) == (name, role)]
        if revoked is None or not issued:
            return False
        latest = max(cert.not_valid_before_utc for cert in issued)
        return all(
            cert.serial_number in revoked for cert in issued if cert.not_valid_before_utc == latest
        )

    def revoked(self) -> Revoked | None:
        """Return the list that this authority published last. Raises: CertificateError."""
        return load_revoked(self.list_path, self.ca_pem)

    def revoke(
        self, serials: set[int], *, days: int = LIST_DAYS, now: datetime | None = None
    ) -> Revoked:
        """Publish a list with these certificates and all former ones, in crl.pem.

        With no serial numbers it only renews the list.

        Raises: CertificateError if the former list or the authority's own certificate is unusable.
        """
        if not 1 <= days <= CA_DAYS:
            raise ConfigError(f"a list for {days} days: expected 1 to {CA_DAYS}")
        check_validity(self.cert, "the authority's own ca.pem", now, NEW_AUTHORITY)
        revoked = next_list(self.revoked(), serials, days=days, now=now)
        for serial in serials:
            self.issued.note_revocation(serial, revoked.made)
        write_public(self.list_path, sign_revoked(revoked, self.cert, self._key))
        return revoked

    def adopt(self, path: Path) -> int:
        """Record a certificate from its file, and return its serial number.

        Raises: CertificateError unless this authority signed it.
        """
        cert = load_certificate(path)
        name, role = names_of(cert)
        if not is_signed_by(cert, self.cert):
            raise CertificateError(
                f"{path} is of {role} {name!r}, and this authority did not sign it: "
                "give a certificate of this authority"
            )
        self.issued.add(cert)
        return cert.serial_number

    def issue(
        self,
        name: str,
        role: str,
        folder: Path | str,
        days: int = DAYS,
        *,
        now: datetime | None = None,
    ) -> None:
        """Write key, certificate and ca.pem into one folder.

        This is for demonstrations, where one person is both the authority and the site.
        """
        cert_path = Path(folder) / "cert.pem"
        check_name(name, role)
        if cert_path.exists() and (held := names_of(load_certificate(cert_path))) != (name, role):
            raise ConfigError(
                f"{cert_path} is of {held[1]} {held[0]!r}, not {role} {name!r}: use another folder"
            )
        csr = request(name, role, folder).read_bytes()
        write_public(cert_path, self.sign(csr, name=name, role=role, days=days, now=now))
        self.write_trust(Path(folder))

    def write_trust(self, folder: Path) -> list[Path]:
        """Write the files that every identity needs beside its own: ca.pem, and a list if any.

        Returns: their paths.
        """
        files = {"ca.pem": self.ca_pem}
        if self.revoked() is not None:
            files["crl.pem"] = read_file(self.list_path, FETCH)
        for name, content in files.items():
            write_public(folder / name, content)
        return [folder / name for name in files]


def request(name: str, role: str, folder: Path | str) -> Path:
    """Make key.pem (mode 0600) and request.csr. An existing key is kept, so this also renews.

    Returns: the path of request.csr, the only file to send to the authority.
    """
    check_name(name, role)
    key_path = Path(folder) / "key.pem"
    path = Path(folder) / "request.csr"
    fresh = not key_path.exists()
    key = ec.generate_private_key(ec.SECP256R1()) if fresh else load_key(key_path)
    csr = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(_subject(name))
        .add_extension(alternative_names(name, role), critical=False)
        .sign(key, hashes.SHA256())
    )
    if fresh:
        write_secret(key_path, _in_pem(key))
    write_public(path, csr.public_bytes(pem.Encoding.PEM))
    return path


def _in_pem(key: Key) -> bytes:
    return key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name,
    key: PublicKey,
    issuer: x509.Name,
    issuer_key: PublicKey,
    now: datetime | None,
    life: timedelta,
) -> x509.CertificateBuilder:
    now = now or clock()
    serial = x509.random_serial_number()
    own = x509.SubjectKeyIdentifier(key_digest(key))
    authority = x509.AuthorityKeyIdentifier(key_digest(issuer_key), None, None)
    return (
        x509.CertificateBuilder(issuer, subject, key, serial, now - CLOCK_SKEW, now + life)
        .add_extension(own, critical=False)
        .add_extension(authority, critical=False)
    )


# --- issued ---------------------------------------------------------------------------------------

SERIAL = re.compile(r"(0x)?[0-9a-f]{16,40}")
"""A serial number as `umpc ca show` prints it. umpc draws them from 159 bits."""
HOW = "restore the authority's folder from a backup"
END = "%Y%m%dT%H%M%SZ"
"""A time in UTC as a file's name has it: the end of a certificate for hours, or a revocation."""


class Issued:
    """The record in one folder."""

    def __init__(self, folder: Path):
        self._folder = folder

    def add(self, cert: x509.Certificate) -> None:
        """Record a certificate, before it leaves the authority."""
        end = f".{cert.not_valid_after_utc:{END}}" if signed_in_of(cert) else ""
        path = self._folder / f"{cert.serial_number:040x}{end}.pem"
        write_public(path, cert.public_bytes(pem.Encoding.PEM))

    def forget_ended(self, now: datetime, revoked: Revoked | None) -> None:
        """Remove certificates for hours that have ended, and were not revoked."""
        for path in self._folder.glob("*.*.pem"):
            serial, end, _ = path.name.split(".")
            if end < f"{now:{END}}" and not (revoked and int(serial, 16) in revoked):
                path.unlink(missing_ok=True)

    def note_revocation(self, serial: int, now: datetime) -> None:
        """Record that a certificate was revoked, maybe not for the first time."""
        write_public(self._folder / f"{serial:040x}.{now:{END}}.revoked", b"")

    def revocations(self, serial: int) -> list[datetime]:
        """Return when a certificate was revoked, as this record knows."""
        found = self._folder.glob(f"{serial:040x}.*.revoked")
        return [
            datetime.strptime(path.suffixes[0], f".{END}").replace(tzinfo=UTC) for path in found
        ]

    def all(self) -> list[x509.Certificate]:
        """Return every recorded certificate. Raises: CertificateError if a file is damaged."""
        return list(self._read("*.pem"))

    def of(self, serial: int) -> list[x509.Certificate]:
        """Return the recorded certificate of a serial number, if there is one."""
        return list(self._read(f"{serial:040x}*.pem"))

    def _read(self, pattern: str) -> Iterator[x509.Certificate]:
        """Read certificates, without those that `forget_ended` removes meanwhile."""
        for path in sorted(self._folder.glob(pattern)):
            try:
                yield load_certificate(path, HOW)
            except CertificateError:
                if path.exists() or not path.match("*.*.pem"):
                    raise

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
