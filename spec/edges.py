"""E, the sets of records over which the statistic is averaged, drawn by all nodes from one seed.

Sinh & Ramon 2025, section 3: the sum over all sets of k records costs too much, so the parties draw
the same random E from their joint seed. Appendix F: the largest degree, which the noise must cover,
is least where degrees are equal. Here pairs are a fixed graph with degrees as equal as possible,
whose vertices are numbered at random (docs/papers.md): linear time, and no restart.

Records are numbered through all nodes. A result lists the cells of E: the owners of an edge's
records, and its edges, each as numbers of records inside the owners' tables.
"""

from bisect import bisect_right
from fractions import Fraction
from itertools import combinations
from math import comb

from spec.prg import Draw, below, derive, random_order, reader
from spec.refused import require

Edge = list[int]
Cells = list[dict[str, list[int] | list[Edge]]]
"""owners: the nodes of the records, in order. edges: at least one."""


# --- how many edges ---


def edge_count(rule: str, records: int, degree: int) -> int:
    """|E| by a study's rule: "all", "2n", "500", or "up to 500"."""
    require(records >= degree, "there are enough records")
    total, each = comb(records, degree), Fraction(records, degree)
    if rule == "all":
        return total
    if rule.startswith("up to "):
        most = int(rule.removeprefix("up to "))
        # equal degrees, since the noise is that of the largest: with `each` edges more every record
        # is in one more. And never fewer than 2n
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


# --- which edges ---


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


def balanced(records: int, count: int, draw: Draw, degree: int) -> list[Edge]:
    """Distinct edges with degrees as equal as possible, of one or two records."""
    if degree > 2:
        raise NotImplementedError("balanced edges of three and more records are not specified")
    order = random_order(records, draw)
    if degree == 1:
        return [[record] for record in order[:count]]
    return [sorted((order[p], order[q])) for p, q in circulant(records, count)]


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


def uniform(records: int, count: int, most: int, draw: Draw, degree: int) -> list[Edge]:
    """A uniform E of which no record is in more than `most` edges: drawn until it is."""
    while True:
        edges = random_edges(records, count, draw, degree)
        degrees = [sum(record in edge for edge in edges) for record in range(records)]
        if max(degrees) <= most:
            return edges


# --- E of a study ---


def edges_of(seed: bytes, rule: str, sampling: str, counts: list[int], degree: int) -> Cells:
    """E over the records of several nodes. A balanced E has edges of one or two records here.

    Args: seed: the joint seed. counts: of each node.
    """
    draw, records = reader(derive(seed, "edges")), sum(counts)
    count = edge_count(rule, records, degree)
    if count == comb(records, degree):
        edges = every_set(records, degree)
    elif sampling == "uniform":
        edges = uniform(records, count, greatest_degree(count, records, degree), draw, degree)
    else:
        edges = balanced(records, count, draw, degree)
    placed = [[_place(record, counts) for record in edge] for edge in edges]
    return _cells(sorted(placed, key=_number) if count == comb(records, degree) else placed)


def _place(record: int, counts: list[int]) -> tuple[int, int]:
    """The node of a record that is numbered through all nodes, and its number in its table."""
    firsts = [sum(counts[:node]) for node in range(len(counts))]
    node = bisect_right(firsts, record) - 1
    return node, record - firsts[node]


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
