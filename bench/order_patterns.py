"""Sums of a rank kernel over all sets of many tables at once, by the order of each set's records.

A rank kernel depends on two columns, and there only on which values are smaller, equal or larger.
A set of k records has k(k − 1)/2 pairs, and each pair has one of nine orders in the two columns.
The kernel is evaluated once for every pattern of orders. The value of a set is then looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from umpc.study.document import Study

Ints = NDArray[np.int64]
ORDERS = 9
"""The orders of a pair in two columns: each is smaller, equal or larger."""
AT_ONCE = 1 << 21


def totals_by_order(study: Study, table: Mapping[str, Ints], sets: Ints) -> Ints:
    """Each rank kernel added up over the sets, in units.

    Args: table: of two columns, (runs, records) each. sets: (sets, k).
    Returns: (runs, sums).
    """
    first, second = (np.ascontiguousarray(values.T) for values in table.values())
    values = pattern_values(study, tuple(table))
    runs, each = first.shape[1], max(1, AT_ONCE // len(sets))
    parts = []
    for start in range(0, runs, each):
        part = slice(start, start + each)
        codes = _patterns(first[:, part], second[:, part], np.sort(sets, axis=1))
        parts.append([kernel[codes].sum(axis=0) for kernel in values])
    return np.concatenate([np.stack(part, axis=1) for part in parts])


def _patterns(first: Ints, second: Ints, sets: Ints) -> NDArray[np.int32]:
    """The pattern of each set in each run. Args: both columns: (records, runs)."""
    records, degree = len(first), sets.shape[1]
    left, right = np.triu_indices(records, 1)
    orders = _order(first[left], first[right]) * 3 + _order(second[left], second[right])
    place = np.zeros((records, records), dtype=np.int64)
    place[left, right] = np.arange(len(left))
    codes = np.zeros((len(sets), first.shape[1]), dtype=np.int32)
    for one, other in combinations(range(degree), 2):
        codes *= ORDERS
        codes += orders[place[sets[:, one], sets[:, other]]]
    return codes


def _order(ones: Ints, others: Ints) -> NDArray[np.uint8]:
    """0, 1 or 2: larger, equal or smaller than the other."""
    return (ones < others).astype(np.uint8) + (ones <= others)


def pattern_values(study: Study, columns: tuple[str, ...]) -> list[Ints]:
    """Each kernel's value at each pattern: (ORDERS^pairs,) int64; 0 where no records have it."""
    degree = study.degree
    ranks = [ranks for ranks in product(range(degree), repeat=degree) if _is_dense(ranks)]
    first, second = (np.array(column).T for column in zip(*product(ranks, ranks), strict=True))
    codes = _patterns(first, second, np.arange(degree)[None])[0]
    records = [dict(zip(columns, rows, strict=True)) for rows in zip(first, second, strict=True)]
    found = []
    for kernel in study.parsed_kernels:
        values = np.zeros(ORDERS ** (degree * (degree - 1) // 2), dtype=np.int64)
        values[codes] = kernel.evaluate(records)
        found.append(values)
    return found


def _is_dense(ranks: tuple[int, ...]) -> bool:
    """Whether the ranks are 0 to some number without a gap, so that each order occurs once."""
    return set(ranks) == set(range(max(ranks) + 1))
