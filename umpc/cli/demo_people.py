"""`umpc demo --protocol people`: a dealer, two aggregators, and people who send a message each.

Each person has a row of the demo's table; where there are more people than rows, the rows come
again. One process sends the messages of all of them, as a script may.
"""

from __future__ import annotations

import io
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from umpc.cli.people import make_tokens, people
from umpc.cli.table import DemoTable
from umpc.errors import ConfigError
from umpc.study.parts import FieldText

AGGREGATORS = ("aggregator-1", "aggregator-2")
USUAL_BINS = 32
"""Bins of each field that has more values: 1,024 cells for two fields."""
MOST_PEOPLE = 1_000_000
HOUR = 3600


def with_people(table: DemoTable, many: str | None) -> DemoTable:
    """The table with a row for each person. Args: many: how many, by default one a row.

    Raises: ConfigError.
    """
    if many is None:
        return table
    if not (many.isascii() and many.isdigit() and 2 <= int(many) <= MOST_PEOPLE):
        raise ConfigError(
            f"--people was expected to be a number of people from 2 to {MOST_PEOPLE:,}, got "
            f"{many!r}"
        )
    return replace(table, rows=list(islice(cycle(table.rows), int(many))))


def people_settings(
    folder: Path, places: int, settings: dict[str, Any], fields: Sequence[FieldText]
) -> dict[str, Any]:
    """The settings of a demo's study, whose tokens and keys are made here."""
    make_tokens(places, folder / "tokens.txt", folder / "people.keys")
    moments = [time.strftime("%FT%TZ", time.gmtime(time.time() + after)) for after in (-60, HOUR)]
    terms = {"keys": "people.keys", "opens": moments[0], "closes": moments[1]}
    bins = dict(settings.get("bins", {}))
    for each in fields:
        schema = each.schema()
        if not schema.categories and schema.upper_units - schema.lower_units >= USUAL_BINS:
            bins.setdefault(each.name, USUAL_BINS)
    return {**settings, "bins": bins, "people": terms}


def answer(folder: Path, file: Path, doors: Mapping[str, str], *, quiet: bool) -> None:
    """Open the study, and send the messages of all people. Args: doors: name → address."""
    silence = ["--quiet"] * quiet
    given = [part for name, at in doors.items() for part in ("--door", f"{name}={at}")]
    invitation = folder / "invitation.json"
    command("open", file, "--into", invitation, *given, *silence)
    sent = ("--csv", folder / "people.csv", "--tokens", folder / "tokens.txt")
    receipts = ("--receipts", folder / "receipts.json", "--yes")
    command("submit", invitation, *sent, *receipts, *silence)


def check(folder: Path) -> str:
    """Look for the first person's receipt. Returns: what the command says."""
    with (folder / "receipts.json").open(encoding="utf-8") as receipts:
        (folder / "receipt.json").write_text(receipts.readline(), encoding="utf-8")
    return command("check", folder / "invitation.json", folder / "receipt.json")


def command(*arguments: object) -> str:
    """Run `umpc people`. Returns: what it prints."""
    with redirect_stdout(io.StringIO()) as said:
        people.main([*map(str, arguments)], standalone_mode=False)
    return said.getvalue().strip()
