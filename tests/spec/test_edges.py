"""E as umpc samples it, cell by cell and in its order."""

from __future__ import annotations

from itertools import product
from math import comb

import pytest

from spec.edges import balanced, biregular, max_degree
from spec.words import reader
from tests.spec.replaying import replay_tests
from umpc.crypto.prg import Stream, derive
from umpc.ustat.drawn_edges import bernoulli_count, greatest_degree
from umpc.ustat.hypergraph import Hypergraph, expand, expand_drawn, expand_two_sample
from umpc.ustat.sampling import edge_count


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


def two_sample_edges_of(seed, rule, class_counts):
    words = Stream(derive(seed, "edges")).words
    return cells_of(expand_two_sample(rule, [tuple(each) for each in class_counts], words))


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "edges",
    {
        "edge_counts": lambda rules, records, degree: [
            edge_count(rule, records, degree) for rule in rules
        ],
        "greatest_degree": greatest_degree,
        "bernoulli_count": bernoulli_count,
        "edges_of": edges_of,
        "two_sample_edges_of": two_sample_edges_of,
    },
)


@pytest.mark.parametrize(("records", "degree"), [(7, 2), (8, 2), (6, 3), (6, 4)])
def test_every_count_gives_distinct_edges_and_degrees_that_differ_by_one(records, degree):
    for count in range(1, comb(records, degree)):
        edges = balanced(records, count, reader(bytes(32)), degree)
        degrees = [sum(record in edge for edge in edges) for record in range(records)]
        assert len({tuple(edge) for edge in edges}) == count
        assert max(degrees) - min(degrees) <= 1
        assert max(degrees) == max_degree(count, records, degree)


@pytest.mark.parametrize(("zeros", "ones"), list(product(range(1, 6), repeat=2)))
def test_two_samples_are_distinct_and_balanced_inside_either_class(zeros, ones):
    for count in range(1, zeros * ones + 1):
        edges = biregular(zeros, ones, count, reader(bytes(32)))
        assert len({tuple(edge) for edge in edges}) == count
        for side, size in enumerate((zeros, ones)):
            degrees = [sum(edge[side] == record for edge in edges) for record in range(size)]
            assert max(degrees) - min(degrees) <= 1
