"""Randomness used twice: the hiding of one run would cancel in the other.

This makes “sampled seed reused” precise. If only E repeats, nothing breaks (`test_audit.py`). If a
node's noise repeats, two releases differ by exactly the difference of their tables or kernels. If a
dealer's masks repeat, two messages do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tests.audit import mutants
from tests.audit.auditor import MORE, Tables, Verdict, broken_by, loss_bound, remembered
from tests.support.protocols import with_facts
from tests.support.studies import Entropy, make_study, table
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.study.document import Study


def tables_of(x: int) -> Tables:
    return [table([1], [0]), table([x], [0])]


@dataclass(frozen=True)
class Twice:
    """Two runs with one source of randomness, and a number made of both, on two neighbours.

    tables: for either neighbour those of the two runs. claimed: the loss that both runs together
    may have.
    """

    name: str
    studies: tuple[Study, Study]
    tables: tuple[tuple[Tables, Tables], tuple[Tables, Tables]]
    statistic: Callable[[Simulated, Simulated], int]
    thresholds: tuple[float, ...]
    claimed: float
    runs: int

    def audit(self, mutant: mutants.Mutant | None = None) -> Verdict:
        scores = [], []
        with broken_by(mutant) as name, remembered():
            for number, pair in enumerate(self.tables):
                for run in range(self.runs * MORE):
                    entropy = Entropy(f"{self.name}, table {number}, pair {run}")
                    runs = (
                        simulate(study, tables, entropy)
                        for study, tables in zip(self.studies, pair, strict=True)
                    )
                    scores[number].append(self.statistic(*runs))
        loss = loss_bound(np.array(scores[0]), np.array(scores[1]), self.thresholds)
        verdict = Verdict(f"{self.name}: {name}", self.runs * MORE, loss, self.claimed)
        print(verdict)
        return verdict


def total(run: Simulated) -> int:
    return noisy_sums(run.transcript.shares, 1)[0]


def sum_less_sum(first: Simulated, second: Simulated) -> int:
    return total(first) - total(second)


def masks_less_masks(first: Simulated, second: Simulated) -> int:
    """Return the difference of the first node's messages in round 1 of both runs, in the ring.

    They hold the second node's record under masks.
    """
    received, again = (int(run.nodes[0].cells.masked[1][0][0]) for run in (first, second))
    return (received - again) % 2**32


MEAN = make_study("a.x", 2, degree=1, x=("0", "2"))
OPPOSITE = with_facts(MEAN, kernels=("a.x * -1",))
COINS = with_facts(MEAN, noise="in_mpc", coins="dealt")
PRODUCTS = tuple(make_study(f"a.{field} * b.{field}", 2) for field in "xy")
CHANGED = (tables_of(0), tables_of(0)), (tables_of(0), tables_of(2))
UNCHANGED = (tables_of(0), tables_of(0)), (tables_of(2), tables_of(2))


AUDITS = [
    (
        Twice(
            "two studies of one table", (MEAN, OPPOSITE), UNCHANGED, sum_less_sum, (4, 3), 2, 200
        ),
        (mutants.noise_kept, mutants.nodes_restored),
    ),
    (
        Twice(
            "a record changes between two runs",
            (MEAN, MEAN),
            CHANGED[::-1],
            sum_less_sum,
            (0, -1),
            1,
            90,
        ),
        (mutants.noise_kept, mutants.nodes_restored),
    ),
    (
        Twice(
            "a record changes, in_mpc", (COINS, COINS), CHANGED[::-1], sum_less_sum, (0, -1), 1, 90
        ),
        (mutants.all_restored,),
    ),
    (
        Twice(
            "a message of each of two studies", PRODUCTS, UNCHANGED, masks_less_masks, (2, 1), 0, 60
        ),
        (mutants.dealer_restored,),
    ),
]


@pytest.mark.parametrize(("case", "broken"), AUDITS, ids=[case.name for case, _ in AUDITS])
def test_two_runs_lose_no_more_than_both_promise_unless_randomness_is_used_twice(case, broken):
    """Messages lose nothing at all: those of two neighbours have the same law."""
    verdict = case.audit()
    assert verdict.loss <= verdict.claimed, str(verdict)
    for mutant in broken:
        verdict = case.audit(mutant)
        assert verdict.loss > verdict.claimed, f"not found: {verdict}"
