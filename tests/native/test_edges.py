"""Edges sorted by their owners in C: every cell and order is numpy's."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from tests.ustat.test_edges_by_block import listed, sampled_sets
from umpc.errors import LocalProtocolError
from umpc.native import edges

BUILT = [edges] if edges.LIBRARY is not None else []
"""The functions, where there is a compiled library."""


def test_cells_and_their_order_are_those_of_numpy(monkeypatch):
    in_c = [listed(each) for each in sampled_sets()]
    monkeypatch.setattr(edges, "IS_COMPILED", False)
    assert in_c == [listed(each) for each in sampled_sets()]


def counted(functions: ModuleType, records: list[int]) -> None:
    rows = np.array([records, records], dtype=np.int32)
    nodes = np.array([0, 1], dtype=np.uint8)
    codes, sizes = np.empty(len(records), np.uint8), np.zeros(edges.COMBINATIONS, np.uint64)
    functions.count_owners(rows, [nodes, nodes], (2, 2), codes, sizes)
    assert codes.tolist() == [3 * record for record in records]
    assert sizes.sum() == len(records)


def test_a_record_of_no_table_is_refused():
    for functions in BUILT:
        counted(functions, [0, 1, 1])
        for wrong in (2, -1, 1 << 30):
            with pytest.raises(LocalProtocolError, match="no node's table"):
                counted(functions, [0, wrong])


def test_edges_beyond_the_free_places_are_refused():
    rows, codes = np.zeros((2, 3), dtype=np.int32), np.zeros(3, dtype=np.uint8)
    zeros = np.zeros((edges.COMBINATIONS, 2), dtype=np.int32)
    placed = np.full((2, 2), 7, dtype=np.int32)
    free = np.zeros(edges.COMBINATIONS, dtype=np.uint64)
    for functions in BUILT:
        with pytest.raises(LocalProtocolError, match="differ"):
            functions.place_edges(rows, codes, zeros, free, placed)


@pytest.mark.parametrize("wrong", [np.zeros((2, 4), np.int64), np.zeros((2, 8), np.int32)[:, ::2]])
def test_rows_of_another_type_or_with_gaps_are_refused(wrong):
    nodes, codes = np.zeros(1, np.uint8), np.zeros(4, np.uint8)
    with pytest.raises(LocalProtocolError):
        edges.count_owners(
            wrong, [nodes, nodes], (1, 1), codes, np.zeros(edges.COMBINATIONS, np.uint64)
        )
