"""Triangle density by a curator: graphs as lists, exact sensitivities, ξ from a share of edges."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest

from tests.support.central import central_study
from tests.support.curated import SeededBits
from tests.support.graphs import (
    all_graphs,
    graph_study,
    lists_of,
    names_of,
    random_graph,
    share_of_triangles,
    triples,
)
from tests.support.protocols import assert_refused, messages_of, with_facts
from tests.support.studies import LOUD, Entropy
from umpc.errors import StudyError
from umpc.node.policy import computes
from umpc.protocols.registry import decode_study, protocol_of
from umpc.simulation import simulate
from umpc.ustat.kernel import Kernel
from umpc.ustat.statistics import LIBRARY
from umpc_papers.central import graph_terms
from umpc_papers.central.edges import concentration_from_edges, edge_kernel
from umpc_papers.central.global_sensitivity import GlobalSensitivity
from umpc_papers.central.hajek import reweight, tuning_of
from umpc_papers.central.terms import CompleteFamily, kernel_terms, share, total
from umpc_papers.testing import limited, lying

ONE = Fraction(1)


def kernel_of(most: int, ids: int) -> Kernel:
    return graph_study("laplace", most, ids).parsed_kernels[0]


def sites(graph: np.ndarray, most: int, count: int) -> list[dict[str, np.ndarray]]:
    """Return a table for each site, the vertices in a random order."""
    order = np.random.default_rng(7).permutation(len(graph))
    table = lists_of(graph, most)
    parts = np.array_split(order, count)
    return [{name: column[rows] for name, column in table.items()} for rows in parts]


# --- the statistic


def test_random_graphs_have_the_share_that_counting_finds():
    """Also where lists are longer than needed, and for lists of one and two neighbours."""
    for seed, (vertices, chance) in enumerate([(7, 0.5), (9, 0.3), (12, 0.6), (6, 1.0), (5, 0.0)]):
        graph = random_graph(vertices, chance, seed)
        most = int(graph.sum(axis=1).max()) + seed % 3 or 1
        study = graph_study("laplace", most, vertices, epsilon=LOUD)
        report = simulate(study, sites(graph, most, 2), Entropy(f"graph {seed}")).report
        assert report.estimate == pytest.approx(share_of_triangles(graph), abs=1e-9)
    cycle = np.roll(np.eye(3, dtype=bool), 1, axis=1)
    for most, graph in ((2, cycle | cycle.T), (1, np.eye(4, dtype=bool)[[1, 0, 3, 2]])):
        terms = kernel_terms(kernel_of(most, len(graph)), lists_of(graph, most))
        assert total(terms, CompleteFamily(len(graph), 3)) == (most == 2)


def test_an_edge_takes_both_lists_and_a_name_that_is_listed_twice_is_not_listed():
    kernel = kernel_of(3, 9)
    for own, triangles in (([2, 3, 0], 1), ([3, 9, 2], 1), ([2, 3, 2], 0), ([0, 3, 0], 0)):
        table = lists_of(~np.eye(3, dtype=bool), 3)
        for place, number in enumerate(own):
            table[f"n{place}"] = np.array([number, *table[f"n{place}"][1:]])
        assert total(kernel_terms(kernel, table), CompleteFamily(3, 3)) == triangles, own


def test_the_matrix_of_pairs_has_the_kernels_values():
    """On tables that are no graph, too; above the largest matrix the kernel itself is evaluated."""
    rng, sets = np.random.default_rng(2), np.array(triples(9)).T
    for most in (1, 2, 4):
        kernel = kernel_of(most, 9)
        table = {name: rng.integers(0, 3, 9) for name in names_of(most)}
        fast = kernel_terms(kernel, table).evaluate(sets)
        with limited(graph_terms, MOST_VERTICES=8):
            assert graph_terms.triangle_values(kernel, table) is None
            assert np.array_equal(fast, kernel_terms(kernel, table).evaluate(sets))


def test_a_policy_knows_the_statistic_by_its_kernel_and_long_lists_have_small_ones():
    study = graph_study("laplace", 30, 5000)
    (kernel,) = study.parsed_kernels
    assert computes(study, LIBRARY["triangle_density"]) and kernel.polynomial.weight < 200
    assert (kernel.interval.low, kernel.interval.high, kernel.unit) == (0, 1, 1)


# --- neighbours


def rewired(vertices: int) -> np.ndarray:
    """Return all graphs: (those of the other vertices, edges of vertex 0, vertices, vertices)."""
    return all_graphs(vertices).reshape(-1, 1 << (vertices - 1), vertices, vertices)


def at_once(kernel: Kernel, groups: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """Return the kernel's values: (groups, graphs, sets) int64."""
    tables = [lists_of(graph, 4) for group in groups for graph in group]
    whole = {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}
    vertices = groups.shape[-1]
    starts = vertices * np.arange(len(tables))
    of_all = (sets[:, None] + starts[:, None]).reshape(len(sets), -1)
    values = kernel_terms(kernel, whole).evaluate(of_all)
    return values.reshape(*groups.shape[:2], sets.shape[1])


def test_a_rewired_vertex_changes_only_its_own_triples_in_every_graph_of_five():
    """The noise is for exactly the largest change, C(n-1, 2)."""
    kernel, sets = kernel_of(4, 5), np.array(triples(5)).T
    found = at_once(kernel, rewired(5), sets)
    others = found[:, :, (sets != 0).all(axis=0)]
    assert (others == others[:, :1]).all()
    sums = found.sum(axis=2)
    largest = (sums.max(axis=1) - sums.min(axis=1)).max()
    assert largest == comb(4, 2) == GlobalSensitivity(kernel, ONE).sensitivity(5)


def test_any_row_in_the_place_of_another_changes_only_its_own_triples(limit):
    """Rows that are no lists of a graph: names twice, the row's own name, another vertex's name."""
    limit(graph_terms, MOST_VERTICES=0)
    kernel, sets = kernel_of(2, 4), np.array(triples(4)).T
    rows = np.array(list(product(range(5), repeat=3)))
    rng = np.random.default_rng(11)
    for _ in range(20):
        table = np.broadcast_to(rng.integers(0, 5, (4, 3)), (len(rows), 4, 3)).copy()
        table[:, 0] = rows
        columns = {name: table[:, :, place].reshape(-1) for place, name in enumerate(names_of(2))}
        starts = 4 * np.arange(len(rows))
        values = np.array(
            [kernel_terms(kernel, columns).evaluate(each[:, None] + starts) for each in sets.T]
        )
        assert set(np.unique(values)) <= {0, 1}
        without = values[(sets != 0).all(axis=0)]
        assert (without == without[:, :1]).all()


def test_the_local_mechanism_is_smooth_over_all_neighbouring_graphs_of_five():
    """|Ã - Ã'| is within the bound at either table's L, and L moves by at most one."""
    kernel, family = kernel_of(4, 5), CompleteFamily(5, 3)
    seen, levels = 0, set()
    for group in rewired(5)[::9]:
        tables = [kernel_terms(kernel, lists_of(graph, 4)) for graph in group]
        tuning = tuning_of(tables[0], family, Fraction(1, 10), ONE)
        found = [reweight(terms, family, tuning.bound) for terms in tables]
        for one, other in product(found, found):
            scales = tuning.scale(one.level, 5), tuning.scale(other.level, 5)
            assert abs(one.value - other.value) <= tuning.bound.at(one.level)
            assert abs(one.level - other.level) <= 1
            assert float(scales[0] / scales[1]) <= np.exp(float(tuning.beta)) * (1 + 1e-12)
            seen += one.value != other.value
        levels |= {each.level for each in found}
    assert seen and len(levels) > 1 and share(family) == Fraction(3, 5)


# --- ξ from a share of edges


def test_the_number_of_edges_changes_by_what_its_noise_is_for():
    """In every graph of five vertices; and the release sees the edges by that number alone."""
    kernel = edge_kernel(kernel_of(4, 5))
    pairs = np.array(list(combinations(range(5), 2))).T
    found = at_once(kernel, rewired(5), pairs).sum(axis=2)
    assert np.array_equal(found, rewired(5).sum(axis=(2, 3)) // 2)
    largest = (found.max(axis=1) - found.min(axis=1)).max()
    own = GlobalSensitivity(kernel, Fraction(1, 2))
    assert largest == 4 == own.sensitivity(5)
    seen = []

    def noted(honest, *given):
        seen.append(given)
        return own

    table = lists_of(all_graphs(5)[-1], 4)
    with lying("everybody", GlobalSensitivity=noted):
        concentration_from_edges(kernel_of(4, 5), Fraction(1, 3), table, 5, SeededBits("seen"))
    assert seen == [(kernel, Fraction(1, 3))]


def test_sparse_graphs_have_a_smaller_concentration_and_it_holds():
    sparse, dense = (random_graph(80, chance, 3) for chance in (0.04, 0.4))
    found = []
    for graph in (sparse, dense):
        most = int(graph.sum(axis=1).max())
        kernel, table = kernel_of(most, 80), lists_of(graph, most)
        found.append(concentration_from_edges(kernel, 4 * ONE, table, 80, SeededBits("edges")))
    assert found[0] < found[1] / 2
    cubes = np.linalg.matrix_power(sparse.astype(np.int64), 3)
    means = cubes.diagonal() / 2 / comb(79, 2)
    assert np.abs(means - cubes.trace() / 6 / comb(80, 3)).max() <= found[0]


@pytest.mark.parametrize("facts", [{}, {"spread_share": "1/2"}, {"chunks": 3}], ids=str)
def test_a_study_pays_for_the_edges_from_its_epsilon_at_the_predicted_cost(facts):
    study = graph_study("hajek", 8, 24, concentration="edges", **facts)
    assert decode_study(study.encode()) == study
    part = Fraction(facts.get("spread_share", "1/4"))
    graph = random_graph(24, 0.15, 5)
    assert graph.sum(axis=1).max() <= 8
    run = simulate(study, sites(graph, 8, 2), Entropy("edges"))
    of = messages_of(study)
    _, settled = of.choice(24).release(lists_of(graph, 8), SeededBits("settled"))
    assert settled.epsilon == settled.protocol.epsilon == study.exact_epsilon * (1 - part)
    assert of.choice(24).event.epsilon == study.exact_epsilon and not settled.private
    assert 0 < run.report.noise_std <= of.usual_std(24) * (1 + 1e-9)
    # nine fields of 25 values take 5 bits each
    assert run.report.bytes_online == run.report.bytes_online_predicted == 2 * (32 + 9 * 8)
    told = dict(protocol_of(study).compare_noise(run.attempt))["against laplace"]
    assert "follows from a private estimate" in told and "'edges'" in (run.report.note or "")


def test_another_statistic_or_mechanism_is_refused_in_one_line():
    lists = graph_study("hajek", 2, 9)
    weaker = lists.kernels[0].replace("a.n1", "a.n0")
    for study, message in (
        (with_facts(central_study("hajek"), concentration="edges"), "triangle_density"),
        (with_facts(lists, kernels=(weaker,), concentration="edges"), "triangle_density"),
        (with_facts(lists, noise="laplace", concentration="edges"), "concentration goes with"),
        (with_facts(lists, concentration="edge"), "must be a number"),
        (
            with_facts(lists, noise="hajek_subsampled", edges="9", concentration="edges"),
            "a private concentration goes with a mechanism over all",
        ),
    ):
        assert_refused(study, StudyError, message)
