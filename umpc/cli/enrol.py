"""`umpc enrol`: a site gets its certificate by an invitation, and its key never leaves it.

The module imports neither grpc nor cryptography before a command runs.

`umpc enrol listen`, `decline` and `members`: what the authority does while sites join.

The module imports neither grpc nor cryptography before a command runs.

*Enrol options.* The options that the commands of `umpc enrol` have in common.

The texts that `umpc enrol` reads, and the node.toml that it writes.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import click

from umpc.cli.shared import FILE, FOLDER, asking
from umpc.enrolment import site_side
from umpc.enrolment.authority_side import EnrolmentOffice, Waiting
from umpc.enrolment.listener import EnrolmentDesk, listening
from umpc.enrolment.register import members_of, to_toml
from umpc.enrolment.sign_in import SignInOffice, SignInRequest, token_for
from umpc.enrolment.site_side import LISTENING_DAYS, ask, listening_tls, wait_until_admitted
from umpc.enrolment.texts import AdmissionText, Invitation, Request, grouped
from umpc.errors import CertificateError, ConfigError
from umpc.logs import start_logging
from umpc.node.template import configured
from umpc.transport.addresses import HubAddress, parse_hub, split_address
from umpc.transport.certificates import ROLES, clock, fingerprint, is_name, load_certificate
from umpc.transport.files import read_file, write_public
from umpc.transport.identity import certificate_in

ROLE = click.Choice(ROLES)
AUTHORITY = click.option(
    "--authority",
    type=FOLDER,
    default=Path("authority"),
    show_default=True,
    help="The authority's folder, which `umpc ca init` made.",
)


@click.group()
def enrol() -> None:
    """Enrol a site: it gets a certificate, and its key never leaves it.

    \b
    1. The authority invites:             umpc enrol invite north > north.invitation
    2. The site joins, and sends back     umpc enrol join north.invitation \\
       the request that this prints:        --table data.csv --epsilon 5 > north.request
    3. Both read the fingerprint aloud.
       The authority approves:            umpc enrol approve north.request > north.admission
    4. The site finishes:                 umpc enrol finish north.admission

    With `umpc enrol listen` at the authority and `--address` in step 1, step 2 sends the request
    itself, waits for step 3, and finishes. Only the invitation is then carried.

    Each text is one line, to be sent by any way. The invitation holds a one-time code, so send it
    to the site's administrator only. Without an invitation a site joins with --name, and both sides
    compare the authority's fingerprint too.
    """


@enrol.command()
@AUTHORITY
@click.option(
    "--listen",
    "address",
    default="0.0.0.0:7101",
    show_default=True,
    help="Address to listen on, HOST:PORT; port 0 takes any free port.",
)
@click.option("--sign-in", type=FILE, help="Institutions whose sign-in counts (docs/sign_in.md).")
def listen(authority: Path, address: str, sign_in: Path | None) -> None:
    """Take the requests of invited sites over the network, until Ctrl-C or SIGTERM.

    A request waits until a person approves it with `umpc enrol approve NAME`. This process signs
    nothing, and has the authority's key only for a moment at its start. It must be started again
    after 30 days. With --sign-in it signs, by itself, requests of coordinators who have signed in
    at an institution of that file, and uses the authority's key for that.

    \b
    Example:
      umpc enrol invite north --address authority.example.org:7101 > north.invitation
      umpc enrol listen --authority authority
    """

    start_logging("authority")
    tls = listening_tls(authority)
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    office = SignInOffice(authority, sign_in) if sign_in else None
    with listening(EnrolmentDesk(authority, office), tls.context, address) as place:
        click.echo(f"ready: authority on {place}")
        sys.stdout.flush()
        is_ended = done.wait((tls.until - clock()).total_seconds())
    if not is_ended:
        raise CertificateError(
            f"the listening authority's certificate ended after {LISTENING_DAYS} days: "
            "start it again"
        )


@enrol.command()
@click.argument("name")
@AUTHORITY
@click.option("--role", type=ROLE, help="The role, if a name asks for several roles.")
def decline(name: str, authority: Path, role: str | None) -> None:
    """Refuse the request of NAME that waits. Its invitation no longer counts.

    \b
    Example:
      umpc enrol decline north
    """

    office = EnrolmentOffice(authority)
    entry = office.waiting(name, role).enrolment
    office.decline(entry)
    click.echo(f"declined: {entry.role} {entry.name!r}")


@enrol.command()
@AUTHORITY
def members(authority: Path) -> None:
    """Print all members with their addresses, as a study file names them.

    A site that joins over the network gets the same list in its members.toml.

    \b
    Example:
      umpc enrol members > members.toml
    """

    now = clock()
    click.echo(to_toml(members_of(authority, now), now), nl=False)


@enrol.command("sign-in")
@click.option("--name", required=True, help="The coordinator's name, as the authority lists it.")
@click.option("--institution", required=True, help="Its name in the authority's file.")
@click.option("--issuer", required=True, help="The institution's OpenID Connect, https://…")
@click.option("--client", default="umpc", show_default=True, help="umpc's name at the issuer.")
@click.option("--authority", "address", required=True, help="HOST:PORT of `umpc enrol listen`.")
@click.option(
    "--ca", type=FILE, help="The authority's ca.pem, compared by telephone. Needed the first time."
)
@click.option(
    "--folder",
    type=FOLDER,
    default=Path("coordinator"),
    show_default=True,
    help="The coordinator's identity.",
)
def sign_in_(
    name: str,
    institution: str,
    issuer: str,
    client: str,
    address: str,
    ca: Path | None,
    folder: Path,
) -> None:
    """Sign in at an institution, and get a coordinator's certificate for hours.

    It prints an address for the browser of this machine. The authority names in the certificate the
    person, the institution, and the studies that may be asked.

    \b
    Example:
      umpc enrol sign-in --name alice --institution st-mary \\
        --issuer https://login.st-mary.example --authority authority.example.org:7101 --ca ca.pem
    """
    pinned = certificate_in(ca or folder / "ca.pem")
    csr = site_side.sign_in_request(folder, name, pinned)
    _say("open this address in a browser of this machine, and sign in there:")
    token = token_for(csr, issuer, client, _say)
    place = Invitation(name, "coordinator", pinned, b"", "", address)
    answer = ask(place, SignInRequest(csr, institution, token))
    assert answer.admission is not None  # no person decides
    _finish(folder, folder, answer.admission)


# --- invitations and admissions -------------------------------------------------------------------


SITE = click.option(
    "--folder",
    type=FOLDER,
    default=Path("."),
    show_default=True,
    help="The site's folder. A node's identity is in its folder `site`, another's in its role's.",
)
FINGERPRINT = click.option(
    "--fingerprint", default="", help="The digits that the other side reads aloud."
)


@enrol.command()
@click.argument("name")
@AUTHORITY
@click.option("--role", type=ROLE, default="node", show_default=True, help="Of the process.")
@click.option("--days", default=14, show_default=True, help="Days until the invitation ends.")
@click.option(
    "--address", default="", help="HOST:PORT at which sites reach `umpc enrol listen`; default: no."
)
def invite(name: str, authority: Path, role: str, days: int, address: str) -> None:
    """Invite the process NAME, and print the invitation.

    A new invitation of the same process ends the former one.

    \b
    Example:
      umpc enrol invite north > north.invitation
    """

    if address:
        split_address(address)
    invitation = EnrolmentOffice(authority).invite(name, role, days=days, address=address)
    _say(f"send this text to the administrator of {role} {name!r} only; it counts until")
    _say(f"{invitation.until}. They run `umpc enrol join` with it.")
    click.echo(invitation.encode())


@enrol.command()
@click.argument("text", metavar="[INVITATION]", required=False)
@SITE
@click.option("--name", help="Without an invitation: the process's name.")
@click.option("--role", type=ROLE, help="Without an invitation: its role.  [default: node]")
@click.option("--address", default="", help="HOST:PORT at which the others reach this process.")
@click.option("--table", type=FILE, help="The node's table, for its node.toml.")
@click.option("--epsilon", help="The node's budget for all studies together, for its node.toml.")
@click.option("--listen", help="The node's own HOST:PORT.  [default: 0.0.0.0:7100]")
@click.option(
    "--hub",
    metavar="NAME@HOST:PORT",
    help="The process dials this hub, and the others reach it there; in place of --address and "
    "--listen. `umpc enrol members` prints the hub.",
)
@click.option(
    "--open",
    "is_open",
    is_flag=True,
    help="For trials: no person must accept a study. Leaves approval out of the new node.toml.",
)
@click.option(
    "--offline",
    is_flag=True,
    help="Print the request, also if the authority of INVITATION listens.",
)
@click.option(
    "--wait", default=72.0, show_default=True, help="Hours to wait for a listening authority."
)
def join(
    text: str | None,
    folder: Path,
    name: str | None,
    role: str | None,
    address: str,
    table: Path | None,
    epsilon: str | None,
    listen: str | None,
    hub: str | None,
    is_open: bool,
    offline: bool,
    wait: float,
) -> None:
    """Make this site's key, and send or print its request.

    INVITATION is the text from the authority, a file that holds it, or "-" for standard input. For
    a node the command writes a node.toml too, unless the folder has one: then a person must accept
    each study, unless --open is given. Without INVITATION and with --name, it renews a certificate.

    If the invitation names an address, the command sends the request there, waits for the decision,
    and writes the certificate and members.toml. After an interruption, run it again. Otherwise it
    prints the request.

    \b
    Example:
      umpc enrol join north.invitation --table data.csv --epsilon 5 > north.request
    """

    check_table(table)
    place: str | HubAddress = listen or "0.0.0.0:7100"
    if hub:
        if address or listen:
            raise click.UsageError("--hub excludes --address and --listen: leave them out")
        place = parse_hub(hub)
        address = str(place)
    invitation = None if text is None else Invitation.decode(read_text(text))
    if invitation is not None:
        name, role = _same(name, invitation.name), _same(role, invitation.role)
    if name is None:
        raise click.UsageError("give the text of an INVITATION, or --name")
    role = role or "node"
    own = identity_folder(folder, role)
    request = site_side.join(own, name, role, invitation=invitation, address=address)
    _say(f"key          {own / 'key.pem'}: leave it here")
    if role == "node":
        for line in write_node_file(folder, name, table, epsilon, place, is_open):
            _say(f"settings     {line}")
    _say(f"fingerprint  {request.fingerprint}")
    if invitation is not None and invitation.address and not offline:
        _join_online(folder, own, invitation, request, wait)
        return
    _say("send this text to the authority, and read the fingerprint to it by telephone:")
    click.echo(request.encode())


def _join_online(
    folder: Path, own: Path, invitation: Invitation, request: Request, hours: float
) -> None:
    """Send the request, wait for a person, and finish."""

    _say(f"waiting for the authority at {invitation.address}: read the fingerprint to its keeper")
    _say("by telephone. They run `umpc enrol approve` and compare it.")
    answer = wait_until_admitted(lambda: ask(invitation, request), hours)
    assert answer.admission is not None
    _finish(folder, own, answer.admission)
    path = folder / "members.toml"
    write_public(path, to_toml(answer.members, clock()).encode())
    click.echo(f"members      {path}: {len(answer.members)}, with their addresses")


def _same(given: str | None, invited: str) -> str:
    if given not in (None, invited):
        raise click.UsageError(f"the invitation is for {invited!r}, and {given!r} was given")
    return invited


@enrol.command()
@click.argument("text", metavar="REQUEST_OR_NAME")
@AUTHORITY
@click.option("--role", type=ROLE, help="The role, if a name asks for several roles.")
@FINGERPRINT
@click.option("--days", default=90, show_default=True, help="Days that the certificate is valid.")
def approve(text: str, authority: Path, role: str | None, fingerprint: str, days: int) -> None:
    """Admit the site of a request, and print the admission for it.

    REQUEST_OR_NAME is the request's text, a file that holds it, "-" for standard input, or the name
    of a request that waits. The command shows the request's fingerprint and asks whether the site
    reads the same digits. With --fingerprint it compares them itself.

    It prints no admission where NAME's request came over the network: the site fetches it. A
    request that an invitation proved and that was admitted before gets its admission again.

    \b
    Example:
      umpc enrol approve north.request > north.admission
    """

    office = EnrolmentOffice(authority)
    is_waiting = is_name(text) and not Path(text).is_file() and not text.startswith(BEGINNING)
    content = None if is_waiting else read_text(text)
    if content is None:
        waiting = office.waiting(text, role)
    else:
        request = Request.decode(content)
        if former := office.former_admission(request):
            _say("this request was admitted before, and nothing is signed now. Its admission:")
            click.echo(former.encode())
            return
        waiting = office.view(office.receive(request))
    _show(waiting)
    if not fingerprint:
        _ask_whether_alike(waiting.enrolment.name)
        fingerprint = waiting.fingerprint
    admission = office.approve(waiting, fingerprint, days=days)
    if content is None and waiting.enrolment.online:
        _say(f"admitted: {waiting.enrolment.name!r} waits for this, and fetches it by itself")
        return
    _say(f"send this text to {waiting.enrolment.name!r}, who runs `umpc enrol finish` with it:")
    click.echo(admission.encode())


def _ask_whether_alike(name: str) -> None:
    """Ask the authority's keeper about the digits. Raises: UsageError, CertificateError."""
    question = "Does the site's administrator read the same fingerprint?"
    with asking("--fingerprint with the digits that the site reads", "y or n"):
        are_alike = click.confirm(question, err=True)
    if not are_alike:
        raise CertificateError(
            f"the request of {name!r} was not approved, because the site reads other digits. "
            "Nothing was signed. Ask the site for its request again, or refuse this one with "
            f"`umpc enrol decline {name}`"
        )


def _show(waiting: Waiting) -> None:
    entry = waiting.enrolment
    _say(f"name         {entry.name}")
    _say(f"role         {entry.role}")
    _say(f"address      {entry.address or 'not given'}")
    proof = "proven by its one-time code" if entry.proven else "none was proven"
    _say(f"invitation   {proof}")
    if entry.rival:
        _say(
            f"WARNING      at {entry.rival} another key proved the same invitation: one of the two"
        )
        _say("             senders stole it, so compare the fingerprint by telephone")
    if waiting.revoked:
        _say(f"WARNING      the former certificate of {entry.name!r} was revoked: admit the site")
        _say("             only if it is a member again, and has a new key")
    if waiting.signs_in:
        _say(
            f"WARNING      {entry.name!r} signs in at an institution, with a limit of studies: this"
        )
        _say("             certificate has none, and lasts for --days")
    for until in waiting.former:
        _say(f"note         another key of {entry.name!r} has a certificate until {until}: revoke")
        _say("             it with `umpc ca revoke` if the site has lost that key")
    _say(f"fingerprint  {waiting.fingerprint}")


@enrol.command()
@click.argument("text", metavar="ADMISSION")
@SITE
@click.option("--role", type=ROLE, help="Of the process.  [default: that of the admission]")
@FINGERPRINT
def finish(text: str, folder: Path, role: str | None, fingerprint: str) -> None:
    """Check the authority's ADMISSION, and write this site's certificate.

    A site that joined without an invitation gives the authority's fingerprint, which `umpc ca show`
    prints there.

    \b
    Example:
      umpc enrol finish north.admission
    """

    admission = AdmissionText.decode(read_text(text))
    own = identity_folder(folder, role or admission.names[1])
    _finish(folder, own, admission, fingerprint)


def _finish(folder: Path, own: Path, admission: AdmissionText, expected: str = "") -> None:

    identity = site_side.finish(own, admission, expected=expected)
    click.echo(f"name         {identity.name}")
    click.echo(f"role         {identity.role}")
    click.echo(f"valid until  {identity.not_after:%Y-%m-%d %H:%M} UTC")
    click.echo(f"authority    {grouped(fingerprint(load_certificate(own / 'ca.pem')))}")
    if identity.role == "node":
        config = folder / "node.toml"
        click.echo(f"next         umpc node doctor --config {config}")
        click.echo(f"             umpc node start --config {config}")
    elif identity.role == "hub":
        click.echo(f"next         umpc hub start --identity {own} --listen 0.0.0.0:7443")


def _say(line: str) -> None:
    """Print a line for the person on standard error; standard output holds the text alone."""
    click.echo(line, err=True)


# --- texts and files ------------------------------------------------------------------------------


STANDARD_INPUT = "-"
BEGINNING = "umpc-"


def read_text(argument: str) -> str:
    """Return a text that is given itself, as a file's path, or as "-" for standard input.

    Raises: CertificateError if there is no such file.
    """
    if argument.startswith(BEGINNING):
        return argument
    if argument == STANDARD_INPUT:
        return sys.stdin.read()
    content = read_file(Path(argument), "give the text itself, or the file that holds it")
    return content.decode("utf-8", "replace")


def identity_folder(folder: Path, role: str) -> Path:
    """Return the identity's folder below a site's own: `site` for a node, else the role."""
    return folder / ("site" if role == "node" else role)


def write_node_file(
    folder: Path,
    name: str,
    given: Path | None,
    epsilon: str | None,
    place: str | HubAddress,
    is_open: bool,
) -> list[str]:
    """Write node.toml, unless the folder has one, and return what the administrator must know.

    Args: given: the table's path, if it is known. place: where the node listens, or the hub that it
        dials. is_open: no person is asked before a study.
    Raises: ConfigError, CertificateError if the disk refuses.
    """

    path = folder / "node.toml"
    if path.exists():
        return [f"{path} stays as it is"]
    table = given.absolute() if given else Path("data.csv")
    if table.is_relative_to(folder.absolute()):
        table = table.relative_to(folder.absolute())
    text = configured(name, table=str(table), epsilon=epsilon or "5", place=place, is_open=is_open)
    write_public(path, text.encode())
    lacking = [] if given else ["path under [data]"]
    lacking += [] if epsilon else ["epsilon under [budget]"]
    told = [f"{path}: read it, and write into [policy] what this site allows"]
    if is_open:
        told += ["open: until then, every study of a member runs, and no person is asked"]
    else:
        told += ["until then, a person must accept each study: `umpc approve --help`"]
    return [*told, f"and write {' and '.join(lacking)}"] if lacking else told


def check_table(table: Path | None) -> None:
    """Check that a table is there, before anything is written. Raises: ConfigError."""
    if table is not None and not table.is_file():
        raise ConfigError(
            f"--table {table}: a CSV or Parquet file was expected, and there is no such file. "
            "Correct the path, or leave --table out and write it into node.toml later"
        )
