"""The vectors of `edges.py`."""

from __future__ import annotations

from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.edges import edge_count


def edge_counts(rules: list[str], records: int, degree: int) -> list[int]:
    """|E| by several rules, for vectors."""
    return [edge_count(rule, records, degree) for rule in rules]


SEED = counting(3)


def _study(rule: str, counts: list[int], degree: int = 2, sampling: str = "balanced") -> Arguments:
    return {
        "seed": SEED,
        "rule": rule,
        "sampling": sampling,
        "counts": counts,
        "degree": degree,
    }


RULES = ["all", "2n", "9n", "30", "up to 20", "up to 33", "up to 100"]
GOOD: Good = [
    ("edge_counts", "rules for eleven records", {"rules": RULES, "records": 11, "degree": 2}),
    ("edge_counts", "rules for triples", {"rules": RULES, "records": 11, "degree": 3}),
    ("greatest_degree", "bound of pairs", {"count": 22, "records": 11, "degree": 2}),
    ("greatest_degree", "bound of triples", {"count": 30, "records": 12, "degree": 3}),
    ("edges_of", "all pairs", _study("all", [3, 2, 1])),
    ("edges_of", "balanced pairs, odd", _study("2n", [5, 4, 2])),
    ("edges_of", "balanced pairs, a rest", _study("19", [4, 0, 7])),
    ("edges_of", "balanced pairs, nearly all", _study("27", [4, 4])),
    ("edges_of", "single records", _study("5", [4, 4], 1)),
    ("edges_of", "uniform pairs", _study("12", [5, 4], 2, "uniform")),
    ("edges_of", "all triples", _study("all", [2, 2, 1], 3)),
    ("edges_of", "uniform triples", _study("12", [4, 5], 3, "uniform")),
    ("edges_of", "uniform triples, of many", _study("20", [20, 20], 3, "uniform")),
]
BAD: Bad = [
    ("edges_of", "more edges than there are", _study("56", [5, 6])),
    ("edges_of", "fewer records than an edge has", _study("all", [1, 1], 3)),
]
