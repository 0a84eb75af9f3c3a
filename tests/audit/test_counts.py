"""`counts`: what a coalition of the coordinator and all nodes but one can prove about a record.

The worst case: one record moves from one cell to another. The coalition takes its own noise off,
and the last node's noise is left on every count.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.audit.auditor import EACH, MORE, Claim, Verdict, broken_by, law_of, law_p, loss_bound
from tests.audit.mutants import Broken
from tests.support.counts import EVENT, counts_study
from tests.support.studies import Entropy
from umpc.dp.calibration import DistributedLaplace
from umpc.protocols.counts import settings
from umpc.protocols.counts.settings import counted
from umpc.simulation import simulate
from umpc.testing import lying

AGE = {"name": "age", "lower": 0, "upper": 3, "whole": True}
FIELDS = {"columns": ["age", "event"], "fields": [AGE, EVENT]}
PLAIN = counts_study("counts", 2, epsilon=1, **FIELDS)
TREE = counts_study("counts", 2, epsilon=2, tree="age", **FIELDS)
ENDS = (0, 0), (3, 1)
RUNS = 150


def tables_of(end):
    """The record that moves is the last node's."""
    first = {"age": np.array([1, 2]), "event": np.array([0, 1])}
    return [first, {"age": np.array([1, end[0]]), "event": np.array([1, end[1]])}]


def half_of_the_change() -> Broken:
    """The noise is for a record that leaves a cell and enters none. Loss 2ε."""
    return _law_for(lambda law: law.sensitivity // 2)


def one_level_of_the_tree() -> Broken:
    """The noise is for the leaves alone."""
    return _law_for(lambda law: 2)


def _law_for(length) -> Broken:
    def lie(honest, study):
        law = honest(study)
        return DistributedLaplace(law.epsilon, length(law), law.nodes, law.honest)

    return lying("everybody", law_of=lie)


def last_node_without_noise() -> Broken:
    """The only honest node adds nothing. Unbounded loss."""

    def own_noise(honest, node, attempt):
        return [0] * attempt.sums if node.index else honest(node, attempt)

    return lying("node", own_noise=own_noise)


def audit(study=PLAIN, mutant=None) -> Verdict:
    exact = [sum(counted(study, table) for table in tables_of(end)) for end in ENDS]
    law = law_of(settings.law_of(study))
    claim = Claim(float(study.exact_epsilon), 0.0, (law,) * len(exact[0]), *map(tuple, exact))
    seen = []
    with broken_by(mutant) as name:
        for end in ENDS:
            entropy, found = Entropy(f"audit of counts, {end}"), []
            for _ in range(RUNS * MORE):
                run = simulate(study, tables_of(end), entropy)
                found.append(np.array(run.report.counts.values) - run.nodes[0].noise)
            seen.append(np.array(found))
    loss = loss_bound(claim.score(seen[0]), claim.score(seen[1]), claim.thresholds)
    what = f"counts, one record to one node and the coordinator: {name}"
    verdict = Verdict(what, len(seen[0]), loss, claim.epsilon, law_p(claim, *seen))
    print(verdict)
    return verdict


def test_the_worst_case_moves_every_level_that_the_noise_counts():
    for study in (PLAIN, TREE):
        one, other = (sum(counted(study, table) for table in tables_of(end)) for end in ENDS)
        assert np.abs(one - other).sum() == settings.law_of(study).sensitivity


@pytest.mark.parametrize("study", [PLAIN, TREE])
def test_the_honest_nodes_noise_keeps_its_promise(study):
    verdict = audit(study)
    assert verdict.sound and verdict.p > EACH, str(verdict)


@pytest.mark.parametrize(
    ("study", "mutant", "finders"),
    [
        (PLAIN, half_of_the_change, ("law",)),
        (TREE, one_level_of_the_tree, ("law",)),
        (PLAIN, last_node_without_noise, ("law", "loss")),
    ],
)
def test_too_little_noise_is_found(study, mutant, finders):
    verdict = audit(study, mutant)
    assert verdict.caught_by(*finders), f"not found: {verdict}"
