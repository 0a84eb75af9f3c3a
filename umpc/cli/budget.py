"""`umpc budget`: what a node's ledger says, whether it verifies, and its anchor set anew on an administrator's word.

`show` and `verify` only read, also while the node runs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fractions import Fraction

    from umpc.node.budget.budget_account import Balance, Row
    from umpc.node.budget.ledgerfile import Place, Snapshot
    from umpc.node.config import NodeConfig

CONFIG = click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The node's TOML file.",
)
DIGITS = 16
"""Of a hash in a table."""
STATES = {
    "reserve": "reserved",
    "delta": "reserved",
    "cancel": "given back",
    "charge": "charged",
    "answer": "answered",
    "release": "released",
}


@click.group()
def budget() -> None:
    """See a site's privacy budget, verify its ledger, and accept a ledger whose anchor is lost.

    \b
    umpc budget show --config node.toml
    umpc budget verify --config node.toml
    umpc budget anchor --config node.toml --accept
    """


@budget.command()
@CONFIG
@click.option(
    "--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def show(config: Path, style: str) -> None:
    """Show what was spent, what is left, and for which studies."""
    from umpc.node.budget.ledgerfile import read_beside

    _, place = _place(config)
    snapshot = read_beside(place)
    if style == "json":
        click.echo(json.dumps(_as_dict(snapshot, place)))
    else:
        _print(snapshot, place)


@budget.command()
@CONFIG
def verify(config: Path) -> None:
    """Verify the whole ledger and its anchor; print the last row's hash, to be noted elsewhere."""
    from umpc.node.budget.ledgerfile import read_beside

    _, place = _place(config)
    snapshot = read_beside(place)
    if snapshot.fault:
        raise place.astray(snapshot.fault)
    click.echo(f"{place.ledger}: verified, with its anchor {place.anchor}")
    click.echo(str(snapshot.head))


@budget.command()
@CONFIG
@click.option(
    "--accept",
    is_flag=True,
    help="Take the ledger as it is for the latest one. The node must not run.",
)
def anchor(config: Path, accept: bool) -> None:
    """Say whether the anchor agrees with the ledger, and set it anew where it is lost or astray.

    An anchor that is astray may mean that somebody put an older copy of the ledger back, to spend its budget twice.
    Accept a ledger only if you know that it is the latest; the ledger keeps a row that says so.
    """
    from umpc.node.budget.ledger import Ledger
    from umpc.node.budget.ledgerfile import read_beside

    loaded, place = _place(config)
    snapshot = read_beside(place)
    if not snapshot.fault:
        click.echo(
            f"the anchor {place.anchor} agrees with {place.ledger}; there is nothing to accept"
        )
        return
    if not accept:
        raise place.astray(snapshot.fault)
    with Ledger(
        loaded.ledger,
        loaded.dataset,
        loaded.epsilon,
        loaded.delta,
        anchor=loaded.anchor,
        accept=True,
    ):
        pass
    click.echo(f"accepted: {place.anchor} stands at {read_beside(place).head}")


def _place(config: Path) -> tuple[NodeConfig, Place]:
    from umpc.node.budget.ledgerfile import Place
    from umpc.node.config import load_node_config

    loaded = load_node_config(config)
    return loaded, Place.of(loaded.ledger, loaded.anchor)


def studies(rows: list[Row]) -> list[dict]:
    """One entry a study, in the order of their last row: what it costs, or would have, and how it stands."""
    found: dict[bytes, dict] = {}
    for row in rows:
        if row.kind not in STATES:
            continue
        entry = found.pop(row.study, {"name": "", "epsilon": None, "delta": None})
        if row.kind == "reserve":
            entry = {"name": row.note, "epsilon": None, "delta": None}
        epsilon, delta = (
            row.epsilon or entry["epsilon"],
            entry["delta"] if row.delta is None else row.delta,
        )
        found[row.study] = {
            "when": row.at,
            "hash": row.study.hex(),
            "name": entry["name"],
            "epsilon": epsilon,
            "delta": delta,
            "state": STATES[row.kind],
        }
    return list(found.values())


# --- for programs -----------------------------------------------------------------------------------------


def _as_dict(snapshot: Snapshot, place: Place) -> dict:
    """Amounts are exact: texts such as "1/3"."""
    account = snapshot.account
    return {
        "dataset": account.dataset,
        "ledger": str(place.ledger),
        "anchor": str(place.anchor),
        "anchor_fault": snapshot.fault,
        "row": snapshot.head.seq,
        "row_hash": snapshot.head.hash.hex(),
        "epsilon": _amounts(account.epsilon()),
        "delta": _amounts(account.delta()),
        "studies": [
            {key: _exact(value) for key, value in study.items()} for study in studies(snapshot.rows)
        ],
    }


def _amounts(balance: Balance) -> dict[str, str]:
    return {name: str(getattr(balance, name)) for name in ("total", "spent", "reserved", "left")}


def _exact(value: str | Fraction | None) -> str | None:
    return value if value is None else str(value)


# --- for people -------------------------------------------------------------------------------------------


def _print(snapshot: Snapshot, place: Place) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console, account = Console(width=None if sys.stdout.isatty() else 110), snapshot.account
    sums = Table(title=f"budget of data set {escape(repr(account.dataset))}", title_justify="left")
    sums.add_column()
    for head in ("total", "spent", "reserved", "left"):
        sums.add_column(head, justify="right")
    for name, balance in (("epsilon", account.epsilon()), ("delta", account.delta())):
        sums.add_row(
            name, *map(_short, (balance.total, balance.spent, balance.reserved, balance.left))
        )
    console.print(sums)
    table = Table(title="studies", title_justify="left")
    for head in ("when", "hash", "name", "epsilon", "delta", "state"):
        table.add_column(head)
    for study in studies(snapshot.rows):
        amounts = _short(study["epsilon"]), _short(study["delta"])
        table.add_row(
            study["when"], study["hash"][:DIGITS], escape(study["name"]), *amounts, study["state"]
        )
    console.print(table if table.row_count else "no study was asked for yet")
    console.print(
        f"ledger {place.ledger}, {snapshot.head}", soft_wrap=True, markup=False, highlight=False
    )
    state = f"its anchor {place.anchor} {snapshot.fault or 'agrees'}"
    console.print(state, soft_wrap=True, markup=False, highlight=False)


def _short(amount: Fraction | None) -> str:
    """Exact while it is short."""
    if amount is None:
        return "not yet known"
    return str(amount) if len(str(amount)) <= 8 else f"{float(amount):.6g}"
