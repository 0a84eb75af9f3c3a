"""What is averaged: an integer function of k records of one table, and over which k-sets of them.

A family is a list of k-sets of records that depends on no record's value, so every guarantee here holds for any family
that was drawn, and a public one is no leak. Families are drawn from `RandomBits`:

| family | sets | paper 002, Definition |
|---|---|---|
| `CompleteFamily` | all C(n, k) | 2 |
| `disjoint_family` | n // k sets with no record in common | 1 |
| `subsampled_family` | M independent uniform sets, repetitions allowed | 3 |

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, sections 2.1 and 3.1. M_i sets hold record i, M_ij hold i and j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Protocol

import numpy as np

from umpc.dp.checks import is_integer
from umpc.dp.random_bits import RandomBits
from umpc.errors import KernelError, RangeError, StudyError, TooFewRecords
from umpc.ustat.clear import Columns
from umpc.ustat.combinations import unrank
from umpc.ustat.kernel import Kernel
from umpc.ustat.sampling import below

CHUNK = 1 << 18
"""Sets evaluated at a time, so that memory does not grow with their number."""

MOST_SETS = 1 << 40
"""More sets than anybody waits for; sums of 63 bits hold as long as one value needs no more than 22."""


@dataclass(frozen=True)
class Terms:
    """A function of sets of `degree` records of one table.

    records: n. low, high: its public bounds, in units. unit: what one unit is worth.
    evaluate: (degree, sets) int64 numbers of records -> (sets,) int64, in units.
    """

    records: int
    degree: int
    low: int
    high: int
    unit: Fraction
    evaluate: Callable[[np.ndarray], np.ndarray]

    @property
    def width(self) -> int:
        """high - low, in units: what one set's value changes by at most when one of its records is replaced."""
        return self.high - self.low

    def clipped(self, low: int, high: int) -> Terms:
        """The same function, cut to [low, high] in units, a public interval."""
        evaluate = self.evaluate
        return Terms(
            self.records,
            self.degree,
            low,
            high,
            self.unit,
            lambda sets: np.clip(evaluate(sets), low, high),
        )


def kernel_terms(kernel: Kernel, columns: Columns) -> Terms:
    """The kernel's values on the records of a table: columns of (n,) int64, in steps of each field's resolution.

    Raises:
        KernelError: the kernel is not symmetric. DataError's kin are the caller's: values are taken as they come.
        TooFewRecords: fewer than k records.
    """
    if not kernel.symmetric:
        raise KernelError("central protocols average symmetric kernels; a two-sample kernel came")
    records = len(columns[kernel.fields[0]]) if kernel.fields else 0
    if records < max(2, kernel.degree):
        raise TooFewRecords(f"expected at least {max(2, kernel.degree)} records, {records} came")
    used = {name: np.clip(columns[name], *_bounds(kernel, name)) for name in kernel.fields}

    def evaluate(sets: np.ndarray) -> np.ndarray:
        return kernel.evaluate(
            [{name: column[row] for name, column in used.items()} for row in sets]
        )

    low, high = kernel.interval.low / kernel.unit, kernel.interval.high / kernel.unit
    return Terms(records, kernel.degree, low.__floor__(), high.__ceil__(), kernel.unit, evaluate)


def _bounds(kernel: Kernel, name: str) -> tuple[int, int]:
    """A value outside its field's bounds counts as the bound: the kernel's range, and the noise, are for these."""
    return kernel.schema[name].lower_units, kernel.schema[name].upper_units


class Family(Protocol):
    """k-sets of records 0 .. n-1."""

    records: int
    degree: int

    @property
    def count(self) -> int:
        """M."""
        ...

    @property
    def occurrences(self) -> np.ndarray:
        """M_i: (records,) int64."""
        ...

    @property
    def together(self) -> Fraction:
        """The largest M_ij / M_i over i != j with M_i > 0."""
        ...

    def chunks(self) -> Iterator[np.ndarray]:
        """The sets, (degree, some) int64 at a time."""
        ...


def share(family: Family) -> Fraction:
    """max M_i / M: what part of the sets one record is in, at most. Paper: the maximal dependence fraction."""
    return Fraction(int(family.occurrences.max()), family.count)


@dataclass(frozen=True)
class CompleteFamily:
    """All sets of `degree` of the `records` records."""

    records: int
    degree: int

    def __post_init__(self) -> None:
        if self.records < max(2, self.degree):
            raise TooFewRecords(
                f"expected at least {max(2, self.degree)} records, {self.records} came"
            )
        if self.count > MOST_SETS:
            raise RangeError(f"{self.count} sets are too many; take a subsample of them")

    @property
    def count(self) -> int:
        return comb(self.records, self.degree)

    @cached_property
    def occurrences(self) -> np.ndarray:
        return np.full(self.records, comb(self.records - 1, self.degree - 1), dtype=np.int64)

    @property
    def together(self) -> Fraction:
        return Fraction(self.degree - 1, self.records - 1)

    def chunks(self) -> Iterator[np.ndarray]:
        for start in range(0, self.count, CHUNK):
            yield unrank(
                np.arange(start, min(start + CHUNK, self.count)), self.records, self.degree
            )


@dataclass(frozen=True, eq=False)
class ListedFamily:
    """Sets that are listed. sets: (degree, count) int64, columns without repeated records; columns may repeat."""

    records: int
    sets: np.ndarray

    @property
    def degree(self) -> int:
        return self.sets.shape[0]

    @property
    def count(self) -> int:
        return self.sets.shape[1]

    @cached_property
    def occurrences(self) -> np.ndarray:
        return np.bincount(self.sets.ravel(), minlength=self.records)

    @cached_property
    def together(self) -> Fraction:
        most = Fraction(0)
        pairs = [(i, j) for i in range(self.degree) for j in range(self.degree) if i != j]
        if pairs:
            keys = np.concatenate([self.sets[i] * self.records + self.sets[j] for i, j in pairs])
            found, counts = np.unique(keys, return_counts=True)
            at = self.occurrences[found // self.records]
            best = int(np.argmax(counts / at))
            most = Fraction(int(counts[best]), int(at[best]))
        return most

    def chunks(self) -> Iterator[np.ndarray]:
        for start in range(0, self.count, CHUNK):
            yield self.sets[:, start : start + CHUNK]


def words(count: int, bits: RandomBits) -> np.ndarray:
    """Uniform 64-bit words: (count,) uint64."""
    if not count:
        return np.empty(0, dtype=np.uint64)
    return np.frombuffer(bits(64 * count).to_bytes(8 * count, "big"), dtype=">u8").astype(np.uint64)


def permutation(records: int, bits: RandomBits) -> np.ndarray:
    """A uniformly random order of the records: (records,) int64."""
    return np.argsort(words(records, bits), kind="stable")


def disjoint_family(records: int, degree: int, bits: RandomBits) -> ListedFamily:
    """n // k sets of a random order's neighbours; up to k - 1 records are left out."""
    if records < degree:
        raise TooFewRecords(f"expected at least {degree} records, {records} came")
    taken = records // degree
    return ListedFamily(
        records, permutation(records, bits)[: taken * degree].reshape(taken, degree).T
    )


def subsampled_family(records: int, degree: int, count: int, bits: RandomBits) -> ListedFamily:
    """`count` independent sets, each uniform over all sets of `degree` records (up to 2^-30 in probability)."""
    if not is_integer(count) or not 1 <= count <= MOST_SETS:
        raise StudyError(
            f"the number of subsampled sets must be an integer above 0, but {count!r} came"
        )
    if records < degree:
        raise TooFewRecords(f"expected at least {degree} records, {records} came")
    found = np.empty((degree, 0), dtype=np.int64)
    while (missing := count - found.shape[1]) > 0:
        drawn = below(records, words(degree * (missing + missing // 4 + 8), bits)).reshape(
            degree, -1
        )
        ascending = np.sort(drawn, axis=0)
        sound = (ascending[1:] != ascending[:-1]).all(axis=0)
        found = np.concatenate([found, ascending[:, sound]], axis=1)
    return ListedFamily(records, found[:, :count])


def values(terms: Terms, family: Family) -> np.ndarray:
    """All values in units, set by set: (count,) int64, of which any sum fits 62 bits."""
    _check_fits(terms, family)
    found, start = np.empty(family.count, dtype=np.int64), 0
    for sets in family.chunks():
        found[start : start + sets.shape[1]] = terms.evaluate(sets)
        start += sets.shape[1]
    return found


def sums(terms: Terms, family: Family) -> tuple[int, np.ndarray]:
    """The sum over the family, and for every record the sum over its sets: exact, in units, (records,) int64."""
    _check_fits(terms, family)
    total, at = 0, np.zeros(terms.records, dtype=np.int64)
    for sets in family.chunks():
        found = terms.evaluate(sets)
        total += int(found.sum())
        for row in sets:
            np.add.at(at, row, found)
    return total, at


def total(terms: Terms, family: Family) -> int:
    """The sum over the family: exact, in units."""
    _check_fits(terms, family)
    return sum(int(terms.evaluate(sets).sum()) for sets in family.chunks())


def _check_fits(terms: Terms, family: Family) -> None:
    if max(abs(terms.low), abs(terms.high)) * family.count >= 1 << 62:
        raise RangeError(
            "a sum may not fit 62 bits; take fewer sets, or coarser resolutions of the kernel's fields"
        )
