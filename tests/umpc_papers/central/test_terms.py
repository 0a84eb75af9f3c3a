"""Families of k-sets, exact sums over them, and the variances without privacy."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from tests.support.curated import (
    GINI,
    KENDALL,
    SCHEMA,
    TRIPLE,
    SeededBits,
    accept_moments,
    columns,
    random_columns,
)
from tests.support.pair_moments import pair_moments
from umpc.errors import KernelError, RangeError, StudyError, TooFewRecords
from umpc.ustat.kernel import Kernel
from umpc_papers.central.moments import (
    complete_variance,
    disjoint_variance,
    subsampled_variance,
)
from umpc_papers.central.terms import (
    CompleteFamily,
    ListedFamily,
    disjoint_family,
    kernel_terms,
    share,
    subsampled_family,
    sums,
    total,
    values,
)


def by_hand(family, records: int) -> tuple[list[int], Fraction]:
    sets = [tuple(column) for chunk in family.chunks() for column in chunk.T.tolist()]
    at = [sum(i in s for s in sets) for i in range(records)]
    both = [
        Fraction(sum(i in s and j in s for s in sets), at[i])
        for i in range(records)
        for j in range(records)
        if i != j and at[i]
    ]
    return at, max(both)


@pytest.mark.parametrize("degree", [2, 3])
def test_every_family_counts_itself_rightly(degree):
    bits = SeededBits(f"families {degree}")
    for family in (
        CompleteFamily(7, degree),
        disjoint_family(7, degree, bits),
        subsampled_family(7, degree, 9, bits),
    ):
        at, together = by_hand(family, 7)
        assert family.occurrences.tolist() == at and family.together == together
        assert share(family) == Fraction(max(at), family.count)
        assert all(
            len(set(column)) == degree for chunk in family.chunks() for column in chunk.T.tolist()
        )


def test_disjoint_sets_are_disjoint_and_differ_from_draw_to_draw():
    bits = SeededBits("disjoint")
    family, other = disjoint_family(11, 2, bits), disjoint_family(11, 2, bits)
    assert family.occurrences.max() == 1 and family.count == 5
    assert not np.array_equal(family.sets, other.sets)


def test_subsampled_sets_are_uniform():
    family = subsampled_family(5, 2, 10_000, SeededBits("uniform"))
    keys = np.unique(family.sets[0] * 5 + family.sets[1], return_counts=True)[1]
    assert len(keys) == 10 and abs(keys - 1000).max() < 6 * np.sqrt(900)


@pytest.mark.parametrize("kernel", [KENDALL, GINI, TRIPLE])
def test_sums_are_those_of_a_loop(kernel):
    table = random_columns(8, 1)
    terms, family = kernel_terms(kernel, table), CompleteFamily(8, kernel.degree)
    whole, at = sums(terms, family)
    found = values(terms, family)
    sets = list(zip(*np.concatenate(list(family.chunks()), axis=1).tolist(), strict=True))
    assert sorted(sets) == sorted(combinations(range(8), kernel.degree))
    assert whole == found.sum() == total(terms, family)
    assert at.tolist() == [
        sum(f for s, f in zip(sets, found.tolist(), strict=True) if i in s) for i in range(8)
    ]


def test_values_outside_their_bounds_count_as_the_bound():
    """Otherwise a record could move the sum by more than the length of the kernel's range."""
    inside, outside = (kernel_terms(GINI, columns([0, 1, big])) for big in (3, 1000))
    assert (
        values(inside, CompleteFamily(3, 2)).tolist()
        == values(outside, CompleteFamily(3, 2)).tolist()
    )


def test_clipped_terms_stay_inside():
    terms = kernel_terms(GINI, random_columns(9, 2)).clipped(1, 2)
    assert terms.width == 1 and set(values(terms, CompleteFamily(9, 2)).tolist()) <= {1, 2}


def test_variances_are_those_of_independent_records():
    """Records uniform on 0..3, f = |x - y|: ζ by enumeration, then many small tables."""
    f = np.abs(np.subtract.outer(np.arange(4), np.arange(4))).astype(float)
    zetas = float(f.mean(axis=1).var()), float(f.var())
    rng, bits, n = np.random.default_rng(3), SeededBits("variance"), 6
    found = {"complete": [], "disjoint": [], "subsampled": []}
    for _ in range(4000):
        x = rng.integers(0, 4, n)
        for name, sets in (
            ("complete", np.array(list(combinations(range(n), 2))).T),
            ("disjoint", np.arange(n).reshape(2, -1)),
            ("subsampled", subsampled_family(n, 2, 4, bits).sets),
        ):
            found[name].append(np.abs(x[sets[0]] - x[sets[1]]).mean())
    accept_moments(np.array(found["complete"]), f.mean(), complete_variance(n, zetas))
    accept_moments(np.array(found["disjoint"]), f.mean(), disjoint_variance(n, zetas))
    accept_moments(np.array(found["subsampled"]), f.mean(), subsampled_variance(n, 4, zetas))


def test_moments_of_pairs_are_those_of_one_table():
    table = random_columns(7, 4)
    moments = pair_moments(kernel_terms(GINI, table))
    x = table["x"]
    f = {frozenset(s): abs(int(x[s[0]]) - int(x[s[1]])) for s in combinations(range(7), 2)}
    mean = sum(f.values()) / 21
    pairs = {0: [], 1: [], 2: []}
    for s in f:
        for t in f:
            pairs[len(s & t)].append((f[s] - mean) * (f[t] - mean))
    assert np.allclose([moments.mean, moments.same], [mean, np.mean(pairs[2])])
    assert np.allclose([moments.adjacent, moments.apart], [np.mean(pairs[1]), np.mean(pairs[0])])
    matchings = [
        np.mean([f[frozenset(p)] for p in np.array(order).reshape(-1, 2)]) for order in _orders(7)
    ]
    assert np.isclose(np.var(matchings), moments.disjoint())
    assert moments.subsampled(5) == moments.same / 5 and moments.zetas()[1] == moments.same


def _orders(n: int):
    """Every choice of three disjoint pairs of seven, as one flat order each."""
    pairs = list(combinations(range(n), 2))
    return [[*a, *b, *c] for a, b, c in combinations(pairs, 3) if len({*a, *b, *c}) == 6]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda bits: CompleteFamily(1, 2), TooFewRecords),
        (lambda bits: CompleteFamily(10**7, 2), RangeError),
        (lambda bits: disjoint_family(1, 2, bits), TooFewRecords),
        (lambda bits: subsampled_family(1, 2, 5, bits), TooFewRecords),
        (lambda bits: subsampled_family(5, 2, 0, bits), StudyError),
        (lambda bits: kernel_terms(KENDALL, columns([1])), TooFewRecords),
        (
            lambda bits: kernel_terms(
                Kernel.from_text("a.x - b.x", SCHEMA, symmetric=False), columns([1, 2])
            ),
            KernelError,
        ),
        (lambda bits: complete_variance(2, ()), StudyError),
        (lambda bits: pair_moments(kernel_terms(TRIPLE, random_columns(5, 5))), StudyError),
        (lambda bits: sums(_huge(), ListedFamily(4, np.zeros((2, 4), dtype=np.int64))), RangeError),
        (
            lambda bits: values(_huge(), ListedFamily(4, np.zeros((2, 4), dtype=np.int64))),
            RangeError,
        ),
    ],
)
def test_refusals(call, error):
    with pytest.raises(error):
        call(SeededBits("unused"))


def _huge():
    return kernel_terms(GINI, random_columns(4, 6)).clipped(0, 1 << 61)
