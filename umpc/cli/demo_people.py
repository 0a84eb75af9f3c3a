"""`umpc demo --protocol people`: a dealer, two aggregators, and people who send a message each.

With `--protocol linked` two sites have columns of their own, of the rows of the demo's table.

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

from umpc.cli.kernel_options import listed
from umpc.cli.people import make_tokens, people
from umpc.cli.table import DemoTable
from umpc.errors import ConfigError
from umpc.protocols.people.split import split_of
from umpc.study.document import Study
from umpc.study.parts import FieldText

AGGREGATORS, SITES = ("aggregator-1", "aggregator-2"), ("site-1", "site-2")
KEY = "key of the row"
LINKED_AT = f'\n[linked]\nfolder = "{{}}-linked"\nkey = "{KEY}"\n'
"""The section of a site's configuration."""
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


def shares_settings(
    folder: Path, protocol: str, rows: int, settings: dict[str, Any], fields: Sequence[FieldText]
) -> dict[str, Any]:
    """The settings of a demo's study. Tokens and keys of people are made here."""
    moments = [time.strftime("%FT%TZ", time.gmtime(time.time() + after)) for after in (-60, HOUR)]
    terms: dict[str, Any] = {"closes": moments[1]}
    if protocol == "linked":
        terms |= {"rows": rows, "first": listed(settings.get("linked", fields[0].name))}
    else:
        make_tokens(rows, folder / "tokens.txt", folder / "people.keys")
        terms |= {"keys": "people.keys", "opens": moments[0]}
    bins = dict(settings.get("bins", {}))
    for each in fields:
        schema = each.schema()
        if not schema.categories and schema.upper_units - schema.lower_units >= USUAL_BINS:
            bins.setdefault(each.name, USUAL_BINS)
    return {**settings, "bins": bins, protocol: terms}


def part_of(table: DemoTable, study: Study, name: str, folder: Path) -> Path:
    """Write a site's own columns of all rows, and a key for each row."""
    names = [each.name for each in split_of(study).fields[study.index_of(name)]]
    places = [table.columns.index(each) for each in names]
    rows = [(f"row {n}", *(row[at] for at in places)) for n, row in enumerate(table.rows)]
    return replace(table, columns=(KEY, *names), rows=rows).part(0, 1, folder / f"{name}.csv")


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
