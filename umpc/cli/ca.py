"""`umpc ca`: the certificate authority of a consortium, and the requests of its sites.

The module imports neither grpc nor cryptography before a command runs, so that `umpc --help`
answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cryptography import x509

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
ROLE = click.Choice(["node", "dealer", "shuffler", "coordinator"])

days_option = click.option(
    "--days", default=90, show_default=True, help="Number of days that the certificate is valid."
)
authority_option = click.option(
    "--authority",
    required=True,
    type=FOLDER,
    help="The authority's folder, which `umpc ca init` made.",
)


@click.group()
def ca() -> None:
    """Make certificates. A certificate gives a process its name and its role.

    Processes talk only to processes with a certificate of the same authority. Make one in four
    steps:

    \b
    1. One member makes the authority:      umpc ca init authority
    2. Each site makes its key and request: umpc ca request --name hospital-a --role node site
    3. The authority signs each request:    umpc ca sign --authority authority request.csr \\
                                              --out cert.pem
    4. All compare the authority by phone:  umpc ca show site
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
    from umpc.transport.authority import Authority, fingerprint

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
    from umpc.transport import authority

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
    from umpc.errors import ConfigError
    from umpc.transport.authority import (
        Authority,
        load_certificate,
        load_request,
        names_of,
        write_public,
    )

    signer = Authority.open(authority)
    _refuse_overwriting(out)
    try:
        csr = request_csr.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{request_csr} cannot be read ({error.strerror}); a site's request.csr was expected"
        ) from None
    asked_name, asked_role = names_of(load_request(csr))
    cert = signer.sign(csr, name=name or asked_name, role=role or asked_role, days=days)
    write_public(out, cert)
    write_public(out.parent / "ca.pem", signer.ca_pem)
    _describe(load_certificate(out))
    click.echo(f"return both {out} and {out.parent / 'ca.pem'} to the site")


def _refuse_overwriting(out: Path) -> None:
    """Raises: ConfigError if a certificate at `out` would replace a key or an authority."""
    from umpc.errors import ConfigError

    is_other = out.exists() and b"BEGIN CERTIFICATE-----" not in out.read_bytes()
    if out.name == "ca.pem" or is_other:
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
    from umpc.transport.authority import Authority, load_certificate

    Authority.open(authority).issue(name, role, folder, days)
    _describe(load_certificate(folder / "cert.pem"))


@ca.command()
@click.argument("folder_or_cert", metavar="FOLDER_OR_CERT", type=click.Path(path_type=Path))
def show(folder_or_cert: Path) -> None:
    """Show a certificate's name, role, dates and authority.

    FOLDER_OR_CERT is a site's folder, an authority's folder, or a PEM file. Two sites trust each
    other if this command shows the same authority at both.

    \b
    Example:
      umpc ca show site
    """
    from umpc.transport.authority import load_certificate

    path = folder_or_cert
    if path.is_dir():
        is_authority = (path / "ca.pem").exists() and not (path / "cert.pem").exists()
        path /= "ca.pem" if is_authority else "cert.pem"
    _describe(load_certificate(path))


def _describe(cert: x509.Certificate) -> None:
    """Print a certificate's facts. An authority's own certificate has no name and role."""
    from umpc.transport.authority import fingerprint, issuer_fingerprint, names_of

    if fingerprint(cert) != issuer_fingerprint(cert):
        name, role = names_of(cert)
        click.echo(f"name         {name}")
        click.echo(f"role         {role}")
    click.echo(f"valid from   {cert.not_valid_before_utc:%Y-%m-%d %H:%M} UTC")
    click.echo(f"valid until  {cert.not_valid_after_utc:%Y-%m-%d %H:%M} UTC")
    click.echo(f"authority    {issuer_fingerprint(cert)}")
