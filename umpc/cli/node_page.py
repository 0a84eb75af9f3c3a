"""`umpc node page`: pending studies, budget and history of a node, in a browser on this machine.

The page reads the site's files at each view, and decides as `umpc approve` does. It works while the
node runs, and is a process of its own.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from itertools import chain, starmap
from pathlib import Path
from typing import Any, TypeVar

import click

from umpc.approval_page.server import (
    BudgetShares,
    PageContents,
    PastEvent,
    WaitingStudy,
    served_page,
)
from umpc.cli.approve import REASON, decide, facts_of, find
from umpc.cli.shared import CONFIG, approvals_of, configs_of, has_ledger, read_ledger
from umpc.errors import ApprovalError, UmpcError
from umpc.node.approvals import ACCEPTED, PENDING, REJECTED, Entry
from umpc.node.audit.reading import last_rows, note_of
from umpc.node.audit.trail import one_line, trail_beside
from umpc.node.config import NodeConfig
from umpc.protocols.registry import decode_study

T = TypeVar("T")
DIGITS = 16
MOST_WAITING = 50
MOST_EVENTS = 100
MOST_CHARACTERS = 100_000
"""The limit of one line of a study. `umpc approve show` prints longer ones."""
HISTORY = {
    "accepted": "A person accepted a study",
    "rejected": "A person refused a study",
    "refusal": "The node refused a study",
    "release": "The result of a study left",
    "answer": "The answer to a study's question left",
    "restore": "Files were put back from a backup",
    "policy": "The rules changed. From now on",
}
"""Events of the trail that the page shows → their sentences."""


@click.command()
@CONFIG
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Default: any free port of 127.0.0.1."
)
@click.option("--hours", default=8.0, show_default=True, help="Hours after which the page ends.")
def page(config: Path, port: int, hours: float) -> None:
    """Serve a page on this machine to decide on studies, until Ctrl-C.

    The command prints an address with a secret token. Open it in a browser on this machine, and
    give it to nobody. The page shows the studies that wait, the budget, and what was released and
    refused. On a server, forward the port first, with the same number at both ends:
    ssh -L 8765:127.0.0.1:8765 SERVER.

    \b
    Example:
      umpc node page --config node.toml --port 8765
    """

    configs_of(config, None)
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    with served_page(lambda: contents(config), decider(config), port) as served:
        click.echo(f"ready: open {served.address}")
        sys.stdout.flush()
        done.wait(hours * 3600)


def decider(config: Path) -> Callable[[str, str, str], str]:
    """Return the function that decides on a study that waits. Raises: ApprovalError, AuditError."""

    states = {"accept": ACCEPTED, "reject": REJECTED}

    def decide_here(digits: str, decision: str, reason: str) -> str:
        found = find(config, None, digits)[1]
        if found.state != PENDING:
            raise ApprovalError(
                f"the study {found.name!r} of hash {digits[:DIGITS]} was {found.state} meanwhile. "
                "`umpc approve` changes a decision"
            )
        reason = reason.strip() or REASON * (decision == "reject")
        entry = decide(config, None, digits, states[decision], reason, way=", on the page")
        return f"{entry.state}: {entry.name!r} of {entry.coordinator}, hash {digits[:DIGITS]}"

    return decide_here


def contents(config: Path) -> PageContents:
    """Return what the page shows now. A part that fails is left out and named."""

    faults: list[str] = []

    def part(read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except UmpcError as error:
            faults.append(error.message)
            return otherwise

    name = part(lambda: configs_of(config, None)[0].name, "")

    def pending() -> list[tuple[NodeConfig, Entry]]:
        datasets = configs_of(config, None)
        found = ((each, entry) for each in datasets for entry in approvals_of(each).entries())
        return [pair for pair in found if pair[1].state == PENDING]

    waiting: list[tuple[NodeConfig, Entry]] = part(pending, [])
    return PageContents(
        site=name,
        waiting=tuple(starmap(waiting_study, waiting[:MOST_WAITING])),
        more=max(0, len(waiting) - MOST_WAITING),
        budgets=part(lambda: _budgets(config), ()),
        history=part(lambda: _history(config), ()),
        faults=tuple(faults),
    )


def waiting_study(config: NodeConfig, entry: Entry) -> WaitingStudy:
    """Return a study with the lines of `umpc approve show`."""

    try:
        facts = list(facts_of(config, entry, decode_study(entry.document, stored=True)))
        fault = ""
    except UmpcError as error:
        facts = [("asked", f"{entry.asked} by {entry.coordinator}"), ("epsilon", entry.epsilon)]
        fault = f"This study cannot be read here: {error.message}"
    if any(len(text) > MOST_CHARACTERS for _, text in facts):
        fault = "A line of this study is too long for a page: see `umpc approve show`."
    shown = tuple((name, one_line(text, MOST_CHARACTERS)) for name, text in facts)
    return WaitingStudy(entry.hash, repr(entry.name), shown, fault)


def _budgets(config: Path) -> tuple[BudgetShares, ...]:
    """Return ε and δ of each data set; none before its first start. Raises: LedgerError."""

    shares = []
    datasets = configs_of(config, None)
    for each in filter(has_ledger, datasets):
        account = read_ledger(each).account
        of_which = f", {each.dataset}" if len(datasets) > 1 else ""
        for name, found in (("epsilon", account.epsilon()), ("delta", account.delta())):
            amounts = (found.total, found.spent, found.reserved, found.left)
            shares.append(BudgetShares(name + of_which, *amounts))
    return tuple(shares)


def _history(config: Path) -> tuple[PastEvent, ...]:
    """Return the last events, the latest first. Raises: AuditError."""

    datasets = configs_of(config, None)
    trails = [trail_beside(each.ledger.resolve()) for each in datasets]
    rows = sorted(chain.from_iterable(map(last_rows, trails)), key=lambda row: str(row["at"]))
    told = [row for row in reversed(rows) if row["event"] in HISTORY][:MOST_EVENTS]
    return tuple(
        PastEvent(row["at"], HISTORY[row["event"]], _about(row), note_of(row)) for row in told
    )


def _about(row: dict[str, Any]) -> str:
    """Return whose study an event belongs to, what it computes, and its cost."""
    if not row["study"]:
        return ""
    return (
        f"{row['name']!r} of {row['coordinator'] or 'an unknown coordinator'}, "
        f"{row['statistic'] or 'unknown statistic'}, epsilon {row['epsilon'] or 'unknown'}, "
        f"hash {row['study'][:DIGITS]}"
    )
