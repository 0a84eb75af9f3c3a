"""E, the sets of records over which the statistic is averaged, drawn by all nodes from one seed.

Sinh & Ramon 2025, section 3: the sum over all sets of k records costs too much, so the parties draw
the same random E from their joint seed. Appendix F: the largest degree, which the noise must cover,
is least where degrees are equal. Here pairs are a fixed graph with degrees as equal as possible,
whose vertices are numbered at random (docs/decisions/0006): linear time, and no restart.

Records are numbered through all nodes. A result lists the cells of E: the owners of an edge's
records, and its edges, each as numbers of records inside the owners' tables.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from itertools import product
from math import comb, gcd

from spec.levelling import Edge, every_set, level, random_edges
from spec.prg import derive
from spec.refused import require
from spec.words import Draw, random_order, reader

Cells = list[dict[str, list[int] | list[Edge]]]
"""owners: the nodes of the records, in order. edges: at least one."""


# --- how many edges ---


def edge_count(rule: str, records: int, degree: int) -> int:
    """|E| by a study's rule: "all", "2n", "500", "up to 500", or "3p" (pairings of all records)."""
    require(records >= degree, "there are enough records")
    if rule.endswith("p"):
        require(degree == 2, "only pairs are paired")
        return int(rule[:-1]) * (records // 2)
    return _count(rule, records, comb(records, degree), Fraction(records, degree))


def two_sample_edge_count(rule: str, zeros: int, ones: int) -> int:
    """|E| where an edge is a record of class 0 and a record of class 1."""
    require(min(zeros, ones) >= 1, "there are records of both classes")
    return _count(rule, zeros + ones, zeros * ones, Fraction(min(zeros, ones)))


def _count(rule: str, records: int, total: int, each: Fraction) -> int:
    """Args: each: the number of edges for which every record is in one more."""
    if rule == "all":
        return total
    if rule.startswith("up to "):
        most = int(rule.removeprefix("up to "))
        # equal degrees, since the noise is that of the largest; and never fewer than 2n
        return total if total <= most else min(total, max(2 * records, int(most // each * each)))
    if rule.endswith("n"):
        return min(total, int(rule[:-1]) * records)
    require(int(rule) <= total, "there are so many edges")
    return int(rule)


def max_degree(count: int, records: int, degree: int) -> int:
    """δ_max of a balanced E, by which one record changes the sum: ⌈k|E|/n⌉."""
    return -(-degree * count // records)


def greatest_degree(count: int, records: int, degree: int) -> int:
    """δ_max of a uniform E: the least c with n·P(degree of a record > c) ≤ 1/2.

    The degree of a record is hypergeometric. In the paper the noise covers the largest degree of
    the E that came. Here the bound is known before E is drawn, and a worse E is drawn again.
    """
    own = comb(records - 1, degree - 1)
    others = comb(records, degree) - own
    above = 0
    for number in range(min(count, own), -1, -1):
        above += comb(own, number) * comb(others, count - number)
        if 2 * records * above > comb(own + others, count):
            return number
    raise AssertionError("a law adds up to 1")


def bernoulli_count(expected: int, sets: int, seed: bytes) -> int:
    """The size of a Bernoulli E: binomial, mean `expected`, inverted at the seed; at least 1."""
    point = Fraction(int.from_bytes(seed, "big"), 1 << 8 * len(seed))
    share, below = Fraction(expected, sets), Fraction(0)
    for number in range(sets + 1):
        below += comb(sets, number) * share**number * (1 - share) ** (sets - number)
        if below > point:
            return max(1, number)
    raise AssertionError("a law adds up to 1")


# --- which edges ---


def balanced(records: int, count: int, draw: Draw, degree: int) -> list[Edge]:
    """Distinct edges with degrees as equal as possible."""
    order = random_order(records, draw)
    if degree == 1:
        return [[record] for record in order[:count]]
    if degree == 2:
        return [sorted((order[p], order[q])) for p, q in circulant(records, count)]
    if 2 * count > comb(records, degree):
        # the complement's degrees differ as little, and a sparse set is levelled in fewer steps
        left_out = balanced(records, comb(records, degree) - count, draw, degree)
        return [edge for edge in every_set(records, degree) if edge not in left_out]
    levelled = level(random_edges(records, count, draw, degree), records, draw)
    return [sorted(order[vertex] for vertex in edge) for edge in levelled]


def circulant(vertices: int, count: int) -> list[tuple[int, int]]:
    """A graph whose degrees differ by at most 1.

    The edges {p, p + j} of an offset j < n/2 give each vertex two edges; offset n/2 gives it one.
    Whole offsets come first. The rest comes from the cycle of offset 1: its even places, which are
    a matching, and then its odd ones.
    """
    whole, rest = divmod(count, vertices)
    ends_all = whole == (vertices - 1) // 2
    first_offset = 1 if ends_all or not rest else 2
    edges = [
        (place, (place + turn + first_offset) % vertices)
        for turn in range(whole)
        for place in range(vertices)
    ]
    even = (vertices + 1) // 2
    for number in range(rest):
        if ends_all:
            edges.append((number, (number + vertices // 2) % vertices))
        else:
            place = 2 * number if number < even else 2 * (number - even) + 1
            edges.append((place, (place + 1) % vertices))
    return edges


def matchings(records: int, pairings: int, draw: Draw) -> list[Edge]:
    """Random pairings of all records (Bell et al. 2020, section 5); a pair may come twice."""
    edges = []
    for _ in range(pairings):
        order = random_order(records, draw)
        edges += [sorted(order[2 * pair : 2 * pair + 2]) for pair in range(records // 2)]
    return edges


def uniform(records: int, count: int, most: int, draw: Draw, degree: int) -> list[Edge]:
    """A uniform E of which no record is in more than `most` edges: drawn until it is."""
    while True:
        edges = random_edges(records, count, draw, degree)
        degrees = [sum(record in edge for edge in edges) for record in range(records)]
        if max(degrees) <= most:
            return edges


def biregular(zeros: int, ones: int, count: int, draw: Draw) -> list[Edge]:
    """Pairs of a class-0 and a class-1 record, with degrees of one class that differ by at most 1.

    Edge i joins vertices i mod n₀ and i + ⌊i/L⌋ mod n₁, where L = lcm(n₀, n₁). By the Chinese
    remainder theorem the L edges of a round r are the pairs with y − x ≡ r mod gcd(n₀, n₁).
    """
    orders = [random_order(size, draw) for size in (zeros, ones)]
    both = zeros * ones // gcd(zeros, ones)
    return [[orders[0][i % zeros], orders[1][(i + i // both) % ones]] for i in range(count)]


# --- E of a study ---


def edges_of(seed: bytes, rule: str, sampling: str, counts: list[int], degree: int) -> Cells:
    """E over the records of several nodes. Args: seed: the joint seed. counts: of each node."""
    draw, records = reader(derive(seed, "edges")), sum(counts)
    count = edge_count(rule, records, degree)
    if rule.endswith("p"):
        edges = matchings(records, int(rule[:-1]), draw)
    elif count == comb(records, degree):
        return _cells(sorted(_placed(every_set(records, degree), counts), key=_number))
    elif sampling == "uniform":
        most = greatest_degree(count, records, degree)
        edges = uniform(records, count, most, draw, degree)
    else:
        edges = balanced(records, count, draw, degree)
    return _cells(_placed(edges, counts))


def two_sample_edges_of(seed: bytes, rule: str, class_counts: list[list[int]]) -> Cells:
    """E of two samples with public labels. Args: class_counts: each node's records of class 0, 1.

    A node's table has its records of class 0 first.
    """
    draw = reader(derive(seed, "edges"))
    zeros, ones = ([each[label] for each in class_counts] for label in (0, 1))
    count = two_sample_edge_count(rule, sum(zeros), sum(ones))
    if count == sum(zeros) * sum(ones):
        edges = [list(pair) for pair in product(range(sum(zeros)), range(sum(ones)))]
    else:
        edges = biregular(sum(zeros), sum(ones), count, draw)
    placed = []
    for x, y in edges:
        node, record = _place(y, ones)
        placed.append([_place(x, zeros), (node, zeros[node] + record)])
    return _cells(placed)


def _place(record: int, counts: list[int]) -> tuple[int, int]:
    """The node of a record that is numbered through all nodes, and its number in its table."""
    firsts = [sum(counts[:node]) for node in range(len(counts))]
    node = bisect_right(firsts, record) - 1
    return node, record - firsts[node]


def _placed(edges: list[Edge], counts: list[int]) -> list[list[tuple[int, int]]]:
    return [[_place(record, counts) for record in edge] for edge in edges]


def _number(edge: list[tuple[int, int]]) -> list[list[int]]:
    """The order of all sets in a cell: node by node, and colexicographic inside a node."""
    nodes = sorted({node for node, _ in edge})
    return [[record for node, record in reversed(edge) if node == one] for one in nodes]


def _cells(edges: list[list[tuple[int, int]]]) -> Cells:
    """Edges by owners; both in the order of the nodes, and edges of a cell as they were drawn."""
    cells: dict[tuple[int, ...], list[Edge]] = {}
    for edge in edges:
        owners = tuple(node for node, _ in edge)
        cells.setdefault(owners, []).append([record for _, record in edge])
    return [{"owners": list(owners), "edges": cells[owners]} for owners in sorted(cells)]
