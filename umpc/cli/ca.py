"""`umpc ca`: the certificate authority of a consortium, and the requests of its sites.

The module imports neither grpc nor cryptography before a command runs, so that `umpc --help`
answers at once.

`umpc ca list`: all certificates, invitations and requests of an authority.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from cryptography import x509

from umpc.cli.shared import FILE, FOLDER, print_columns
from umpc.enrolment.authority_side import EnrolmentOffice
from umpc.enrolment.register import ADMITTED, INVITED
from umpc.enrolment.texts import Request, fingerprint_of, pem_of
from umpc.errors import CertificateError, ConfigError
from umpc.transport import authority
from umpc.transport.authority import Authority
from umpc.transport.certificates import (
    REMAKE,
    ROLES,
    Revoked,
    clock,
    fingerprint,
    is_signed_by,
    issuer_fingerprint,
    load_certificate,
    load_request,
    names_of,
)
from umpc.transport.files import read_file, write_public
from umpc.transport.identity import load_revoked

ROLE = click.Choice(ROLES)

days_option = click.option(
    "--days", default=90, show_default=True, help="Number of days that the certificate is valid."
)
list_days_option = click.option(
    "--days", default=30, show_default=True, help="Number of days until the next list is due."
)
authority_option = click.option(
    "--authority",
    required=True,
    type=FOLDER,
    help="The authority's folder, which `umpc ca init` made.",
)


@click.group()
def ca() -> None:
    """Make and revoke certificates. A certificate gives a process its name and its role.

    Processes talk only to processes with a certificate of the same authority. `umpc enrol` is the
    short way to one. These commands are its single steps:

    \b
    1. One member makes the authority:      umpc ca init authority
    2. Each site makes its key and request: umpc ca request --name hospital-a --role node site
    3. The authority signs each request:    umpc ca sign --authority authority request.csr \\
                                              --out cert.pem
    4. All compare the authority by phone:  umpc ca show site

    To end a certificate before its date, the authority revokes it with `umpc ca revoke` and gives
    the new crl.pem to every site.
    """


@ca.command()
@click.argument("folder", type=FOLDER)
def init(folder: Path) -> None:
    """Make a new authority in FOLDER.

    Keep ca-key.pem secret: anybody who has it can take any name and role. Give ca.pem to every
    site.

    \b
    Example:
      umpc ca init authority
    """

    authority = Authority.create(folder)
    click.echo(f"authority    {fingerprint(authority.cert)}")
    click.echo(f"secret key   {folder / 'ca-key.pem'}: keep it secret, and keep a copy")
    click.echo(f"certificate  {folder / 'ca.pem'}: give it to every site")


@ca.command()
@click.option("--name", required=True, help="This site's name in studies: a-z, 0-9 and '-'.")
@click.option("--role", required=True, type=ROLE, help="The role of this site's process.")
@click.argument("folder", type=FOLDER)
def request(name: str, role: str, folder: Path) -> None:
    """Make a site's secret key and its request in FOLDER.

    Leave key.pem in FOLDER, and send request.csr to the authority. The command keeps an existing
    key, so the same command renews a certificate.

    \b
    Example:
      umpc ca request --name hospital-a --role node site
    """

    path = authority.request(name, role, folder)
    command = f"umpc ca sign --authority … {path.name} --name {name} --role {role} --out cert.pem"
    click.echo(f"secret key  {folder / 'key.pem'}: leave it here")
    click.echo(f"request     {path}: send it to the authority, which runs")
    click.echo(f"            {command}")
    click.echo(f"            and returns cert.pem and ca.pem: put both into {folder}")


@ca.command()
@authority_option
@click.argument("request_csr", metavar="REQUEST.csr", type=FILE)
@click.option("--name", help="Refuse the request if it asks for another name.")
@click.option("--role", type=ROLE, help="Refuse the request if it asks for another role.")
@click.option(
    "--out",
    required=True,
    type=FILE,
    help="File for the certificate. A copy of ca.pem is written beside it.",
)
@days_option
def sign(
    authority: Path, request_csr: Path, name: str | None, role: str | None, out: Path, days: int
) -> None:
    """Sign a site's request, REQUEST.csr.

    First make sure that the request came from that site. Without --name and --role the certificate
    gets the request's own name and role, and the command prints them.

    \b
    Example:
      umpc ca sign --authority authority hospital-a.csr \\
          --name hospital-a --role node --out for-hospital-a/cert.pem
    """

    signer = Authority.open(authority)
    _refuse_overwriting(out)
    csr = read_file(request_csr, "a site's request.csr was expected")
    asked_name, asked_role = names_of(load_request(csr))
    was_revoked = signer.last_is_revoked(asked_name, asked_role)
    cert = signer.sign(csr, name=name or asked_name, role=role or asked_role, days=days)
    if signer.signs_in(asked_name, asked_role):
        click.echo(
            f"WARNING      {asked_name!r} signs in at an institution, with a limit of studies: "
            "this certificate has none",
            err=True,
        )
    if was_revoked:
        click.echo(f"WARNING      the former certificate of {asked_name!r} was revoked", err=True)
    write_public(out, cert)
    beside = signer.write_trust(out.parent)
    _describe(load_certificate(out), authority / "ca.pem", must_fit=True)
    click.echo(f"return {', '.join(map(str, [out, *beside]))} to the site")


def _refuse_overwriting(out: Path) -> None:
    """Raises: ConfigError if a certificate at `out` would replace a key or an authority."""

    is_other = out.exists() and b"BEGIN CERTIFICATE-----" not in read_file(out, "choose another")
    if out.name in ("ca.pem", "crl.pem") or is_other:
        raise ConfigError(
            f"--out {out} would overwrite a file that is not a site's certificate; "
            "choose another file"
        )


@ca.command()
@authority_option
@click.option("--name", required=True, help="The process's name: a-z, 0-9 and '-'.")
@click.option("--role", required=True, type=ROLE, help="The process's role.")
@click.argument("folder", type=FOLDER)
@days_option
def issue(authority: Path, name: str, role: str, folder: Path, days: int) -> None:
    """Make a key and its certificate in FOLDER in one step.

    The command writes key.pem, cert.pem and ca.pem, to try umpc on one machine. In a consortium
    each site must make its own key: use `request` and `sign` instead.

    \b
    Example:
      umpc ca issue --authority authority --name hospital-a --role node sites/hospital-a
    """

    Authority.open(authority).issue(name, role, folder, days)
    _describe(load_certificate(folder / "cert.pem"), folder / "ca.pem", must_fit=True)


@ca.command()
@authority_option
@click.argument("which", metavar="CERT_OR_SERIAL_OR_NAME")
@click.option("--role", type=ROLE, help="The role, if a name has certificates of several roles.")
@list_days_option
def revoke(authority: Path, which: str, role: str | None, days: int) -> None:
    """Revoke certificates: from now on all others refuse them.

    CERT_OR_SERIAL_OR_NAME is a certificate's file, the serial number that `umpc ca show` prints, or
    a name. A name stands for all its certificates. The command writes a new crl.pem into the
    authority's folder. Give it to every site: a process that finds it in its identity's folder
    uses it at its next connection or call, without a restart.

    The authority signs no further certificate for a revoked key. A site that stays a member makes
    a new key.

    \b
    Example:
      umpc ca revoke --authority authority hospital-a
    """

    office = EnrolmentOffice(authority)
    signer = office.authority
    with office.register.locked():  # nobody signs in meanwhile
        serials = {signer.adopt(Path(which))} if Path(which).is_file() else None
        serials = serials or signer.issued.find(which, role)
        revoked = signer.revoke(serials, days=days)
    for serial in sorted(serials):
        click.echo(f"revoked      {signer.issued.describe(serial)}")
    _describe_list(revoked)
    click.echo(f"give {signer.list_path} to every site, into the folder with its ca.pem")


@ca.command()
@authority_option
@list_days_option
def crl(authority: Path, days: int) -> None:
    """Sign the list of revoked certificates again, with a new date.

    Do so before the date of the former list has passed. A list after its date still counts, but
    every process warns, because it cannot know what was revoked since.

    \b
    Example:
      umpc ca crl --authority authority
    """

    office = EnrolmentOffice(authority)
    signer = office.authority
    with office.register.locked():  # a revocation meanwhile would not be on the list
        revoked = signer.revoke(set(), days=days)
    _describe_list(revoked)
    click.echo(f"give {signer.list_path} to every site, into the folder with its ca.pem")


HEAD = ("state", "role", "name", "until", "address", "serial or fingerprint")


@ca.command("list")
@authority_option
def list_issued(authority: Path) -> None:
    """List all certificates of an authority, and the invitations and requests of `umpc enrol`.

    \b
    Example:
      umpc ca list --authority authority
    """

    office = EnrolmentOffice(authority)
    print_columns([HEAD, *_enrolments(office), *_certificates(office)])


def _enrolments(office: EnrolmentOffice) -> Iterator[tuple[str, ...]]:
    """Rows of the processes that have no certificate of their last request yet."""

    for entry in office.register.all():
        if entry.state == ADMITTED:
            continue
        digits = "" if entry.state == INVITED else office.view(entry).fingerprint
        until = entry.until[:10] or "-"
        state = f"{entry.state}, rival" if entry.rival else entry.state
        yield state, entry.role, entry.name, until, entry.address or "-", digits or "-"


def _certificates(office: EnrolmentOffice) -> Iterator[tuple[str, ...]]:

    revoked = office.authority.revoked()
    addresses = {(entry.name, entry.role): entry.member_address for entry in office.register.all()}
    issued = office.authority.issued.all()
    for cert in sorted(issued, key=lambda cert: (*names_of(cert)[::-1], cert.not_valid_after_utc)):
        name, role = names_of(cert)
        state = "expired" if cert.not_valid_after_utc < clock() else "valid"
        if revoked is not None and cert.serial_number in revoked:
            state = "revoked"
        until = f"{cert.not_valid_after_utc:%Y-%m-%d}"
        address = addresses.get((name, role)) or "-"
        yield state, role, name, until, address, f"{cert.serial_number:x}"


@ca.command()
@click.argument("folder_or_cert", metavar="FOLDER_OR_CERT", type=click.Path(path_type=Path))
def show(folder_or_cert: Path) -> None:
    """Show a certificate's name, role, dates, serial number and authority, or a request.

    FOLDER_OR_CERT is a site's folder, an authority's folder, a PEM file, or the text of a request
    that `umpc enrol join` printed. For a request, the command shows its fingerprint, which the site
    and the authority compare. Two sites trust each other if this command shows the same authority
    at both. If a folder holds a list of revoked certificates, the command shows its date and length
    too.

    \b
    Example:
      umpc ca show site
    """

    path = folder_or_cert
    if not path.is_dir():
        content = read_file(path, "a certificate or a request was expected; correct the path")
        if b"BEGIN CERTIFICATE REQUEST-----" in content:
            _describe_request(content)
            return
        if content.lstrip().startswith(b"umpc-request-"):
            request = Request.decode(content.decode("ascii", "replace"))
            _describe_request(pem_of(request.csr, "CERTIFICATE REQUEST"))
            return
        _describe(load_certificate(path), path.parent / "ca.pem", must_fit=False)
        return
    is_authority = (path / "ca.pem").exists() and not (path / "cert.pem").exists()
    shown = path / ("ca.pem" if is_authority else "cert.pem")
    _describe(load_certificate(shown), path / "ca.pem", must_fit=True)
    revoked = load_revoked(path / "crl.pem", read_file(path / "ca.pem", REMAKE))
    if revoked is not None:
        _describe_list(revoked)


def _describe(cert: x509.Certificate, beside: Path, *, must_fit: bool) -> None:
    """Print a certificate's facts. An authority's own certificate has no name and role.

    Args: beside: the ca.pem in its folder. must_fit: whether this must have signed it.
    Raises: CertificateError where it must, and did not.
    """

    authority = _authority_of(cert, beside, must_fit=must_fit)
    if not is_signed_by(cert, cert):
        name, role = names_of(cert)
        click.echo(f"name         {name}")
        click.echo(f"role         {role}")
    click.echo(f"valid from   {cert.not_valid_before_utc:%Y-%m-%d %H:%M} UTC")
    click.echo(f"valid until  {cert.not_valid_after_utc:%Y-%m-%d %H:%M} UTC")
    click.echo(f"serial       {cert.serial_number:x}")
    click.echo(f"authority    {authority}")


def _authority_of(cert: x509.Certificate, beside: Path, *, must_fit: bool) -> str:
    """Return the fingerprint of the key that signed a certificate, or what the certificate says."""

    if is_signed_by(cert, cert):
        return fingerprint(cert)
    ca = load_certificate(beside) if beside.exists() else None
    if ca is not None and is_signed_by(cert, ca):
        return fingerprint(ca)
    if ca is not None and must_fit:
        raise CertificateError(
            f"{beside} is of authority {fingerprint(ca)}, which did not sign the certificate beside"
            " it: restore the files that `umpc enrol finish` wrote, or join again"
        )
    return f"{issuer_fingerprint(cert)}, as the certificate itself says: nothing here proves it"


def _describe_request(csr: bytes) -> None:
    """Print a request's facts. Raises: CertificateError if it is damaged."""

    request = load_request(csr)
    name, role = names_of(request)
    click.echo(f"name         {name}")
    click.echo(f"role         {role}")
    click.echo(f"fingerprint  {fingerprint_of(request)}")


def _describe_list(revoked: Revoked) -> None:
    click.echo(
        f"list         number {revoked.number} of {revoked.made:%Y-%m-%d %H:%M} UTC, "
        f"{len(revoked.serials)} revoked, next due {revoked.next_update:%Y-%m-%d %H:%M} UTC"
    )
