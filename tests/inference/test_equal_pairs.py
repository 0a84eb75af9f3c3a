"""The law of equal pairs: against whole numbers, and where chi-square's tail is too short."""

from __future__ import annotations

from collections import Counter
from math import comb

import numpy as np
import pytest

from umpc.inference.hypotheses import DrawnRecords, equal_pairs, uniformity_law
from umpc.inference.null_laws import ChiSquareLaw, CountLaw


def counted(records: int, cells: int) -> dict[int, float]:
    """Number of pairs → its probability, by whole numbers, cell by cell."""
    tables = Counter({(0, 0): 1})
    for _ in range(cells):
        longer: Counter[tuple[int, int]] = Counter()
        for (used, pairs), ways in tables.items():
            for count in range(records - used + 1):
                more = ways * comb(records - used, count)
                longer[used + count, pairs + comb(count, 2)] += more
        tables = longer
    whole = cells**records
    return {pairs: ways / whole for (used, pairs), ways in tables.items() if used == records}


@pytest.mark.parametrize(
    ("records", "cells"), [(2, 2), (5, 3), (30, 2), (12, 7), (25, 8), (10, 40), (20, 50)]
)
def test_it_is_the_law_of_all_tables(records, cells):
    due, found = counted(records, cells), equal_pairs(records, cells)
    law = {found.least + place: share for place, share in enumerate(found.probabilities)}
    assert set(law) <= set(range(comb(records, 2) + 1))
    for pairs in due | law:
        assert law.get(pairs, 0.0) == pytest.approx(due.get(pairs, 0.0), abs=1e-13)
    assert 1e-13 < found.rounding < 1e-10


def test_large_tables_have_its_moments():
    for records, cells in ((1000, 500), (300, 300), (500, 50), (1000, 3), (5000, 10**6)):
        found = equal_pairs(records, cells)
        pairs = found.least + np.arange(len(found.probabilities))
        mean = comb(records, 2) / cells
        assert found.probabilities.sum() == pytest.approx(1, abs=found.rounding)
        assert found.probabilities @ pairs == pytest.approx(mean, rel=1e-8)
        variance = found.probabilities @ (pairs - mean) ** 2
        assert variance == pytest.approx(mean * (1 - 1 / cells), rel=1e-7)


def test_a_sparse_table_is_rejected_in_at_most_alpha():
    """With chi-square, 20 records over 50 cells were rejected in 2.0 % at 1 %."""
    due = counted(20, 50)
    values = np.array(sorted(due)) / comb(20, 2) - 1 / 50
    chances = np.array([due[pairs] for pairs in sorted(due)])
    law = uniformity_law(DrawnRecords(20, None, (50.0,), -1 / 50))
    chi_square = ChiSquareLaw(49, 1 / (50 * 19))
    assert isinstance(law, CountLaw)
    for level in (0.1, 0.05, 0.01, 0.001):
        assert chances[law.at_least(values) <= level].sum() <= level
        assert chances[law.at_most(values) <= level].sum() <= level
    assert chances[chi_square.at_least(values) <= 0.01].sum() > 0.0195


def test_what_takes_too_long_is_left_to_chi_square():
    for records, cells in ((10**6, 2), (10**7, 10**7), (10_000, 256)):
        assert equal_pairs(records, cells) is None
        law = uniformity_law(DrawnRecords(records, None, (cells,), -1 / cells))
        assert isinstance(law, ChiSquareLaw)
