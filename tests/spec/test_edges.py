"""E as umpc samples it, cell by cell and in its order."""

from __future__ import annotations

from math import comb

import pytest

from spec.edges import balanced, max_degree
from spec.prg import reader
from tests.spec.replaying import replay_tests
from umpc.crypto.prg import Stream, derive
from umpc.ustat.hypergraph import Hypergraph, expand, expand_drawn
from umpc.ustat.sampling import edge_count, greatest_degree


def cells_of(found: Hypergraph):
    return [
        {"owners": list(owners), "edges": cell.edges(0, cell.count).T.tolist()}
        for owners, cell in sorted(found.cells.items())
    ]


def edges_of(seed, rule, sampling, counts, degree):
    words = Stream(derive(seed, "edges")).words
    if sampling == "uniform":
        count = edge_count(rule, sum(counts), degree)
        most = greatest_degree(count, sum(counts), degree)
        return cells_of(expand_drawn(count, most, counts, words, degree))
    return cells_of(expand(rule, counts, words, degree))


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "edges",
    {
        "edge_counts": lambda rules, records, degree: [
            edge_count(rule, records, degree) for rule in rules
        ],
        "greatest_degree": greatest_degree,
        "edges_of": edges_of,
    },
)


@pytest.mark.parametrize(("records", "degree"), [(7, 1), (7, 2), (8, 2)])
def test_every_count_gives_distinct_edges_and_degrees_that_differ_by_one(records, degree):
    for count in range(1, comb(records, degree)):
        edges = balanced(records, count, reader(bytes(32)), degree)
        degrees = [sum(record in edge for edge in edges) for record in range(records)]
        assert len({tuple(edge) for edge in edges}) == count
        assert max(degrees) - min(degrees) <= 1
        assert max(degrees) == max_degree(count, records, degree)
