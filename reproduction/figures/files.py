"""The files of a figure beside its picture: a CSV file, a line of agreement, the code's version."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduction.figures.figure import Agreement, Figure, Row

COLUMNS = ("series", "x", "measured", "standard_error", "runs", "predicted")
TABLE = "table"
"""The last column: what the table is, where it is not the published one."""
HEADER = (
    "# Does it agree?\n\n"
    "Written by `make figures`; every number is of that run. "
    "Claims are the papers', in one sentence each.\n\n"
    "| figure | the paper's claim | here | measured here |\n"
    "|---|---|---|---|\n"
)


def write_csv(figure: Figure, rows: Sequence[Row], path: Path, note: str = "") -> None:
    """Write one line for each point.

    `measured` is the mean of the figure's quantity. The last columns are the means of the others,
    and the note where there is one.
    """
    others = sorted({name for row in rows for name in row.means} - {figure.quantity})
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*COLUMNS, *others, *([TABLE] if note else [])])
        for row in rows:
            own = row.means[figure.quantity], row.errors[figure.quantity]
            rest = [row.means.get(name) for name in others]
            numbers = [_shown(each) for each in (*own, row.runs, row.predicted, *rest)]
            noted = [note] if note else []
            writer.writerow([row.series, f"{row.x:.10g}", *numbers, *noted])


def _shown(number: float | None) -> str:
    if number is None:
        return ""
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def write_agreement(figure: Figure, agreement: Agreement, path: Path) -> None:
    """Write the figure's line of the table, and keep the other figures' lines."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    own = [line for line in lines if re.match(r"\| \w+-[\w-]+ \| ", line)]
    kept = {line.split(" | ")[0].removeprefix("| "): line for line in own}
    cells = figure.name, figure.claim, agreement.verdict, agreement.reason
    kept[figure.name] = f"| {' | '.join(cell.replace('|', '¦') for cell in cells)} |"
    path.write_text(HEADER + "".join(kept[name] + "\n" for name in sorted(kept)), encoding="utf-8")


def write_versions(figure: Figure, facts: Mapping[str, Any], path: Path) -> None:
    """Write the figure's entry, and keep the other figures' entries."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found[figure.name] = dict(facts)
    text = json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
