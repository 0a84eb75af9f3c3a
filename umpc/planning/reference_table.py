"""The predicted error of an estimate, over a table like the sites' own.

The error is the distance from the statistic of all sets of the sites' records. It has three parts,
and their squares add up to the mean squared error:

- *noise*: the standard deviation of the law that makes the release private. It is exact for sums.
  For randomised records it comes from the protocol's own theory.
- *sampling*: the error from taking E instead of all sets. E is a fixed graph whose vertices are
  numbered at random. So the variance of a mean over E follows exactly from two things: the degrees
  of the graph, and the variances of the kernel's parts over all pairs (`umpc/ustat/design.py`).
  For sets of three and more records both variances are estimated from sets drawn at random. An E
  without regard to degrees keeps an equal share of both parts.
- *bins*: the bias where records become cells.

Sampling, bins and the noise of randomised records depend on the data, which nobody has beforehand.
They are computed over a table that is like the sites' own, either a public or an older one, or over
uniform records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, comb, inf, isfinite, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import Stream
from umpc.errors import StudyError
from umpc.study.document import Study
from umpc.study.sizes import ClassCounts, Sizes
from umpc.ustat.clear import Columns
from umpc.ustat.design import LargerMoments, Moments, Spread
from umpc.ustat.estimators import ENTROPIES, WITH_VARIANCE, estimate, log_of
from umpc.ustat.intervals import possible_means
from umpc.ustat.released_means import joint_values
from umpc.ustat.sampling import UNBALANCED, pairings_of

Floats = NDArray[np.float64]
MOST_PAIRS = 1 << 21
"""The pairs of records that are all evaluated, about: of a larger table those of a part of it."""
ROWS_AT_ONCE = 128
DRAWN = 1 << 17
"""Sets of three and more records that are drawn from the table."""
SETS_SEED = bytes(31) + b"\1"
OF_KERNELS = ("spread", "means", "values", "drawn_sets", "slopes", "moments")
"""Cached properties of a table that depend on the study's kernels, estimator and fields alone."""
STEP = 1e-6
"""The step of an estimator's numerical derivatives, relative to its means."""


@dataclass(frozen=True)
class PredictedError:
    """The three parts of an error, in the unit of the estimate.

    noise, sampling: standard deviations. bins: a bias.
    """

    noise: float
    sampling: float = 0.0
    bins: float = 0.0

    @property
    def mse(self) -> float:
        return self.noise**2 + self.sampling**2 + self.bins**2


@dataclass(frozen=True)
class ConstantAnswer:
    """An answer that needs no record. error: its distance from the table's statistic."""

    value: float
    error: float


@dataclass(frozen=True)
class ReferenceTable:
    """A table like the sites' own, with as many records.

    columns: field → (records,) int64 in steps of the resolution, the first class first. first: the
    number of records of the first class. is_made_up: whether no record of it is real.
    """

    study: Study
    columns: Columns
    first: int
    is_made_up: bool = False

    @classmethod
    def of(
        cls,
        study: Study,
        columns: Columns,
        counts: Sequence[ClassCounts],
        *,
        is_made_up: bool = False,
    ) -> ReferenceTable:
        """A table with as many records as the sites have together.

        Records of `columns` are repeated, or left out, evenly and at random.

        Args: counts: each node's records of the two classes. is_made_up: no record is real.

        Raises: StudyError where the table has no record, or none of a class.
        """
        records = len(next(iter(columns.values())))
        if records == 0:
            raise StudyError(
                "the table has no complete record; give one that is like the sites' own"
            )
        label = columns[study.label] if study.two_sample else np.ones(records, dtype=np.int64)
        order = np.argsort(Stream(bytes(32)).words(records), kind="stable")
        classes = [order[label[order] == 0], order[label[order] != 0]]
        wanted = [sum(both[place] for both in counts) for place in (0, 1)]
        if any(count and not len(there) for there, count in zip(classes, wanted, strict=True)):
            raise StudyError(
                "the table has no record of one of the classes; give one that is like the sites' "
                "own"
            )
        rows = np.concatenate(
            [_spread_over(there, count) for there, count in zip(classes, wanted, strict=True)]
        )
        taken = {name: column[rows] for name, column in columns.items()}
        return cls(study, taken, wanted[0], is_made_up)

    def turned_to(self, study: Study) -> ReferenceTable:
        """The table for a study of another protocol. It keeps all results of equal kernels."""
        other = replace(self, study=study)
        own = self.study
        if (own.kernels, own.estimator, own.fields) == (
            study.kernels,
            study.estimator,
            study.fields,
        ):
            known = {name: self.__dict__[name] for name in OF_KERNELS if name in self.__dict__}
            other.__dict__.update(known)
            if self.__dict__.get("small", self) is not self:
                other.__dict__["small"] = self.small.turned_to(study)
        return other

    @property
    def records(self) -> int:
        return len(next(iter(self.columns.values())))

    @cached_property
    def small(self) -> ReferenceTable:
        """Records of each class that have MOST_PAIRS pairs together; all, where these are fewer."""
        pairs = prod(self._classes) if self.study.two_sample else comb(self.records, 2)
        if pairs <= MOST_PAIRS:
            return self
        part = sqrt(MOST_PAIRS / pairs)
        classes = (np.arange(self.first), np.arange(self.first, self.records))
        kept = [(rows, ceil(part * len(rows))) for rows in classes]
        rows = np.concatenate([_spread_over(*part) for part in kept])
        return ReferenceTable(
            self.study, {name: column[rows] for name, column in self.columns.items()}, kept[0][1]
        )

    @cached_property
    def spread(self) -> Spread:
        """The kernels' sums over all pairs, by one pass over them. For small tables only."""
        kernels = len(self.study.kernels)
        sizes = self._classes
        at = tuple(np.zeros((kernels, size)) for size in sizes)
        totals = np.zeros(kernels)
        products = np.zeros((kernels, kernels))
        for start, values in self.blocks():
            flat = values.reshape(kernels, -1)
            totals += flat.sum(axis=1)
            products += flat @ flat.T
            at[0][:, start : start + values.shape[1]] += values.sum(axis=2)
            at[-1][:, -values.shape[2] :] += values.sum(axis=1)
        # Each edge joins the two classes, or any two of all records.
        if self.study.two_sample:
            count = sizes[0] * sizes[-1]
        else:
            count = self.records * (self.records - 1) // 2
        return Spread(count, totals, products, at)

    @property
    def _classes(self) -> tuple[int, ...]:
        """The number of records of each class; of all records where there are no classes."""
        if self.study.two_sample:
            return (self.first, self.records - self.first)
        return (self.records,)

    def blocks(self) -> Iterator[tuple[int, Floats]]:
        """The kernels' values over all pairs, some rows at a time.

        With two classes a row is a record of the first class, and its others are all records of the
        second. Without classes the others are the block's own and all later records, and a pair
        that does not ascend has the value 0.

        Yields: (first row, (kernels, rows, others) float64).
        """
        two_sample = self.study.two_sample
        tops = self._classes[0]
        for start in range(0, tops, ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, tops))
            others = np.arange(self.first if two_sample else start, self.records)
            above = np.repeat(rows, len(others))
            below = np.tile(others, len(rows))
            records = [
                {name: column[row] for name, column in self.columns.items()}
                for row in (above, below)
            ]
            counted = np.ones(len(above), dtype=bool) if two_sample else below > above
            kernels = self.study.parsed_kernels
            values = np.stack(
                [kernel.evaluate(records) * float(kernel.unit) * counted for kernel in kernels]
            )
            yield start, values.reshape(len(kernels), len(rows), len(others))

    @cached_property
    def means(self) -> Floats:
        """(kernels,) each kernel's mean over all sets of records; for larger sets an estimate."""
        if self.study.degree == 2:
            return self.small.spread.means
        if self.study.degree > 2:
            drawn: Floats = np.concatenate(self.drawn_sets, axis=1).mean(axis=1)
            return drawn
        means: Floats = self.values.mean(axis=1)
        return means

    @cached_property
    def values(self) -> Floats:
        """(kernels, records) the values of kernels over single records."""
        kernels = self.study.parsed_kernels
        return np.stack(
            [kernel.evaluate([self.columns]) * float(kernel.unit) for kernel in kernels]
        )

    @cached_property
    def drawn_sets(self) -> tuple[Floats, Floats]:
        """Values of kernels over sets of three and more records, drawn at random.

        Returns: twice (kernels, sets) float64, at most DRAWN sets; two sets in the same place
        share their first record, and no other.
        Raises: StudyError where the table has too few records.
        """
        degree, records = self.study.degree, self.records
        words = Stream(SETS_SEED).words
        places = (words(DRAWN * (2 * degree - 1)) % np.uint64(records)).astype(np.int64)
        drawn = places.reshape(2 * degree - 1, DRAWN)
        drawn = drawn[:, (np.diff(np.sort(drawn, axis=0), axis=0) > 0).all(axis=0)]
        if not drawn.size:
            raise StudyError(
                f"the error over sets of {degree} records is estimated from two sets that share "
                f"one record; give a table of at least {2 * degree - 1} records"
            )
        first, second = drawn[:degree], np.concatenate([drawn[:1], drawn[degree:]])
        return self._values_over(first), self._values_over(second)

    def _values_over(self, sets: NDArray[np.int64]) -> Floats:
        """(kernels, sets) the kernels' values. sets: (degree, sets) numbers of records."""
        records = [{name: column[row] for name, column in self.columns.items()} for row in sets]
        kernels = self.study.parsed_kernels
        return np.stack([kernel.evaluate(records) * float(kernel.unit) for kernel in kernels])

    @cached_property
    def larger_moments(self) -> LargerMoments:
        """The moments of the estimator's linearisation over sets of three and more records."""
        first, second = (self.slopes @ values for values in self.drawn_sets)
        variance = float(np.var(np.concatenate([first, second])))
        shared = float(np.mean((first - first.mean()) * (second - second.mean())))
        degree, n = self.study.degree, self.records
        # Of Σ g(x) over a set: variance k·σ²·(n − k)/(n − 1), and covariance σ²·(n − k²)/(n − 1)
        # with a set that shares one record. Few records do not tell the two apart.
        scale = (n - degree) / (n - degree**2) if n > 2 * degree**2 else 1.0
        linear = min(variance, max(0.0, degree * shared * scale))
        return LargerMoments(degree, linear, variance - linear)

    @property
    def statistic(self) -> float | None:
        """The statistic of all sets of the records in `small`; None where it is undefined."""
        return self._estimate(self.means)

    @property
    def whole_statistic(self) -> float | None:
        """The statistic of all sets of all records. It takes seconds for thousands of records."""
        return self._estimate(self.spread.means if self.study.degree == 2 else self.means)

    def _estimate(self, means: Floats) -> float | None:
        zeros = [0.0] * len(means)
        sets = Sizes(self.study, self.records, self.first).sets
        return estimate(
            self.study.estimator, list(means), zeros, zeros, sets, self.study.pair_ends
        ).value

    @cached_property
    def constant(self) -> ConstantAnswer | None:
        """The better one of two answers without any record: 0, and the middle of the range.

        The middle has the least error over all tables, and 0 is the value of most statistics where
        nothing is to be found. A setting whose error is not smaller is of no use. None where the
        table is made up, so that its statistic says nothing, and where it has none.
        """
        value = None if self.is_made_up else self.statistic
        if value is None:
            return None
        low, high = self._range
        known = (0.0, (low + high) / 2)
        answers = [each for each in known if isfinite(each) and low <= each <= high]
        best = min(answers, key=lambda each: abs(each - value), default=None)
        return None if best is None else ConstantAnswer(best, abs(best - value))

    @property
    def _range(self) -> tuple[float, float]:
        """The range of the statistic over all tables; infinite where none is known."""
        name, kernels = self.study.estimator, self.study.parsed_kernels
        taken = kernels[:1] if name == WITH_VARIANCE else kernels
        low, high = possible_means(name, joint_values(taken))
        if name in ENTROPIES:
            return 0.0 - log_of(high, ENTROPIES[name]), inf
        sets = Sizes(self.study, self.records, self.first).sets if name == "total" else 1
        return low * sets, high * sets

    @cached_property
    def slopes(self) -> Floats:
        """(kernels,) ∂ estimate / ∂ mean, numerically.

        Raises: StudyError where the statistic is undefined over this table.
        """
        found = []
        for index, mean in enumerate(self.means):
            step = STEP * max(abs(mean), STEP) * np.eye(len(self.means))[index]
            above = self._estimate(self.means + step)
            below = self._estimate(self.means - step)
            if above is None or below is None:
                raise StudyError(
                    "the statistic cannot be told from this table; give one that is like the "
                    "sites' own"
                )
            found.append((above - below) / (2 * step[index]))
        return np.array(found)

    def sampling_std(self, sizes: Sizes) -> float:
        """The standard deviation from taking E instead of all sets.

        P pairings are independent of each other, so their variance is a P-th of that of one.
        """
        pairings = pairings_of(sizes.study.edges)
        draws = pairings or 1
        n = sizes.records
        if sizes.edges == sizes.sets and pairings is None:
            return 0.0
        if sizes.study.degree == 1:
            # E is drawn without repetition, from a finite population.
            spread = float(np.var(self.slopes @ self.values)) * n / max(1, n - 1)
            return sqrt(spread / sizes.edges * (1 - sizes.edges / n))
        if sizes.study.degree > 2:
            if sizes.study.sampling in UNBALANCED:
                return sqrt(self.larger_moments.variance * _left(sizes) / sizes.edges)
            return sqrt(self.larger_moments.over_balanced(sizes.edges, sizes.records))
        if sizes.study.sampling in UNBALANCED:
            return sqrt(self.moments.same * _left(sizes) / sizes.edges)
        first = sizes.first_class
        classes = (first, n - first) if sizes.study.two_sample else (n,)
        return sqrt(self.moments.variance(sizes.edges // draws, classes) / draws)

    @cached_property
    def moments(self) -> Moments:
        """The moments of the estimator's linearisation over pairs."""
        return self.small.spread.moments(self.slopes)


def _left(sizes: Sizes) -> float:
    """The part of a kernel's variance that a mean over random distinct sets keeps, per set."""
    return (sizes.sets - sizes.edges) / max(1, sizes.sets - 1)


def _spread_over(rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """That many of the rows. The numbers of times that two rows occur differ by at most one."""
    if count == 0:
        return rows[:0]
    return rows[np.arange(count) * len(rows) // count]
