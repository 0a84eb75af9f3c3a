"""Definitions of statistics that count ranks, strata, tables and distances, for small tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb

from tests.ustat.tables import HALF

Rows = list[tuple[int, ...]]
"""Records, each a tuple of the statistic's columns in steps of their resolution."""
ONE = int(1 / HALF)
"""The number 1 in steps of the columns of numbers."""


def sign(value: int | Fraction) -> int:
    return int(value > 0) - int(value < 0)


def mean(numbers: Iterable) -> Fraction:
    listed = list(numbers)
    return Fraction(sum(listed), 1) / len(listed)


def gini_coefficient(rows: Rows) -> list[Fraction]:
    """Sorted values, each times how many are below it minus how many are above it."""
    n, ordered = len(rows), sorted(row[0] for row in rows)
    ranked = sum((2 * i + 1 - n) * value for i, value in enumerate(ordered))
    return [HALF * ranked / comb(n, 2), HALF * 2 * mean(ordered)]


def asymmetry(rows: Rows) -> list[Fraction]:
    """Over ordered pairs: E|X + X'| without the pairs of a record with itself, and E|X − X'|."""
    values = [row[0] for row in rows]
    pairs = len(values) * (len(values) - 1)
    both = sum(abs(p + q) for p in values for q in values) - sum(2 * abs(p) for p in values)
    apart = sum(abs(p - q) for p in values for q in values)
    return [HALF * (both - apart) / pairs, HALF * both / pairs]


def somers(rows: Rows) -> list[Fraction]:
    pairs = list(combinations(rows, 2))
    concordance = [sign((p[0] - q[0]) * (p[1] - q[1])) for p, q in pairs]
    return [mean(concordance), mean(p[0] != q[0] for p, q in pairs)]


def tau_label(rows: Rows) -> list[Fraction]:
    """By the records of the first class against each other record."""
    pairs = comb(len(rows), 2)
    ones, others = ([x for x, label in rows if (label == 1) == one] for one in (True, False))
    total = sum(sign(p - q) for p in ones for q in others)
    apart = sum(p[0] != q[0] for p, q in combinations(rows, 2))
    return [Fraction(each, pairs) for each in (total, apart, len(ones) * len(others))]


def phi(rows: Rows) -> list[Fraction]:
    """By the four counts: n·n11 − n1.·n.1, and the products of each margin's counts."""
    n, pairs = len(rows), comb(len(rows), 2)
    both = sum(row == (ONE, ONE) for row in rows)
    x, y = (sum(row[i] == ONE for row in rows) for i in (0, 1))
    return [Fraction(each, pairs) for each in (n * both - x * y, x * (n - x), y * (n - y))]


def groups(rows: Rows, column: int) -> list[Rows]:
    found: dict[int, Rows] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return list(found.values())


def scatter(rows: Rows) -> list[Fraction]:
    """Hastie, Tibshirani & Friedman 2009, 14.31: Σ over clusters of n_k·Σ|x − mean of k|²."""
    total = Fraction(0)
    for cluster in groups(rows, 0):
        for column in range(1, len(cluster[0])):
            centre = mean(row[column] for row in cluster)
            total += len(cluster) * sum((row[column] - centre) ** 2 for row in cluster)
    return [total * HALF**2 / comb(len(rows), 2)]


def stratified_tau(rows: Rows) -> list[Fraction]:
    pairs = comb(len(rows), 2)
    inside = [pair for group in groups(rows, 2) for pair in combinations(group, 2)]
    total = sum(sign((p[0] - q[0]) * (p[1] - q[1])) for p, q in inside)
    return [Fraction(total, pairs), Fraction(len(inside), pairs)]


def superiority(rows: Rows) -> list[Fraction]:
    pairs, right, compared = comb(len(rows), 2), Fraction(0), 0
    for group in groups(rows, 2):
        ones, others = ([r[0] for r in group if (r[1] == 1) == one] for one in (True, False))
        right += sum(Fraction(1 + sign(p - q), 2) for p in ones for q in others)
        compared += len(ones) * len(others)
    return [right / pairs, Fraction(compared, pairs)]


def concordance_index(rows: Rows) -> list[Fraction]:
    """Each event in turn, against those who are still at risk after it."""
    pairs, right, compared = comb(len(rows), 2), Fraction(0), 0
    for score, time, event in rows:
        if event != 1:
            continue
        later = [r[0] for r in rows if r[1] > time or (r[1] == time and r[2] != 1)]
        compared += len(later)
        right += sum(Fraction(1 + sign(score - other), 2) for other in later)
    return [right / pairs, Fraction(compared, pairs)]


def better(one: Fraction, other: Fraction) -> tuple[Fraction, Fraction]:
    """By how much either of two values is above the other."""
    return max(Fraction(0), one - other), max(Fraction(0), other - one)


def due(rows: Rows, pairs: Iterable[tuple[int, int]]) -> list[Fraction]:
    """The parts by which the first and the second column are better, and the share of pairs.

    Args: pairs: places of two rows, of which the first should have the larger values.
    """
    found, sets = [Fraction(0)] * 3, comb(len(rows), 2)
    for high, low in pairs:
        one, other = (Fraction(1 + sign(rows[high][c] - rows[low][c]), 2) for c in (0, 1))
        parts = (*better(one, other), Fraction(1))
        found = [total + part for total, part in zip(found, parts, strict=True)]
    return [total / sets for total in found]


def auc_difference(rows: Rows) -> list[Fraction]:
    ones, others = ([i for i, r in enumerate(rows) if (r[2] == 1) == one] for one in (True, False))
    return due(rows, product(ones, others))


def tau_difference(rows: Rows) -> list[Fraction]:
    def tau(p, q, column: int) -> Fraction:
        return Fraction(sign((p[column] - q[column]) * (p[2] - q[2])))

    pairs = list(combinations(rows, 2))
    found = [better(tau(p, q, 0), tau(p, q, 1)) for p, q in pairs]
    return [sum(side, Fraction(0)) / len(pairs) for side in zip(*found, strict=True)]


def concordance_difference(rows: Rows) -> list[Fraction]:
    """Each event in turn, against those who are still at risk after it."""
    places = range(len(rows))
    risks = [
        (i, j)
        for i in places
        for j in places
        if rows[i][3] == 1
        and (rows[j][2] > rows[i][2] or (rows[j][2] == rows[i][2] and rows[j][3] != 1))
    ]
    return due(rows, risks)


def of_halves(
    rows: Rows, value: Callable[[list[int], list[int]], Fraction]
) -> tuple[Fraction, Fraction]:
    """The sum of a value of two records of class 1 and two others, and the number of such sets.

    Both per set of four records.
    """
    sets = comb(len(rows), 4)
    ones, others = ([x for x, label in rows if (label == 1) == one] for one in (True, False))
    found = [value(p, q) for p, q in product(combinations(ones, 2), combinations(others, 2))]
    return sum(found, Fraction(0)) / sets, Fraction(len(found), sets)


def cramer_von_mises(rows: Rows) -> list[Fraction]:
    """Half of tau* by the sign covariance of Bergsma & Dassios 2014 over 24 permutations."""

    def quadruple(x: tuple[int, ...]) -> int:
        return sign(abs(x[0] - x[1]) + abs(x[2] - x[3]) - abs(x[0] - x[2]) - abs(x[1] - x[3]))

    def value(p: list[int], q: list[int]) -> Fraction:
        points = list(permutations(zip((*p, *q), (1, 1, 0, 0), strict=True)))
        orders = (zip(*order, strict=True) for order in points)
        return mean(quadruple(x) * quadruple(y) for x, y in orders) / 2

    return list(of_halves(rows, value))


def energy(rows: Rows) -> list[Fraction]:
    """2·E|X − Y| − E|X − X'| − E|Y − Y'|, each a mean over its own pairs."""
    ones, others = ([x for x, label in rows if (label == 1) == one] for one in (True, False))
    _, share = of_halves(rows, lambda p, q: Fraction(0))
    if not share:
        return [Fraction(0), Fraction(0)]
    across = mean(abs(p - q) for p in ones for q in others)
    inside = [mean(abs(p - q) for p, q in combinations(side, 2)) for side in (ones, others)]
    return [share * HALF * (2 * across - sum(inside)), share]


def centred(rows: Rows, of: Callable[[int, int], int], column: int) -> list[list[Fraction]]:
    """The U-centred matrix of Székely & Rizzo 2014, definition 2."""
    n = len(rows)
    matrix = [[Fraction(of(p[column], q[column])) for q in rows] for p in rows]
    for i in range(n):
        matrix[i][i] = Fraction(0)
    totals = [sum(row) for row in matrix]
    whole = Fraction(sum(totals), (n - 1) * (n - 2))
    return [
        [
            Fraction(0) if i == j else matrix[i][j] - (totals[i] + totals[j]) / (n - 2) + whole
            for j in range(n)
        ]
        for i in range(n)
    ]


def inner_product(rows: Rows, of: Callable[[int, int], int]) -> Fraction:
    """Székely & Rizzo 2014, 2.2: Σ A_ij·B_ij over n(n − 3)."""
    x, y = (centred(rows, of, column) for column in (0, 1))
    n = len(rows)
    return sum(x[i][j] * y[i][j] for i in range(n) for j in range(n)) / (n * (n - 3))


def distance_covariance(rows: Rows) -> list[Fraction]:
    return [HALF**2 * inner_product(rows, lambda p, q: abs(p - q))]


def usp(rows: Rows) -> list[Fraction]:
    return [inner_product(rows, lambda p, q: int(p == q))]


def triangles(rows: Rows) -> list[Fraction]:
    """Triples of vertices that all list each other an odd number of times, by adding lists up."""

    def lists(p, q) -> bool:
        return sum(number == 2 * q[0] for number in p[1:]) % 2 == 1

    found = [all(lists(*pair) for pair in permutations(t, 2)) for t in combinations(rows, 3)]
    return [Fraction(sum(found), len(found))]


FURTHER = {
    "triangle_density": triangles,
    "gini_coefficient": gini_coefficient,
    "asymmetry": asymmetry,
    "somers_d": somers,
    "kendall_tau_label": tau_label,
    "phi_coefficient": phi,
    "clustering_scatter": scatter,
    "cramer_von_mises": cramer_von_mises,
    "energy_distance": energy,
    "distance_covariance": distance_covariance,
    "usp_independence": usp,
    "stratified_kendall_tau": stratified_tau,
    "stratified_superiority": superiority,
    "concordance_index": concordance_index,
    "auc_difference": auc_difference,
    "tau_difference": tau_difference,
    "concordance_difference": concordance_difference,
}
