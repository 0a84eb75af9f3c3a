"""The options --config and --dataset of the commands of a site's administrator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from umpc.cli.paths import FILE

if TYPE_CHECKING:
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
