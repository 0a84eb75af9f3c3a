"""Print the manual page umpc(1), made of the help texts of all commands.

`make install` stores it where `man umpc` finds it. Nothing is written twice: each command's text
and its options are those that `--help` prints.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import click

from umpc import __version__
from umpc.cli.main import umpc

KEPT = "\b"
"""The mark of a paragraph whose lines stay as they are, in a help text of click."""


def page() -> str:
    """Return the page, in the language of troff's man macros."""
    lines = [
        f'.TH UMPC 1 "" "umpc {__version__}" "umpc"',
        ".SH NAME",
        "umpc \\- private U\\-statistics over the records of several sites",
        ".SH SYNOPSIS",
        ".B umpc",
        "COMMAND [ARGUMENTS]",
        ".SH DESCRIPTION",
        *_text(umpc.help or ""),
        ".SH COMMANDS",
    ]
    for path, command in _commands(umpc, ()):
        lines += _section(path, command)
    lines += [
        ".SH EXIT STATUS",
        "0 for success; docs/exit_codes.md lists the code of each failure.",
    ]
    return "\n".join(lines) + "\n"


def _commands(
    group: click.Group, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command of a group with its words, each group before its own commands."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))


def _section(path: tuple[str, ...], command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=" ".join(("umpc", *path)))
    usage = " ".join(command.collect_usage_pieces(context))
    yield ".SS " + _escaped(f"umpc {' '.join(path)} {usage}")
    yield from _text(command.help or "")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record and "--help" not in record[0]:
            yield ".TP"
            yield f"\\fB{_escaped(record[0])}\\fR"
            yield _escaped(" ".join(record[1].split()))


def _text(text: str) -> Iterator[str]:
    """Yield a help text: paragraphs are filled, those of click's mark keep their lines."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        filled, mark, kept = paragraph.partition(KEPT)
        yield ".PP"
        if filled.strip():
            yield _escaped(" ".join(filled.split()))
        if mark:
            kept = kept.replace(KEPT, "")
            lines = [_escaped(line) for line in kept.splitlines() if line.strip()]
            yield from (".nf", *lines, ".fi")


def _escaped(text: str) -> str:
    """Return text in which nothing is a request of troff."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{safe}" if safe[:1] in (".", "'") else safe


if __name__ == "__main__":
    sys.stdout.write(page())
