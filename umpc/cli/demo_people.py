"""`umpc demo --protocol people`: a dealer, two aggregators, and people who send a message each.

Each person has a row of the demo's table; where there are more people than rows, the rows come
again. One process sends the messages of all of them, as a script may.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umpc.cli.people import make_tokens
from umpc.cli.table import DemoTable
from umpc.errors import ConfigError
from umpc.study.parts import FieldText

if TYPE_CHECKING:
    from umpc.deployment.processes import Deployment

AGGREGATORS = ("aggregator-1", "aggregator-2")
USUAL_BINS = 32
"""Bins of each field that has more values: 1,024 cells for two fields."""
MOST_PEOPLE = 1_000_000
HOUR = 3600


def with_people(table: DemoTable, people: str | None) -> DemoTable:
    """The table with a row for each person. Args: people: how many, by default one a row.

    Raises: ConfigError.
    """
    if people is None:
        return table
    if not (people.isascii() and people.isdigit() and 2 <= int(people) <= MOST_PEOPLE):
        raise ConfigError(
            f"--people was expected to be a number of people from 2 to {MOST_PEOPLE:,}, got "
            f"{people!r}"
        )
    return replace(table, rows=list(islice(cycle(table.rows), int(people))))


def people_settings(
    folder: Path, people: int, settings: dict[str, Any], fields: Sequence[FieldText]
) -> dict[str, Any]:
    """The settings of a demo's study, whose tokens and keys are made here."""
    make_tokens(people, folder / "tokens.txt", folder / "people.keys")
    moments = [time.strftime("%FT%TZ", time.gmtime(time.time() + after)) for after in (-60, HOUR)]
    terms = {"keys": "people.keys", "opens": moments[0], "closes": moments[1]}
    bins = dict(settings.get("bins", {}))
    for each in fields:
        schema = each.schema()
        if not schema.categories and schema.upper_units - schema.lower_units >= USUAL_BINS:
            bins.setdefault(each.name, USUAL_BINS)
    return {**settings, "bins": bins, "people": terms}


def write_people(folder: Path, table: DemoTable) -> Path:
    """The people's table, which no process of the study reads."""
    path = folder / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([table.columns, *table.rows])
    return path


def answer(deployment: Deployment, file: Path, doors: Mapping[str, str], *, quiet: bool) -> None:
    """Open the study, and send the messages of all people. Args: doors: name → address."""
    silence = ["--quiet"] * quiet
    folder = deployment.folder
    given = [part for name, at in doors.items() for part in ("--door", f"{name}={at}")]
    invitation = folder / "invitation.json"
    command(deployment, "open", file, "--into", invitation, *given, *silence)
    sent = ("--csv", folder / "people.csv", "--tokens", folder / "tokens.txt")
    receipts = ("--receipts", folder / "receipts.json", "--yes")
    command(deployment, "submit", invitation, *sent, *receipts, *silence)


def check(deployment: Deployment) -> str:
    """Look for the first person's receipt. Returns: what the command says."""
    folder = deployment.folder
    with (folder / "receipts.json").open(encoding="utf-8") as receipts:
        (folder / "receipt.json").write_text(receipts.readline(), encoding="utf-8")
    return command(deployment, "check", folder / "invitation.json", folder / "receipt.json")


def command(deployment: Deployment, *arguments: object) -> str:
    """Run `umpc people` as a process of its own. Its failure ends the demo with its exit code.

    Returns: what it prints.
    """
    process = deployment.popen(
        [*deployment.command, "people", *map(str, arguments)], stdout=subprocess.PIPE
    )
    deployment.processes.append(process)
    said = process.stdout.read() if process.stdout else b""
    if process.wait() != 0:
        sys.exit(process.returncode)
    return said.decode().strip()
