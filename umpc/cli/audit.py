"""`umpc audit`: show, verify and export a node's audit trail. The commands only read."""

from __future__ import annotations

import csv
import hashlib
import json
import sys
import textwrap
from collections import deque
from collections.abc import Iterator
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import click

from umpc.cli.shared import FILE, format_option, of_dataset, print_columns, read_ledger
from umpc.node.audit import reading
from umpc.node.audit.trail import AuditMark, AuditTrail
from umpc.node.config import NodeConfig

COLUMNS = (
    *("seq", "at", "event", "study", "name", "coordinator"),
    *("statistic", "fields", "epsilon", "delta", "note", "hash"),
)
SHOWN = ("seq", "at", "event", "study", "coordinator", "statistic", "epsilon", "fields", "note")
DIGITS = 16
WIDEST = 60


@click.group()
def audit() -> None:
    """Show, verify and export the audit trail of a node.

    The trail is a file beside the ledger. It has one row for each proposal, decision of a person,
    refusal, charge, release and change of the rules. Each row's hash covers all rows before it.
    It is made with the ledger's key.

    \b
    umpc audit show --config node.toml --event refusal
    umpc audit verify --config node.toml
    umpc audit export --config node.toml > audit.jsonl
    """


@audit.command()
@of_dataset
@click.option("--last", default=20, show_default=True, help="The number of rows that are shown.")
@click.option("--event", help="Only rows of this event, such as charge or refusal.")
@click.option("--study", help="Only rows of the study whose hash begins so.")
def show(config: NodeConfig, last: int, event: str | None, study: str | None) -> None:
    """Show the last rows of the trail. They are not verified."""
    fitting = (
        {**row, "note": reading.note_of(row)}
        for row in _rows(config, 0)
        if (event is None or row["event"] == event) and row["study"].startswith(study or "")
    )
    found = [[_lines(text) for text in _cells(row, SHOWN)] for row in deque(fitting, last)]
    print_columns([SHOWN, *chain.from_iterable(zip_longest(*row, fillvalue="") for row in found)])


@audit.command()
@of_dataset
@click.option(
    "--expect",
    metavar='"NUMBER HASH"',
    help="A place that an earlier `umpc audit verify` printed; it must still be in the trail.",
)
def verify(config: NodeConfig, expect: str | None) -> None:
    """Verify every row, and that every charge of the ledger has its row. Print the last place.

    Keep the printed place elsewhere. With --expect, a later run finds out whether rows after a
    charge were cut off, or the whole trail was made anew.
    """

    trail = AuditTrail(config.ledger)
    head = verified_head(config, trail, AuditMark.parse(expect) if expect else None)
    click.echo(f"verified: {head.seq} rows of {trail.path}, with every charge")
    click.echo(str(head))


@audit.command()
@click.argument("file", type=FILE)
@click.option("--ca", type=FILE, required=True, help="The consortium's ca.pem.")
@click.option("--dealer", type=FILE, help="The dealer's certificate; a false proof needs it.")
def evidence(file: Path, ca: Path, dealer: Path | None) -> None:
    """Check evidence that a node lied, and print its name. Exit code 43: it proves nothing.

    FILE is what a coordinator or a node wrote when a study with adversary = "lying_nodes" ended
    with exit code 46. Its SHA-256 stands in that message, and in the sites' audit trails. The check
    needs no site's word, and no identity. Do not show FILE to the dealer: with its masks it opens
    the liar's records.
    """
    from umpc.protocols.registry import load_all, proven_lie
    from umpc.transport.identity import certificate_in, verifier_at_any_date

    load_all()
    content, verify = file.read_bytes(), verifier_at_any_date(ca.read_bytes())
    shown = b"" if dealer is None else certificate_in(dealer)
    study, name, lie = proven_lie(content, verify, shown)
    click.echo(f"proven: {name} {lie}; study {study.name!r} of {study.coordinator}")
    click.echo(f"evidence {hashlib.sha256(content).hexdigest()}, study {study.hash.hex()}")


def verified_head(
    config: NodeConfig, trail: AuditTrail, mark: AuditMark | None = None
) -> AuditMark:
    """Verify a trail with every charge of the ledger, and return its last place.

    Raises: AuditError, LedgerError.
    """

    charged = frozenset(read_ledger(config).account.charged)
    verified = reading.verify(trail.path, trail.key(), mark, charged)
    reading.compare(trail.path, verified, charged)
    return verified.head


@audit.command()
@of_dataset
@click.option("--after", default=0, help="Leave out the rows up to this number.")
@format_option("jsonl", "csv", "One JSON object a line, or a table with a header.")
def export(config: NodeConfig, after: int, style: str) -> None:
    """Write the rows to standard output, for another system to keep."""
    found = _rows(config, after)
    if style == "jsonl":
        for row in found:
            click.echo(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
        return
    writer = csv.writer(sys.stdout)
    writer.writerow(COLUMNS)
    for row in found:
        writer.writerow(_cells(row, COLUMNS))


def _rows(config: NodeConfig, after: int) -> Iterator[dict[str, Any]]:

    return islice(reading.rows(AuditTrail(config.ledger).path), after, None)


def _cells(row: dict[str, Any], columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return a row's values as texts. A quote begins those that a spreadsheet would compute."""
    texts = (row.get(column, "") for column in columns)
    shown = [" ".join(text) if isinstance(text, list) else str(text) for text in texts]
    return tuple(f"'{text}" if text[:1] in "=+-@" and text else text for text in shown)


def _lines(text: str) -> list[str]:
    """Return the lines of a text in its column; of a hash its first digits."""
    if len(text) == 64 and " " not in text:
        return [text[:DIGITS]]
    return textwrap.wrap(text, WIDEST)
