"""umpc.ustat.hypergraph: edges that are made block by block, and the memory that they take."""

from __future__ import annotations

import tracemalloc
from math import comb

import numpy as np
import pytest

from umpc.crypto.prg import Stream
from umpc.ustat.edge_blocks import BLOCK, circulant, circulant_edges
from umpc.ustat.hypergraph import expand


@pytest.mark.parametrize("records", [2, 3, 6, 7])
def test_numbered_pairs_are_those_of_the_graph(records):
    order = np.arange(records)[::-1].copy()
    for count in range(comb(records, 2) + 1):
        edges = np.sort(order[circulant(records, count)], axis=0)
        assert circulant_edges(order, count).tolist() == edges.tolist(), count


def test_edges_and_their_order_do_not_depend_on_blocks():
    records, count = 300, BLOCK + 1000
    order = np.random.default_rng(1).permutation(records)
    edges = np.sort(order[circulant(records, count)], axis=0)
    assert circulant_edges(order, count).tolist() == edges.tolist()


def test_a_pair_takes_less_than_32_bytes_while_it_is_drawn_and_8_afterwards():
    count = 400_000
    tracemalloc.start()
    try:
        edges = expand(str(count), [50_000, 50_000], Stream(bytes(range(32))).words)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(cell.count for cell in edges.cells.values()) == count
    assert most / count < 32 and held / count < 8.5
    assert next(iter(edges.cells.values())).edges(0, 3).dtype == np.int64
