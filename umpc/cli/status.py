"""`umpc node status`: the state of a site's node, from the site's own files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click
from cryptography import x509

from umpc.cli.budget import balance_text
from umpc.cli.shared import CONFIG, approvals_of, has_ledger, place_of, read_ledger
from umpc.errors import UmpcError
from umpc.node.approvals import PENDING
from umpc.node.config import NodeConfig, changed_since_start, load_datasets
from umpc.node.records import reading_beside, rows_so_far
from umpc.transport.certificates import Revoked, load_certificate
from umpc.transport.identity import due, load_identity

DIGITS = 16
"""Hexadecimal digits of a study's hash that are shown."""
SHOWN = 5
"""Studies of one kind that are shown by name."""


@click.command()
@CONFIG
def status(config: Path) -> None:
    """Show the node's certificate, list of revoked ones, budget, and studies that wait.

    While the node reads a large table, a line says how many rows it has read.

    The command only reads the site's files. It works while the node runs, and also while it does
    not. Its last lines say what somebody must do. The exit code is 0 if that is nothing, and 1
    otherwise, so a monitor can call it.

    \b
    Example:
      umpc node status --config node.toml
    """

    found = load_datasets(config, reads_table=False)
    show = Sheet()
    _try(_identity, found[0], show)
    for each in found:
        if len(found) > 1:
            show.line("data set", repr(each.dataset))
        _try(_budget, each, show)
        _try(_studies, each, show)
        _reading(each, show)
    show.end()
    if show.to_do:
        sys.exit(1)


def _try(part: Callable[[NodeConfig, Sheet], None], config: NodeConfig, show: Sheet) -> None:
    """Show one part. Its failure is something that somebody must do."""
    try:
        part(config, show)
    except UmpcError as error:
        show.must(error.message)


class Sheet:
    """Lines of a label and a text, and what must be done."""

    def __init__(self) -> None:
        self.to_do: list[str] = []

    def line(self, label: str, text: object) -> None:
        """Print one line."""
        click.echo(f"{label:<12} {text}")

    def must(self, sentence: str) -> None:
        """Note that somebody must do something."""
        self.to_do.append(sentence)

    def end(self) -> None:
        """Print what must be done."""
        for sentence in self.to_do or ["nothing"]:
            self.line("to do", sentence)


def _identity(config: NodeConfig, show: Sheet) -> None:

    show.line("name", config.name)
    show.line("role", "node")
    show.line("address", config.hub or config.listen)
    try:
        identity = load_identity(config.identity, "node")
    except UmpcError:
        _dates_of(config.identity, show)
        raise
    _dates_of(config.identity, show)
    show.line("list", list_text(identity.revoked))
    if identity.name != config.name:
        show.must(
            f"the certificate is for {identity.name!r} and {config.file} is for {config.name!r}: "
            "make both names equal"
        )
    for sentence in due(identity):
        show.must(sentence)


def _dates_of(folder: Path, show: Sheet) -> None:
    """Show the certificate's dates, also if it is of no use as an identity."""

    cert = load_certificate(folder / "cert.pem")
    show.line("certificate", dates_text(cert))
    show.line("serial", f"{cert.serial_number:x}")


def dates_text(cert: x509.Certificate) -> str:
    """Return a certificate's dates in words."""
    since, until = cert.not_valid_before_utc, cert.not_valid_after_utc
    days = (until - datetime.now(UTC)).days
    left = f"{days} days left" if days >= 0 else "expired"
    return f"from {since:%Y-%m-%d} until {until:%Y-%m-%d %H:%M} UTC, {left}"


def list_text(revoked: Revoked | None) -> str:
    """Return the number and dates of a list of revoked certificates in words."""
    if revoked is None:
        return "no list of revoked certificates"
    return (
        f"number {revoked.number} of {revoked.made:%Y-%m-%d %H:%M} UTC, {len(revoked.serials)} "
        f"revoked, next due {revoked.next_update:%Y-%m-%d}"
    )


def _budget(config: NodeConfig, show: Sheet) -> None:

    if not has_ledger(config):
        show.line(
            "budget", f"{config.epsilon} in all; the node makes its ledger at its first start"
        )
        return
    if stale := changed_since_start(config):
        show.must(stale)
    snapshot = read_ledger(config)
    place = place_of(config)
    show.line("epsilon", balance_text(snapshot.account.epsilon()))
    show.line("delta", balance_text(snapshot.account.delta()))
    _some(show, "held", [(each.study.hex(), each.name) for each in snapshot.held])
    _some(show, "prepared", [(each.study.hex(), each.name) for each in snapshot.prepared])
    for study in snapshot.damaged:
        show.must(f"ledger {place.ledger}: the held attempt of {study.hex()[:16]} is wrong")
    if snapshot.fault:
        show.must(place.astray(snapshot.fault).message)


def _studies(config: NodeConfig, show: Sheet) -> None:

    waiting = [each for each in approvals_of(config).entries() if each.state == PENDING]
    _some(show, "waiting", [(entry.hash, entry.name) for entry in waiting])
    if waiting:
        show.must(f"decide on {len(waiting)} studies that wait: see `umpc approve list`")


def _reading(config: NodeConfig, show: Sheet) -> None:
    """Show how far a long reading of the table is, if one goes on."""

    found = rows_so_far(reading_beside(config.ledger))
    if found is not None:
        rows, seconds = found
        show.line("reading", f"{rows:,} rows of the table so far, since {seconds} s")


def _some(show: Sheet, label: str, studies: list[tuple[str, str]]) -> None:
    """Show studies by hash and name: a few of them, and the number of the others."""
    if not studies:
        show.line(label, "no study")
    for digits, name in studies[:SHOWN]:
        show.line(label, f"study {name!a}, hash {digits[:DIGITS]}")
    if len(studies) > SHOWN:
        show.line(label, f"and {len(studies) - SHOWN} more studies")
