"""Edges of three and more records: random and distinct, with degrees as equal as possible.

Sinh & Ramon 2025, appendix F: the hypergraph should be as regular as possible; a difference of 1 in
the degrees cannot be avoided. Their loop may have to start again. Here a random set of edges comes
first, and then records with too many edges give places to records with too few. A step that lowers
the deviation always exists (docs/decisions/0006), so the search ends.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

from spec.words import Draw, below, random_order

Edge = list[int]


def every_set(records: int, degree: int) -> list[Edge]:
    """All sets of `degree` records, ascending inside, in colexicographic order."""
    return sorted(map(list, combinations(range(records), degree)), key=lambda edge: edge[::-1])


def random_edges(records: int, count: int, draw: Draw, degree: int) -> list[Edge]:
    """A uniformly random set of edges: from a list of all if they are few, else one by one."""
    total = comb(records, degree)
    if total <= max(1 << 12, 4 * count):
        every = every_set(records, degree)
        return [every[number] for number in random_order(total, draw)[:count]]
    edges: list[Edge] = []
    known: set[tuple[int, ...]] = set()
    while (missing := count - len(edges)) > 0:
        # a few more than are missing, since some repeat a record or an edge
        drawn = draw((missing + missing // 4 + 16) * degree)
        for start in range(0, len(drawn), degree):
            edge = sorted(below(records, word) for word in drawn[start : start + degree])
            if len(set(edge)) == degree and tuple(edge) not in known:
                known.add(tuple(edge))
                edges.append(edge)
    return edges[:count]


def level(edges: list[Edge], records: int, draw: Draw) -> list[Edge]:
    """Change edges until each record is in ⌊k|E|/n⌋ of them, and a random few in one more."""
    degree = len(edges[0]) if edges else 1
    each, extra = divmod(len(edges) * degree, records)
    target = [each] * records
    for record in random_order(records, draw)[:extra]:
        target[record] += 1
    while True:
        surplus = [-due for due in target]
        for edge in edges:
            for record in edge:
                surplus[record] += 1
        givers = [r for r in range(records) for _ in range(surplus[r])]
        takers = [r for r in range(records) for _ in range(-surplus[r])]
        if not givers:
            return edges
        takers = [takers[place] for place in random_order(len(takers), draw)]
        # many steps at once: for each giver one of its places, at random
        places = _places_of(edges, records)
        words = draw(len(givers))
        rows = zip(givers, words, strict=True)
        chosen = [places[giver][below(len(places[giver]), word)] for giver, word in rows]
        if not carry_out(edges, chosen, takers):
            # none of them was possible: one step that is
            possible = _sure_places(edges, givers[0], takers[0])
            (word,) = draw(1)
            carry_out(edges, [possible[below(len(possible), word)]], takers[:1])


def carry_out(edges: list[Edge], places: list[tuple[int, int]], takers: list[int]) -> int:
    """Put takers at (edge, column) where all edges stay sets of records, and distinct.

    At most one step changes an edge, and no two steps lead to the same edge.

    Returns: the number of steps.
    """
    before = {tuple(sorted(edge)) for edge in edges}
    changed: dict[int, Edge] = {}
    led_to: set[tuple[int, ...]] = set()
    for (number, column), taker in zip(places, takers, strict=True):
        proposed = list(edges[number])
        proposed[column] = taker
        key = tuple(sorted(proposed))
        if len(set(key)) < len(key) or key in before or number in changed:
            continue
        # a step whose edge another step reaches first is lost, and its edge waits for the next turn
        changed[number] = [] if key in led_to else proposed
        led_to.add(key)
    taken = {number: edge for number, edge in changed.items() if edge}
    for number, edge in taken.items():
        edges[number] = edge
    return len(taken)


def _places_of(edges: list[Edge], records: int) -> list[list[tuple[int, int]]]:
    """For each record the places that hold it, in the order of the edges."""
    places: list[list[tuple[int, int]]] = [[] for _ in range(records)]
    for number, edge in enumerate(edges):
        for column, record in enumerate(edge):
            places[record].append((number, column))
    return places


def _sure_places(edges: list[Edge], giver: int, taker: int) -> list[tuple[int, int]]:
    """All places at which the taker can follow the giver; there is at least one."""
    known = {tuple(sorted(edge)) for edge in edges}
    found = []
    for number, edge in enumerate(edges):
        if giver in edge and taker not in edge:
            proposed = [taker if record == giver else record for record in edge]
            if tuple(sorted(proposed)) not in known:
                found.append((number, edge.index(giver)))
    return found
