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


RULES = ["all", "2n", "9n", "30", "up to 20", "up to 33", "up to 100", "2p"]
GOOD: Good = [
    ("edge_counts", "rules for eleven records", {"rules": RULES, "records": 11, "degree": 2}),
    ("edge_counts", "rules for triples", {"rules": RULES[:6], "records": 11, "degree": 3}),
    ("greatest_degree", "bound of pairs", {"count": 22, "records": 11, "degree": 2}),
    ("greatest_degree", "bound of triples", {"count": 30, "records": 12, "degree": 3}),
    ("bernoulli_count", "size of a draw", {"expected": 20, "sets": 55, "seed": counting(9)}),
    ("edges_of", "all pairs", _study("all", [3, 2, 1])),
    ("edges_of", "balanced pairs, odd", _study("2n", [5, 4, 2])),
    ("edges_of", "balanced pairs, a rest", _study("19", [4, 0, 7])),
    ("edges_of", "balanced pairs, nearly all", _study("27", [4, 4])),
    ("edges_of", "single records", _study("5", [4, 4], 1)),
    ("edges_of", "pairings", _study("3p", [4, 5])),
    ("edges_of", "uniform pairs", _study("12", [5, 4], 2, "uniform")),
    ("edges_of", "all triples", _study("all", [2, 2, 1], 3)),
    ("edges_of", "balanced triples", _study("9", [4, 3, 3], 3)),
    ("edges_of", "balanced triples, most of all", _study("15", [3, 3], 3)),
    ("edges_of", "balanced triples, of many", _study("2n", [20, 20], 3)),
    ("edges_of", "uniform triples", _study("12", [4, 5], 3, "uniform")),
    (
        "two_sample_edges_of",
        "two samples",
        {"seed": SEED, "rule": "13", "class_counts": [[3, 2], [1, 4], [2, 0]]},
    ),
    (
        "two_sample_edges_of",
        "two samples, all pairs",
        {"seed": SEED, "rule": "all", "class_counts": [[2, 1], [0, 2]]},
    ),
]
BAD: Bad = [
    ("edges_of", "more edges than there are", _study("56", [5, 6])),
    ("edges_of", "fewer records than an edge has", _study("all", [1, 1], 3)),
    ("edges_of", "triples are paired", _study("1p", [5, 6], 3)),
    (
        "two_sample_edges_of",
        "no record of one class",
        {"seed": SEED, "rule": "all", "class_counts": [[2, 0], [3, 0]]},
    ),
]
