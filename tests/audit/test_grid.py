"""The grid on its worst neighbours: the real code within ε, and the same runs find broken code.

The release is twice the noisy sum, so what is judged is half of what the shares add up to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pytest

from tests.audit import mutants
from tests.audit.auditor import Case, Claim, audit, coalitions_view, law_of
from tests.support.grid import grid_study
from tests.support.protocols import noise_of
from tests.support.studies import KENDALL, Entropy, clear_sums, make_attempt
from umpc.errors import ImpossibleResult
from umpc.mpc.attempt import edges_of
from umpc.protocols.registry import checked, delta_of
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.testing import lying

THREE = ("0", "2")
LAW, BOTH = ("law",), ("loss", "law")


@dataclass(frozen=True)
class GridCase(Case):
    """A case whose exact sums are over all pairs: an attempt of the grid lists no edges."""

    @cached_property
    def claim(self) -> Claim:
        first, second = self.tables
        counts = [len(columns["x"]) for columns in first]
        sizes = make_attempt(checked(self.study), counts).sizes
        graph = edges_of(self.study, bytes(32), [(0, count) for count in counts])
        exact = [tuple(clear_sums(self.study, tables, graph)) for tables in (first, second)]
        changes = tuple(abs(b - a) for a, b in zip(*exact, strict=True))
        assert changes == sizes.sensitivities or not self.worst, "not the worst case"
        laws = tuple(law_of(noise) for noise in noise_of(sizes))
        return Claim(float(self.study.exact_epsilon), delta_of(sizes), laws, *exact)


def view(run: Simulated) -> list[int]:
    """The sums as the coordinator and t colluding nodes see them, without these nodes' noise."""
    totals = noisy_sums(run.transcript.shares, len(run.attempt.study.kernels))
    taken = [total - seen for total, seen in zip(totals, coalitions_view(run), strict=True)]
    return [total // run.attempt.factor - own for total, own in zip(totals, taken, strict=True)]


def case(runs: int, name: str, nodes: int, **changes) -> GridCase:
    """Kendall's tau of three records, of which one is replaced: both pairs turn round."""
    study = grid_study(KENDALL, nodes, x=THREE, y=THREE, **changes)
    rows = (((1, 1),),) * (nodes - 1) if nodes > 2 else (((1, 1), (1, 1)),)
    return GridCase(f"grid, {name}", study, (*rows, ()), ((0, 0), (0, 2)), runs)


AUDITS = {
    case(110, "distributed, t = 0 of 2", 2): {
        mutants.half_the_range: LAW,
        mutants.no_noise: BOTH,
    },
    case(160, "distributed, t = 2 of 3", 3, max_colluding=2): {
        mutants.everybody_counts_as_honest: LAW
    },
}


@pytest.mark.parametrize("case", AUDITS, ids=lambda case: case.name)
def test_the_grid_keeps_its_promise_and_the_same_runs_find_broken_code(case):
    verdict = audit(case, view=view)
    assert verdict.sound, str(verdict)
    for mutant, finders in AUDITS[case].items():
        verdict = audit(case, mutant, view)
        assert verdict.caught_by(*finders), f"not found: {verdict}"


def test_noise_that_is_not_doubled_is_refused():
    """Twice a sum plus noise once is odd in about half of all runs, so no such release lasts."""
    study = next(iter(AUDITS)).study
    tables = next(iter(AUDITS)).tables[0]
    refused = 0
    with lying("everybody", factor=lambda honest, attempt: 1):
        for number in range(30):
            try:
                simulate(study, tables, Entropy(f"not doubled {number}"))
            except ImpossibleResult:
                refused += 1
    assert refused >= 5
