"""`umpc budget`: show a node's ledger, verify it, and set its anchor again.

`show` and `verify` only read, and they work while the node runs, as `fields --forget` does.
`anchor --accept` writes rows, and the node must not run.

*Budget shown.* A ledger's sums and studies, as `umpc budget show` prints them: in tables or as
JSON.

Amounts of ε and δ in a few characters, for people.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import NamedTuple

import click
from rich.markup import escape
from rich.table import Table

from umpc.cli.shared import FORMAT, console, of_dataset, place_of, read_ledger
from umpc.dp.composition import BASIC
from umpc.dp.events import encode_events
from umpc.node.budget.budget_account import RESTORE, RESTORE_ALL, Account, Balance, Row
from umpc.node.budget.ledger import Ledger
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import Snapshot, count_or_forget_fields, read_beside
from umpc.node.config import NodeConfig
from umpc.node.datasets import MOST
from umpc.node.table.fingerprint import Fingerprint

AMOUNTS = ("total", "spent", "reserved", "left")
"""The parts of a balance, in the order of tables."""
EXACT_CHARACTERS = 8
"""The longest fraction that is shown as it is."""
SHOWN_DIGITS = 6
ROUNDED = {"total": ROUND_FLOOR, "spent": ROUND_CEILING, "reserved": ROUND_CEILING}
"""A part of a balance → how it is rounded; so the budget never looks larger than it is."""


def short_amount(amount: Fraction | None, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return an amount as an exact fraction if that is short, else with six digits.

    Args: amount: None where it is not yet known. rounding: one of `decimal`.
    """
    if amount is None:
        return "not yet known"
    if len(str(amount)) <= EXACT_CHARACTERS:
        return str(amount)
    context = Context(prec=SHOWN_DIGITS, rounding=rounding)
    rounded = context.divide(Decimal(amount.numerator), Decimal(amount.denominator))
    return f"{float(rounded):.{SHOWN_DIGITS}g}"


def short_part(balance: Balance, part: str) -> str:
    """Return one of AMOUNTS; what is left is rounded down, and what is gone up."""
    amount: Fraction = getattr(balance, part)
    return short_amount(amount, ROUNDED.get(part, ROUND_FLOOR))


def balance_text(balance: Balance) -> str:
    """Return a balance of ε or δ in words."""
    total, spent, reserved, left = (short_part(balance, part) for part in AMOUNTS)
    return f"{left} left of {total} ({spent} spent, {reserved} reserved)"


# --- the budget -----------------------------------------------------------------------------------


@click.group()
def budget() -> None:
    """Show a site's privacy budget, and verify its ledger.

    The ledger is a file with one row for every charge and answer. Each row's hash covers all rows
    before it. The anchor is a second file, best on another disk, with the hash of the last row. It
    shows if somebody has put an older copy of the ledger back.

    A held attempt is finished and not yet released. It reserves its cost until it is charged or
    dropped, or the time of hold_hours in node.toml is up. A study that is prepared ahead reserves
    its cost until it runs, or its time is up. A study that is running reserves in the node's
    memory, and only the node's metrics show that.

    \b
    umpc budget show --config node.toml
    umpc budget verify --config node.toml
    umpc budget anchor --config node.toml --accept
    umpc budget fields --config node.toml --forget
    """


@budget.command()
@of_dataset
@FORMAT
def show(config: NodeConfig, style: str) -> None:
    """Show how much budget is spent, held, reserved by prepared studies and left, and each study.

    Long amounts are rounded for people: what is left down, and what is gone up. JSON is exact.
    """
    snapshot, place = read_ledger(config), place_of(config)
    if style == "json":
        click.echo(json.dumps(as_dict(snapshot, place)))
    else:
        print_tables(snapshot, place)


@budget.command()
@of_dataset
def verify(config: NodeConfig) -> None:
    """Verify every row of the ledger, and its anchor. Print the last row's hash.

    Keep a copy of the printed hash elsewhere if you want to recognise this state later.
    """
    place = place_of(config)
    snapshot = read_verified(config, place)
    click.echo(f"verified: the ledger {place.ledger} and its anchor {place.anchor} agree")
    click.echo(str(snapshot.head))


def read_verified(config: NodeConfig, place: Place) -> Snapshot:
    """Read a ledger and verify its rows, its anchor and its held attempts. Raises: LedgerError."""
    snapshot = read_ledger(config)
    if snapshot.fault:
        raise place.astray(snapshot.fault)
    for study in snapshot.damaged:
        raise place.damaged(f"the held attempt of {study.hex()[:DIGITS]} is wrong")
    return snapshot


@budget.command()
@of_dataset
@click.option(
    "--accept",
    is_flag=True,
    help="Accept the ledger as the latest one, and set the anchor again. Stop the node first.",
)
def anchor(config: NodeConfig, accept: bool) -> None:
    """Check the ledger's anchor, or set it again.

    Without --accept the command only checks whether the anchor agrees with the ledger. An anchor
    that is lost or does not agree may mean that somebody has put an older copy of the ledger back,
    to spend its budget twice. Accept a ledger only if you know that it is the latest. The ledger
    then keeps a row that says so.
    """

    place = place_of(config)
    snapshot = read_beside(place)
    if not snapshot.fault:
        click.echo(
            f"the anchor {place.anchor} agrees with {place.ledger}; there is nothing to accept"
        )
        return
    if not accept:
        raise place.astray(snapshot.fault)
    budget = (config.ledger, config.dataset, config.epsilon, config.delta)
    with Ledger(*budget, composition=config.composition, anchor=config.anchor, accept=True):
        pass
    click.echo(f"accepted: the anchor {place.anchor} is now at {read_beside(place).head}")


@budget.command()
@of_dataset
@click.option("--forget", is_flag=True, help="Let the count begin anew, also while the node runs.")
def fields(config: NodeConfig, forget: bool) -> None:
    """Show how many sets of fields the node was asked about, or forget them.

    A node tells for at most 32 sets of fields how many of its records have all of them. Each set
    tells a little more about which values are missing together, at no epsilon.
    """

    found = count_or_forget_fields(place_of(config), forget)
    done = "forgotten" if forget else "counted"
    click.echo(f"{done}: {found} sets of fields; the node answers for at most {MOST}")


# --- budget shown ---------------------------------------------------------------------------------

TIME_WIDTH = 25
"""Characters of a time in UTC to the second. It stays on one line where there is room."""
DIGITS = 16
"""Hexadecimal digits of a hash that the table shows."""
HELD = "held until then"
PREPARED = "prepared until then"
STATES = {
    "reserve": "reserved",
    "delta": "reserved",
    "cancel": "given back",
    "charge": "charged",
    "course": "charged",
    "step": "charged",
    "answer": "answered",
    "release": "released",
}
"""Kind of a ledger's row → state of its study after that row. Reservations are rows only in ledgers
of earlier versions.
"""
NAMING = ("reserve", "charge", "course", "step")
"""The kinds of rows whose note is the study's name."""


class StudyEntry(NamedTuple):
    """One study of a ledger. epsilon, delta: its cost; None while it is not yet known."""

    when: str
    hash: str
    name: str = ""
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    state: str = ""


def studies(snapshot: Snapshot) -> Iterator[StudyEntry]:
    """One entry for each study: its cost, or what it would have cost, and its state.

    The order is that of each study's last row; held attempts follow, then prepared studies.
    """
    found: dict[bytes, StudyEntry] = {}
    for row in snapshot.rows:
        if row.kind in STATES:
            before = found.pop(row.study, None)
            found[row.study] = _entry(row, before if row.kind != "reserve" else None)
    yield from found.values()
    for state, waiting in ((HELD, snapshot.held), (PREPARED, snapshot.prepared)):
        for each in waiting:
            yield StudyEntry(
                _time(each.until), each.study.hex(), each.name, each.epsilon, each.delta, state
            )


def _time(seconds: float) -> str:
    """A time in UTC to the second."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _entry(row: Row, before: StudyEntry | None) -> StudyEntry:
    """A study's entry after one more row. A reservation starts a new entry: before is None."""
    known = before or StudyEntry("", "")
    return StudyEntry(
        row.at,
        row.study.hex(),
        row.note if row.kind in NAMING and row.note else known.name,
        known.epsilon if row.epsilon is None else row.epsilon,
        known.delta if row.delta is None else row.delta,
        STATES[row.kind],
    )


# --- for programs ---


def as_dict(snapshot: Snapshot, place: Place) -> dict[str, object]:
    """The ledger as JSON. Amounts are exact: texts such as "1/3".

    A study's mechanism is text as in `umpc/dp/events.py`, and empty where none is known.
    """

    account = snapshot.account
    known = account.mechanisms.items()
    mechanisms = {study.hex(): encode_events(events) for (study, _), events in known}
    return {
        "dataset": account.dataset,
        "ledger": str(place.ledger),
        "anchor": str(place.anchor),
        "anchor_fault": snapshot.fault,
        "row": snapshot.head.seq,
        "row_hash": snapshot.head.hash.hex(),
        "epsilon": _amounts(account.epsilon()),
        "delta": _amounts(account.delta()),
        "composition": account.composition.name,
        "composition_delta": str(account.composition.delta),
        "largest_next_epsilon": str(account.largest_epsilon()),
        "restores": [
            {"when": row.at, "epsilon": str(row.epsilon), "delta": str(row.delta)}
            for row in restores(snapshot)
        ],
        "studies": [
            {
                **_exact(study),
                "mechanism": mechanisms.get(study.hash, ""),
                "data": _data(snapshot.cohorts.get(bytes.fromhex(study.hash))),
            }
            for study in studies(snapshot)
        ],
    }


def restores(snapshot: Snapshot) -> list[Row]:
    """The rows that count what was charged between a backup and its return."""

    return [row for row in snapshot.rows if row.kind in (RESTORE, RESTORE_ALL)]


def _data(cohort: Fingerprint | None) -> dict[str, object] | None:
    """The fingerprint of a study's records; None where none is known."""
    names = ("at_least", "at_most", "whole", "fields", "selection")
    return {name: getattr(cohort, name) for name in names} if cohort else None


def _amounts(balance: Balance) -> dict[str, str]:
    return {name: str(getattr(balance, name)) for name in AMOUNTS}


def _exact(study: StudyEntry) -> dict[str, str | None]:
    return {key: None if each is None else str(each) for key, each in study._asdict().items()}


# --- for people ---


def print_tables(snapshot: Snapshot, place: Place) -> None:
    shown = console()
    shown.print(_sums(snapshot.account))
    if composed := _composed(snapshot.account):
        shown.print(composed, soft_wrap=True, markup=False, highlight=False)
    table = _studies(snapshot)
    shown.print(table if table.row_count else "no study was asked for yet")
    state = f"its anchor {place.anchor} {snapshot.fault or 'agrees'}"
    damaged = [f"the held attempt of {study.hex()} is wrong" for study in snapshot.damaged]
    since = [
        f"{row.at}: {row.note}; since then epsilon {short_amount(row.epsilon)} and delta "
        f"{short_amount(row.delta)} count as spent"
        for row in restores(snapshot)
    ]
    for line in (*since, f"ledger {place.ledger}, {snapshot.head}", state, *damaged):
        shown.print(line, soft_wrap=True, markup=False, highlight=False)


def _sums(account: Account) -> Table:
    """The whole budget in two lines, epsilon and delta."""

    table = Table(title=f"budget of data set {escape(repr(account.dataset))}", title_justify="left")
    table.add_column()
    for head in AMOUNTS:
        table.add_column(head, justify="right")
    for name, balance in (("epsilon", account.epsilon()), ("delta", account.delta())):
        table.add_row(name, *(short_part(balance, amount) for amount in AMOUNTS))
    return table


def _composed(account: Account) -> str:
    """The meaning of amounts that are no sums, in words; empty for basic composition."""

    composition = account.composition
    if composition.name == BASIC:
        return ""
    largest = short_amount(account.largest_epsilon(), ROUND_FLOOR)
    return (
        f"composed by {composition}, which is beside the delta above: a study costs less than its "
        f"own epsilon. The next may ask for epsilon {largest}, with a pure mechanism"
    )


def _studies(snapshot: Snapshot) -> Table:
    """One line for each study."""

    table = Table(title="studies", title_justify="left")
    table.add_column("when", min_width=TIME_WIDTH, overflow="fold")
    for head in ("hash", "name", "epsilon", "delta", "state", "data"):
        table.add_column(head, overflow="fold")
    groups = same_data(snapshot.cohorts)
    for study in studies(snapshot):
        table.add_row(
            study.when,
            study.hash[:DIGITS],
            escape(study.name),
            short_amount(study.epsilon),
            short_amount(study.delta),
            study.state,
            groups.get(bytes.fromhex(study.hash), ""),
        )
    return table


def same_data(cohorts: dict[bytes, Fingerprint]) -> dict[bytes, str]:
    """Each study's data in words: a number that studies of the same values share, and a range.

    Two studies have one number if a field of both has the same values in both, and no field of both
    has other values. "Changed" means that the same fields and condition gave other records before.
    """
    groups: list[Fingerprint] = []
    found = {}
    last: dict[str, tuple[Fingerprint, int]] = {}
    for study, cohort in cohorts.items():
        alike = (
            place
            for place, known in enumerate(groups)
            if known.is_same(cohort) or (known.agreeing(cohort) and not known.differing(cohort))
        )
        place = next(alike, len(groups))
        if place == len(groups):
            groups.append(cohort)
        found[study] = f"data {place + 1}: {cohort.at_least} to {cohort.at_most} records"
        former, number = last.get(cohort.selection, (cohort, 0))
        if cohort.has_changed(former):
            found[study] += f", changed since data {number}"
        last[cohort.selection] = cohort, place + 1
    return found
