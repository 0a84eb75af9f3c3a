"""E is drawn at random while any single node is honest.

No node chooses it or knows it before all have committed. A predictable E costs no ε, since the
noise covers every E within δ_max (`test_audit.py` runs that too). It would cost accuracy: the
estimate concerns all records only if E is drawn at random.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.audit import mutants
from tests.audit.auditor import EACH, MORE, broken_by, remembered
from tests.support.studies import Entropy, make_study, table
from umpc.simulation import simulate
from umpc.testing import lying

RUNS = 60
STUDY = make_study("a.x * b.x", 3, edges="2")
"""Two disjoint pairs of four records: three matchings, equally likely."""
TABLES = [table([0, 1], [0, 0]), table([1], [0]), table([1], [0])]


def matching(run) -> int:
    """Return which of the three matchings E is, by the partner of the first record."""
    firsts = np.cumsum([0, 2, 1])
    for owners, cell in run.attempt.hypergraph.cells.items():
        for rows in cell.edges(0, cell.count).T:
            records = sorted(
                int(firsts[owner] + row) for owner, row in zip(owners, rows, strict=True)
            )
            if records[0] == 0:
                return records[1] - 1
    raise AssertionError("the first record is in no edge")


def law_of_edges(honest: int, mutant=None) -> float:
    """Return the p-value of “all E are equally likely”, where one node alone is honest.

    All other nodes give the same opening every time.
    """
    entropy = Entropy(f"one honest node, {honest}")

    def same_opening(start, node, own, study, columns, records, drawn):
        is_honest = own.name == f"node-{honest}"
        start(node, own, study, columns, records, drawn if is_honest else Entropy(own.name))

    with broken_by(mutant), lying("node", init=same_opening), remembered():
        seen = [matching(simulate(STUDY, TABLES, entropy)) for _ in range(RUNS * MORE)]
    return float(stats.chisquare(np.bincount(seen, minlength=3)).pvalue)


@pytest.mark.parametrize("honest", [0, 1, 2])
def test_one_honest_node_makes_every_set_of_edges_equally_likely(honest):
    p = law_of_edges(honest)
    assert p > EACH, f"p = {p:.1e}, {RUNS * MORE} runs"


def test_a_seed_that_one_node_chooses_is_found():
    assert law_of_edges(2, mutants.seed_of_the_first_node) < EACH
