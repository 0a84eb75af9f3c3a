"""A trusted curator: what its released number proves about one record, for every mechanism.

The neighbours are eight records of 3, and seven of them and a 0. Under the product all sets of the
record move by the whole range. These runs also find a curator that adds too little noise.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.audit import mutants
from tests.audit.auditor import MORE, Verdict, broken_by, loss_bound, remembered
from tests.support.central import central_study
from tests.support.studies import Entropy, table
from umpc.simulation import simulate
from umpc_papers.central.settings import MECHANISMS

MOST, USUAL = {"hajek_split": 270, "hajek_subsampled": 110, "coinpress_subsampled": 110}, 90
"""Runs. Half of the split's answers do not depend on the record, which then is in the half that
locates the values.
"""
FULL = table([3] * 7, [0] * 7)
NEIGHBOURS = table([3], [0]), table([0], [0])
HIGH, LOW = 9.0, 6.75
"""The mean over all pairs of either table. The events lie around them, fixed before any run."""


def released(noise: str, record: dict[str, np.ndarray]) -> np.ndarray:
    """Return the released numbers; the last node has only the replaced record."""
    study = central_study(noise, kernels="a.x * b.x")
    with remembered():
        entropy = Entropy(f"curator {noise} {record['x'][0]}")
        runs = MOST.get(noise, USUAL) * MORE
        return np.array(
            [simulate(study, [FULL, record], entropy).report.estimate for _ in range(runs)]
        )


def audit(noise: str, mutant: mutants.Mutant | None = None) -> Verdict:
    thresholds = [LOW + (HIGH - LOW) * part for part in (-0.5, 0.0, 0.5, 0.99, 1.5)]
    with broken_by(mutant) as name:
        first, second = (released(noise, record) for record in NEIGHBOURS[::-1])
        verdict = Verdict(
            f"{noise}: {name}", len(first), loss_bound(first, second, thresholds), 1.0
        )
    print(verdict)
    return verdict


@pytest.mark.parametrize("noise", MECHANISMS)
def test_a_release_keeps_its_promise_and_the_same_runs_find_too_little_noise(noise):
    verdict = audit(noise)
    assert verdict.sound, str(verdict)
    verdict = audit(noise, mutants.curator_takes_too_much)
    assert verdict.caught_by("loss"), f"not found: {verdict}"
