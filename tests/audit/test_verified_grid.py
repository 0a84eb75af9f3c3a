"""The grid where nodes may lie: within ε next to a liar, and the same runs find what lets it count.

The liars are the coordinator and all nodes but one. The observer takes their part of the noise off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests.audit import mutants
from tests.audit.auditor import audit
from tests.audit.mutants import Mutant
from tests.audit.test_grid import THREE, GridCase
from tests.support.grid import grid_study
from tests.support.studies import KENDALL
from umpc.crypto.prime_field import PRIME
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated
from umpc.study.settings import LYING_NODES
from umpc.testing import lying, without

LAW, LOSS, BOTH = ("law",), ("loss",), ("loss", "law")
TABLES = ("a table is that of its records", "the total is that of all tables")
TIMES = 40
"""How often the liar counts its record, where nobody checks its table."""


@contextmanager
def counting_often() -> Iterator[None]:
    """Let the first node count each of its records many times."""

    def put(honest: Any, node: Any, table: Any, own: list[int]) -> None:
        times = 1 if node.node else TIMES
        honest(node, times * table, [times * each for each in own])

    with lying("node", put=put):
        yield


@contextmanager
def nobody_checks_tables() -> Iterator[None]:
    """A liar counts its record many times, and no table is compared with a list. Loss."""
    with ExitStack() as stack:
        for check in TABLES:
            stack.enter_context(without(check))
        stack.enter_context(counting_often())
        yield


def view(run: Simulated) -> list[int]:
    """The sums without the noise of all nodes but the last, whose record is replaced."""
    totals = noisy_sums(run.transcript.shares, len(run.attempt.study.kernels), PRIME)
    known = run.nodes[: run.attempt.study.max_colluding]
    return [
        total // run.attempt.factor - sum(node.noise[number] for node in known)
        for number, total in enumerate(totals)
    ]


def case(runs: int, name: str, nodes: int, **changes: Any) -> GridCase:
    """Kendall's tau of a record of each node, of which the last one is replaced."""
    study = grid_study(KENDALL, nodes, x=THREE, y=THREE, adversary=LYING_NODES, **changes)
    rows = (*(((1, 1),),) * (nodes - 1), ())
    return GridCase(f"verified grid, {name}", study, rows, ((0, 0), (0, 2)), runs)


AUDITS = {
    case(110, "t = 1 of 2", 2, max_colluding=1): {
        mutants.half_the_range: LAW,
        nobody_checks_tables: LOSS,
    },
    case(160, "t = 2 of 3", 3, max_colluding=2): {
        mutants.everybody_counts_as_honest: LAW,
        mutants.no_noise: BOTH,
    },
}


@pytest.mark.parametrize("case", AUDITS, ids=lambda case: case.name)
def test_the_verified_grid_keeps_its_promise_and_the_same_runs_find_broken_code(case):
    check(case, AUDITS[case])


def test_a_few_runs_find_a_liar_whose_table_nobody_checks():
    """The short form. The law shows that a record moved the sum by more than was claimed."""
    check(case(24, "few runs", 2, max_colluding=1), {nobody_checks_tables: LAW})


def check(case: GridCase, broken: dict[Mutant, tuple[str, ...]]) -> None:
    verdict = audit(case, view=view)
    assert verdict.sound, str(verdict)
    for mutant, finders in broken.items():
        verdict = audit(case, mutant, view)
        assert verdict.caught_by(*finders), f"not found: {verdict}"
