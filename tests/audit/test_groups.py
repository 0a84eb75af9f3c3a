"""Noise on groups of pairs, on its worst neighbours, against the node that shares all pairs.

Two records, one of them replaced, are in two pairings: both pairs are one group, whose sum moves by
2Δ. The other owner and the coordinator collude: they know the noise that the owner added.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from tests.audit.auditor import EACH, MORE, Verdict, broken_by, loss_bound
from tests.audit.mutants import Broken
from tests.support.bell import bell_study, without_transfers
from tests.support.studies import Columns, Entropy, table
from umpc.dp.calibration import DistributedLaplace
from umpc.simulation import simulate
from umpc_papers.bell_2pc.coordinator import pair_values
from umpc_papers.testing import lying

EPSILON = 1.5
RUNS = 110
STUDY = bell_study(epsilon="3/2", edges="2p", noise="group_laplace", group=2)
TABLES = [(table([1], [1]), table([x], [x])) for x in (0, 1)]
CLEAR = (0, 2)
"""The group's sum: both pairs differ, or both are equal."""


def noise_for_one_pair() -> Broken:
    """Noise of scale Δ/ε, as if a record were in one pair of a group. Loss 2ε."""

    def noise(honest, law):
        return DistributedLaplace(law.epsilon, law.width, 2, 1)

    return lying("everybody", noise=noise)


def one_owner_adds_all() -> Broken:
    """Only the first node of a pair adds noise, which that node knows. Unbounded loss."""
    drawn = []

    def draw(honest, law, bits):
        drawn.append(None)
        return honest(law, bits) if len(drawn) % 2 else 0

    return lying("everybody", draw=draw)


def seen(tables: tuple[Columns, Columns], label: str) -> np.ndarray:
    """The group's sum less the first node's noise, which colludes: (runs,)."""
    entropy, found = Entropy(f"groups, {label}"), []
    with without_transfers():
        for _ in range(RUNS * MORE):
            run = simulate(STUDY, tables, entropy)
            (value,) = pair_values(run.transcript.shares, run.attempt)
            ((own,),) = run.nodes[0].group_noise[0, 1]
            found.append(int(value[0, 0]) - own)
    return np.array(found)


def audit(mutant=None) -> Verdict:
    log_ratio = EPSILON / 2
    with broken_by(mutant) as name:
        sums = [seen(tables, f"table {number}") for number, tables in enumerate(TABLES)]
    scores = [log_ratio * (abs(each - CLEAR[0]) - abs(each - CLEAR[1])) for each in sums]
    loss = loss_bound(*scores, (EPSILON * (1 - 1e-9), 1e-9, -EPSILON * (1 - 1e-9)))
    noise = np.concatenate([each - clear for each, clear in zip(sums, CLEAR, strict=True)])
    verdict = Verdict(f"group_laplace: {name}", len(sums[0]), loss, EPSILON, law_p(noise))
    print(verdict)
    return verdict


def law_p(noise: np.ndarray) -> float:
    """The p-value of discrete Laplace noise of scale 2/ε, by chi-square with a rest."""
    law = stats.dlaplace(EPSILON / 2)
    values = np.arange(-3, 4)
    seen_often = np.array([(noise == value).sum() for value in values])
    expected = law.pmf(values) * len(noise)
    rest = len(noise) - seen_often.sum(), len(noise) - expected.sum()
    return float(stats.chisquare([*seen_often, rest[0]], [*expected, rest[1]]).pvalue)


def test_a_colluding_owner_sees_no_more_than_epsilon_and_broken_noise_is_found():
    verdict = audit()
    assert verdict.sound and verdict.p > EACH, str(verdict)
    for mutant in (noise_for_one_pair, one_owner_adds_all):
        assert audit(mutant).caught_by("law"), mutant.__name__
