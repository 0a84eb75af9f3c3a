"""What the tests of the ledger and of its chain of rows share."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from umpc.node.chain import Balance
from umpc.node.ledger import Ledger

TOTAL = Fraction(5)
A, B, C = (bytes([i]) * 32 for i in (0xA1, 0xB2, 0xC3))


def opened(path: Path, total: Fraction = TOTAL) -> Ledger:
    return Ledger(path, "bank", total)


def kinds(ledger: Ledger) -> list[str]:
    return [row.kind for row in ledger.history()]


def balance(total: object, spent: object, reserved: object, left: object) -> Balance:
    return Balance(Fraction(total), Fraction(spent), Fraction(reserved), Fraction(left))
