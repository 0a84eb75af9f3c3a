"""Shared by the tests of the ledger, of its chain of rows, and of its anchor."""

from __future__ import annotations

import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from umpc.errors import LedgerError
from umpc.node.budget.budget_account import DEFAULT_DELTA, Balance, BudgetCost
from umpc.node.budget.ledger import Ledger

TOTAL = Fraction(5)
D = Fraction(1, 10**12)
"""A study's delta, for tests to which it does not matter."""
A, B, C = (bytes([i]) * 32 for i in (0xA1, 0xB2, 0xC3))


class OpenLedger(Ledger):
    """A ledger in which tests write rows as earlier versions did, and ask its own connection."""

    def write_row(self, kind: str, *values, **named) -> None:
        self._append(kind, *values, **named)

    def ask(self, statement: str, values: tuple = ()) -> sqlite3.Cursor:
        return self._db.execute(statement, values)

    def reservation(self, study: bytes) -> BudgetCost:
        return self._account.open[study]

    @property
    def names(self) -> dict[bytes, str]:
        return self._names


def opened(
    path: Path, total: Fraction = TOTAL, delta: Fraction = DEFAULT_DELTA, **options
) -> OpenLedger:
    return OpenLedger(path, "bank", total, delta, **options)


def kinds(ledger: Ledger) -> list[str]:
    return [row.kind for row in ledger.history()]


def balance(total: object, spent: object, reserved: object, left: object) -> Balance:
    return Balance(Fraction(total), Fraction(spent), Fraction(reserved), Fraction(left))


def charged(ledger: Ledger, *studies: bytes, epsilon: Fraction = Fraction(1)) -> None:
    """Reserve and charge each study."""
    for study in studies:
        ledger.reserve(study, epsilon, D)
        pay(ledger, study, b"attempt", b"share")


def pay(ledger: Ledger, study: bytes, attempt: bytes, share: bytes, table: bytes = b"") -> None:
    """Hold the share of a reserved study, and charge it."""
    ledger.charge(study, ledger.hold(study, attempt, share, table).attempt)


def former(ledger: OpenLedger, study: bytes, epsilon: Fraction, delta: Fraction | None) -> None:
    """Write the row of a reservation, as earlier versions did."""
    ledger.write_row("reserve", study, epsilon, delta)


def former_charge(ledger: OpenLedger, study: bytes) -> None:
    """Write the row of a charge after that of its reservation, as earlier versions did."""
    cost = ledger.reservation(study)
    ledger.write_row("charge", study, cost.epsilon, cost.delta, attempt=b"attempt", share=b"share")


def refused(path: Path, match: str, **options) -> str:
    """Return the refusal. It is asked for twice, since looking must not change anything."""
    before = contents(path.parent)
    for _ in range(2):
        with pytest.raises(LedgerError, match=match) as caught:
            opened(path, **options)
    assert contents(path.parent) == before
    return caught.value.message


def contents(folder: Path) -> dict[str, bytes]:
    """Return the contents of every file of the ledger."""
    passing = ("-shm", "-wal", ".lock")
    files = [
        file for file in folder.rglob("*") if file.is_file() and not file.name.endswith(passing)
    ]
    return {str(file): file.read_bytes() for file in files}


def copies(path: Path, studies: tuple[bytes, ...] = (A, B), **options) -> list[dict[Path, bytes]]:
    """Return copies of the files on disk after each study, made while no process runs."""
    taken = []
    for study in studies:
        with opened(path, **options) as ledger:
            charged(ledger, study)
        names = [path, Path(f"{path}.key"), options.get("anchor", Path(f"{path}.anchor"))]
        taken.append({name: name.read_bytes() for name in names})
    return taken
