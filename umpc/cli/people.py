"""`umpc people`: those who invite people and those who answer, from tokens to the counted list."""

from __future__ import annotations

import asyncio
import csv
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, closing, contextmanager, nullcontext
from pathlib import Path

import click

from umpc.api.description import describe_question
from umpc.api.progress import ProgressShow
from umpc.api.study import ProposedStudy, run_now
from umpc.cli.demo_options import named_value
from umpc.cli.shared import FILE, asking
from umpc.cli.study import QUIET
from umpc.coordinator.links import silent
from umpc.coordinator.people import open_people
from umpc.coordinator.studyfile import read_values
from umpc.enrolment.texts import are_same_digits, grouped
from umpc.errors import CertificateError, ConfigError, MessageRefused, StudyError, installing
from umpc.people.device import (
    Device,
    DoorEntry,
    Invited,
    PeopleInvitation,
    Respondent,
    answered_cells,
    check_invitation,
    in_batches,
    read_counted,
    read_receipt,
)
from umpc.people.messages import check_place, rows_in
from umpc.people.places import (
    key_line,
    new_tokens,
    read_key,
    read_keys,
    read_token,
    token_text,
    write_keys,
)
from umpc.protocols.people.terms import terms_of
from umpc.study.document import dealer_of
from umpc.text_file import (
    DIGITS,
    check_new,
    check_writable,
    printable,
    read_text,
    why_unread,
    write_text,
)
from umpc.transport.certificates import fingerprint, parse_certificate
from umpc.transport.files import check_private, write_secret

SHOWN = 5
"""Places that a message names."""
SAID = (
    *("study", "statistic", "kernel", "field", "promise", "adversary", "disclosed", "epsilon"),
    *("fewest people", "open", "coordinator", "dealer", "nodes", "authority"),
)
"""The lines about a study that a person reads before anything leaves."""
INVITATION = click.argument("invitation", type=FILE)


@click.group()
def people() -> None:
    """Ask people for one value each, which nobody sees.

    A person sends one message and runs no process. Two aggregators, which are the study's nodes,
    add up what they cannot read. A dealer helps, and sees no message. docs/people.md says who has
    to be trusted for this.

    \b
    The organiser:
      umpc people invite study.toml --count 1000 --tokens tokens.txt
      umpc people open study.toml --into invitation.json --door …
      umpc study run study.toml          after the closing time
      umpc people page invitation.json   for people with a browser
    A person, with a token of its own and the invitation, which is public:
      umpc people submit invitation.json
      umpc people check invitation.json receipt.json
    """


@people.command()
@click.argument("study", type=FILE)
@click.option("--count", type=click.IntRange(2, 1 << 26), required=True, help="Number of places.")
@click.option("--tokens", type=FILE, required=True, help="The new file of secret tokens.")
def invite(study: Path, count: int, tokens: Path) -> None:
    """Make a token for each place, and the public list of their keys.

    The list is the file that `keys` under [people] in STUDY names. Give each line of the file of
    tokens to one person, over a channel that nobody else reads, and then delete the file: whoever
    has a token can answer in its place.

    \b
    umpc people invite study.toml --count 1000 --tokens tokens.txt
    """
    keys = _list_of(study)
    make_tokens(count, tokens, keys)
    click.echo(f"{count:,} tokens are in {tokens}, and the keys of their places in {keys}")


def make_tokens(count: int, tokens: Path, keys: Path) -> None:
    """Write new tokens into a file, and the keys of their places. Raises: ConfigError."""
    check_new(keys, tokens, failure=ConfigError)

    def made() -> Iterator[bytes]:
        with open(tokens, "x", encoding="ascii", opener=_private) as file:
            for place, (seed, key) in enumerate(new_tokens(count, os.urandom)):
                file.write(f"{token_text(place, seed)}\n")
                yield key

    try:
        write_keys(keys, made())
    except OSError as error:
        for path in (keys, tokens):
            path.unlink(missing_ok=True)
        raise ConfigError(
            f"{error.filename or keys} cannot be written ({error.strerror}), and nothing was made: "
            "make room, or correct the path"
        ) from error


@people.command()
@click.argument("key", type=FILE)
def enrol(key: Path) -> None:
    """Make the key of this device, and print its public half.

    The secret half goes into KEY and stays there. Give the printed line to the organiser, who puts
    it into the list of keys of each study that you may answer. The line's number in a list, counted
    from 0, is your place in that study.

    \b
    umpc people enrol device.key
    umpc people submit invitation.json --key device.key --place 17 age=34
    """
    check_new(key, failure=ConfigError)
    ((seed, public),) = new_tokens(1, os.urandom)
    write_secret(key, key_line(seed).encode())
    click.echo(key_line(public), nl=False)


@people.command("open")
@click.argument("study", type=FILE)
@click.option("--into", type=FILE, required=True, help="The new invitation. It is public.")
@click.option(
    "--door",
    "doors",
    multiple=True,
    metavar="NAME=ADDRESS",
    help="A public address at which people reach the dealer or an aggregator; once for each.",
)
@QUIET
def open_study(study: Path, into: Path, doors: tuple[str, ...], quiet: bool) -> None:
    """Open STUDY at the dealer and at both aggregators, and write the invitation.

    The dealer deals a key for each place, which both aggregators store: a million places of 1,024
    cells take 176 MB, and 240 MB where aggregators may lie. The command may be repeated. People may
    answer from `opens` to `closes`.

    \b
    umpc people open study.toml --into invitation.json --door dealer=dealer.example.org:7444 \\
      --door north=north.example.org:7444 --door south=south.example.org:7444
    """
    proposed = ProposedStudy.load(study)
    document, identity, keys = proposed.document, proposed.identity, _list_of(study)
    names = [dealer_of(document)[0], *(node.name for node in document.nodes)]
    addresses = dict(named_value("--door", each) for each in doors)
    if sorted(addresses) != sorted(names):
        raise ConfigError(
            f"--door was expected once for each of {', '.join(names)}, and came for "
            f"{', '.join(addresses) or 'none'}: give NAME=ADDRESS for each of them"
        )
    check_writable(into, "the invitation", ConfigError)
    with _progress(quiet=quiet) as tell:
        opened = run_now(open_people(document, lambda: read_keys(keys), identity, tell))
    shown = [
        DoorEntry(each.name, addresses[each.name], each.key, each.certificate, each.signature)
        for each in opened
    ]
    dealer = DoorEntry(names[0], addresses[names[0]])
    authority = identity.ca_pem.decode()
    invitation = PeopleInvitation(
        document.encode().decode(), authority, dealer, (shown[0], shown[1])
    )
    data = invitation.encode()
    check_invitation(data)  # as each device does
    write_text(into, data.decode(), "the invitation", ConfigError)
    terms = terms_of(document)
    click.echo(
        f"{into} is the invitation to study {document.hash.hex()[:DIGITS]}: {terms.places:,} "
        f"places, open from {terms.opens} to {terms.closes}"
    )
    click.echo(f"publish it with its authority's fingerprint, {_authority_of(invitation)}")


@people.command()
@INVITATION
@click.argument("values", nargs=-1, metavar="[FIELD=VALUE]...")
@click.option(
    "--token", envvar="UMPC_TOKEN", help="Your token; or set UMPC_TOKEN. Without it you are asked."
)
@click.option("--key", type=FILE, help="In place of a token: the key of `umpc people enrol`.")
@click.option("--place", type=click.IntRange(0), help="With --key: your place in this study.")
@click.option(
    "--csv", "table", type=FILE, help="Many people: a table with a header, and a row for each."
)
@click.option("--tokens", type=FILE, help="With --csv: a file with a token for each row.")
@click.option(
    "--fingerprint",
    default="",
    help="The authority's digits, as the organiser publishes them. Then nothing is asked.",
)
@click.option("--yes", is_flag=True, help="Send without a question, also without --fingerprint.")
@click.option(
    "--device",
    type=FILE,
    help="The device's own file. The default has the invitation's name, with the ending .device.",
)
@click.option(
    "--receipts",
    type=FILE,
    default=Path("receipt.json"),
    show_default=True,
    help="The receipts, each a line of JSON. Keep them, to check later that you are counted.",
)
@QUIET
def submit(
    invitation: Path,
    values: tuple[str, ...],
    token: str | None,
    key: Path | None,
    place: int | None,
    table: Path | None,
    tokens: Path | None,
    fingerprint: str,
    yes: bool,
    device: Path | None,
    receipts: Path,
    quiet: bool,
) -> None:
    """Send your values, sealed, to both aggregators.

    Without --token and FIELD=VALUE the command asks for them. On a machine with several users this
    is better, because all of them can see the words of a command.

    Whoever wrote the invitation chose its authority, and with another one could read your values.
    So the command first shows the study, who takes part, and the authority's fingerprint, and asks.
    Compare the fingerprint with the one that the organiser publishes, or give that one with
    --fingerprint. A script has to give --fingerprint, or --yes.

    The command checks the invitation, makes a box for each aggregator, and keeps both in the
    device's file until each has signed a receipt. If anything fails, run it again: it sends the
    same bytes. A place has one answer. No value is rounded: one that the study does not take is
    refused here, and nothing leaves.

    With --csv a script sends the values of many people. All rows are checked before the first one
    leaves, and a second run goes on where the first one stopped.

    \b
    umpc people submit invitation.json
    umpc people submit invitation.json --token TOKEN --fingerprint DIGITS age=34 balance=1200
    umpc people submit invitation.json --csv people.csv --tokens tokens.txt --fingerprint DIGITS
    """
    invited = _invited(invitation)
    if (table is None) != (tokens is None) or (table is not None and (values or token or key)):
        raise click.UsageError("--csv and --tokens go together, without FIELD=VALUE and --token")
    is_asked = not (fingerprint or yes)
    if table and is_asked:
        raise click.UsageError("--csv takes --fingerprint DIGITS, or --yes: nobody is asked")
    authority = _authority_of(invited.invitation)
    if is_asked or not quiet:
        _show(invited, authority)
    if fingerprint and not are_same_digits(fingerprint, authority):
        raise CertificateError(
            f"the invitation is of the authority {authority}, and another fingerprint was given: "
            "do not answer, and tell the organiser"
        )
    if table and tokens:
        total = sum(1 for _ in _people_of(invited, table, tokens))
        everybody = _people_of(invited, table, tokens)
    else:
        total = 1
        everybody = iter([_person(invited, values, token, key, place)])
    if is_asked:
        with asking("--fingerprint DIGITS, or --yes"):
            click.confirm("Does the organiser publish this authority? Send?", abort=True, err=True)
    check_writable(receipts, "the receipts", ConfigError)
    began = time.monotonic()
    with closing(Device(device or invitation.with_suffix(".device"), invited)) as own:
        _require_own(receipts, own)
        with _progress(quiet=quiet) as show:
            run_now(
                _send(invited, own, everybody, lambda done: show("send", min(total, done), total))
            )
        kept = _write_receipts(receipts, own)
    rate = own.sent / (time.monotonic() - began)
    if own.refused:
        place, first = next(iter(own.refused.items()))
        raise MessageRefused(
            f"{len(own.refused):,} of {total:,} messages were not taken. That of place {place}: "
            f"{first.message}"
        )
    if own.sent < total:
        click.echo(f"{total - own.sent:,} had answered before; their first answer counts")
    click.echo(
        f"{own.sent:,} messages were sent, {rate:,.0f} a second, and both aggregators have signed "
        f"them; {kept:,} receipts are in {receipts}"
    )


@people.command()
@INVITATION
@click.argument("receipts", type=FILE)
@click.option(
    "--counted", type=FILE, help="The published list, in place of asking both aggregators."
)
def check(invitation: Path, receipts: Path, counted: Path | None) -> None:
    """Say whether you are counted: whether each receipt of a file is on the list.

    Without --counted it asks both aggregators for their lists, which they show once both have
    signed who is counted. Both signed your receipt, so a receipt that is missing there proves that
    a message which had come was left out: by an aggregator, or by the coordinator, which carries
    their lists. It does not say by whom. Show it to the organiser.

    \b
    umpc people check invitation.json receipt.json
    umpc people check invitation.json receipt.json --counted study.counted.csv
    """
    invited = _invited(invitation)
    text = read_text(receipts, "a file of receipts", ConfigError)
    wanted = {read_receipt(line, invited).row for line in text.splitlines()}
    lists = {str(counted): read_counted(counted)} if counted else run_now(_lists(invited))
    for name, listed in lists.items():
        if missing := wanted - listed:
            places = sorted(int.from_bytes(row[:8], "little") for row in missing)
            shown = ", ".join(map(str, places[:SHOWN]))
            raise MessageRefused(
                f"{len(missing):,} of {len(wanted):,} receipts are not on the list of {name}, of "
                f"the places {shown}{', …' if len(places) > SHOWN else ''}: show them to the "
                "organiser"
            )
    click.echo(f"counted: all {len(wanted):,} receipts are on the list of {' and '.join(lists)}")


@people.command()
@INVITATION
@click.option("--served-by", required=True, help="Who serves the page, as people know it.")
@click.option("--listen", default="127.0.0.1:8443", show_default=True, help="HOST:PORT.")
@click.option(
    "--tls",
    type=FILE,
    help="A folder with fullchain.pem and privkey.pem, or one file with both. Without it a reverse "
    "proxy on this machine speaks TLS.",
)
@click.option("--texts", type=FILE, help="JSON: the question, other texts, more languages.")
def page(
    invitation: Path, served_by: str, listen: str, tls: Path | None, texts: Path | None
) -> None:
    """Serve a page on which people with a token answer in a browser.

    The browser masks and seals each value, and this process relays what it cannot read. Yet people
    trust whoever serves the page, and the page says who that is. Where aggregators may lie, it is
    somebody else than the aggregators and the coordinator (docs/people_page.md). Give each person
    the address with #token=TOKEN behind it, and compare the authority's fingerprint, which is
    printed, with the organiser's.

    \b
    umpc people page invitation.json --served-by "Data Trust e.V." --listen 0.0.0.0:8443 \\
      --tls /etc/letsencrypt/live/HOST --texts texts.json
    """
    from umpc.api.study import run_now
    from umpc.cli.server_options import end_at_signals

    try:
        from umpc.people_page.server import PeoplePage
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"a page needs {error.name}, which is missing: {installing('people-page')}"
        ) from None
    from umpc.people_page.contents import contents_of, read_texts

    contents = contents_of(_invited(invitation), served_by, read_texts(texts))

    async def serve() -> None:
        done = asyncio.Event()
        end_at_signals(done)
        async with PeoplePage(contents).served(listen, tls) as address:
            click.echo(f"ready: {address}\nSHA-256 of the page and its keys: {contents.code}")
            click.echo(f"authority {_authority_of(contents.invited.invitation)}")
            await done.wait()

    run_now(serve())


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Yield what shows that so much of a step is done."""
    with nullcontext() if quiet else ProgressShow() as show:
        yield show.tell if show else silent


# --- files ----------------------------------------------------------------------------------------


def _list_of(study: Path) -> Path:
    """The file of keys that a study's file names. Raises: StudyError."""
    table = read_values(study).get("people")
    keys = table.get("keys") if isinstance(table, dict) else None
    if not isinstance(keys, str):
        raise StudyError(
            f"{study}: a study of people was expected, with the file of keys under [people], and "
            'none is named: write keys = "people.keys" there'
        )
    return study.parent / keys


def _require_own(receipts: Path, own: Device) -> None:
    """Whatever a file of receipts holds came from this device. Raises: ConfigError."""
    if receipts.exists():
        with receipts.open("rb") as file:
            first = file.readline().strip()
        if first and not any(each.encode().encode() == first for each in own.receipts()):
            check_new(receipts, failure=ConfigError)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _invited(path: Path) -> Invited:
    """The invitation in a file, checked."""
    return check_invitation(read_text(path, "an invitation", ConfigError).encode())


def _authority_of(invitation: PeopleInvitation) -> str:
    """The fingerprint of an invitation's authority, as people compare it."""
    return grouped(fingerprint(parse_certificate(invitation.ca.encode(), "its authority")))


# --- people ---------------------------------------------------------------------------------------


def _show(invited: Invited, authority: str) -> None:
    """Show a person what is asked, by whom, and under which authority."""
    study = invited.study
    for label, text in (
        ("study", repr(study.name)),
        *describe_question(study),
        ("authority", authority),
    ):
        if label in SAID:
            click.echo(f"{label:<15}{printable(text)}", err=True)


def _person(
    invited: Invited,
    values: tuple[str, ...],
    token: str | None,
    key: Path | None,
    place: int | None,
) -> Respondent:
    """The one person of a command."""
    if (token is not None and key is not None) or (key is None) != (place is None):
        raise click.UsageError("give either --token, or --key with --place")
    if token is None and key is None:
        with asking("--token, or --key with --place"):
            token = click.prompt("token", hide_input=True, err=True)
    answer = dict(named_value("FIELD=VALUE", each) for each in values)
    if not values:
        with asking("FIELD=VALUE for each field"):
            for each in invited.study.fields:
                words = printable(f"{each.name} ({each.values()})")
                answer[each.name] = click.prompt(words, err=True)
    (cell,) = answered_cells(invited.study, [answer])
    if key is None:
        return Respondent(*read_token(token or ""), cell)
    check_private(key)
    seed = read_key(read_text(key, "the key of a device", ConfigError))
    if not seed:
        raise ConfigError(
            f"{key}: the key of a device was expected, as `umpc people enrol` writes it: correct "
            "the path"
        )
    if not terms_of(invited.study).enrolled:
        raise StudyError(
            "the study says that its places are those of tokens, so it charges no account of an "
            "enrolment: answer with a token, or ask the organiser for a study of enrolments"
        )
    return Respondent(place or 0, seed, cell)


def _people_of(invited: Invited, table: Path, tokens: Path) -> Iterator[Respondent]:
    """The people of a table, with a token each.

    Raises: DataError naming the row, ConfigError, MessageRefused for a token of another study, and
        for one that is there twice.
    """
    names = [field.name for field in invited.study.schema]
    seen, first = bytearray(invited.survey.places), 1
    try:
        with (
            table.open(newline="", encoding="utf-8") as rows,
            tokens.open(encoding="ascii") as lines,
        ):
            for batch in in_batches(csv.DictReader(rows)):
                answers = [{name: row[name] for name in names if row.get(name)} for row in batch]
                cells = answered_cells(invited.study, answers, str(table), first)
                for number, cell in enumerate(cells, first):
                    line = lines.readline()
                    if not line:
                        raise ConfigError(
                            f"{tokens} has {number - 1:,} tokens, and {table} has more rows: give "
                            "a token for each row"
                        )
                    try:
                        place, seed = read_token(line)
                        check_place(invited.survey, place)
                        if seen[place]:
                            raise MessageRefused(
                                f"place {place} is there twice: give each person a token of its own"
                            )
                    except MessageRefused as error:
                        raise MessageRefused(f"{tokens}, line {number}: {error.message}") from None
                    seen[place] = 1
                    yield Respondent(place, seed, cell)
                first += len(batch)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(
            f"{table} and {tokens}: a table in CSV and a file of tokens were expected, "
            f"{why_unread(error)}"
        ) from error


def _write_receipts(path: Path, own: Device) -> int:
    """Write the receipts of all places that a device has. Returns: how many."""
    try:
        with path.open("w", encoding="utf-8") as file:
            return sum(1 for each in own.receipts() if file.write(f"{each.encode()}\n"))
    except OSError as error:
        raise ConfigError(
            f"{path}: the receipts cannot be written ({error.strerror}), and the device's file has "
            "them: make room, and run this again"
        ) from error


async def _send(
    invited: Invited, own: Device, people: Iterable[Respondent], tell: Callable[[int], None]
) -> None:
    """Send messages through the doors of the dealer and of both aggregators."""
    invitation = invited.invitation
    async with AsyncExitStack() as stack:
        dealer, *aggregators = [
            await stack.enter_async_context(await invited.door(each))
            for each in (invitation.dealer, *invitation.aggregators)
        ]
        await own.send(people, dealer, aggregators, tell)


async def _lists(invited: Invited) -> dict[str, set[bytes]]:
    """The counted rows, as each aggregator shows them."""
    found: dict[str, set[bytes]] = {}
    for each in invited.invitation.aggregators:
        async with await invited.door(each) as door:
            found[each.name] = {
                *rows_in([part async for part in door.counted(invited.survey.hash)])
            }
    return found
