"""umpc.ustat.cell_rows: every subset by its number, for all small sizes and for the largest."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from umpc.ustat.cell_rows import binomials, every_subset, unrank

SIZES = [(size, taken) for size in range(10) for taken in range(1, 9)]


def colex(size: int, taken: int) -> list[tuple[int, ...]]:
    return sorted(combinations(range(size), taken), key=lambda subset: subset[::-1])


@pytest.mark.parametrize(("size", "taken"), SIZES)
def test_all_subsets_come_in_colexicographic_order(size, taken):
    subsets = every_subset(size, taken)
    assert subsets.shape == (comb(size, taken), taken) and subsets.dtype == np.int64
    assert [tuple(subset) for subset in subsets.tolist()] == colex(size, taken)


def test_numbers_are_read_in_any_order():
    numbers = np.array([3, 0, 9, 3])
    assert unrank(numbers, 5, 3).T.tolist() == [list(colex(5, 3)[number]) for number in numbers]


@pytest.mark.parametrize(
    ("size", "taken"), [(3_000_000_000, 1), (2_000_000, 2), (2_000_000, 3), (100_000, 4), (813, 8)]
)
def test_large_numbers_are_exact(size, taken):
    total = comb(size, taken)
    assert total < 1 << 62
    numbers = [
        0,
        1,
        total - 2,
        total - 1,
        *np.random.default_rng(taken).integers(0, total, 50).tolist(),
    ]
    subsets = unrank(np.array(numbers), size, taken).T.tolist()
    for number, subset in zip(numbers, subsets, strict=True):
        assert all(0 <= record < size for record in subset) and subset == sorted(set(subset))
        assert sum(comb(record, place + 1) for place, record in enumerate(subset)) == number


@pytest.mark.parametrize("taken", range(9))
def test_the_tables_are_binomials_and_read_only(taken):
    assert binomials(20, taken).tolist() == [comb(b, taken) for b in range(20)]
    with pytest.raises(ValueError, match="read-only"):
        binomials(20, taken)[0] = 1


def test_the_tables_of_single_records_take_no_memory():
    """The last tables are kept, and a mean is over as many records as a site has."""
    ones = binomials(10**7, 0)
    assert ones.strides == (0,) and ones[-1] == 1 and not ones.flags.writeable
