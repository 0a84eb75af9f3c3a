"""`umpc ca`: the certificate authority of a consortium, and the requests of its sites.

Imports neither grpc nor cryptography before a command runs, so that `umpc --help` answers at once.
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

days_option = click.option("--days", default=90, show_default=True, help="Life of the certificate.")
authority_option = click.option(
    "--authority", required=True, type=FOLDER, help="Folder of `umpc ca init`."
)


@click.group()
def ca() -> None:
    """Certificates: who may take part, under which name and role.

    \b
    One member of the consortium:   umpc ca init authority
    Every site, about itself:       umpc ca request --name hospital-a --role node site
    The authority, for each site:   umpc ca sign --authority authority request.csr --out cert.pem
    Everybody, to compare by phone: umpc ca show site
    """


@ca.command()
@click.argument("folder", type=FOLDER)
def init(folder: Path) -> None:
    """Make a new authority in FOLDER.

    Keep ca-key.pem to yourself: who has it can take any name and role. Give ca.pem to every site.

    \b
    Example:
      umpc ca init authority
    """
    from umpc.transport.authority import Authority, fingerprint

    authority = Authority.create(folder)
    click.echo(f"authority    {fingerprint(authority.cert)}")
    click.echo(f"secret key   {folder / 'ca-key.pem'}: keep it, and a copy, to yourself")
    click.echo(f"certificate  {folder / 'ca.pem'}: give it to every site")


@ca.command()
@click.option("--name", required=True, help="Name of this site, as in studies: a-z, 0-9 and '-'.")
@click.option("--role", required=True, type=ROLE, help="What this process will be.")
@click.argument("folder", type=FOLDER)
def request(name: str, role: str, folder: Path) -> None:
    """Make this site's key and its request in FOLDER.

    key.pem stays in FOLDER; send request.csr to the authority. An existing key is kept, so the same command
    renews a certificate.

    \b
    Example:
      umpc ca request --name hospital-a --role node site
    """
    from umpc.transport import authority

    path = authority.request(name, role, folder)
    click.echo(f"secret key  {folder / 'key.pem'}: stays here")
    click.echo(f"request     {path}: send it to the authority, which runs")
    click.echo(
        f"            umpc ca sign --authority … {path.name} --name {name} --role {role} --out cert.pem"
    )
    click.echo(f"            then put the cert.pem and ca.pem it returns into {folder}")


@ca.command()
@authority_option
@click.argument("request_csr", metavar="REQUEST.csr", type=FILE)
@click.option("--name", help="Refuse the request unless it is for this name.")
@click.option("--role", type=ROLE, help="Refuse the request unless it is for this role.")
@click.option("--out", required=True, type=FILE, help="The certificate; ca.pem is put beside it.")
@days_option
def sign(
    authority: Path, request_csr: Path, name: str | None, role: str | None, out: Path, days: int
) -> None:
    """Sign a site's REQUEST.csr.

    Make sure that it came from that site. Without --name and --role the request's own are taken, and shown.

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
    if out.name == "ca.pem" or (out.exists() and b"BEGIN CERTIFICATE-----" not in out.read_bytes()):
        raise ConfigError(
            f"--out {out} would overwrite what is not a site's certificate: choose another file"
        )
    try:
        csr = request_csr.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{request_csr} cannot be read ({error.strerror}): expected a site's request.csr"
        ) from None
    asked_name, asked_role = names_of(load_request(csr))
    cert = signer.sign(csr, name=name or asked_name, role=role or asked_role, days=days)
    write_public(out, cert)
    write_public(out.parent / "ca.pem", signer.ca_pem)
    _describe(load_certificate(out))
    click.echo(f"return both {out} and {out.parent / 'ca.pem'} to the site")


@ca.command()
@authority_option
@click.option("--name", required=True, help="Name of the process: a-z, 0-9 and '-'.")
@click.option("--role", required=True, type=ROLE, help="What the process will be.")
@click.argument("folder", type=FOLDER)
@days_option
def issue(authority: Path, name: str, role: str, folder: Path, days: int) -> None:
    """Make key.pem, cert.pem and ca.pem in FOLDER at once.

    For tries on one machine. In a consortium the key must be made at its site: request, then sign.

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
    """Show name, role, dates and authority of a certificate.

    FOLDER_OR_CERT is a site's folder, an authority's folder, or a file in PEM. Two sites that show the same
    authority trust each other.

    \b
    Example:
      umpc ca show site
    """
    from umpc.transport.authority import load_certificate

    path = folder_or_cert
    if path.is_dir():
        path /= (
            "cert.pem"
            if (path / "cert.pem").exists() or not (path / "ca.pem").exists()
            else "ca.pem"
        )
    _describe(load_certificate(path))


def _describe(cert: x509.Certificate) -> None:
    from umpc.transport.authority import fingerprint, issuer_fingerprint, names_of

    if fingerprint(cert) != issuer_fingerprint(cert):
        name, role = names_of(cert)
        click.echo(f"name         {name}")
        click.echo(f"role         {role}")
    click.echo(f"valid from   {cert.not_valid_before_utc:%Y-%m-%d %H:%M} UTC")
    click.echo(f"valid until  {cert.not_valid_after_utc:%Y-%m-%d %H:%M} UTC")
    click.echo(f"authority    {issuer_fingerprint(cert)}")
