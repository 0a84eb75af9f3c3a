"""umpc/ustat/cell_rows.py: what the rows say about cells equals a look at each cell."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from umpc.mpc.chunks import pattern_of
from umpc.ustat.cell_rows import CellRows, ListedCells, SampledCell


def cells_of(owners: list[tuple[int, ...]]) -> dict:
    """Cells with 1, 2, 3, … edges."""
    return {
        each: SampledCell(np.arange(len(each) * (count + 1)).reshape(len(each), count + 1))
        for count, each in enumerate(owners)
    }


@pytest.mark.parametrize("degree", range(1, 5))
def test_nodes_sharing_and_patterns_equal_a_look_at_each_cell(degree):
    everything = list(product(range(4), repeat=degree))
    rng = np.random.default_rng(1)
    for size in (0, 1, 3, len(everything)):
        chosen = [everything[i] for i in rng.permutation(len(everything))[:size]]
        cells = cells_of(chosen)
        rows = CellRows.of(cells, degree)
        names = sorted(cells)
        assert rows.names(np.arange(len(names))) == names
        assert rows.counts.tolist() == [cells[each].count for each in names]
        assert rows.names(rows.shared) == [each for each in names if len(set(each)) > 1]
        for node in range(5):
            mine = [each for each in names if node in each]
            assert rows.names(rows.of_node(node)) == mine
            shared = [each for each in mine if len(set(each)) > 1]
            assert rows.names(rows.shared_of_node(node)) == shared
        patterns, kinds = rows.kinds
        assert patterns == sorted({pattern_of(each) for each in names})
        assert [patterns[kind] for kind in kinds] == list(map(pattern_of, names))
        assert rows.shared_patterns == {pattern_of(each) for each in names if len(set(each)) > 1}


def listed_cells() -> ListedCells:
    """Three cells of pairs among 3 nodes, with 2, 1 and 3 edges."""
    rows = CellRows(np.array([[0, 1], [0, 2], [1, 1]]), np.array([2, 1, 3]))
    return ListedCells(rows, (3, 3), np.arange(12).reshape(2, 6))


def test_a_listed_cell_has_its_part_of_all_edges_and_is_made_once():
    cells = listed_cells()
    assert list(cells) == [(0, 1), (0, 2), (1, 1)] and len(cells) == 3
    assert cells[0, 1].columns.tolist() == [[0, 1], [6, 7]]
    assert cells[0, 2].columns.tolist() == [[2], [8]]
    assert cells[1, 1].columns.tolist() == [[3, 4, 5], [9, 10, 11]]
    assert cells[0, 2] is cells[0, 2]
    assert np.shares_memory(cells[0, 1].columns, cells[1, 1].columns) is False
    assert all(type(owner) is int for owners in cells for owner in owners)


def test_owners_without_an_edge_have_no_cell():
    cells = listed_cells()
    for absent in ((1, 0), (0, 0), (2, 2), (0, 3), (-1, 1)):
        assert absent not in cells and cells.get(absent) is None
        with pytest.raises(KeyError):
            cells[absent]
