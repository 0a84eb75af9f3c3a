"""The options --config and --dataset of the commands of a site's administrator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from umpc.cli.paths import FILE

if TYPE_CHECKING:
    from umpc.node.approvals import Approvals
    from umpc.node.budget.ledgerfile import Snapshot
    from umpc.node.config import NodeConfig

CONFIG = click.option(
    "--config",
    type=FILE,
    required=True,
    help="The node's TOML file.",
)
DATASET = click.option(
    "--dataset",
    metavar="NAME",
    help="The data set that is meant, where node.toml has several.",
)


def configs_of(config: Path, dataset: str | None) -> tuple[NodeConfig, ...]:
    """Return the named data set of a node's file, or all without a name. Raises: ConfigError."""
    from umpc.node.config import choose_dataset, load_datasets

    found = load_datasets(config, reads_table=False)
    return found if dataset is None else (choose_dataset(found, dataset),)


def approvals_of(config: NodeConfig) -> Approvals:
    """The decisions on studies at a data set."""
    from umpc.node.approvals import Approvals, approvals_beside

    return Approvals(approvals_beside(config.ledger))


def has_ledger(config: NodeConfig) -> bool:
    """Whether the node has made the ledger of a data set, at its first start."""
    from umpc.node.budget.ledger_place import Place

    return Place.of(config.ledger, config.anchor).ledger.exists()


def read_ledger(config: NodeConfig) -> Snapshot:
    """Read the ledger of a data set beside a node that may run. Raises: LedgerError."""
    from umpc.node.budget.ledger_place import Place
    from umpc.node.budget.ledgerfile import read_beside

    return read_beside(Place.of(config.ledger, config.anchor), composition=config.composition)
