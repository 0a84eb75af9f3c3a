"""`umpc budget`: show a node's ledger, verify it, and set its anchor again.

`show` and `verify` only read, and they work while the node runs. `anchor --accept` writes, and the
node must not run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from umpc.cli.budget_shown import DIGITS, as_dict, print_tables
from umpc.cli.dataset_option import CONFIG, DATASET, read_budget, read_ledger
from umpc.cli.show import FORMAT

if TYPE_CHECKING:
    from umpc.node.budget.ledger_place import Place
    from umpc.node.budget.ledger_reading import Snapshot
    from umpc.node.config import NodeConfig


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
    """


@budget.command()
@CONFIG
@DATASET
@FORMAT
def show(config: Path, dataset: str | None, style: str) -> None:
    """Show how much budget is spent, held, reserved by prepared studies and left, and each study.

    Long amounts are rounded for people: what is left down, and what is gone up. JSON is exact.
    """
    loaded, place = _place(config, dataset)
    snapshot, prepared = read_budget(loaded)
    if style == "json":
        click.echo(json.dumps(as_dict(snapshot, place, prepared)))
    else:
        print_tables(snapshot, place, prepared)


@budget.command()
@CONFIG
@DATASET
def verify(config: Path, dataset: str | None) -> None:
    """Verify every row of the ledger, and its anchor. Print the last row's hash.

    Keep a copy of the printed hash elsewhere if you want to recognise this state later.
    """
    loaded, place = _place(config, dataset)
    snapshot = read_verified(loaded, place)
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
@CONFIG
@DATASET
@click.option(
    "--accept",
    is_flag=True,
    help="Accept the ledger as the latest one, and set the anchor again. Stop the node first.",
)
def anchor(config: Path, dataset: str | None, accept: bool) -> None:
    """Check the ledger's anchor, or set it again.

    Without --accept the command only checks whether the anchor agrees with the ledger. An anchor
    that is lost or does not agree may mean that somebody has put an older copy of the ledger back,
    to spend its budget twice. Accept a ledger only if you know that it is the latest. The ledger
    then keeps a row that says so.
    """
    from umpc.node.budget.ledger import Ledger
    from umpc.node.budget.ledger_reading import read_beside

    loaded, place = _place(config, dataset)
    snapshot = read_beside(place)
    if not snapshot.fault:
        click.echo(
            f"the anchor {place.anchor} agrees with {place.ledger}; there is nothing to accept"
        )
        return
    if not accept:
        raise place.astray(snapshot.fault)
    budget = (loaded.ledger, loaded.dataset, loaded.epsilon, loaded.delta)
    with Ledger(*budget, composition=loaded.composition, anchor=loaded.anchor, accept=True):
        pass
    click.echo(f"accepted: the anchor {place.anchor} is now at {read_beside(place).head}")


def _place(config: Path, dataset: str | None) -> tuple[NodeConfig, Place]:
    from umpc.node.budget.ledger_place import Place
    from umpc.node.config import load_node_config

    loaded = load_node_config(config, dataset, reads_table=False)
    return loaded, Place.of(loaded.ledger, loaded.anchor)
