"""The grid where few nodes verify for all: clear values, predicted costs, and who is told what."""

from __future__ import annotations

import pytest

from tests.protocols.grid.test_grid_run import study_of as library_study_of
from tests.protocols.grid.test_verified import run_and_check, verified_study
from tests.protocols.u_mpc.test_library import counts_of, tables_of
from tests.support.studies import Entropy, random_tables
from umpc.protocols.grid.lookup_proof import ANSWER, INVERSES, LIST, OPENING, PROOF, STATEMENT
from umpc.protocols.grid.masked_form import TOTAL
from umpc.simulation import Simulated, simulate
from umpc.study.settings import LYING_NODES

COUNTS = (7, 3, 5, 2)
EVERYTHING = {TOTAL, OPENING, LIST, INVERSES, PROOF, STATEMENT, ANSWER}


def told(run: Simulated, place: int) -> set[str]:
    """The steps of all that a node is told."""
    name = run.attempt.study.nodes[place].name
    return {frame.step for _, receiver, frame in run.transcript.told if receiver == name}


@pytest.mark.parametrize("colluding", range(4))
def test_the_first_nodes_are_told_everything_and_the_others_what_fixes_the_root(colluding):
    study = verified_study(nodes=4, max_colluding=colluding)
    run = run_and_check(study, random_tables(COUNTS, "few", high=7), f"{colluding} may lie")
    found = [told(run, place) for place in range(4)]
    others = 3 - colluding
    assert found == [EVERYTHING] * (colluding + 1) + [{TOTAL, OPENING}] * others


@pytest.mark.parametrize("name", ["auc", "spearman_rho", "kendall_tau_b"])
def test_two_verifiers_of_five_release_the_clear_values(name):
    """Across two public classes, over triples, and three sums."""
    study = library_study_of(name, 5).replaced(adversary=LYING_NODES, max_colluding=1)
    run_and_check(study, tables_of(study, "ties", counts_of(name, 5), name), f"few {name}")


@pytest.mark.parametrize("high", ["3", "511"])
def test_nodes_that_send_bits_or_lists_are_verified_by_few(high):
    study = verified_study(x=("0", high), y=("0", high), max_colluding=0)
    run_and_check(study, random_tables((90, 3, 60), "forms", high=3), f"few {high}")


def test_a_node_that_does_not_check_is_sent_fewer_bytes():
    study = verified_study(nodes=4, max_colluding=1)
    run = simulate(study, random_tables((500, 500, 500, 500), "bytes", high=7), Entropy("bytes"))
    sizes = [0] * 4
    for _, receiver, frame in run.transcript.told:
        sizes[int(receiver[-1])] += len(frame.payload)
    assert sizes[0] > 2 * sizes[2] and len(set(sizes[2:])) == 1
