"""The ledger of one node: its charges, its held attempts, and what prepared studies reserve.

The model follows from what studies answered. Only after a process was killed does it learn from the
ledger which of the allowed outcomes came about.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from umpc.node.budget.ledgerfile import Snapshot


@dataclass
class LedgerModel:
    """One node's ledger by the names of studies.

    charged, held: the bytes of the share that was charged, or that waits for its charge.
    lost: what a restore counted as charged since a backup, epsilon and delta.
    """

    epsilon: dict[str, Fraction] = field(default_factory=dict)
    charged: dict[str, bytes] = field(default_factory=dict)
    held: dict[str, bytes] = field(default_factory=dict)
    prepared: set[str] = field(default_factory=set)
    lost: list[tuple[Fraction, Fraction]] = field(default_factory=list)

    def knows(self, name: str) -> bool:
        """Whether the node has charged the study or holds its attempt."""
        return name in self.charged or name in self.held

    def charge(self, name: str, epsilon: Fraction, found: Snapshot) -> None:
        """The study was released: the node has charged it, once, and keeps the bytes it held."""
        share = shares_of(found).get(name)
        assert share is not None, f"{name} was released and not charged"
        before = self.charged.get(name) or self.held.get(name)
        assert before in (None, share), f"{name}: the bytes of its share have changed"
        self.held.pop(name, None)
        self.prepared.discard(name)
        self.epsilon[name], self.charged[name] = epsilon, share

    def learn(self, name: str, epsilon: Fraction, found: Snapshot) -> str:
        """Take what a killed study left here. Returns: charged, held or nothing."""
        if name in shares_of(found):
            self.charge(name, epsilon, found)
            return "charged"
        assert name not in self.charged, f"{name}: a charge has vanished"
        self.held.pop(name, None)
        held = {each.name: each.share for each in found.held}
        if name in held:
            self.prepared.discard(name)
            self.held[name] = held[name]
            return "held"
        return "nothing"

    def check(self, found: Snapshot, reserved: set[str]) -> None:
        """Compare with the ledger of a node that runs no study.

        Args: reserved: the names of studies for whose preparation the node reserves.
        """
        charges = [row for row in found.rows if row.kind == "charge"]
        names = [row.note for row in charges]
        assert len(set(names)) == len(names), f"charged twice: {names}"
        assert {row.note: row.epsilon for row in charges} == self.epsilon
        assert shares_of(found) == self.charged
        assert {each.name: each.share for each in found.held} == self.held
        waiting = len(self.held) + len(found.prepared)
        assert len(found.account.open) == waiting, "a reservation is left"
        lost_epsilon = sum(epsilon for epsilon, _ in self.lost)
        lost_delta = sum(delta for _, delta in self.lost)
        assert found.account.spent.epsilon == sum(self.epsilon.values()) + lost_epsilon
        deltas = [row.delta or Fraction(0) for row in charges]
        assert found.account.spent.delta == sum(deltas, Fraction(0)) + lost_delta
        assert reserved == self.prepared, f"reserved for {reserved}, expected {self.prepared}"


def shares_of(found: Snapshot) -> dict[str, bytes]:
    return {row.note: row.share for row in found.rows if row.kind == "charge"}
