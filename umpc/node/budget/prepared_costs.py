"""The costs that studies prepared ahead reserve, in a file that the site's commands read.

A node reserves for a prepared study in its memory. It also keeps the file `<ledger>.prepared` with
one line of JSON for each such study, so that `umpc budget show`, `umpc node status` and `umpc node
doctor` show what the node counts. The file only informs: the node never reads it, and no charge
depends on it. A node removes it at its start and at its end. The lines that a killed node left
count until the time of their studies is up. Only the node's user may read the file.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from umpc.dp.events import decode_events, encode_events
from umpc.errors import EncodingError
from umpc.node.budget.budget_account import Account, BudgetCost

log = logging.getLogger("umpc.node")

LATEST = 1e11
"""Seconds since 1970 that no prepared study is kept until."""


@dataclass(frozen=True)
class PreparedCost:
    """The cost of one prepared study. until: when its time is up, in seconds since 1970."""

    study: bytes
    name: str
    cost: BudgetCost
    until: float

    def encode(self) -> str:
        """Return the study's line."""
        cost = self.cost
        return json.dumps(
            {
                "study": self.study.hex(),
                "name": self.name,
                "epsilon": str(cost.epsilon),
                "delta": None if cost.delta is None else str(cost.delta),
                "events": encode_events(cost.events),
                "until": self.until,
            }
        )

    @classmethod
    def decode(cls, line: str) -> PreparedCost:
        """Return the study of a line. Raises: ValueError, KeyError, TypeError, EncodingError."""
        found: dict[str, Any] = json.loads(line)
        delta = None if found["delta"] is None else Fraction(found["delta"])
        cost = BudgetCost(Fraction(found["epsilon"]), delta, decode_events(found["events"]))
        if cost.epsilon < 0 or not 0 <= float(found["until"]) < LATEST:
            raise ValueError("no node writes such a line")
        return cls(bytes.fromhex(found["study"]), found["name"], cost, float(found["until"]))


def prepared_beside(ledger: Path) -> Path:
    """Return the path of the file that belongs to a ledger."""
    return Path(f"{ledger}.prepared")


def write_prepared(path: Path, costs: Iterable[PreparedCost]) -> None:
    """Replace the file by these studies; remove it where there are none.

    A disk that refuses is only logged, because the file only informs. Nothing waits for the disk.
    """
    lines = [f"{each.encode()}\n" for each in costs]
    draft = Path(f"{path}.new")
    try:
        if not lines:
            path.unlink(missing_ok=True)
            return
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(lines)
        draft.replace(path)
    except OSError as error:
        log.warning("%s: %s; commands do not show prepared studies", path, error.strerror)


def reserve_prepared(
    account: Account, ledger: Path, now: float | None = None
) -> list[PreparedCost]:
    """Reserve in an account that was read what prepared studies reserve, and return them.

    Args: ledger: as the configuration names it. now: seconds since 1970.
    """
    now = time.time() if now is None else now
    try:
        lines = prepared_beside(ledger).read_text(encoding="utf-8").splitlines()
        entries = [PreparedCost.decode(line) for line in lines]
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, EncodingError):
        return []  # there is none, or no node of this version wrote it
    found = [
        each
        for each in entries
        if now < each.until and each.study not in account.charged and each.study not in account.open
    ]
    for each in found:
        account.open[each.study] = each.cost
    return found
