"""umpc.ustat.design: the part of the variance that is left, against the sampler's own edges.

For the unnumbered graph of an E, the variance of a mean over randomly numbered edges is a quadratic
form of the kernel's values over all sets. Its largest eigenvalue is the factor.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from umpc.crypto.prg import Stream
from umpc.ustat.design import largest_factor, largest_factor_two_sample
from umpc.ustat.sampling import balanced, biregular


def by_eigenvalues(edges: np.ndarray, kinds: np.ndarray, own: np.ndarray) -> float:
    """|E| times the largest variance of the mean over E, where σ² is 1.

    kinds: (sets, sets) which relation any two of all sets have. own: (|E|, |E|) the same in E, or
    (graphs, |E|, |E|) in several E that are equally likely.
    """
    sets = len(kinds)
    form = np.zeros((sets, sets))
    for kind in np.unique(kinds):
        share = (own == kind).mean()
        form += share * (kinds == kind) / (kinds == kind).sum()
    away = np.eye(sets) - 1 / sets
    return len(edges) * sets * float(np.linalg.eigvalsh(away @ form @ away)[-1])


def overlaps(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return (first[:, None, :, None] == second[None, :, None, :]).sum(axis=(2, 3))


def classes(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Which of both classes' records two pairs share."""
    same = first[:, None, :] == second[None, :, :]
    return 2 * same[:, :, 0] + same[:, :, 1]


@pytest.mark.parametrize("records", [3, 4, 5, 9])
@pytest.mark.parametrize("degree", [1, 2])
def test_for_records_and_pairs_the_factor_is_exact(records, degree):
    every = np.array(list(combinations(range(records), degree)))
    for count in range(1, len(every) + 1):
        edges = balanced(records, count, Stream(bytes(32)).words, degree)
        expected = by_eigenvalues(edges, overlaps(every, every), overlaps(edges, edges))
        found = float(largest_factor(count, records, degree))
        assert found == pytest.approx(expected, abs=1e-9), count


@pytest.mark.parametrize("zeros, ones", [(1, 4), (2, 2), (3, 4), (4, 3), (5, 5)])
def test_between_two_classes_the_factor_is_exact(zeros, ones):
    every = np.array(list(product(range(zeros), range(ones))))
    for count in range(1, len(every) + 1):
        edges = biregular(zeros, ones, count, Stream(bytes(32)).words)
        expected = by_eigenvalues(edges, classes(every, every), classes(edges, edges))
        found = float(largest_factor_two_sample(count, zeros, ones))
        assert found == pytest.approx(expected, abs=1e-9), count


@pytest.mark.parametrize(
    "records, degree, count", [(9, 3, c) for c in (1, 2, 3, 9, 20, 60, 83)] + [(9, 4, 30)]
)
def test_for_larger_sets_the_factor_covers_what_the_search_makes(records, degree, count):
    """Over searches: each is one unnumbered graph, and all are as likely as the sampler."""
    every = np.array(list(combinations(range(records), degree)))
    own = []
    for seed in range(12):
        edges = balanced(records, count, Stream(bytes([seed] * 32)).words, degree)
        own.append(overlaps(edges, edges))
    found = by_eigenvalues(edges, overlaps(every, every), np.stack(own))
    bound = float(largest_factor(count, records, degree))
    assert found <= bound * 1.02 and bound <= 1.15 * found


@pytest.mark.parametrize("records, degree, count", [(9, 3, 2), (9, 3, 3), (8, 4, 2)])
def test_disjoint_sets_have_their_exact_factor(records, degree, count):
    every = np.array(list(combinations(range(records), degree)))
    edges = balanced(records, count, Stream(bytes(32)).words, degree)
    expected = by_eigenvalues(edges, overlaps(every, every), overlaps(edges, edges))
    assert float(largest_factor(count, records, degree)) == pytest.approx(expected, abs=1e-9)


def test_all_sets_leave_nothing_and_huge_tables_need_no_list():
    assert largest_factor(45, 10, 2) == 0 == largest_factor_two_sample(12, 3, 4)
    assert 0.999 < largest_factor(2 * 240_000, 240_000, 2) <= 1
