"""The graph of the nodes that share noise: all pairs, or a random k-out graph.

In a k-out graph each node chooses k others, and a node shares noise with those it chose and those
that chose it (Sabater et al. 2022; Bellet 2021). The choices follow from the study's name. So the
noise is calibrated for this very graph before anybody has data, and whoever chooses the name gains
nothing. A graph that fewer than t + 1 nodes can cut is drawn again. Then the honest nodes are
connected, whichever t nodes collude, and `calibration.py` needs nothing else.

By Menger's theorem no t nodes cut a graph if every two nodes that are no neighbours have more than
t paths without a common inner node. Even 1975, An algorithm for determining whether the
connectivity of a graph is at least k: it suffices to look at the first t + 1 nodes, to each other
and to all others.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache

from umpc.crypto.prg import Stream, digest
from umpc.errors import StudyError
from umpc.ustat.text import random_order

TAG = b"umpc gopa graph 1"
TRIES = 32
"""Graphs that are drawn before a study is refused."""

Graph = tuple[frozenset[int], ...]
"""The neighbours of each node."""


def complete_graph(nodes: int) -> Graph:
    """Every node shares noise with all others."""
    everybody = frozenset(range(nodes))
    return tuple(everybody - {node} for node in range(nodes))


@lru_cache(maxsize=64)
def k_out_graph(name: str, nodes: int, neighbours: int, colluding: int) -> Graph:
    """The first graph of the study's name that no `colluding` nodes can cut.

    Args: neighbours: k, from 1 to nodes - 1.

    Raises: StudyError where none was found.
    """
    for number in range(TRIES):
        words = Stream(digest(TAG, name.encode(), number.to_bytes(4, "little"))).words
        found: list[set[int]] = [set() for _ in range(nodes)]
        for node in range(nodes):
            others = [other for other in range(nodes) if other != node]
            for place in random_order(nodes - 1, words)[:neighbours].tolist():
                found[node].add(others[place])
                found[others[place]].add(node)
        graph = tuple(map(frozenset, found))
        if stays_connected(graph, colluding):
            return graph
    raise StudyError(
        f"neighbours = {neighbours} makes graphs of {nodes} nodes that {colluding} colluding nodes "
        f"may cut, and then the others' noise protects less; take more neighbours, or leave the "
        f"key out, and every node shares noise with all others"
    )


def stays_connected(graph: Graph, colluding: int) -> bool:
    """Whether all others are connected, whichever nodes collude."""
    nodes = len(graph)
    if nodes - colluding <= 1:
        return True
    if min(map(len, graph)) <= colluding < nodes - 2:
        return False
    sources = range(min(colluding + 1, nodes))
    return all(
        second in graph[first] or has_paths(graph, first, second, colluding + 1)
        for first in sources
        for second in range(first + 1, nodes)
    )


def has_paths(graph: Graph, first: int, last: int, enough: int) -> bool:
    """Whether two nodes have so many paths between them without a common inner node.

    Ford & Fulkerson 1956: each augmenting path adds one. An inner node is an arc from its entry to
    its exit, which one path may use.
    """
    following: dict[int, int] = {}
    preceding: dict[int, int] = {}
    return all(_augment(graph, first, last, following, preceding) for _ in range(enough))


def _augment(
    graph: Graph, first: int, last: int, following: dict[int, int], preceding: dict[int, int]
) -> bool:
    """One more path, by breadth-first search in the residual graph.

    Args: following, preceding: each used inner node's next and last node on its path; changed.
    A state is (node, whether it was left by its exit).
    """
    heads = {node for node, before in preceding.items() if before == first}
    came: dict[tuple[int, bool], tuple[int, bool]] = {}
    waiting = deque([(first, True)])
    while waiting:
        state = waiting.popleft()
        for step in _steps(graph, first, state, following, preceding, heads):
            if step in came or step[0] == first:
                continue
            came[step] = state
            if step[0] == last:
                _take(came, step, first, last, following, preceding)
                return True
            waiting.append(step)
    return False


def _steps(
    graph: Graph,
    first: int,
    state: tuple[int, bool],
    following: dict[int, int],
    preceding: dict[int, int],
    heads: set[int],
) -> list[tuple[int, bool]]:
    """The states that follow one in the residual graph."""
    node, is_out = state
    if is_out:
        used = heads if node == first else {following.get(node, -1)}
        steps = [(other, False) for other in sorted(graph[node] - used)]
        # against the arc inside a used node
        return steps + ([(node, False)] if node in preceding else [])
    if node not in preceding:
        return [(node, True)]
    # a used node is entered against the arc that leads to it
    before = preceding[node]
    return [] if before == first else [(before, True)]


def _take(
    came: dict[tuple[int, bool], tuple[int, bool]],
    end: tuple[int, bool],
    first: int,
    last: int,
    following: dict[int, int],
    preceding: dict[int, int],
) -> None:
    """Turn the arcs of the path found, and rebuild the paths."""
    arcs = {(before, node) for node, before in preceding.items()}
    arcs |= {(node, after) for node, after in following.items()}
    state = end
    while state != (first, True):
        before = came[state]
        if before[0] != state[0]:
            arc = (before[0], state[0])
            if (state[0], before[0]) in arcs:
                arcs.discard((state[0], before[0]))
            else:
                arcs.add(arc)
        state = before
    following.clear()
    preceding.clear()
    for before_node, after in arcs:
        if before_node != first:
            following[before_node] = after
        if after != last:
            preceding[after] = before_node
