"""Direct formulas of the library's statistics, in exact fractions: slow, and plain to check."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from math import comb

from tests.ustat.further_oracles import FURTHER, better
from tests.ustat.tables import HALF

Rows = list[tuple[int, ...]]
"""Records, each a tuple of the statistic's columns in steps of their resolution."""


def sgn(value: int | Fraction) -> int:
    return int(value > 0) - int(value < 0)


def average(numbers) -> Fraction:
    numbers = list(numbers)
    return Fraction(sum(numbers), 1) / len(numbers)


def over_pairs(function):
    return lambda rows: [average(function(*pair) for pair in combinations(rows, 2))]


def covariance(rows: Rows, x: int = 0, y: int = 1) -> list[Fraction]:
    centre = [average(row[i] for row in rows) for i in (x, y)]
    deviations = sum((row[x] - centre[0]) * (row[y] - centre[1]) for row in rows)
    return [deviations * HALF**2 / (len(rows) - 1)]


def gini(rows: Rows) -> list[Fraction]:
    n = len(rows)
    return [sum(abs(p[0] - q[0]) for p in rows for q in rows) * HALF / (n * (n - 1))]


def duplicates(rows: Rows) -> list[Fraction]:
    counts = Counter(row[0] for row in rows)
    return [Fraction(sum(c * (c - 1) for c in counts.values()), len(rows) * (len(rows) - 1))]


def signed_rank(p, q) -> Fraction:
    return Fraction(1 + sgn(p[0] + q[0]), 2)


def concordance(p, q) -> int:
    return sgn((p[0] - q[0]) * (p[1] - q[1]))


def cells_of(values, counted=None) -> list[Fraction]:
    """The shares of values between -1, 0 and 1; with `counted` those of pairs without a value."""
    every = list(values)
    ends = (-(10**9), -1, 0, 1, 10**9)
    found = [
        average(value is not None and low <= value < high for value in every)
        for low, high in pairwise(ends)
    ]
    return found if counted is None else [*found, average(value is None for value in every)]


def slope(p, q) -> Fraction | None:
    return None if p[0] == q[0] else Fraction(p[1] - q[1], p[0] - q[0])


def walsh(rows: Rows) -> list[Fraction]:
    return cells_of((p[0] + q[0]) * HALF / 2 for p, q in combinations(rows, 2))


def slopes(rows: Rows) -> list[Fraction]:
    return cells_of((slope(*pair) for pair in combinations(rows, 2)), counted=True)


def tau_b(rows: Rows) -> list[Fraction]:
    pairs = list(combinations(rows, 2))
    sums = [sum(concordance(p, q) for p, q in pairs)]
    sums += [sum(p[i] != q[i] for p, q in pairs) for i in (0, 1)]
    return [Fraction(total, len(pairs)) for total in sums]


def gamma(rows: Rows) -> list[Fraction]:
    found = Counter(concordance(p, q) for p, q in combinations(rows, 2))
    return [
        Fraction(found[1] - found[-1], found.total()),
        Fraction(found[1] + found[-1], found.total()),
    ]


def spearman(rows: Rows) -> list[Fraction]:
    """From ranks: ⟨R, Q⟩ without the pairs that share both records."""
    n = len(rows)
    ranks = [[sum(sgn(p[i] - q[i]) for q in rows) for p in rows] for i in (0, 1)]
    total = sum(r * q for r, q in zip(*ranks, strict=True)) - 2 * sum(
        concordance(*p) for p in combinations(rows, 2)
    )
    return [Fraction(3 * total, n * (n - 1) * (n - 2))]


def spearman_b(rows: Rows) -> list[Fraction]:
    """The tie corrections from counts: 1 − the share of triples of one value."""
    sets = comb(len(rows), 3)
    tied = [sum(comb(c, 3) for c in Counter(row[i] for row in rows).values()) for i in (0, 1)]
    return [*spearman(rows), *(1 - Fraction(count, sets) for count in tied)]


def triples(rows: Rows) -> list[Fraction]:
    def leans(x, y, z) -> Fraction:
        return Fraction(sgn(x + y - 2 * z) + sgn(x + z - 2 * y) + sgn(y + z - 2 * x), 3)

    return [average(leans(p[0], q[0], r[0]) for p, q, r in combinations(rows, 3))]


def quadruple(x) -> int:
    """a of Bergsma & Dassios 2014, section 1."""
    return sgn(abs(x[0] - x[1]) + abs(x[2] - x[3]) - abs(x[0] - x[2]) - abs(x[1] - x[3]))


def tau_star(rows: Rows) -> list[Fraction]:
    def kernel(four) -> Fraction:
        return average(
            quadruple([p[0] for p in o]) * quadruple([p[1] for p in o]) for o in permutations(four)
        )

    return [average(map(kernel, combinations(rows, 4)))]


def auc_private(rows: Rows) -> list[Fraction]:
    pairs = comb(len(rows), 2)
    ones, others = ([s for s, label in rows if (label == 1) == one] for one in (True, False))
    right = sum(Fraction(1 + sgn(p - q), 2) for p in ones for q in others)
    return [right / pairs, Fraction(len(ones) * len(others), pairs)]


def vus(rows: Rows) -> list[Fraction]:
    """By how many of the orders that break ties are right."""
    classes = [[s for s, label in rows if label == number] for number in (0, 1, 2)]
    right = Fraction(0)
    for scores in product(*classes):
        orders = [
            order
            for order in permutations(range(3))
            if sorted(scores) == [scores[i] for i in order]
        ]
        right += Fraction((0, 1, 2) in orders, len(orders))
    triples = comb(len(rows), 3)
    return [right / triples, Fraction(len(classes[0]) * len(classes[1]) * len(classes[2]), triples)]


def contrastive(p, q) -> Fraction:
    distance = abs(sum(u - v for u, v in zip(p[1:], q[1:], strict=True))) * HALF
    return distance**2 if p[0] == q[0] else max(Fraction(0), 1 - distance) ** 2


ORACLES = FURTHER | {
    "hodges_lehmann": walsh,
    "theil_sen": slopes,
    "mean": lambda rows: [average(row[0] for row in rows) * HALF],
    "gini_mean_difference": gini,
    "variance": lambda rows: covariance(rows, 0, 0),
    "covariance": covariance,
    "wilcoxon_signed_rank": over_pairs(signed_rank),
    "triples_skewness": triples,
    "duplicate_pair_ratio": duplicates,
    "renyi_entropy": duplicates,
    "renyi_entropy_nats": duplicates,
    "uniformity": lambda rows: [duplicates(rows)[0] - Fraction(1, 5)],
    "rand_index": over_pairs(lambda p, q: (p[0] == q[0]) == (p[1] == q[1])),
    "kendall_tau": over_pairs(concordance),
    "kendall_tau_b": tau_b,
    "goodman_kruskal_gamma": gamma,
    "spearman_rho": spearman,
    "spearman_rho_b": spearman_b,
    "bergsma_dassios_tau_star": tau_star,
    "auc_private": auc_private,
    "vus": vus,
    "contrastive_loss": over_pairs(contrastive),
}


def auc_difference(p, q) -> tuple[Fraction, Fraction]:
    return better(*(Fraction(1 + sgn(p[i] - q[i]), 2) for i in (0, 1)))


TWO_SAMPLES = {
    "auc_difference_public": auc_difference,
    "hodges_lehmann_shift": lambda p, q: cells_of([(p[0] - q[0]) * HALF]),
    "auc": lambda p, q: Fraction(1 + sgn(p[0] - q[0]), 2),
    "mann_whitney_u": lambda p, q: Fraction(1 + sgn(p[0] - q[0]), 2),
    "ranking_hinge": lambda p, q: max(Fraction(0), 1 - (p[0] + p[1] - q[0] - q[1]) * HALF),
}
