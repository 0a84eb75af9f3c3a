"""A node's ledger on disk lives as the state machine does."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path

from tests.spec.replaying import replay_tests
from umpc.node.budget.ledger import Ledger


class Life:
    """A ledger in a folder, which is opened again after a crash."""

    def __init__(self, folder: Path, epsilon: Fraction, delta: Fraction, hold_seconds: int):
        self._given = folder / "ledger", "bank", epsilon, delta
        self._hold_seconds = hold_seconds
        self.now = 0
        self.ledger = self._opened()

    def _opened(self) -> Ledger:
        return Ledger(*self._given, hold_seconds=self._hold_seconds, now=lambda: self.now)

    def step(self, name: str, given):
        if name == "restart":
            self.ledger.close()
            self.ledger = self._opened()
            return None
        returned = getattr(self.ledger, name)(*given)
        if name in ("charge", "released"):
            return returned and returned.share
        return returned and returned.answer if name == "answered" else None

    def line(self, name: str, given):
        returned = self.step(name, given)
        balance = self.ledger.balance()
        amounts = {key: getattr(balance, key) for key in ("spent", "reserved", "left")}
        pairs = {key: [each.numerator, each.denominator] for key, each in amounts.items()}
        return {"returned": returned, **pairs}


def run(epsilon, delta, hold_seconds, steps):
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder), Fraction(*epsilon), Fraction(*delta), hold_seconds)
        try:
            lines = []
            for now, name, *given in steps:
                life.now = now
                values = [Fraction(*each) if isinstance(each, list) else each for each in given]
                lines.append(life.line(name, values))
            return lines
        finally:
            life.ledger.close()


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "ledger", {"run": run}
)
