"""The commands that this package adds to `umpc`, as entry points of the group `umpc.commands`."""

from __future__ import annotations

from umpc.cli.lazy import LazyCommand

TRAIN = LazyCommand(
    "umpc_papers.training.command", "train", "Train a linear model on pairs of records."
)
SHUFFLER = LazyCommand("umpc_papers.shuffler.command", "shuffler", "Run a shuffler.")
