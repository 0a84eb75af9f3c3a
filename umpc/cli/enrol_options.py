"""The options that the commands of `umpc enrol` have in common."""

from __future__ import annotations

from pathlib import Path

import click

from umpc.cli.paths import FOLDER

ROLE = click.Choice(["node", "dealer", "shuffler", "coordinator"])
AUTHORITY = click.option(
    "--authority",
    type=FOLDER,
    default=Path("authority"),
    show_default=True,
    help="The authority's folder, which `umpc ca init` made.",
)
