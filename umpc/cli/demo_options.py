"""The options of `umpc demo`, and the sections of its help text.

The options that set up the protocol are those settings that some protocol has; their help comes
from the protocols themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from umpc.cli.kernel_options import has_colon, listed, named, unquoted
from umpc.cli.settings_help import Setting, settings_of, write_protocols, write_settings
from umpc.errors import ConfigError
from umpc.protocols.registry import AUTO, PROTOCOLS

PARTICIPANTS = ("dealer", "shufflers")
"""Settings that the demo makes itself."""
TABLE = "The table"
STUDY = "The study"
OUTPUT = "The output"
SECTIONS = {
    "csv_files": TABLE,
    "delimiter": TABLE,
    "fields": TABLE,
    "label": TABLE,
    "nodes": TABLE,
    "bounds": TABLE,
    "missing": TABLE,
    "encoding": TABLE,
    "decimal": TABLE,
    "thousands": TABLE,
    "statistic": STUDY,
    "parameters": STUDY,
    "where": STUDY,
    "protocol": STUDY,
    "permutations": STUDY,
    "epsilon": STUDY,
    "max_colluding": STUDY,
    "adversary": STUDY,
    "sampling": STUDY,
    "style": OUTPUT,
}
"""Option → its section in the help text. Options that are not here join the last section."""
Command = Callable[..., None]


@dataclass(frozen=True)
class DemoOptions:
    """The options of `umpc demo`. settings: those of the protocol."""

    csv_files: tuple[Path, ...]
    delimiter: str | None
    missing: tuple[str, ...]
    encoding: str
    decimal: str
    thousands: str | None
    fields: str | None
    label: str | None
    statistic: str
    parameters: tuple[str, ...]
    where: str | None
    bounds: tuple[str, ...]
    nodes: int | None
    protocol: str | None
    epsilon: str
    max_colluding: int | None
    adversary: str
    style: str
    page: Path | None
    text: Path | None
    keep: Path | None
    hub: bool
    settings: Mapping[str, Any]
    sampling: str | None = None


class DemoCommand(click.Command):
    """A command whose help has a section for each group of options."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        settings = demo_settings()
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in SECTIONS.values()}
        metavars = {}
        for option in self.get_params(context):
            metavars[option.name] = option.make_metavar(context)
            record = option.get_help_record(context)
            if record is not None and option.name not in settings:
                records[SECTIONS.get(option.name or "", OUTPUT)].append(record)
        for title, rows in records.items():
            with formatter.section(title):
                formatter.write_dl(rows)
        write_protocols(formatter)
        write_settings(
            formatter,
            lambda setting: f"{flag_of(setting.key)} {metavars[setting.key]}",
            leave_out=PARTICIPANTS,
        )


def protocol_options(command: Command) -> Command:
    """An option for every setting that a protocol has."""
    for key, settings in reversed(demo_settings().items()):
        command = click.option(flag_of(key), **_kind(key, settings))(command)
    return command


def demo_settings() -> dict[str, list[Setting]]:
    """Every setting that a demo takes, as each protocol that has it describes it."""
    found: dict[str, list[Setting]] = {}
    for protocol in PROTOCOLS.values():
        for setting in settings_of(protocol):
            if setting.key not in PARTICIPANTS:
                found.setdefault(setting.key, []).append(setting)
    return found


def _kind(key: str, settings: Sequence[Setting]) -> dict[str, Any]:
    """Return click's arguments for a setting: the values that any protocol takes for it."""
    if key == "bins":
        return {"multiple": True, "metavar": "FIELD=BINS"}
    choices = dict.fromkeys(choice for each in settings for choice in each.choices)
    if key == "backend":
        choices[AUTO] = None
    if choices:
        return {"type": click.Choice(list(choices)), "metavar": "NAME"}
    return {"type": int if settings[0].is_number else str}


def flag_of(key: str) -> str:
    """The option of a setting's key."""
    return f"--{key.replace('_', '-')}"


def named_value(option: str, text: str) -> tuple[str, str]:
    """The name and the value of an option NAME=VALUE, without quotes. Raises: ConfigError."""
    name, value = named_list(option, text)
    return name, unquoted(value)


def named_list(option: str, text: str) -> tuple[str, str]:
    """The name of an option NAME=LIST, and the list as it is written. Raises: ConfigError."""
    found = named(text)
    if found is None:
        raise ConfigError(f"{option} is given as NAME=VALUE, got {text!r}")
    return found


def given_bounds(text: str) -> tuple[str, Any]:
    """A column and its bounds, from NAME=LOWER:UPPER, NAME=LOWER:UPPER:STEP or NAME=A,B,C.

    Raises: ConfigError.
    """
    name, value = named_list("--bounds", text)
    if not has_colon(value):
        return name, listed(value)
    return name, tuple(part.strip() for part in value.split(":"))
