"""`gopa`: what a colluding node and the coordinator can prove about another node's record.

They take off the noise that the colluding node shares with the others. The messages of the two
honest nodes are then normal (the parameters are large) with a known covariance C. The record moves
the last node's mean by Δf steps, so the best score is linear, along C⁻¹e.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from tests.audit.auditor import EACH, MORE, Verdict, broken_by, loss_bound
from tests.audit.mutants import Broken
from tests.support.gopa import gopa_study, protocol_of, sums, uncovered
from tests.support.studies import Entropy, table
from umpc.simulation import simulate
from umpc_papers.gopa.calibration import RATIO
from umpc_papers.testing import lying

STUDY = gopa_study(3, colluding=1, delta="0.01")
OTHERS = [table([1, 2], [0, 0]), table([0, 3], [0, 0])]
RECORDS = table([0], [0]), table([3], [0])
"""The worst case: the record moves from one end of the range to the other."""
RUNS = 400
OF = protocol_of(STUDY)
COVARIANCE = OF.noise.own * (np.eye(2) + RATIO * np.array([[1, -1], [-1, 1]]))
DIRECTION = np.linalg.inv(COVARIANCE)[1]


def eight_times_epsilon() -> Broken:
    """The noise is that of 8ε."""

    def calibrate_pairwise(honest, epsilon, *rest, **named):
        return honest(8 * epsilon, *rest, **named)

    return lying("everybody", calibrate_pairwise=calibrate_pairwise)


def nothing_shared() -> Broken:
    """Every node adds only its own noise: enough for the sum, but not for each message."""
    return lying("node", shared_noise=lambda honest, node, attempt, peer: 0)


def seen_of(record, label: str, runs: int) -> np.ndarray:
    """Return the honest nodes' messages as the coalition sees them: (runs, 2).

    The first table's exact values are taken off.
    """
    exact = np.array(sums(STUDY, [*OTHERS, RECORDS[0]])[1:])
    entropy = Entropy(f"audit of gopa, {label}")
    seen = [uncovered(simulate(STUDY, [*OTHERS, record], entropy)) for _ in range(runs * MORE)]
    return np.array([np.array(pair) - exact for pair in seen], dtype=float)


def audit(mutant=None, runs: int = RUNS) -> Verdict:
    """Judge the scores under the claimed law, less the shift by the record.

    The last node's message alone is judged too: it is the best score where nodes share nothing.
    """
    epsilon, delta = float(STUDY.exact_epsilon), float(STUDY.exact_delta)
    with broken_by(mutant) as name:
        first, second = (
            seen_of(record, str(number), runs) for number, record in enumerate(RECORDS)
        )
    losses, found = [], []
    for direction in (DIRECTION, np.array([0.0, 1.0])):
        moved, deviation = (
            OF.noise.steps * direction[1],
            (direction @ COVARIANCE @ direction) ** 0.5,
        )
        one, two = first @ direction, second @ direction
        losses.append(loss_bound(one, two, [moved * part for part in (0.0, 0.5, 1.0)], delta))
        found.append(
            stats.kstest(np.concatenate([one, two - moved]) / deviation, stats.norm.cdf).pvalue
        )
    p = min(1.0, 2 * min(found))
    verdict = Verdict(
        f"gopa, one record to a node and the coordinator: {name}",
        len(first),
        max(losses),
        epsilon,
        p,
    )
    print(verdict)
    return verdict


def test_the_honest_nodes_noise_keeps_its_promise_and_the_same_runs_find_noise_that_does_not():
    verdict = audit()
    assert verdict.sound and verdict.p > EACH, str(verdict)
    verdict = audit(eight_times_epsilon)
    assert verdict.caught_by("loss", "law"), f"not found: {verdict}"


def test_messages_that_share_nothing_are_found():
    verdict = audit(nothing_shared, RUNS // 8)
    assert verdict.caught_by("law"), f"not found: {verdict}"
