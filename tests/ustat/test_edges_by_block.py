"""umpc.ustat.hypergraph: E is listed block by block, and no edge or order depends on the blocks."""

from __future__ import annotations

import tracemalloc
from math import comb

import numpy as np
import pytest

from umpc.crypto.prg import Stream
from umpc.ustat import cell_rows, edge_blocks, hypergraph, sampling
from umpc.ustat.hypergraph import Hypergraph, expand, expand_drawn, expand_two_sample


def words() -> sampling.Words:
    return Stream(bytes(range(32))).words


def sampled_sets() -> list[Hypergraph]:
    """Every way to list edges one by one, at sizes that no block divides."""

    return [
        *(expand(rule, [7, 0, 13, 21], words()) for rule in ("1n", "2n", "5n", "33", "1p", "18n")),
        expand("2n", [30, 2, 9], words(), 3),
        expand("20", [30, 2, 9], words(), 1),
        expand("20n", [30, 10], words()),
        expand_drawn(70, 12, [20, 11, 9], words()),
        expand_two_sample("2n", [(5, 8), (0, 9), (12, 4)], words()),
    ]


def listed(edges: Hypergraph) -> dict[tuple[int, ...], list[list[int]]]:
    return {owners: cell.edges(0, cell.count).tolist() for owners, cell in edges.cells.items()}


@pytest.mark.parametrize("records", [2, 3, 6, 7])
@pytest.mark.parametrize("block", [1, 4, 1 << 15])
def test_blocks_of_numbered_pairs_are_those_of_the_graph(limit, records, block):
    limit(edge_blocks, BLOCK=block)
    order = np.arange(records)[::-1].copy()
    for count in range(comb(records, 2) + 1):
        blocks = edge_blocks.circulant_blocks(order, count)
        edges = np.sort(order[edge_blocks.circulant(records, count)], axis=0)
        for _ in range(2):  # a list may be read again
            assert np.concatenate([*blocks()], axis=1).tolist() == edges.tolist(), count


@pytest.mark.parametrize("block", [3, 11])
def test_edges_and_their_order_do_not_depend_on_blocks(limit, block):
    whole = sampled_sets()
    limit(edge_blocks, BLOCK=block)
    limit(hypergraph, FEW_CELLS=block % 4)
    limit(hypergraph, COUNTED=block)
    limit(cell_rows, AT_ONCE=block)
    for one, other in zip(whole, sampled_sets(), strict=True):
        assert listed(one) == listed(other)
        for node in range(len(one.counts)):
            degrees = np.zeros(one.counts[node], dtype=np.int64)
            for owners, columns in listed(one).items():
                for slot in (place for place, owner in enumerate(owners) if owner == node):
                    np.add.at(degrees, columns[slot], 1)
            assert other.degrees(node).tolist() == degrees.tolist()


def test_a_pair_takes_less_than_16_bytes_while_it_is_drawn_and_8_afterwards(limit):
    limit(edge_blocks, BLOCK=1 << 12)
    count = 400_000
    tracemalloc.start()
    try:
        edges = expand(str(count), [100_000, 100_000], words())
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(cell.count for cell in edges.cells.values()) == count
    assert most / count < 16 and held / count < 8.5
    assert next(iter(edges.cells.values())).edges(0, 3).dtype == np.int64
