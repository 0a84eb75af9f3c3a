"""umpc.ustat.hypergraph: cells partition E, and a golden edge set notices any change of the stream."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from umpc.mpc.attempt import edges_of
from umpc.mpc.prg import Stream, derive
from umpc.study import FieldText, Participant, Study
from umpc.ustat.hypergraph import GridCell, SampledCell, TriangleCell, expand
from umpc.ustat.sampling import balanced


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
    cells: dict = {}
    for i, j in edges:
        (u, first), (v, second) = owner_and_row(i, counts), owner_and_row(j, counts)
        cells.setdefault((u, v), []).append((first, second))
    return cells


def listed(cell) -> list[tuple[int, int]]:
    first, second = cell.edges(0, cell.count)
    return list(zip(first.tolist(), second.tolist(), strict=True))


COUNTS = [counts for nodes in (1, 2, 3) for counts in product(range(4), repeat=nodes) if sum(counts) >= 2]
COUNTS += [(0, 5, 0, 0, 2, 1), (1,) * 7, (6, 0)]


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_the_cells_of_the_complete_graph_are_all_pairs(counts):
    graph = expand("all", counts, words())
    expected = by_cell(combinations(range(sum(counts)), 2), counts)
    assert {owners: listed(cell) for owners, cell in graph.cells.items()} == expected
    assert list(graph.cells) == sorted(expected)


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_the_cells_of_a_sampled_graph_partition_it(counts):
    n = sum(counts)
    for count in range(1, n * (n - 1) // 2):
        graph = expand(str(count), counts, words(count))
        expected = by_cell(balanced(n, count, words(count)).tolist(), counts)
        assert {owners: listed(cell) for owners, cell in graph.cells.items()} == expected
        assert list(graph.cells) == sorted(expected) and graph.edge_count == count


@pytest.mark.parametrize("rule", ["all", "1n"])
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_degrees_and_records_equal_counting(counts, rule):
    graph = expand(rule, counts, words())
    seen = [np.zeros(count, dtype=int) for count in counts]
    for owners, cell in graph.cells.items():
        for pair in listed(cell):
            for side in (0, 1):
                seen[owners[side]][pair[side]] += 1
    for node, expected in enumerate(seen):
        assert graph.degrees(node).tolist() == expected.tolist()
        assert graph.degrees(node).dtype == np.int64
        assert graph.degrees(node).max(initial=0) <= graph.max_degree
    for owners, cell in graph.shared_cells.items():
        assert owners[0] < owners[1]
        for side in (0, 1):
            assert cell.records(side).tolist() == sorted({pair[side] for pair in listed(cell)})
    assert set(graph.cells) - set(graph.shared_cells) == {o for o in graph.cells if o[0] == o[1]}


@pytest.mark.parametrize("size", range(10))
def test_a_triangle_hands_out_any_range_of_its_pairs(size):
    cell, every = TriangleCell(size), list(combinations(range(size), 2))
    assert cell.count == len(every)
    for start in range(cell.count + 1):
        for stop in range(start, cell.count + 1):
            assert list(zip(*map(np.ndarray.tolist, cell.edges(start, stop)), strict=True)) == every[start:stop]


@pytest.mark.parametrize(("rows", "columns"), list(product(range(5), repeat=2)))
def test_a_grid_hands_out_any_range_of_its_pairs(rows, columns):
    cell, every = GridCell(rows, columns), list(product(range(rows), range(columns)))
    assert cell.count == len(every)
    for start in range(cell.count + 1):
        for stop in range(start, cell.count + 1):
            assert list(zip(*map(np.ndarray.tolist, cell.edges(start, stop)), strict=True)) == every[start:stop]


def test_a_large_triangle_is_exact_at_its_ends():
    cell = TriangleCell(100_000)
    first, second = cell.edges(cell.count - 3, cell.count)
    assert first.tolist() == [99_997, 99_997, 99_998] and second.tolist() == [99_998, 99_999, 99_999]
    first, second = cell.edges(99_998, 100_000)
    assert first.tolist() == [0, 1] and second.tolist() == [99_999, 2]


def test_a_sampled_cell_hands_out_ranges():
    cell = SampledCell(np.array([3, 1, 1]), np.array([0, 2, 0]))
    assert [part.tolist() for part in cell.edges(1, 3)] == [[1, 1], [2, 0]]
    assert [cell.records(side).tolist() for side in (0, 1)] == [[1, 3], [0, 2]]


def study(edges: str) -> Study:
    return Study(
        name="golden",
        statistic="gini_mean_difference",
        kernel="abs(a.x - b.x)",
        fields=(FieldText("x", "0", "10"),),
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
    """Every process expands E from the seed: another result here means another version of the protocol."""
    graph = edges_of(study("24"), bytes(32), COUNTS_OF_GOLDEN)
    assert {owners: listed(cell) for owners, cell in graph.cells.items()} == by_cell(GOLDEN, COUNTS_OF_GOLDEN)


def test_edges_come_from_the_seeds_own_stream():
    labelled = expand("24", COUNTS_OF_GOLDEN, Stream(derive(bytes(32), "edges")).words)
    unlabelled = expand("24", COUNTS_OF_GOLDEN, Stream(bytes(32)).words)
    golden = by_cell(GOLDEN, COUNTS_OF_GOLDEN)
    assert {owners: listed(cell) for owners, cell in labelled.cells.items()} == golden
    assert {owners: listed(cell) for owners, cell in unlabelled.cells.items()} != golden
