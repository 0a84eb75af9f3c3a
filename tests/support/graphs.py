"""Shared by tests of graphs: adjacency matrices as tables of adjacency lists."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from tests.support.central import SHAPE
from tests.support.studies import library_study
from umpc.protocols.registry import checked
from umpc.study.document import Study
from umpc.study.parts import FieldText


def names_of(most: int) -> list[str]:
    """Return the columns of vertices with at most so many neighbours."""
    return ["vertex", *(f"n{place}" for place in range(most))]


def graph_study(noise: str, most: int, ids: int, nodes: int = 2, **changes) -> Study:
    """Return a curator's study of triangles in graphs of the vertices 1 .. ids."""
    names = names_of(most)
    fields = [FieldText(name, "0", str(ids), whole=True) for name in names]
    facts = SHAPE | {"noise": noise, "edges": "all", "epsilon": "1"} | changes
    return checked(library_study("triangle_density", fields, nodes, names, **facts))


def lists_of(graph: np.ndarray, most: int) -> dict[str, np.ndarray]:
    """Return the table of a graph: its vertices count from 1, and 0 is no neighbour."""
    lists = [[int(other) + 1 for other in np.flatnonzero(row)] for row in graph]
    assert max(map(len, lists)) <= most
    padded = np.array([own + [0] * (most - len(own)) for own in lists], dtype=np.int64)
    columns = [np.arange(1, len(graph) + 1), *padded.T]
    return dict(zip(names_of(most), columns, strict=True))


def share_of_triangles(graph: np.ndarray) -> float:
    """Return the share of triangles, triple by triple."""
    found = [all(graph[pair] for pair in combinations(t, 2)) for t in triples(len(graph))]
    return sum(found) / len(found)


def triples(vertices: int) -> list[tuple[int, ...]]:
    return list(combinations(range(vertices), 3))


def random_graph(vertices: int, chance: float, seed: int) -> np.ndarray:
    upper = np.triu(np.random.default_rng(seed).random((vertices, vertices)) < chance, 1)
    return upper | upper.T


def all_graphs(vertices: int) -> np.ndarray:
    """Return all graphs, the edges of vertex 0 last: (graphs, vertices, vertices) bool.

    Graphs that differ in the edges of vertex 0 alone are 2^(vertices - 1) neighbours in this list.
    """
    pairs = sorted(combinations(range(vertices), 2), reverse=True)
    numbers = np.arange(1 << len(pairs))
    found = np.zeros((len(numbers), vertices, vertices), dtype=bool)
    for place, (i, j) in enumerate(pairs):
        bits = (numbers >> (len(pairs) - 1 - place)) & 1
        found[:, i, j] = found[:, j, i] = bits == 1
    return found
