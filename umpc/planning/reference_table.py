"""A table like the sites' own, and the errors of a study over it.

The error of an estimate, towards the statistic of all sets of records, has three parts. Their
squares add up to the mean squared error:

- *noise*: the standard deviation of the law that makes the release private. It is exact for sums;
  for randomised records it comes from the protocol's own theory.
- *sampling*: the error from taking E instead of all sets. E is a fixed graph whose vertices are
  numbered at random. The variance of a mean over E therefore follows exactly from how many pairs of
  its edges share a record, and from the moments of f over pairs of edges that do and that do not.
- *bins*: the bias that is left where records become cells.

Sampling, bins and the noise of randomised records depend on the data, which nobody has beforehand.
They are computed over a table that is like the sites' own (a public or an older one), or over
uniform records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from umpc.crypto.prg import Stream
from umpc.errors import StudyError
from umpc.study.document import Study
from umpc.study.sizes import ClassCounts, Sizes
from umpc.ustat.clear import Columns
from umpc.ustat.estimators import estimate
from umpc.ustat.moments import Moments, Spread
from umpc.ustat.sampling import pairings_of

MOST_RECORDS = 5000
"""The most records whose pairs are all looked at.

Of a larger table, this many records are chosen at random.
"""
ROWS_AT_ONCE = 128
STEP = 1e-6
"""The step of an estimator's derivatives, relative to its means."""


@dataclass(frozen=True)
class PredictedError:
    """noise, sampling: standard deviations. bins: a bias. All in the estimate's unit.

    sampling_is_bound: the sampling error is at most this; more is not known of sets of three and
    more records.
    """

    noise: float
    sampling: float = 0.0
    bins: float = 0.0
    sampling_is_bound: bool = False

    @property
    def mse(self) -> float:
        return self.noise**2 + self.sampling**2 + self.bins**2


@dataclass(frozen=True)
class ReferenceTable:
    """A table like the sites' own, with as many records. columns: the first class first. first: how
    many these are.
    """

    study: Study
    columns: Columns
    first: int

    @classmethod
    def of(cls, study: Study, columns: Columns, counts: Sequence[ClassCounts]) -> ReferenceTable:
        """counts: of every node. Records are repeated, or left out, evenly and at random.

        Raises: StudyError where the table has no record, or none of a class.
        """
        if not (records := len(next(iter(columns.values())))):
            raise StudyError(
                "the table has no complete record; give one that is like the sites' own"
            )
        label = columns[study.label] if study.two_sample else np.ones(records, dtype=np.int64)
        order = np.argsort(Stream(bytes(32)).words(records), kind="stable")
        classes = [order[label[order] == 0], order[label[order] != 0]]
        wanted = [sum(both[place] for both in counts) for place in (0, 1)]
        if any(count and not len(of) for of, count in zip(classes, wanted, strict=True)):
            raise StudyError(
                "the table has no record of one of the classes; give one that is like the sites' "
                "own"
            )
        rows = np.concatenate(
            [_spread_over(of, count) for of, count in zip(classes, wanted, strict=True)]
        )
        return cls(study, {name: column[rows] for name, column in columns.items()}, wanted[0])

    @property
    def records(self) -> int:
        return len(next(iter(self.columns.values())))

    @cached_property
    def small(self) -> ReferenceTable:
        """So few of the records that all their pairs can be looked at."""
        if self.records <= MOST_RECORDS:
            return self
        first = self.first * MOST_RECORDS // self.records
        kept = (
            (np.arange(self.first), first),
            (np.arange(self.first, self.records), MOST_RECORDS - first),
        )
        rows = np.concatenate([_spread_over(*part) for part in kept])
        return ReferenceTable(
            self.study, {name: column[rows] for name, column in self.columns.items()}, first
        )

    @cached_property
    def spread(self) -> Spread:
        """The moments of the kernels, from one pass over all pairs of few records."""
        kernels, n = len(self.study.kernels), self.records
        sizes = [self.first, n - self.first] if self.study.two_sample else [n]
        at = tuple(np.zeros((kernels, size)) for size in sizes)
        totals, products = np.zeros(kernels), np.zeros((kernels, kernels))
        for start, values in self._blocks():
            flat = values.reshape(kernels, -1)
            totals += flat.sum(axis=1)
            products += flat @ flat.T
            at[0][:, start : start + values.shape[1]] += values.sum(axis=2)
            at[-1][:, -values.shape[2] :] += values.sum(axis=1)
        count = self.first * (n - self.first) if self.study.two_sample else n * (n - 1) // 2
        return Spread(count, totals, products, at)

    def _blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """(first row, (kernels, rows, others) float64): of some records with all others, or all
        that come later.
        """
        two_sample, n = self.study.two_sample, self.records
        tops = self.first if two_sample else n
        for start in range(0, tops, ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, tops))
            others = np.arange(self.first if two_sample else start, n)
            pairs = np.repeat(rows, len(others)), np.tile(others, len(rows))
            records = [{name: column[of] for name, column in self.columns.items()} for of in pairs]
            counted = (
                np.ones(len(pairs[0])) if two_sample else (pairs[1] > pairs[0]).astype(np.float64)
            )
            kernels = self.study.parsed_kernels
            values = np.stack(
                [kernel.evaluate(records) * float(kernel.unit) * counted for kernel in kernels]
            )
            yield start, values.reshape(len(kernels), len(rows), len(others))

    @cached_property
    def means(self) -> np.ndarray:
        """Each kernel's mean over all sets of records, for degree 1 or 2: (kernels,)."""
        return self.small.spread.means if self.study.degree == 2 else self.values.mean(axis=1)

    @cached_property
    def values(self) -> np.ndarray:
        """The values of kernels of single records: (kernels, records)."""
        kernels = self.study.parsed_kernels
        return np.stack(
            [kernel.evaluate([self.columns]) * float(kernel.unit) for kernel in kernels]
        )

    @property
    def statistic(self) -> float | None:
        """Over all sets, of degree 1 or 2; None where it cannot be told, as 0/0."""
        return self._estimate(self.means)

    def _estimate(self, means: np.ndarray) -> float | None:
        zeros = [0.0] * len(means)
        sets = Sizes(self.study, self.records, self.first).sets
        return estimate(self.study.estimator, list(means), zeros, zeros, sets).value

    @cached_property
    def slopes(self) -> np.ndarray:
        """∂ estimate / ∂ mean of each kernel. Raises: StudyError where the statistic cannot be
        told.
        """
        found = []
        for index, mean in enumerate(self.means):
            step = STEP * max(abs(mean), STEP) * np.eye(len(self.means))[index]
            above, below = self._estimate(self.means + step), self._estimate(self.means - step)
            if above is None or below is None:
                raise StudyError(
                    "the statistic cannot be told from this table; give one that is like the "
                    "sites' own"
                )
            found.append((above - below) / (2 * step[index]))
        return np.array(found)

    def sampling_std(self, sizes: Sizes) -> float:
        """The standard deviation from taking E instead of all sets, for degree 1 or 2."""
        draws, n = pairings_of(sizes.study.edges) or 1, sizes.records
        if sizes.edges == sizes.sets and pairings_of(sizes.study.edges) is None:
            return 0.0
        if sizes.study.degree == 1:
            spread = float(np.var(self.slopes @ self.values)) * n / max(1, n - 1)
            return sqrt(spread / sizes.edges * (1 - sizes.edges / n))
        first = sizes.first_class
        classes = (first, n - first) if sizes.study.two_sample else (n,)
        return sqrt(self.moments.variance(sizes.edges // draws, classes) / draws)

    @cached_property
    def moments(self) -> Moments:
        return self.small.spread.moments(self.slopes)


def _spread_over(rows: np.ndarray, count: int) -> np.ndarray:
    """A number of the rows, each as often as any other, or once more."""
    return rows[np.arange(count) * len(rows) // max(1, count)] if count else rows[:0]
