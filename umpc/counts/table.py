"""A released table of counts: consistent values, and the exact law of their error by simulation.

The true table c has whole numbers whose sum is the public number of records n. Released is c + z,
where all z are independent draws of one public law. The consistent table is the least-squares fit
to all released numbers with that sum. With a dyadic tree over one axis, it also agrees with all
levels (Hay, Rastogi, Miklau & Suciu 2010, section 4.2). The fit is linear. So its error is the
same linear function of the noise alone, whatever the records are, and its law is known.

`NoisyNumbers` keeps an estimate next to `RUNS` independent draws of its error. A linear function
acts on both. With `RUNS` draws, the k-th smallest absolute error is exceeded by the true one with a
probability of at most 1 − k/(RUNS + 1), without any approximation (Dwass 1957). So intervals hold
their value at least as often as they say, at every epsilon and every number of records.

The draws come from a stream of AES that is keyed by the released numbers: every reader of a
report computes the same interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import ceil, prod, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import Stream, derive
from umpc.errors import StudyError
from umpc.study.report import CountedAxis, CountsReport

Floats = NDArray[np.float64]
Linear = Callable[[Floats], Floats]
"""A linear function of the last axes of an array."""

RUNS = 999
"""Draws of the error. A level of 0.95 is then the 950th smallest of them."""
MOST_LEVEL = 0.995
"""The highest level of an interval: with so many draws, higher ones have too few beyond them."""
FINEST = 1 << 11
"""Points of a noise's law in one standard deviation; a wider law is drawn on a coarser grid."""
REACH = 48
"""The half width of a noise's table in standard deviations, for a shape of 1 or more."""
MOST_DRAWS = 1 << 25
"""Samples of records are drawn one by one up to so many; larger ones by the normal law."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class NoisyNumbers:
    """Numbers with an error of known law. Each linear function of them is such numbers again.

    Args:
        value: (*shape,) float64, the estimate. errors: (RUNS, *shape), draws of its error.
        records: n, public.
    """

    value: Floats
    errors: Floats
    records: int

    def map(self, linear: Linear) -> NoisyNumbers:
        """A linear function of the numbers, which acts on the last axes of an array."""
        return NoisyNumbers(linear(self.value), linear(self.errors), self.records)

    def at(self, place: int) -> NoisyNumbers:
        """The numbers at one place of the last axis."""
        return self.map(lambda values: np.asarray(values[..., place]))

    def half(self, level: float, together: int = 0) -> Floats:
        """Half the width of intervals for the true numbers.

        Args: level: between 0.5 and MOST_LEVEL. together: the last axes whose intervals hold all
            their numbers at once, with widths in proportion to the errors' deviations; 0 for each
            by itself.
        Returns: (*shape,) float64, 0 where a number has no error.
        """
        place = order_of(level)
        size = np.abs(self.errors)
        if not together:
            return np.asarray(np.partition(size, place, axis=0)[place])
        deviation = np.sqrt(np.mean(self.errors**2, axis=0))
        scaled = size / np.where(deviation > ROUNDING, deviation, np.inf)
        axes = tuple(range(-together, 0))
        worst = np.partition(scaled.max(axis=axes, keepdims=True), place, axis=0)[place]
        return np.asarray(worst * deviation)

    def ends(self, level: float, together: int = 0) -> tuple[Floats, Floats]:
        """(low, high) of the intervals of `half`."""
        half = self.half(level, together)
        return self.value - half, self.value + half


def order_of(level: float) -> int:
    """Which of the sorted draws bounds an error at a level, from 0.

    Raises: StudyError for a level that the draws cannot give.
    """
    if not 0.5 <= level <= MOST_LEVEL:
        raise StudyError(
            f"the level of an interval of counts is from 0.5 to {MOST_LEVEL}, got {level}"
        )
    return ceil((RUNS + 1) * level - ROUNDING) - 1


@dataclass(frozen=True)
class CountTable:
    """A released table with its noise's law.

    Args: report: what was released. records: n, the public number of records in the table.
    """

    report: CountsReport
    records: int

    @classmethod
    def of(cls, report: CountsReport | None, records: int) -> CountTable:
        """The table of a report.

        Raises: StudyError where the report holds no table, or a table of another size.
        """
        if report is None:
            raise StudyError(
                "the report holds no table of counts; curves, quantiles and tests of counts need "
                'a study with the statistic "counts", or with one that is computed from counts'
            )
        if records < 1:
            raise StudyError("a table of counts has at least one record, got none")
        found = cls(report, records)
        expected = sum(map(prod, found.level_shapes))
        if len(report.values) != expected:
            raise StudyError(
                f"a table of {' × '.join(map(str, found.shape))} cells has {expected} released "
                f"numbers, got {len(report.values)}: the report is damaged"
            )
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells on each axis."""
        return tuple(map(cells_of, self.report.axes))

    @property
    def level_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each released level, from the leaves up; one without a tree."""
        return shapes_of_levels(self.shape, self.report.tree)

    @cached_property
    def released(self) -> NoisyNumbers:
        """The consistent table, and draws of its error."""
        values = np.array(self.report.values, dtype=np.float64)
        noise = self.noise_draws("errors")
        return NoisyNumbers(
            self._consistent(values[None], self.records)[0],
            self._consistent(noise, 0),
            self.records,
        )

    def fresh_errors(self, purpose: str, *axes: int) -> Floats:
        """Other draws of the error of `onto`: (RUNS, *shape of these axes)."""
        return self._summed(axes)(self._consistent(self.noise_draws(purpose), 0))

    def stream(self, purpose: str) -> Stream:
        """Pseudorandom bytes that every reader of the report has alike."""
        report = self.report
        told = f"{report.values} {report.noise} {report.scale} {report.shape} {self.records}"
        return Stream(derive(sha256(told.encode()).digest(), "umpc.counts", purpose))

    def noise_draws(self, purpose: str) -> Floats:
        """(RUNS, released numbers) independent draws of the noise."""
        places, below = law_of_noise(self.report)
        count, stream = len(self.report.values), self.stream(purpose)
        found = np.empty((RUNS, count))
        for row in found:
            row[:] = places[np.searchsorted(below, stream.reals(count), "right")]
        return found

    def _consistent(self, released: Floats, total: float) -> Floats:
        """The least-squares fit of the leaves to all levels and to the total.

        Args: released: (runs, released numbers). Returns: (runs, *shape).
        """
        tree, runs, start = self.report.tree + 1, len(released), 0
        levels = []
        for shape in self.level_shapes:
            levels.append(released[:, start : start + prod(shape)].reshape(runs, *shape))
            start += prod(shape)
        # upwards: each node's own count, and the sum of its halves, weighted by their variances
        fitted, variances = [levels[0]], [np.ones(levels[0].shape[tree])]
        for own in levels[1:]:
            spread = _in_pairs(variances[-1], 0).sum(axis=1)
            below = _in_pairs(fitted[-1], tree).sum(axis=tree + 1)
            weight = _along(1 / (1 + spread), tree, own.ndim)
            fitted.append(below + (own - below) * (1 - weight))
            variances.append(spread / (1 + spread))
        # downwards: what a node has too much or too little is shared by its halves
        top = fitted[-1]
        share = (total - top.sum(axis=tuple(range(1, top.ndim)))) / prod(top.shape[1:])
        found = top + share.reshape(-1, *(1,) * (top.ndim - 1))
        for own, variance in zip(fitted[-2::-1], variances[-2::-1], strict=True):
            gap = found - _in_pairs(own, tree).sum(axis=tree + 1)
            pairs = _in_pairs(variance, 0)
            part = (pairs / pairs.sum(axis=1, keepdims=True)).ravel()[: len(variance)]
            there = np.repeat(gap, 2, axis=tree).take(range(len(variance)), axis=tree)
            found = own + there * _along(part, tree, own.ndim)
        return np.asarray(found)

    def onto(self, *axes: int) -> NoisyNumbers:
        """The table of some axes in this order; the others are summed out."""
        return self.released.map(self._summed(axes))

    def _summed(self, axes: tuple[int, ...]) -> Linear:
        rest = tuple(axis - len(self.shape) for axis in range(len(self.shape)) if axis not in axes)
        ranks = [sorted(axes).index(axis) - len(axes) for axis in axes]

        def linear(values: Floats) -> Floats:
            kept = values.sum(axis=rest) if rest else values
            places = [kept.ndim + rank for rank in ranks]
            return kept.transpose(*range(kept.ndim - len(axes)), *places)

        return linear

    def drawn(self, shares: Floats, purpose: str) -> Floats:
        """Tables of n records drawn independently, without noise.

        Args: shares: (*shape,) not negative; they are scaled to the sum 1.
        Returns: (RUNS, *shape); by a normal law where n is very large.
        """
        flat, stream = shares.ravel() / shares.sum(), self.stream(purpose)
        if self.records * RUNS <= MOST_DRAWS:
            at = stream.reals(RUNS * self.records)
            cells = np.searchsorted(np.cumsum(flat)[:-1], at, "right").reshape(RUNS, -1)
            cells += np.arange(RUNS)[:, None] * len(flat)
            counts = np.bincount(cells.ravel(), minlength=RUNS * len(flat))
            return counts.reshape(RUNS, *shares.shape).astype(np.float64)
        # Box & Muller 1958: two normal draws of two uniform ones
        first, second = stream.reals(2 * RUNS * len(flat)).reshape(2, RUNS, -1)
        normal = np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * np.pi * second)
        moved = np.sqrt(self.records * flat) * normal
        found = self.records * flat + moved - flat * moved.sum(axis=1, keepdims=True)
        return np.asarray(np.maximum(found, 0).reshape(RUNS, *shares.shape))


def shapes_of_levels(leaves: tuple[int, ...], tree: int) -> tuple[tuple[int, ...], ...]:
    """The shape of each level of a dyadic tree, from the leaves up (Hay et al. 2010).

    Args: leaves: the cells on each axis. tree: the axis that has the tree, or -1 for one level.
    """
    found = [leaves]
    while tree >= 0 and found[-1][tree] > 1:
        above = list(found[-1])
        # two neighbours each, the last one maybe alone
        above[tree] = -(-above[tree] // 2)
        found.append(tuple(above))
    return tuple(found)


def _in_pairs(values: Floats, axis: int) -> Floats:
    """An axis cut into pairs, of which the last one may be filled up with a zero."""
    odd = values.shape[axis] % 2
    padded = np.pad(values, [(0, odd if place == axis else 0) for place in range(values.ndim)])
    shape = list(values.shape)
    shape[axis : axis + 1] = [padded.shape[axis] // 2, 2]
    return padded.reshape(shape)


def _along(values: Floats, axis: int, dimensions: int) -> Floats:
    """A vector that lies along one axis of an array."""
    return values.reshape([-1 if place == axis else 1 for place in range(dimensions)])


def law_of_noise(report: CountsReport) -> tuple[Floats, Floats]:
    """The noise of one released number: its possible values, and P(noise ≤ value) of each.

    A wide law is put on a grid of FINEST points in a standard deviation.
    """
    if report.noise == "gaussian":
        std, shape = sqrt(report.scale), 1.0
    else:
        ratio = np.exp(-1 / report.scale) if report.scale else 0.0
        shape = report.shape
        std = sqrt(2 * shape * ratio) / (1 - ratio)
    step = max(1.0, std / FINEST)
    reach = int(REACH * (std / step) / min(1.0, sqrt(shape))) + 8
    size = 1 << (2 * reach).bit_length()
    places = np.arange(-reach, reach + 1) * step
    if report.noise == "gaussian":
        mass = np.exp(-(places**2) / (2 * std**2)) if std else (places == 0).astype(np.float64)
    else:
        # E exp(i·t·noise) of a difference of two Polya variables, which has no imaginary part
        times = np.arange(size // 2 + 1) * (2 * np.pi / size)
        spread = (std / step) ** 2 / shape
        law = (1 + 2 * spread * np.sin(times / 2) ** 2) ** -shape
        mass = np.maximum(np.fft.fftshift(np.fft.irfft(law, size)), 0)
        mass = mass[size // 2 - reach : size // 2 + reach + 1]
    below = np.cumsum(mass)
    return np.asarray(places), np.asarray(below[:-1] / below[-1])


# --- the cells of an axis -------------------------------------------------------------------------


def cells_of(axis: CountedAxis) -> int:
    """How many cells a field has: its categories, or its bins."""
    return len(axis.words) or len(axis.cuts) + 1


def ends_of_bins(axis: CountedAxis) -> tuple[Floats, Floats]:
    """(first, last): the least and the largest value that lie in each bin, of those in steps."""
    edges = np.array([axis.lower, *axis.cuts])
    if not axis.step:
        return edges, np.array([*axis.cuts, axis.upper])
    first = axis.lower + np.ceil((edges - axis.lower) / axis.step - ROUNDING) * axis.step
    last = np.append(first[1:] - axis.step, axis.upper)
    return first, np.maximum(first, last)


def names_of_cells(axis: CountedAxis) -> list[str]:
    """Each cell in words: its category, its value, or its first and its last value."""
    if axis.words:
        return list(axis.words)
    pairs = zip(*ends_of_bins(axis), strict=True)
    return [f"{low:.6g}" if low == high else f"{low:.6g}–{high:.6g}" for low, high in pairs]


def is_coarse(axis: CountedAxis) -> bool:
    """Whether a bin holds more than one value."""
    first, last = ends_of_bins(axis)
    return bool(np.any(first < last)) and not axis.words


# --- repairs --------------------------------------------------------------------------------------


def as_counts(values: Floats, records: float, dimensions: int) -> Floats:
    """Tables without negative counts, scaled to their total.

    Args: values: its last `dimensions` axes are one table.
    """
    axes = tuple(range(-dimensions, 0))
    positive = np.maximum(values, 0)
    total = positive.sum(axis=axes, keepdims=True)
    return np.asarray(positive * (records / np.where(total > 0, total, 1)))


def as_paths(values: Floats, records: float, dimensions: int) -> Floats:
    """Tables whose running totals along the first axis never fall, scaled to their total.

    The running totals are sorted. For a monotone curve, this brings every estimate closer to it
    (Chernozhukov, Fernández-Val & Galichon 2009, proposition 1).

    Args: values: its last `dimensions` axes are one table; the first one of these is sorted.
    """
    axis = values.ndim - dimensions
    running = np.sort(np.maximum(np.cumsum(values, axis=axis), 0), axis=axis)
    return as_counts(np.diff(running, axis=axis, prepend=0), records, dimensions)


def wilson(share: Floats, count: Floats | float, tail: float) -> tuple[Floats, Floats]:
    """(low, high) for the probability behind a share of independent records.

    It is Wilson's interval with the correction for continuity (Newcombe 1998, method 4), which
    holds at least what it says up to tiny numbers.

    Args: count: records; where it is not above 0, the interval is all of [0, 1]. tail: the chance
        to miss, on each side.
    """
    z = normal_quantile(1 - tail)
    known = np.maximum(np.asarray(count, dtype=np.float64), ROUNDING)
    share = np.clip(share, 0.0, 1.0)
    middle, scale = 2 * known * share + z * z, 2 * (known + z * z)
    spread = z * z - 1 / known + 4 * known * share * (1 - share)
    low = middle - (1 + z * np.sqrt(np.maximum(spread + 4 * share - 2, 0)))
    high = middle + (1 + z * np.sqrt(np.maximum(spread - 4 * share + 2, 0)))
    none = np.asarray(count) <= 0
    found_low = np.where(none | (share <= 0), 0.0, np.clip(low / scale, 0.0, share))
    found_high = np.where(none | (share >= 1), 1.0, np.clip(high / scale, share, 1.0))
    return found_low, found_high


def normal_quantile(probability: float) -> float:
    """The quantile of the standard normal law."""
    return NormalDist().inv_cdf(probability)
