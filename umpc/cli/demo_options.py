"""The options of `umpc demo`, and the sections of its help text.

The options that set up the protocol are those settings that some protocol has; their help comes
from the protocols themselves.

The protocols and their settings, as help texts show them.

Every description is written once, beside the setting itself in its protocol's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click import HelpFormatter

from umpc.cli.kernel_options import has_colon, listed, named, unquoted
from umpc.errors import ConfigError
from umpc.protocols.base.protocol import StudyProtocol
from umpc.protocols.registry import AUTO, PROTOCOLS, USUAL
from umpc.study.settings import keys_of

PARTICIPANTS = ("dealer", "shufflers")
"""Settings that the demo makes itself."""
TABLE = "The table"
STUDY = "The study"
OUTPUT = "The output"
SECTIONS = {
    TABLE: "csv_files delimiter fields label nodes bounds missing encoding decimal thousands",
    STUDY: "statistic parameters where protocol epsilon max_colluding adversary sampling",
}
"""Section of the help text → its options. All others are in the last section."""
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
    keep: Path | None
    hub: bool
    settings: Mapping[str, Any]
    sampling: str | None = None
    weight: str | None = None


class DemoCommand(click.Command):
    """A command whose help has a section for each group of options."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        settings = demo_settings()
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in (*SECTIONS, OUTPUT)}
        places = {name: title for title, names in SECTIONS.items() for name in names.split()}
        metavars = {}
        for option in self.get_params(context):
            metavars[option.name] = option.make_metavar(context)
            record = option.get_help_record(context)
            if record is not None and option.name not in settings:
                records[places.get(option.name or "", OUTPUT)].append(record)
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
    if key == "matrix":
        return {"type": bool}
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


# --- settings of protocols in help texts ----------------------------------------------------------


Terms = Callable[["Setting"], str]
"""The words that stand for a setting in the left column of a help text."""


@dataclass(frozen=True)
class Setting:
    """One setting of a protocol.

    text: its description, its possible values and its default. choices: empty where any text will
    do. is_number: whether the value is a whole number.
    """

    key: str
    text: str
    choices: tuple[str, ...]
    is_number: bool


def settings_of(protocol: StudyProtocol) -> tuple[Setting, ...]:
    """The settings of a protocol, in the order in which it declares them."""
    usual = protocol.settings()
    found = []
    for key, described in keys_of(protocol.settings).items():
        default = getattr(usual, key)
        description = described.description or ""
        choices = tuple((described.extra or {}).get("choices", ()))
        text = _text(description, choices, default)
        found.append(Setting(key, text, choices, isinstance(default, int)))
    return tuple(found)


def _text(description: str, choices: tuple[str, ...], default: Any) -> str:
    parts = [description]
    if choices:
        parts.append(f"One of {', '.join(choices)}.")
    # A default that depends on the rest of the study is in the description already.
    if default and isinstance(default, str | int) and "default" not in description:
        parts.append(f"[default: {default}]")
    return " ".join(parts)


def write_protocols(formatter: HelpFormatter) -> None:
    """Write a line for each protocol: its name, and its class's first line."""
    rows = []
    for name, protocol in PROTOCOLS.items():
        summary = (type(protocol).__doc__ or "").partition("\n")[0]
        rows.append((name, f"{summary} [default]" if name == USUAL else summary))
    with formatter.section("Protocols"):
        formatter.write_dl(rows)


def write_settings(formatter: HelpFormatter, terms: Terms, leave_out: Container[str] = ()) -> None:
    """Write a section for each group of protocols that have the same settings.

    Args: leave_out: keys of settings that are not shown.
    """
    for names, settings in _sections(leave_out):
        with formatter.section(f"Settings of {', '.join(names)}"):
            formatter.write_dl([(terms(setting), setting.text) for setting in settings])


def _sections(leave_out: Container[str]) -> Iterator[tuple[list[str], tuple[Setting, ...]]]:
    found: dict[tuple[Setting, ...], list[str]] = {}
    for name, protocol in PROTOCOLS.items():
        shown = tuple(each for each in settings_of(protocol) if each.key not in leave_out)
        found.setdefault(shown, []).append(name)
    for settings, names in found.items():
        if settings:
            yield names, settings
