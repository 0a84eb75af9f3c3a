"""`umpc approve`: an administrator lists the studies that wait at a node, and decides on them.

The commands work while the node runs.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from pathlib import Path

import click

from umpc.api.description import describe_question
from umpc.cli.budget import short_amount
from umpc.cli.shared import (
    CONFIG,
    DATASET,
    approvals_of,
    configs_of,
    has_ledger,
    print_columns,
    read_ledger,
)
from umpc.errors import ApprovalError, LedgerError, UmpcError
from umpc.node.approvals import ACCEPTED, MAX_REASON, PENDING, REJECTED, Entry
from umpc.node.audit.trail import AuditRow, AuditTrail
from umpc.node.budget.budget_account import BudgetCost
from umpc.node.config import NodeConfig
from umpc.protocols.registry import decode_study, protocol_of
from umpc.reporting.rows import printable
from umpc.study.document import Study

HASH = click.argument("prefix", metavar="HASH")
DIGITS = 16
"""Hexadecimal digits of a hash that the list shows."""
HEAD = ("state", "hash", "when", "coordinator", "statistic", "epsilon", "name")
"""Columns of the list."""


@click.group()
def approve() -> None:
    """Decide on the studies that wait for approval at a node.

    A study waits if the node's TOML file has approval = true under [policy].
    After your decision the coordinator has to run the study again.

    HASH stands for the first digits of a study's hash. Give as many digits as you need to
    tell the study from all others.

    You may change a decision until the study is released. After the release the node repeats
    its stored answer, whatever you decide. A decision does not stop a run that has begun.

    \b
    umpc approve list --config node.toml
    umpc approve show --config node.toml 3f2a
    umpc approve accept --config node.toml 3f2a
    umpc approve reject --config node.toml 3f2a --reason "the ethics board has not agreed"
    """


@approve.command("list")
@CONFIG
@DATASET
def list_studies(config: Path, dataset: str | None) -> None:
    """List the studies that asked for approval, and the decisions.

    Studies that wait come first.
    """

    found = configs_of(config, dataset)
    entries = [(each.dataset, entry) for each in found for entry in approvals_of(each).entries()]
    if not entries:
        click.echo("no study has asked for approval yet")
        return
    entries.sort(key=lambda pair: pair[1].state != PENDING)
    rows = [(*HEAD, "data set"), *((*_row(entry), name) for name, entry in entries)]
    if len(found) == 1:
        rows = [row[:-1] for row in rows]
    print_columns(rows)


def _row(entry: Entry) -> tuple[str, ...]:
    """One line of the list, in the order of HEAD."""
    return (
        entry.state,
        entry.hash[:DIGITS],
        entry.decided or entry.asked,
        entry.coordinator,
        entry.statistic,
        entry.epsilon,
        entry.name,
    )


@approve.command()
@CONFIG
@DATASET
@HASH
def show(config: Path, dataset: str | None, prefix: str) -> None:
    """Show what a study computes, for whom, and at what epsilon.

    Text in quotes is the coordinator's own. The node has checked everything else.
    """

    found, entry = find(config, dataset, prefix)
    if len(configs_of(config, None)) > 1:
        click.echo(f"{'data set':<14}{printable(found.dataset)}")
    for name, text in facts_of(found, entry, decode_study(entry.document, stored=True)):
        click.echo(f"{name:<14}{printable(text)}")


@approve.command()
@CONFIG
@DATASET
@HASH
def accept(config: Path, dataset: str | None, prefix: str) -> None:
    """Allow a study. Its coordinator then has to run it again."""

    _say(decide(config, dataset, prefix, ACCEPTED))


@approve.command()
@CONFIG
@DATASET
@HASH
@click.option(
    "--reason",
    required=True,
    help="One line. The coordinator reads it whenever it asks for this study again.",
)
def reject(config: Path, dataset: str | None, prefix: str, reason: str) -> None:
    """Refuse a study. The refusal holds until you accept the study."""

    if not reason.strip() or not reason.isprintable() or len(reason) > MAX_REASON:
        raise click.BadParameter(
            f"one line of 1 to {MAX_REASON} characters was expected", param_hint="--reason"
        )
    _say(decide(config, dataset, prefix, REJECTED, reason))


def decide(
    config: Path, dataset: str | None, prefix: str, state: str, reason: str = "", way: str = ""
) -> Entry:
    """Write a decision to the audit trail, with its person, and then to the approvals.

    Args: dataset: None looks into all. way: how the person decided, for the trail; empty for this
    command.
    """

    found, entry = find(config, dataset, prefix)
    by = f"by {_person()}{way}"
    row = AuditRow(
        state,
        study=entry.hash,
        name=entry.name,
        coordinator=entry.coordinator,
        statistic=entry.statistic,
        fields=_fields_of(entry),
        epsilon=entry.epsilon,
        note=f"{by}: {reason}" if reason else by,
    )
    AuditTrail(found.ledger).append(row)
    return approvals_of(found).decide(entry.hash, state, reason)


def _person() -> str:
    """Return the user of this machine who decides, by number if the user has no name."""

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _fields_of(entry: Entry) -> tuple[str, ...]:
    """Return the names of a study's fields; none of a study of another version of the protocol."""

    try:
        return tuple(field.name for field in decode_study(entry.document, stored=True).fields)
    except UmpcError:
        return ()


def find(config: Path, dataset: str | None, prefix: str) -> tuple[NodeConfig, Entry]:
    """Return the only study whose hash begins so, in any data set. Raises: ApprovalError."""
    found, digits = configs_of(config, dataset), prefix.strip().lower()
    with_it = [
        each
        for each in found
        if any(entry.hash.startswith(digits) for entry in approvals_of(each).entries())
    ]
    if len(with_it) > 1:
        names = ", ".join(repr(each.dataset) for each in with_it)
        raise ApprovalError(
            f"one study was expected whose hash begins with {prefix[:64]!r}, and the data sets "
            f"{names} have one each. Give more digits, or --dataset"
        )
    chosen = with_it[0] if with_it else found[0]
    return chosen, approvals_of(chosen).find(prefix)


def _say(entry: Entry) -> None:
    click.echo(
        f"{entry.state}: {entry.name!r} of {entry.coordinator}, epsilon {entry.epsilon}, "
        f"hash {entry.hash}"
    )


def facts_of(config: NodeConfig, entry: Entry, study: Study) -> Iterator[tuple[str, str]]:
    """Lines that describe the study, and what it leaves of the data set's budget."""
    yield from description_of(entry, study)
    yield "budget", budget_after(config, study)


def budget_after(config: NodeConfig, study: Study) -> str:
    """The budget that is left before a study and after it, in words.

    The δ that finite bits add is not in it, because it depends on numbers of records.
    """

    if not has_ledger(config):
        before = f"epsilon {short_amount(config.epsilon)} in all, and nothing is spent"
        if study.exact_epsilon > config.epsilon:
            return f"{before}; the node will refuse this study, which needs more epsilon"
        left = short_amount(config.epsilon - study.exact_epsilon)
        return f"{before}, epsilon {left} after this study"
    try:
        account = read_ledger(config).account
    except LedgerError as error:
        return f"not known: {error.message}"
    protocol, charged_as = protocol_of(study), study.whole.hash
    course = protocol.course(study)
    now = account.epsilon()
    before = f"epsilon {short_amount(now.left)} of {short_amount(now.total)} left now"
    if charged_as in account.charged or (course and course.id in account.courses):
        return f"{before}; this study is paid and costs nothing more"
    known = (protocol.known_delta(study), protocol.known_events(study))
    cost = BudgetCost(study.exact_epsilon, *known)
    if lacking := account.lacks(cost, replaced=charged_as):
        return f"{before}; the node will refuse this study, which needs more {lacking}"
    account.open[charged_as] = cost
    after = f"epsilon {short_amount(account.epsilon().left)}"
    if cost.delta:
        after += f" and delta {short_amount(account.delta().left)}"
    return f"{before}, {after} after this study"


def description_of(entry: Entry, study: Study) -> Iterator[tuple[str, str]]:
    """Lines that describe the study: (heading, text).

    All facts follow from the document. Text that only its coordinator vouches for is in quotes.
    """

    yield "study", f"{study.name!r}, hash {entry.hash}"
    if shown := ", ".join(protocol_of(study).discloses(study)):
        told = f"shows {shown} of all records to {study.coordinator!r}, as a trusted curator"
        yield "WARNING", f"RAW RECORDS: {told}"
    decision = f"{entry.state} {entry.decided}" if entry.decided else "not decided on"
    reason = f": {entry.reason}" if entry.reason else ""
    yield "asked", f"{entry.asked} by {study.coordinator}, {decision}{reason}"
    yield from describe_question(study)
