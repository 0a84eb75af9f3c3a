"""The bound on the local sensitivity, tried on every neighbour of every table.

Over all sets, Ã depends only on the number of occurrences of each value. All tables of 24 records
are therefore 325 counts of three values. For listed families the test tries all tables of 5
records.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from tests.support.curated import EQUAL, GINI, SCHEMA, TRIPLE, SeededBits, columns
from umpc.errors import StudyError
from umpc.ustat.kernel import Kernel
from umpc_papers.central.hajek import least_level, reweight
from umpc_papers.central.smooth import LocalBound, smooth_estimates
from umpc_papers.central.terms import CompleteFamily, kernel_terms, share, subsampled_family

OUTLYING = Kernel.from_text("a.x * b.x - (a.x + b.x)", SCHEMA)
OWN = Kernel.from_text("a.x", SCHEMA, degree=1)
CHOICES = [
    (Fraction(0), Fraction(1, 4)),
    (Fraction(1, 10), Fraction(1)),
    (Fraction(1, 2), Fraction(3)),
]
"""Pairs of ξ, as a part of the range, and η."""


def bound_of(terms, family, xi: Fraction, slope: Fraction) -> LocalBound:
    return LocalBound(
        Fraction(terms.width), xi * terms.width, slope, share(family), family.together
    )


def check_all(found: dict, neighbours, bound: LocalBound, records: int) -> tuple[float, int]:
    """Check every pair of neighbours; return the largest part of the bound, and the largest L."""
    beta = Fraction(1, 5)
    smooth = [bound.smooth(level, beta, records) for level in range(records + 1)]
    grown, most, levels = math.exp(beta) * (1 + 1e-12), 0.0, 0
    for here in found:
        for there in neighbours(here):
            a, b = found[here], found[there]
            assert abs(a.level - b.level) <= 1
            change = abs(a.value - b.value)
            assert change <= bound.at(a.level) <= smooth[a.level], (here, there)
            assert smooth[a.level] <= grown * smooth[b.level]
            most, levels = max(most, float(change / bound.at(a.level))), max(levels, a.level)
    return most, levels


@pytest.mark.parametrize(("xi", "slope"), CHOICES)
@pytest.mark.parametrize("kernel", [EQUAL, OUTLYING])
def test_every_neighbour_of_every_table_over_all_pairs(kernel, xi, slope):
    n, family = 24, CompleteFamily(24, 2)
    counts = [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]
    bound = bound_of(kernel_terms(kernel, columns([0] * n)), family, xi, slope)
    found = {
        c: reweight(kernel_terms(kernel, columns(np.repeat([0, 1, 3], c))), family, bound)
        for c in counts
    }

    def neighbours(c):
        for i, j in product(range(3), repeat=2):
            if i != j and c[i]:
                yield tuple(c[k] - (k == i) + (k == j) for k in range(3))

    most, levels = check_all(found, neighbours, bound, n)
    assert most > 0.4, f"the bound is {1 / most:.1f} times what any table needs"
    assert xi > Fraction(1, 10) or levels > 0


@pytest.mark.parametrize(("xi", "slope"), CHOICES[:2])
@pytest.mark.parametrize(
    ("kernel", "listed"), [(GINI, True), (TRIPLE, False), (TRIPLE, True), (OWN, False), (OWN, True)]
)
def test_every_neighbour_of_every_small_table(kernel, listed, xi, slope):
    """Subsamples with repetitions and uneven M_i (section 4.5), triples, and single records."""
    n, domain = 5, (0, 1, 3) if kernel is GINI else (0, 3)
    family = (
        subsampled_family(n, kernel.degree, 9, SeededBits("listed"))
        if listed
        else CompleteFamily(n, kernel.degree)
    )
    bound = bound_of(kernel_terms(kernel, columns([0] * n)), family, xi, slope)
    tables = list(product(domain, repeat=n))
    found = {
        table: reweight(kernel_terms(kernel, columns(table)), family, bound) for table in tables
    }

    def neighbours(table):
        return ((*table[:i], value, *table[i + 1 :]) for i in range(n) for value in domain)

    most, _ = check_all(found, neighbours, bound, n)
    assert most > 0.3


def test_no_constant_can_be_smaller():
    """Power: one record moves H_i from -ξ to ξ, which violates 0.9 times our bound."""
    n, family = 200, CompleteFamily(200, 2)
    kernel = Kernel.from_text("sign(a.x - 1) + sign(b.x - 1)", SCHEMA)
    tables = [kernel_terms(kernel, columns([1] * (n - 1) + [last])) for last in (0, 3)]
    bound = bound_of(tables[0], family, Fraction(1, 4), Fraction(1, 4))
    here, there = (reweight(terms, family, bound) for terms in tables)
    assert here.level == there.level == 0
    assert Fraction(9, 10) * bound.at(0) < abs(here.value - there.value) <= bound.at(0)


def test_a_table_that_fits_is_left_alone():
    """L = 0 gives the plain mean, and a bound of q(2ξ + d + qC) where s <= ξ."""
    family = CompleteFamily(24, 2)
    terms = kernel_terms(EQUAL, columns([0, 1, 2, 3] * 6))
    bound = bound_of(terms, family, Fraction(1, 10), Fraction(4))
    found = reweight(terms, family, bound)
    assert found.level == 0 and found.value == Fraction(4 * 15, 276)
    assert bound.fade <= bound.concentration
    assert bound.at(0) == bound.share * (2 * bound.concentration + bound.step + bound.share)


def test_smooth_is_the_largest_discounted_future():
    bound = LocalBound(
        Fraction(1), Fraction(1, 50), Fraction(1, 4), Fraction(2, 500), Fraction(1, 499)
    )
    beta = Fraction(1, 10)
    for level in (0, 3, 40):
        direct = max(math.exp(-beta * j) * bound.at(level + j) for j in range(500 - level + 1))
        assert direct <= bound.smooth(level, beta, 500) <= direct * (1 + 1e-9)
    (estimate,) = smooth_estimates(1 / 50, np.array([0.25]), 0.1, 500, 2 / 500, 1 / 499)
    assert np.isclose(estimate, float(bound.smooth(0, beta, 500)))
    assert all(bound.at(j) <= bound.at(j + 1) <= 1 for j in range(500))


def test_a_huge_beta_makes_no_endless_fractions():
    """e^-β has about 10^12 digits for β = 10^12. The bound has few: it is that of L alone."""
    bound = LocalBound(Fraction(1), Fraction(1), Fraction(1, 4), Fraction(2, 50), Fraction(1, 49))
    found = bound.smooth(0, Fraction(10**12), 50)
    assert found == bound.at(0) and found.denominator < 1 << 200


def test_the_level_is_the_least_that_holds():
    bound = LocalBound(Fraction(1), Fraction(0), Fraction(1), Fraction(1, 20), Fraction(1, 20))
    deviations = [Fraction(d, 100) for d in (95, 41, 39, 20, 5, 0)]
    assert least_level(deviations, bound) == next(
        t for t in range(7) if sum(d > bound.threshold(t) for d in deviations) <= t
    )


@pytest.mark.parametrize("numbers", [(0, 0, 1), (1, -1, 1), (1, 0, 0)])
def test_refusals(numbers):
    with pytest.raises(StudyError):
        LocalBound(*map(Fraction, numbers), Fraction(1, 2), Fraction(1, 2))
    with pytest.raises(StudyError):
        LocalBound("1", Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 2))


@pytest.mark.parametrize("within", [2, 7, 10**6])
def test_levels_beyond_reach_do_not_count_and_the_rest_is_smooth_both_ways(within):
    """A short reach changes the bound, but it remains smooth: K levels prove as much as all n."""
    bound = LocalBound(
        Fraction(100), Fraction(1), Fraction(1, 2), Fraction(1, 400), Fraction(1, 399)
    )
    beta = Fraction(1)
    n = 120
    usual = [bound.smooth(level, beta, n) for level in range(n + 1)]
    found = [bound.smooth(level, beta, n, within) for level in range(n + 1)]
    assert all(bound.at(level) <= found[level] for level in range(n + 1))
    for here, there in pairwise(found):
        assert here <= there <= math.e * (1 + 1e-12) * here
    assert found == usual if within > n else found > usual


def test_a_table_of_any_size_takes_a_moment():
    """Computing all levels took 40 s for 10^6 records, and would not end for 10^12."""
    bound = LocalBound(
        Fraction(100), Fraction(100), Fraction(1, 200), Fraction(1, 10**12), Fraction(0)
    )
    assert bound.at(0) <= bound.smooth(0, Fraction(1, 50), 10**12) < 3 * bound.at(0)
