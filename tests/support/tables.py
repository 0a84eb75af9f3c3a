"""Tables for whole runs: one that the project makes, and the bank data where they are at hand.

Every machine runs its tests on the made table. A folder `shared/data` beside the checkout may
hold two public data sets, which are too large for the project. The tests on them run where the
files exist, and `summary` says whether they did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
BANK = SHARED / "bank" / "bank.csv"
"""UCI "Bank Marketing" (Moro, Cortez and Rita 2014): 4,521 records, separated by semicolons."""
HEART = SHARED / "heart" / "heart_sites.csv"
"""UCI "Heart Disease" (Janosi et al. 1988): the records of four hospitals."""
JOBS = ("admin", "blue-collar", "management", "retired", "services", "technician")


@dataclass(frozen=True)
class Table:
    """A table with the columns age, job, balance and y, and its exact statistics.

    Attributes:
        name: identifies the table in the names of tests.
        path: a CSV file with a header line, separated by semicolons.
        records: the number of its records.
        exact: exact values by statistic, as `umpc demo` must report them.
    """

    name: str
    path: Path
    records: int
    exact: Mapping[str, float]

    def options(self, *fields: str) -> tuple[str, ...]:
        """Return the options of `umpc demo` that select this table and these fields."""
        return ("--csv", str(self.path), "--delimiter", ";", "--fields", ",".join(fields))

    def sizes(self, nodes: int) -> list[int]:
        """Return the number of records of each node, as `umpc demo` splits the table."""
        bounds = [self.records * number // nodes for number in range(nodes + 1)]
        return [end - start for start, end in pairwise(bounds)]

    @property
    def pairs(self) -> int:
        return self.records * (self.records - 1) // 2


class MadeTable:
    """A table of 1,200 records with the domains of the bank data, the same on every machine."""

    name = "made"
    records = 1200

    def place(self, folder: Path) -> Table:
        """Write the table into a folder."""
        columns = self._columns
        rows = zip(*(columns[name] for name in ("age", "job", "balance", "y")), strict=True)
        lines = [f'{age};"{job}";{balance};"{y}"' for age, job, balance, y in rows]
        path = folder / "made.csv"
        path.write_text("\n".join(['"age";"job";"balance";"y"', *lines]) + "\n")
        return Table(self.name, path, self.records, self._exact)

    @cached_property
    def _columns(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(2014)
        age = rng.integers(19, 88, self.records)
        balance = rng.integers(-3313, 40_000, self.records) + 100 * (age - 19)
        y = np.where(rng.random(self.records) * 50_000 < balance / 2, "yes", "no")
        return {"age": age, "job": rng.choice(JOBS, self.records), "balance": balance, "y": y}

    @cached_property
    def _exact(self) -> dict[str, float]:
        """Compute the statistics directly from their definitions over all pairs."""
        age, job, balance, y = (self._columns[name] for name in ("age", "job", "balance", "y"))
        first, second = np.triu_indices(self.records, 1)
        agreement = np.sign(age[first] - age[second]) * np.sign(balance[first] - balance[second])
        positive, negative = balance[y == "yes"][:, None], balance[y == "no"][None, :]
        # A pair with equal balances counts one half.
        ranked = (positive > negative) + (positive == negative) / 2
        return {
            "kendall_tau": float(agreement.mean()),
            "auc": float(ranked.mean()),
            "duplicate_pair_ratio": float((job[first] == job[second]).mean()),
            "mean": float(balance.mean()),
        }


class BankTable:
    """The bank data, with the values that other software computed on them."""

    name = "bank-beside-the-checkout"

    def place(self, folder: Path) -> Table:
        exact = {
            "kendall_tau": 0.05058429394389604,
            "auc": 0.571387,
            "duplicate_pair_ratio": 1_486_797 / 10_217_460,
            "mean": 1422.6578,
        }
        return Table(self.name, BANK, 4521, exact)


AT_HAND = (MadeTable(), BankTable()) if BANK.exists() else (MadeTable(),)


def summary() -> str:
    """Say in one line which optional data sets this run could use."""
    found = {"bank": BANK.exists(), "heart": HEART.exists()}
    there = " and ".join(name for name, exists in found.items() if exists)
    absent = " and ".join(name for name, exists in found.items() if not exists)
    used = f"{there} data: also tested" if there else ""
    missing = f"{absent} data: not in {SHARED}, so their extra tests were not collected"
    return "; ".join(filter(None, [used, missing if absent else ""]))
