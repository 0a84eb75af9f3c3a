"""Shuffled studies: what coordinator and a colluding node prove about another node's record.

They know the sums of all cells. The colluding node takes off everything that it sent itself, its
noise included. The other node's counts and noise remain, and this noise alone must be discrete
Laplace.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.audit import mutants
from tests.audit.auditor import MORE, Claim, Verdict, broken_by, law_p, loss_bound
from tests.support.local import bins
from tests.support.shuffled import (
    heaps,
    mask_of,
    messages,
    one_protocol,
    shuffled_attempt,
    shuffled_study,
    sums,
)
from tests.support.studies import GINI, Entropy, table
from umpc.protocols.registry import delta_of
from umpc.simulation import Simulated, simulate

FACTS = {
    "kernels": GINI,
    "bins": bins(x=2),
    "x": ("0", "1"),
    "y": ("0", "1"),
    "max_colluding": 1,
    "epsilon": "2",
}
STUDY, COUNTS = shuffled_study(2, **FACTS), (20, 19)
RUNS, FEW = 560, 150


def rows(replaced: int) -> list:
    """Return either table: the last record of the last node is replaced."""
    return [table([0, 1] * 10, [0] * 20), table([0] * 18 + [replaced], [0] * 19)]


def claim() -> Claim:
    """Return the real code's claim: noise of scale 2/ε on either count of the last node."""
    sizes = shuffled_attempt(COUNTS, **FACTS).sizes
    laws = (stats.dlaplace(1.0),) * 2
    return Claim(2.0, float(delta_of(sizes)), laws, (19, 0), (18, 1))


def coalitions_view(run: Simulated) -> np.ndarray:
    first, second = heaps(run)
    return sums((first + second) & mask_of(run), run) - sums(messages(run)[0], run)


def seen(replaced: int, runs: int) -> np.ndarray:
    entropy = Entropy(f"shuffled, replaced by {replaced}")
    return np.array(
        [coalitions_view(simulate(STUDY, rows(replaced), entropy)) for _ in range(runs * MORE)]
    )


def audit(mutant=None, runs: int = RUNS) -> Verdict:
    real = claim()
    with broken_by(mutant) as name, one_protocol():
        first, second = seen(0, runs), seen(1, runs)
    loss = loss_bound(real.score(first), real.score(second), real.thresholds, real.delta)
    verdict = Verdict(
        f"shuffled, one of two nodes colludes: {name}",
        len(first),
        loss,
        2.0,
        law_p(real, first, second),
    )
    print(verdict)
    return verdict


@pytest.mark.parametrize(
    ("mutant", "runs", "finders"),
    [
        (mutants.every_record_counts_as_honest, FEW, ("law",)),
        (mutants.a_record_is_in_one_cell_only, RUNS, ("loss", "law")),
    ],
)
def test_too_little_noise_is_found(mutant, runs, finders):
    verdict = audit(mutant, runs)
    assert verdict.caught_by(*finders), f"not found: {verdict}"


def test_the_noise_of_the_honest_alone_keeps_the_promise():
    verdict = audit()
    assert verdict.sound, str(verdict)
