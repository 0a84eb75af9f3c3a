"""`umpc approve`: an administrator lists the studies that wait at a node, and decides on them.

The commands work while the node runs.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterator
from pathlib import Path

import click

from umpc.api.description import describe_question
from umpc.cli.budget import studies
from umpc.cli.shared import (
    CONFIG,
    DATASET,
    approvals_of,
    configs_of,
    has_ledger,
    place_of,
    print_columns,
    read_ledger,
)
from umpc.errors import ApprovalError, UmpcError
from umpc.node.approvals import ACCEPTED, MAX_REASON, PENDING, REJECTED, Entry
from umpc.node.audit.trail import AuditRow, AuditTrail
from umpc.node.budget.ledgerfile import give_back
from umpc.node.config import NodeConfig
from umpc.node.decision import sentence_for
from umpc.protocols.registry import decode_study, protocol_of
from umpc.study.document import Study
from umpc.text_file import printable

HASH = click.argument("prefix", metavar="HASH")
DIGITS = 16
"""Hexadecimal digits of a hash that the list shows."""
REASON = "this site does not take part in the study"
HEAD = ("state", "hash", "when", "coordinator", "statistic", "epsilon", "name")
"""Columns of the list."""


@click.group()
def approve() -> None:
    """Decide on the studies that wait for approval at a node.

    A study waits if the node's TOML file has approval = true under [policy].
    After your decision the coordinator has to run the study again.

    HASH stands for the first digits of a study's hash, or for its name. Give as many digits as
    you need to tell the study from all others.

    You may change a decision at any time. After the release, a refusal withdraws the stored
    result: the node does not send its share again, and what was sent is sent. A decision does not
    stop a run that has begun its release.

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
    default=REASON,
    show_default=True,
    help="One line. The coordinator reads it whenever it asks for this study again.",
)
def reject(config: Path, dataset: str | None, prefix: str, reason: str) -> None:
    """Refuse a study, and give back what it reserves. It holds until you accept the study.

    The study may wait, be prepared, be finished and not yet paid for, or be released. With all 64
    digits of its hash it may also be unknown here so far.
    """

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

    if state == REJECTED:
        _know(config, dataset, prefix)
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
    decided = approvals_of(found).decide(entry.hash, state, reason)
    if state == REJECTED and has_ledger(found):
        give_back(place_of(found), bytes.fromhex(entry.hash))
    return decided


def _know(config: Path, dataset: str | None, wanted: str) -> None:
    """Add a study to the approvals that only the ledger knows, or that nobody asked for yet.

    Args: wanted: its name or the first digits of its hash; all 64 of an unknown one.
    Raises: ApprovalError where several studies of the ledgers fit.
    """
    found, digits = configs_of(config, dataset), wanted.strip().lower()
    if any(approvals_of(each).named(wanted) for each in found):
        return
    known = {
        (study.hash, each.ledger): (each, study)
        for each in filter(has_ledger, found)
        for study in studies(read_ledger(each))
        if study.name == wanted or (digits and study.hash.startswith(digits))
    }
    if len(known) > 1:
        hashes = ", ".join(digits[:DIGITS] for digits, _ in known)
        raise ApprovalError(
            f"one study was expected whose hash begins with {wanted[:64]!r}, or which has this "
            f"name, and these fit: {hashes}. Give more digits of the hash, or --dataset"
        )
    for each, study in known.values():
        approvals_of(each).add_unseen(study.hash, study.name, str(study.epsilon))
    if not known and len(found) == 1 and re.fullmatch("[0-9a-f]{64}", digits):
        approvals_of(found[0]).add_unseen(digits, "", "")


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
    """Return the only study of this name or hash, in any data set. Raises: ApprovalError."""
    found = configs_of(config, dataset)
    with_it = [each for each in found if approvals_of(each).named(prefix)]
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
    """Lines that describe the study: all in one sentence, and then each by itself."""
    yield "in short", sentence_for(config, study)
    yield from description_of(entry, study)


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
