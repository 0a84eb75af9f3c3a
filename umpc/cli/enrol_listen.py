"""`umpc enrol listen`, `decline` and `members`: what the authority does while sites join.

The module imports neither grpc nor cryptography before a command runs.

*Enrol options.* The options that the commands of `umpc enrol` have in common.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import click

from umpc.cli.paths import FOLDER

ROLE = click.Choice(["node", "dealer", "shuffler", "coordinator"])
AUTHORITY = click.option(
    "--authority",
    type=FOLDER,
    default=Path("authority"),
    show_default=True,
    help="The authority's folder, which `umpc ca init` made.",
)


@click.command()
@AUTHORITY
@click.option(
    "--listen",
    "address",
    default="0.0.0.0:7101",
    show_default=True,
    help="Address to listen on, HOST:PORT; port 0 takes any free port.",
)
def listen(authority: Path, address: str) -> None:
    """Take the requests of invited sites over the network, until Ctrl-C or SIGTERM.

    A request waits until a person approves it with `umpc enrol approve NAME`. This process signs
    nothing, and has the authority's key only for a moment at its start. It must be started again
    after 30 days.

    \b
    Example:
      umpc enrol invite north --address authority.example.org:7101 > north.invitation
      umpc enrol listen --authority authority
    """
    from umpc.enrolment.dialler import LISTENING_DAYS, listening_tls
    from umpc.enrolment.listener import EnrolmentDesk, listening
    from umpc.errors import CertificateError
    from umpc.logs import start_logging
    from umpc.transport.certificates import clock

    start_logging("authority")
    tls = listening_tls(authority)
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    with listening(EnrolmentDesk(authority), tls.context, address) as place:
        click.echo(f"ready: authority on {place}")
        sys.stdout.flush()
        is_ended = done.wait((tls.until - clock()).total_seconds())
    if not is_ended:
        raise CertificateError(
            f"the listening authority's certificate ended after {LISTENING_DAYS} days: "
            "start it again"
        )


@click.command()
@click.argument("name")
@AUTHORITY
@click.option("--role", type=ROLE, help="The role, if a name asks for several roles.")
def decline(name: str, authority: Path, role: str | None) -> None:
    """Refuse the request of NAME that waits. Its invitation no longer counts.

    \b
    Example:
      umpc enrol decline north
    """
    from umpc.enrolment.authority_side import EnrolmentOffice

    office = EnrolmentOffice(authority)
    entry = office.waiting(name, role).enrolment
    office.decline(entry)
    click.echo(f"declined: {entry.role} {entry.name!r}")


@click.command()
@AUTHORITY
def members(authority: Path) -> None:
    """Print all members with their addresses, as a study file names them.

    A site that joins over the network gets the same list in its members.toml.

    \b
    Example:
      umpc enrol members > members.toml
    """
    from umpc.enrolment.members import members_of, to_toml
    from umpc.transport.certificates import clock

    now = clock()
    click.echo(to_toml(members_of(authority, now), now), nl=False)
