"""umpc.ustat.hypergraph: cells partition E; a golden edge set notices a changed stream."""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np
import pytest

from tests.support.held import held
from tests.support.protocols import flat_study
from umpc.crypto.prg import Stream, derive
from umpc.errors import RangeError, TooFewRecords
from umpc.mpc.attempt import edges_of
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant
from umpc.ustat.cell_rows import CompleteCell, ListedCells, RecordBlock, SampledCell
from umpc.ustat.hypergraph import Hypergraph, expand, expand_two_sample
from umpc.ustat.sampling import balanced, biregular, two_sample_max_degree


def words(seed: int = 0):
    return Stream(seed.to_bytes(32, "little")).words


def owner_and_row(record: int, counts) -> tuple[int, int]:
    for owner, count in enumerate(counts):
        if record < count:
            return owner, record
        record -= count
    raise AssertionError("no such record")


def by_cell(edges, counts) -> dict:
    """Edges of global record numbers, by owners, one at a time."""
    return grouped([owner_and_row(record, counts) for record in edge] for edge in edges)


def by_cell_of_classes(edges, class_counts) -> dict:
    """Edges of numbers inside the classes, by owners, one at a time."""
    zeros, ones = zip(*class_counts, strict=True)
    placed = []
    for i, j in edges:
        (u, first), (v, second) = owner_and_row(i, zeros), owner_and_row(j, ones)
        placed.append([(u, first), (v, zeros[v] + second)])
    return grouped(placed)


def grouped(edges) -> dict:
    cells: dict = {}
    for edge in edges:
        owners, rows = zip(*edge, strict=True)
        cells.setdefault(owners, []).append(rows)
    return cells


def listed(cell, start: int = 0, stop: int | None = None) -> list[tuple[int, ...]]:
    edges = cell.edges(start, cell.count if stop is None else stop)
    assert edges.dtype == np.int64
    return [tuple(edge) for edge in edges.T.tolist()]


def cells_of(graph: Hypergraph) -> dict:
    return {owners: listed(cell) for owners, cell in graph.cells.items()}


def check_complete(graph: Hypergraph, expected: dict) -> None:
    assert {owners: sorted(edges) for owners, edges in cells_of(graph).items()} == {
        owners: sorted(edges) for owners, edges in expected.items()
    }
    assert list(graph.cells) == sorted(expected)
    assert graph.edge_count == sum(map(len, expected.values()))


def check_counts(graph: Hypergraph) -> None:
    """Everything a graph says about its edges equals counting them one by one."""
    nodes = range(len(graph.counts))
    seen = {node: [0] * graph.counts[node] for node in nodes}
    together: dict = {pair: set() for pair in product(nodes, repeat=2)}
    for owners, cell in graph.cells.items():
        edges = listed(cell)
        assert cell.count == len(edges) > 0 and len(owners) == graph.degree
        for slot, node in enumerate(owners):
            rows = [edge[slot] for edge in edges]
            assert (
                cell.records(slot).tolist() == sorted(set(rows))
                and cell.records(slot).dtype == np.int64
            )
            occurrences = cell.occurrences(slot, graph.counts[node])
            assert occurrences.tolist() == [rows.count(row) for row in range(graph.counts[node])]
            assert occurrences.dtype == np.int64
            for row in rows:
                seen[node][row] += 1
            for other in set(owners) - {node}:
                together[node, other].update(rows)
    for node in nodes:
        assert graph.degrees(node).tolist() == seen[node] and graph.degrees(node).dtype == np.int64
        assert graph.neighbours(node) == tuple(other for other in nodes if together[node, other])
        for other in set(nodes) - {node}:
            assert graph.shared_records(node, other).tolist() == sorted(together[node, other])
            assert graph.shared_records(node, other).dtype == np.int64
    assert list(graph.shared_cells) == sorted(
        owners for owners in graph.cells if len(set(owners)) > 1
    )
    assert all(graph.shared_cells[owners] is graph.cells[owners] for owners in graph.shared_cells)
    assert graph.shared_cells is graph.shared_cells


COUNTS = [counts for nodes in (1, 2, 3) for counts in product(range(4), repeat=nodes)]
COUNTS += [(0, 5, 0, 0, 2, 1), (1,) * 6, (6, 0), (1, 2, 3, 2)]
CASES = [(counts, degree) for counts in COUNTS for degree in range(1, 5) if sum(counts) >= degree]


@pytest.mark.parametrize("degree", range(1, 5))
def test_the_cells_of_the_complete_graph_are_all_sets(degree):
    for counts in (counts for counts, k in CASES if k == degree):
        graph = expand("all", counts, words(), degree)
        assert all(isinstance(cell, CompleteCell) for cell in graph.cells.values())
        check_complete(graph, by_cell(combinations(range(sum(counts)), degree), counts))
        assert (graph.counts, graph.degree) == (counts, degree)


@pytest.mark.parametrize("degree", range(1, 5))
def test_the_cells_of_a_sampled_graph_partition_it(degree):
    for counts in (counts for counts, k in CASES if k == degree):
        n = sum(counts)
        for count in range(1, comb(n, degree), 1 if degree < 3 else 7):
            graph = expand(str(count), counts, words(count), degree)
            expected = by_cell(balanced(n, count, words(count), degree).tolist(), counts)
            assert cells_of(graph) == expected
            assert list(graph.cells) == sorted(expected) and graph.edge_count == count


@pytest.mark.parametrize("rule", ["all", "1n", "1"])
@pytest.mark.parametrize("degree", range(1, 5))
def test_degrees_records_and_neighbours_equal_counting(degree, rule):
    for counts in (counts for counts, k in CASES if k == degree):
        check_counts(expand(rule, counts, words(), degree))


def test_pairs_are_the_default_and_owners_are_plain_numbers():
    graph = expand("3", (2, 2), words())
    assert graph.degree == 2 and all(
        type(owner) is int for owners in graph.cells for owner in owners
    )


def test_too_few_records_and_too_many_edges_are_refused():
    with pytest.raises(TooFewRecords, match="at least 3 records"):
        expand("all", (1, 1), words(), 3)
    for rule in ("all", str(10**17) + "n"):
        with pytest.raises(
            RangeError, match=r"all sets of 4 of 200000 records are \d+ edges, more than can"
        ):
            expand(rule, (100_000, 100_000), words(), 4)
    with pytest.raises(RangeError, match="all pairs of 2147483648 and 2147483648 records"):
        expand_two_sample("all", [(1 << 31, 1), (0, (1 << 31) - 1)], words())


# --- two samples ----------------------------------------------------------------------------------

CLASSES = [
    pairs for nodes in (1, 2) for pairs in product(product(range(3), repeat=2), repeat=nodes)
]
CLASSES += [((1, 2), (0, 3), (2, 1)), ((0, 1), (0, 0), (2, 0), (1, 1)), ((4, 4), (1, 2))]
CLASSES = [pairs for pairs in CLASSES if all(map(sum, zip(*pairs, strict=True)))]


@pytest.mark.parametrize("class_counts", CLASSES, ids=str)
def test_two_sample_cells_partition_the_edges(class_counts):
    sizes = tuple(map(sum, zip(*class_counts, strict=True)))
    for count in range(1, sizes[0] * sizes[1]):
        graph = expand_two_sample(str(count), class_counts, words(count))
        expected = by_cell_of_classes(biregular(*sizes, count, words(count)).tolist(), class_counts)
        assert cells_of(graph) == expected and list(graph.cells) == sorted(expected)
        assert (graph.counts, graph.degree, graph.edge_count) == (
            tuple(map(sum, class_counts)),
            2,
            count,
        )
        check_counts(graph)
        largest = max(graph.degrees(node).max(initial=0) for node in range(len(class_counts)))
        assert largest == two_sample_max_degree(count, *sizes)


@pytest.mark.parametrize("class_counts", CLASSES, ids=str)
def test_two_sample_cells_of_all_pairs(class_counts):
    sizes = tuple(map(sum, zip(*class_counts, strict=True)))
    graph = expand_two_sample("all", class_counts, words())
    assert all(isinstance(cell, CompleteCell) for cell in graph.cells.values())
    check_complete(graph, by_cell_of_classes(product(*map(range, sizes)), class_counts))
    check_counts(graph)


def test_the_two_directions_between_two_nodes_are_two_cells():
    cells = cells_of(expand_two_sample("all", [(1, 2), (2, 0), (0, 1)], words()))
    inside, from_0_to_2, from_1_to_2 = [(0, 1), (0, 2)], [(0, 0)], [(0, 0), (1, 0)]
    from_1_to_0 = [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert cells == {(0, 0): inside, (0, 2): from_0_to_2, (1, 0): from_1_to_0, (1, 2): from_1_to_2}


# --- cells ----------------------------------------------------------------------------------------

SHAPES = [
    (RecordBlock(0, 7, 2),),
    (RecordBlock(3, 5, 3),),
    (RecordBlock(0, 4, 1), RecordBlock(0, 3, 1)),
    (RecordBlock(0, 1, 1), RecordBlock(1, 4, 2)),
]
SHAPES += [
    (RecordBlock(2, 4, 2), RecordBlock(0, 3, 1), RecordBlock(0, 3, 2)),
    (RecordBlock(0, 1, 2),),
    (RecordBlock(0, 2, 1), RecordBlock(0, 0, 1)),
]


@pytest.mark.parametrize("blocks", SHAPES, ids=str)
def test_a_complete_cell_hands_out_any_range_of_its_edges(blocks):
    parts = [
        list(combinations(range(block.first, block.first + block.size), block.taken))
        for block in blocks
    ]
    colex = [sorted(part, key=lambda subset: subset[::-1]) for part in parts]
    every = [sum(edge, ()) for edge in product(*colex)]
    cell = CompleteCell(blocks)
    assert cell.count == len(every)
    for start in range(cell.count + 1):
        for stop in range(start, min(cell.count, start + 9) + 1):
            assert cell.edges(start, stop).shape == (
                sum(block.taken for block in blocks),
                stop - start,
            )
            assert listed(cell, start, stop) == every[start:stop]
    if not every:
        assert cell.records(0).tolist() == [] and cell.occurrences(0, 2).tolist() == [0, 0]


def test_a_large_complete_cell_is_exact_at_its_ends():
    cell = CompleteCell((RecordBlock(5, 100_000, 2), RecordBlock(0, 900_000_000, 1)))
    assert listed(cell, 899_999_999, 900_000_001) == [(5, 6, 899_999_999), (5, 7, 0)]
    assert listed(cell, cell.count - 1, cell.count) == [(100_003, 100_004, 899_999_999)]


def test_a_sampled_cell_hands_out_ranges():
    cell = SampledCell(np.array([[3, 1, 1], [0, 2, 0]]))
    assert cell.edges(1, 3).tolist() == [[1, 1], [2, 0]]
    assert [cell.records(slot).tolist() for slot in (0, 1)] == [[1, 3], [0, 2]]
    assert cell.occurrences(0, 5).tolist() == [0, 2, 0, 1, 0]


# --- the stream -----------------------------------------------------------------------------------


def study(edges: str) -> Study:
    return flat_study(
        name="golden",
        statistic="gini_mean_difference",
        kernels=("abs(a.x - b.x)",),
        fields=(FieldText("x", "0", "10", whole=True),),
        epsilon="1",
        edges=edges,
        max_colluding=2,
        coordinator="coordinator",
        dealer=Participant("dealer", "dealer:1"),
        nodes=tuple(Participant(f"node-{i}", f"node-{i}:1") for i in range(3)),
    )


COUNTS_OF_GOLDEN = (5, 0, 7)
GOLDEN = [
    (3, 10),
    (9, 10),
    (7, 9),
    (2, 7),
    (0, 2),
    (0, 4),
    (4, 11),
    (1, 11),
    (1, 5),
    (5, 6),
    (6, 8),
    (3, 8),
    (3, 9),
    (7, 10),
    (2, 9),
    (0, 7),
    (2, 4),
    (0, 11),
    (1, 4),
    (5, 11),
    (1, 6),
    (5, 8),
    (3, 6),
    (8, 10),
]


def test_the_edges_of_a_fixed_seed_never_change():
    """Every process expands E from the seed, so another result here is another protocol version."""
    graph = edges_of(study("24"), bytes(32), [(count, 0) for count in COUNTS_OF_GOLDEN])
    assert cells_of(graph) == by_cell(GOLDEN, COUNTS_OF_GOLDEN)


def test_edges_come_from_the_seeds_own_stream():
    labelled = expand("24", COUNTS_OF_GOLDEN, Stream(derive(bytes(32), "edges")).words)
    unlabelled = expand("24", COUNTS_OF_GOLDEN, Stream(bytes(32)).words)
    golden = by_cell(GOLDEN, COUNTS_OF_GOLDEN)
    assert cells_of(labelled) == golden
    assert cells_of(unlabelled) != golden


def test_the_edges_of_other_degrees_and_of_two_samples_never_change():
    def of_seed():
        return Stream(derive(bytes(32), "edges")).words

    singles = {(0,): [(3,), (2,)], (2,): [(5,), (4,), (2,)]}
    triples = {(0, 0, 2): [(0, 3, 1), (2, 4, 2)], (0, 2, 2): [(4, 3, 6), (1, 4, 5), (0, 0, 2)]}
    pairs = {(0, 0): [(0, 3), (1, 2)], (2, 0): [(3, 4)], (2, 2): [(1, 5), (0, 4), (2, 6)]}
    assert cells_of(expand("5", COUNTS_OF_GOLDEN, of_seed(), 1)) == singles
    assert cells_of(expand("5", COUNTS_OF_GOLDEN, of_seed(), 3)) == triples
    assert cells_of(expand_two_sample("6", [(2, 3), (0, 0), (4, 3)], of_seed())) == pairs


def test_a_node_looks_at_its_own_cells_only_for_all_that_its_peers_share_with_it():
    graph = expand("2n", (4,) * 6, words())
    for peer in graph.neighbours(2):
        graph.shared_records(2, peer)
        graph.shared_records(peer, 2)
    assert isinstance(graph.cells, ListedCells)
    own = [owners for owners in graph.cells if 2 in owners]
    assert len(held(graph.cells, SampledCell)) == len(own) < len(graph.cells)
