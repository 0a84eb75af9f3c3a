"""Edges sorted by their owners in C: every cell and order is numpy's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ustat.test_edges_by_block import listed, sampled_sets
from umpc.errors import LocalProtocolError
from umpc.native import edges
from umpc.ustat.sorted_edges import RecordNumbering, _sorted_in_c, sorted_in_numpy

BUILT = [edges] if edges.LIBRARY is not None else []
"""The functions, where there is a compiled library."""


def test_cells_and_their_order_are_those_of_numpy(monkeypatch):
    in_c = [listed(each) for each in sampled_sets()]
    monkeypatch.setattr(edges, "IS_COMPILED", False)
    assert in_c == [listed(each) for each in sampled_sets()]


def check_as_numpy(
    counts: Sequence[Sequence[int]],
    rows: np.ndarray,
    before: Sequence[Sequence[int] | None] | None = None,
    block: int = 1 << 15,
) -> None:
    """Sort edges both ways. Args: counts: of each slot, each node's records. rows: (k, edges)."""

    def blocks():
        return (rows[:, start : start + block] for start in range(0, rows.shape[1], block))

    if not BUILT:
        return
    earlier = before or [None] * len(counts)
    numberings = [RecordNumbering.of(*each) for each in zip(counts, earlier, strict=True)]
    shape = tuple(map(len, counts))
    assert prod(shape) < edges.COMBINATIONS
    in_c = _sorted_in_c(blocks, rows.shape[1], numberings, shape)
    expected = sorted_in_numpy(blocks, rows.shape[1], numberings, shape)
    assert in_c.rows.owners.tolist() == expected.rows.owners.tolist()
    assert in_c.rows.counts.tolist() == expected.rows.counts.tolist()
    assert in_c._columns.tolist() == expected._columns.tolist()


def test_all_lists_of_up_to_three_edges_of_few_records():
    splits = [each for nodes in (1, 2, 3) for each in product(range(3), repeat=nodes)]
    splits = [each for each in splits if 0 < sum(each) <= 3]
    for counts in product(splits, repeat=2):
        pairs = [*product(*(range(sum(of_slot)) for of_slot in counts))]
        for length in range(4 if len(pairs) <= 2 else 2):
            for chosen in product(pairs, repeat=length):
                check_as_numpy(counts, np.array(chosen, np.int32).reshape(length, 2).T, block=2)


@st.composite
def lists_of_edges(draw) -> tuple:
    slots = draw(st.integers(1, 4))
    most = {1: 255, 2: 15, 3: 6, 4: 3}[slots]
    records = st.lists(st.integers(0, 5), min_size=1, max_size=most).filter(any)
    counts = draw(st.lists(records, min_size=slots, max_size=slots))
    before = [[draw(st.integers(0, 9)) for _ in of_slot] for of_slot in counts]
    edge = st.tuples(*(st.integers(0, sum(of_slot) - 1) for of_slot in counts))
    chosen = draw(st.lists(edge, max_size=40))
    rows = np.array(chosen, np.int32).reshape(len(chosen), slots).T
    return counts, rows, before, draw(st.integers(1, 50))


@given(lists_of_edges())
@settings(max_examples=150, deadline=None)
def test_any_list_of_edges_of_one_to_four_records(case):
    check_as_numpy(*case)


@pytest.mark.parametrize("shape", [(255,), (15, 17), (17, 15), (1, 255), (3, 5, 17), (2,) * 7])
def test_as_many_combinations_as_a_byte_numbers_and_more_records_than_two_bytes_number(shape):
    rng = np.random.default_rng(len(shape))
    counts = [[(1 << 17) // nodes] * nodes for nodes in shape]
    rows = np.stack([rng.integers(0, sum(of_slot), 70_000) for of_slot in counts])
    rows[:, :2] = 0
    rows[:, 2:4] = [[sum(of_slot) - 1] for of_slot in counts]  # the last record, twice
    check_as_numpy(counts, rows)


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
        for wrong in (2, -1, 1 << 30, -(1 << 31), (1 << 31) - 1):
            with pytest.raises(LocalProtocolError, match="no node's table"):
                counted(functions, [0, wrong])


def test_edges_beyond_the_free_places_are_refused():
    rows, codes = np.zeros((2, 3), dtype=np.int32), np.zeros(3, dtype=np.uint8)
    zeros = np.zeros((edges.COMBINATIONS, 2), dtype=np.int32)
    placed = np.full((2, 2), 7, dtype=np.int32)
    for functions, first in product(BUILT, (0, 2, 1 << 63, (1 << 64) - 1)):
        free = np.full(edges.COMBINATIONS, first, dtype=np.uint64)
        with pytest.raises(LocalProtocolError, match="differ"):
            functions.place_edges(rows, codes, zeros, free, placed)


@pytest.mark.parametrize("wrong", [np.zeros((2, 4), np.int64), np.zeros((2, 8), np.int32)[:, ::2]])
def test_rows_of_another_type_or_with_gaps_are_refused(wrong):
    nodes, codes = np.zeros(1, np.uint8), np.zeros(4, np.uint8)
    with pytest.raises(LocalProtocolError):
        edges.count_owners(
            wrong, [nodes, nodes], (1, 1), codes, np.zeros(edges.COMBINATIONS, np.uint64)
        )
