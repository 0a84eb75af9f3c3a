"""GOPA along a k-out graph: connectivity by brute force, ρ against the library, whole studies."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest

from reproduction.baselines.gopa import Gopa
from tests.support.gopa import gopa_study, numbers, sums, tables_of
from tests.support.studies import Entropy, generator
from umpc.errors import StudyError
from umpc.protocols.registry import checked, protocol_of
from umpc.simulation import simulate
from umpc.study.computation import second_hash
from umpc_papers.gopa.calibration import PairwiseNoise, calibrate_pairwise, rho_of_tree
from umpc_papers.gopa.graph import Graph, k_out_graph, stays_connected
from umpc_papers.gopa.settings import GopaSettings, graph_of

STEPS = 1 << 24


def is_connected(graph: Graph, left: set[int]) -> bool:
    seen = {min(left)}
    waiting = list(seen)
    while waiting:
        found = (graph[waiting.pop()] & left) - seen
        seen |= found
        waiting += found
    return seen == left


def test_no_colluding_nodes_cut_what_stays_connected():
    rng, counts = generator("graphs"), [0, 0]
    for _ in range(400):
        nodes = int(rng.integers(2, 8))
        found = [set() for _ in range(nodes)]
        for first, second in combinations(range(nodes), 2):
            if rng.random() < 0.65:
                found[first].add(second)
                found[second].add(first)
        graph = tuple(map(frozenset, found))
        colluding = int(rng.integers(0, nodes))
        expected = all(
            is_connected(graph, set(range(nodes)) - set(gone))
            for gone in combinations(range(nodes), colluding)
            if colluding < nodes
        )
        assert stays_connected(graph, colluding) == expected, (graph, colluding)
        counts[expected] += 1
    assert min(counts) > 100


def test_each_node_chooses_k_others_and_the_name_decides():
    graphs = [k_out_graph(name, 20, 4, 3) for name in ("a", "b", "a")]
    assert graphs[0] == graphs[2] != graphs[1]
    for graph in graphs:
        assert all(len(others) >= 4 and node not in others for node, others in enumerate(graph))
        assert all(node in graph[other] for node in range(20) for other in graph[node])
        assert sum(map(len, graph)) <= 2 * 4 * 20 < 19 * 20
    with pytest.raises(StudyError, match="take more neighbours"):
        k_out_graph("a", 20, 1, 6)


@pytest.mark.parametrize(("nodes", "neighbours", "colluding"), [(6, 2, 1), (9, 3, 3), (12, 4, 2)])
def test_rho_covers_the_librarys_for_every_set_of_colluding_nodes(nodes, neighbours, colluding):
    """The library finds the best flows in the graph at hand; ours holds for any spanning tree."""
    graph = k_out_graph("rho", nodes, neighbours, colluding)
    edges = tuple((i, j) for i in range(nodes) for j in graph[i] if i < j)
    noise = PairwiseNoise(STEPS, nodes, nodes - colluding, STEPS**2, complete=False)
    sets = list(combinations(range(nodes), colluding))
    for gone in sets[:: max(1, len(sets) // 8)]:
        library = Gopa(
            Fraction(0),
            Fraction(STEPS),
            Fraction(1),
            nodes,
            edges,
            Fraction(noise.own),
            Fraction(noise.pairwise),
            frozenset(gone),
        )
        assert library.rho <= noise.rho <= library.rho * Fraction(101, 100)
    cut = rho_of_tree(STEPS, (nodes - colluding) // 2)
    assert cut > rho_of_tree(STEPS, nodes - colluding) * Fraction(3, 2), "the size matters"


def test_a_whole_study_cancels_the_noise_of_neighbours_and_of_nobody_else():
    study = gopa_study(8, 2, neighbours=3)
    tables = tables_of((3,) * 8)
    run = simulate(study, tables, Entropy("k-out"))
    noise = protocol_of(study).messages(study).noise
    graph = graph_of(study)
    assert graph == k_out_graph(study.name, 8, 3, 2) and len(graph[0]) < 7
    own = sum(numbers(run)) - sum(sums(study, tables))
    assert abs(own) < 8 * noise.std < noise.pairwise**0.5 / 2, "all shared noise cancels"
    assert run.report.noise_std > 0
    everybody = calibrate_pairwise(
        study.exact_epsilon, study.exact_delta, noise.steps, 8, 6, complete=True
    )
    assert everybody.std < noise.std < everybody.std * 1.01
    described = dict(protocol_of(study).describe(study))
    shared = [len(others) for others in graph]
    assert described["noise"] == f"a node shares it with {min(shared)} to {max(shared)} others"


def test_a_study_of_all_pairs_keeps_its_former_identity_and_rules_are_checked():
    usual = GopaSettings(delta="1e-9")
    assert usual.newer == ("neighbours",) and usual.neighbours == 0
    study = gopa_study(4)
    assert second_hash(study) != second_hash(gopa_study(4, neighbours=2))
    with pytest.raises(StudyError, match="1 to 3 of 4 nodes"):
        checked(study.replaced(neighbours=4))
    with pytest.raises(StudyError, match="may cut"):
        gopa_study(12, 6, neighbours=1)
