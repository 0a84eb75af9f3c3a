"""Commands that are loaded when they are first used, so that `umpc --help` answers fast.

Another package adds a command through an entry point that names a `LazyCommand`:

    [project.entry-points."umpc.commands"]
    my-command = "my_package.commands:MY_COMMAND"
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import NamedTuple

import click

GROUP = "umpc.commands"
"""The group of entry points."""


class LazyCommand(NamedTuple):
    """Where a command is that may not be loaded yet. does: its line in the list of commands."""

    module: str
    attribute: str
    does: str


class LazyGroup(click.Group):
    """A group of lazy commands: umpc's own, and then those of other packages."""

    def __init__(self, *arguments: object, own: Mapping[str, LazyCommand], **named: object):
        super().__init__(*arguments, **named)  # type: ignore[arg-type]
        self._own = own

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self._places())

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        place = self._own.get(name) or self._places().get(name)
        if place is None:
            return None
        command: click.Command = getattr(importlib.import_module(place.module), place.attribute)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without loading them, which would take most of a second."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.does) for name, place in self._places().items()])

    def _places(self) -> dict[str, LazyCommand]:
        found = {point.name: point.load() for point in entry_points(group=GROUP)}
        return {**self._own, **{name: found[name] for name in sorted(found.keys() - self._own)}}
