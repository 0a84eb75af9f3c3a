"""The values that central protocols average: a function of k records, over a family of k-sets.

A family is a list of k-sets of records that depends on no record's value. All guarantees hold for
every family that was drawn, and a public family reveals nothing. Families are drawn from
`RandomBits`:

| family | sets | paper 002, Definition |
|---|---|---|
| `CompleteFamily` | all C(n, k) | 2 |
| `disjoint_family` | n // k sets with no record in common | 1 |
| `subsampled_family` | M independent uniform sets, repetitions allowed | 3 |

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, sections 2.1 and 3.1. M_i sets hold record i, and M_ij
sets hold i and j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, comb, floor
from typing import Protocol

import numpy as np

from umpc.dp.events import is_integer
from umpc.dp.random_bits import RandomBits
from umpc.errors import KernelError, RangeError, StudyError, TooFewRecords
from umpc.mpc.arrays import Integers, Words
from umpc.ustat.cell_rows import unrank
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc.ustat.sampling import below
from umpc_papers.central.graph_terms import triangle_values

CHUNK = 1 << 18
"""Sets evaluated at a time, so that memory does not grow with their number."""

MOST_SETS = 1 << 40
"""The largest number of sets; their evaluation would take longer than any user waits.

Sums of 63 bits hold as long as one value needs at most 22 bits.
"""

SUM_BITS = 62
"""Bits that the magnitude of a sum of values may need."""


@dataclass(frozen=True)
class Terms:
    """A function of sets of `degree` records of one table.

    Args:
        records: n.
        degree: k.
        low, high: the function's public bounds, in units.
        unit: the value of one unit.
        evaluate: (degree, sets) int64 numbers of records -> (sets,) int64, in units.
    """

    records: int
    degree: int
    low: int
    high: int
    unit: Fraction
    evaluate: Callable[[Integers], Integers]

    @property
    def width(self) -> int:
        """high - low, in units.

        It is the largest change of one set's value when one of its records is replaced.
        """
        return self.high - self.low

    def clipped(self, low: int, high: int) -> Terms:
        """The function clipped to a public interval [low, high], in units."""
        evaluate = self.evaluate

        def clip(sets: Integers) -> Integers:
            return np.clip(evaluate(sets), low, high)

        return Terms(self.records, self.degree, low, high, self.unit, clip)


def kernel_terms(kernel: Kernel, columns: Columns) -> Terms:
    """The kernel's values on the records of a table.

    A value outside its field's bounds counts as the bound, because the kernel's range, and with it
    the noise, hold for values inside the bounds. The caller checks all other properties of the
    data.

    Args:
        kernel: symmetric.
        columns: field -> (n,) int64, in steps of the field's resolution.

    Raises:
        KernelError: the kernel is not symmetric.
        TooFewRecords: there are fewer than k records.
    """
    if not kernel.symmetric:
        raise KernelError("central protocols average symmetric kernels; a two-sample kernel came")
    records = len(columns[kernel.fields[0]]) if kernel.fields else 0
    if records < max(2, kernel.degree):
        raise TooFewRecords(f"expected at least {max(2, kernel.degree)} records, {records} came")
    used = {name: np.clip(columns[name], *_bounds(kernel, name)) for name in kernel.fields}

    def evaluate(sets: Integers) -> Integers:
        return kernel.evaluate(
            [{name: column[row] for name, column in used.items()} for row in sets]
        )

    low = floor(kernel.interval.low / kernel.unit)
    high = ceil(kernel.interval.high / kernel.unit)
    fast = triangle_values(kernel, used)
    return Terms(records, kernel.degree, low, high, kernel.unit, fast or evaluate)


def _bounds(kernel: Kernel, name: str) -> tuple[int, int]:
    """A field's bounds, in steps of its resolution."""
    return kernel.schema[name].lower_units, kernel.schema[name].upper_units


class Family(Protocol):
    """A list of k-sets of the records 0 .. n-1."""

    @property
    def records(self) -> int:
        """n."""
        ...

    @property
    def degree(self) -> int:
        """k."""
        ...

    @property
    def count(self) -> int:
        """M, the number of sets."""
        ...

    @property
    def occurrences(self) -> Integers:
        """M_i: (records,) int64."""
        ...

    @property
    def together(self) -> Fraction:
        """The largest M_ij / M_i over i != j with M_i > 0."""
        ...

    def chunks(self) -> Iterator[Integers]:
        """The sets, as arrays of (degree, at most CHUNK) int64."""
        ...


def share(family: Family) -> Fraction:
    """max M_i / M: the largest part of the sets that holds one record.

    Paper: 002, equation A.34, the maximal dependence fraction.
    """
    return Fraction(int(family.occurrences.max()), family.count)


@dataclass(frozen=True)
class CompleteFamily:
    """All sets of `degree` of the `records` records (Definition 2).

    Raises:
        TooFewRecords: there are fewer than `degree` records, or fewer than 2.
        RangeError: there are more than `MOST_SETS` sets.
    """

    records: int
    degree: int

    def __post_init__(self) -> None:
        least = max(2, self.degree)
        if self.records < least:
            raise TooFewRecords(f"expected at least {least} records, {self.records} came")
        if self.count > MOST_SETS:
            raise RangeError(f"{self.count} sets are too many; take a subsample of them")

    @property
    def count(self) -> int:
        """C(n, k)."""
        return comb(self.records, self.degree)

    @cached_property
    def occurrences(self) -> Integers:
        """C(n-1, k-1) for each record."""
        return np.full(self.records, comb(self.records - 1, self.degree - 1), dtype=np.int64)

    @property
    def together(self) -> Fraction:
        """(k-1)/(n-1)."""
        return Fraction(self.degree - 1, self.records - 1)

    def chunks(self) -> Iterator[Integers]:
        """The sets in the order of their ranks."""
        for start in range(0, self.count, CHUNK):
            ranks = np.arange(start, min(start + CHUNK, self.count))
            yield unrank(ranks, self.records, self.degree)


@dataclass(frozen=True, eq=False)
class ListedFamily:
    """Sets that are held as a list.

    Args:
        records: n.
        sets: (degree, count) int64. No record repeats inside a column; columns may repeat.
    """

    records: int
    sets: Integers

    @property
    def degree(self) -> int:
        """k."""
        return int(self.sets.shape[0])

    @property
    def count(self) -> int:
        """M."""
        return int(self.sets.shape[1])

    @cached_property
    def occurrences(self) -> Integers:
        """M_i: (records,) int64."""
        return np.bincount(self.sets.ravel(), minlength=self.records)

    @cached_property
    def together(self) -> Fraction:
        """The largest M_ij / M_i, by counting all ordered pairs of records in all sets."""
        pairs = [(i, j) for i in range(self.degree) for j in range(self.degree) if i != j]
        if not pairs:
            return Fraction(0)
        keys = np.concatenate([self.sets[i] * self.records + self.sets[j] for i, j in pairs])
        found, counts = np.unique(keys, return_counts=True)
        at = self.occurrences[found // self.records]
        best = int(np.argmax(counts / at))
        return Fraction(int(counts[best]), int(at[best]))

    def chunks(self) -> Iterator[Integers]:
        """The sets in their order."""
        for start in range(0, self.count, CHUNK):
            yield self.sets[:, start : start + CHUNK]


def words(count: int, bits: RandomBits) -> Words:
    """Uniform 64-bit words: (count,) uint64."""
    if not count:
        return np.empty(0, dtype=np.uint64)
    drawn = bits(64 * count).to_bytes(8 * count, "big")
    return np.frombuffer(drawn, dtype=">u8").astype(np.uint64)


def permutation(records: int, bits: RandomBits) -> Integers:
    """A uniformly random order of the records: (records,) int64."""
    return np.argsort(words(records, bits), kind="stable")


def disjoint_family(records: int, degree: int, bits: RandomBits) -> ListedFamily:
    """n // k disjoint sets: neighbours in a random order (Definition 1).

    Up to k - 1 records are left out.

    Raises:
        TooFewRecords: there are fewer than `degree` records.
    """
    if records < degree:
        raise TooFewRecords(f"expected at least {degree} records, {records} came")
    taken = records // degree
    order = permutation(records, bits)[: taken * degree]
    return ListedFamily(records, order.reshape(taken, degree).T)


def subsampled_family(records: int, degree: int, count: int, bits: RandomBits) -> ListedFamily:
    """`count` independent sets, each uniform over all sets of `degree` records (Definition 3).

    The law is uniform up to 2^-30 in probability.

    Raises:
        StudyError: the count is no integer in 1 .. MOST_SETS.
        TooFewRecords: there are fewer than `degree` records.
    """
    if not is_integer(count) or not 1 <= count <= MOST_SETS:
        raise StudyError(
            f"the number of subsampled sets must be an integer above 0, but {count!r} came"
        )
    if records < degree:
        raise TooFewRecords(f"expected at least {degree} records, {records} came")
    found = np.empty((degree, 0), dtype=np.int64)
    while (missing := count - found.shape[1]) > 0:
        # A quarter more than needed, because sets with a repeated record are dropped.
        more = missing + missing // 4 + 8
        drawn = below(records, words(degree * more, bits)).reshape(degree, -1)
        ascending = _ascending(drawn)
        sound = (ascending[1:] != ascending[:-1]).all(axis=0)
        found = np.concatenate([found, ascending[:, sound]], axis=1)
    return ListedFamily(records, found[:, :count])


def _ascending(sets: Integers) -> Integers:
    """Each set's records in order: (degree, count). For pairs this is much faster than sorting."""
    if len(sets) == 2:
        return np.stack([np.minimum(*sets), np.maximum(*sets)])
    return np.sort(sets, axis=0)


def values(terms: Terms, family: Family) -> Integers:
    """All values, set by set: (count,) int64, in units. Any sum of them fits 62 bits.

    Raises:
        RangeError: a sum of the values may not fit 62 bits.
    """
    _check_fits(terms, family)
    found = np.empty(family.count, dtype=np.int64)
    start = 0
    for sets in family.chunks():
        found[start : start + sets.shape[1]] = terms.evaluate(sets)
        start += sets.shape[1]
    return found


def sums(terms: Terms, family: Family) -> tuple[int, Integers]:
    """The sum over the family, and each record's sum over its sets. Both are exact, in units.

    Returns: the whole sum, and (records,) int64.

    Raises:
        RangeError: a sum may not fit 62 bits.
    """
    _check_fits(terms, family)
    whole = 0
    at = np.zeros(terms.records, dtype=np.int64)
    for sets in family.chunks():
        found = terms.evaluate(sets)
        whole += int(found.sum())
        for row in sets:
            np.add.at(at, row, found)
    return whole, at


def total(terms: Terms, family: Family) -> int:
    """The sum over the family, exact, in units.

    Raises:
        RangeError: the sum may not fit 62 bits.
    """
    _check_fits(terms, family)
    return sum(int(terms.evaluate(sets).sum()) for sets in family.chunks())


def _check_fits(terms: Terms, family: Family) -> None:
    if max(abs(terms.low), abs(terms.high)) * family.count >= 1 << SUM_BITS:
        raise RangeError(
            f"a sum may not fit {SUM_BITS} bits; "
            "take fewer sets, or coarser resolutions of the kernel's fields"
        )
