"""The protocols and their settings, as help texts show them.

Every description is written once, beside the setting itself in its protocol's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from umpc.protocols.registry import PROTOCOLS, USUAL
from umpc.study.settings import keys_of

if TYPE_CHECKING:
    from click import HelpFormatter

    from umpc.protocols.base.protocol import StudyProtocol

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
