"""Curves of one table: distribution, quantiles, histogram, ROC, and quantiles of two groups.

A share A/(A + B) of two numbers grows with A and falls with B. So an interval for both numbers at
once gives one for the share: its lower end is that of the low A with the high B. Intervals for the
population add the sampling to the ends of the interval for these records: the latter misses with
NOISE_PART of the chance, the former (Wilson's interval) with the rest.
"""

from __future__ import annotations

from itertools import product
from math import log, sqrt

import numpy as np

from umpc.counts.answers import (
    BAND,
    BARS,
    PATH,
    POPULATION,
    POPULATION_BAND,
    RECORDS,
    Bounds,
    CountsAnswer,
    Ends,
    Number,
    Series,
)
from umpc.counts.table import (
    RUNS,
    CountTable,
    Floats,
    NoisyNumbers,
    as_counts,
    as_paths,
    ends_of_bins,
    is_coarse,
    names_of_cells,
    normal_quantile,
    order_of,
    wilson,
)
from umpc.errors import StudyError
from umpc.study.report import CountedAxis

NOISE_PART = 0.2
"""The part of an interval's chance to miss that its noise takes; the sampling takes the rest."""
QUARTILES = (0.25, 0.5, 0.75)
SPECIFICITY = 0.9
QQ_POINTS = 19


def noise_level(level: float) -> float:
    """The level of the interval for these records inside one for the population."""
    return 1 - NOISE_PART * (1 - level)


def sampling_tail(level: float) -> float:
    """The sampling's chance to miss on each side, of an interval for the population."""
    return (1 - NOISE_PART) * (1 - level) / 2


def notes_of(
    axis: CountedAxis, meaning: str = "the curve is exact at their last ones"
) -> list[str]:
    """Say where a bin holds several values, and what that means."""
    if not is_coarse(axis):
        return []
    return [f"bins of {axis.field} hold several values: {meaning}"]


# --- one field ------------------------------------------------------------------------------------


def ecdf(table: CountTable, level: float, axis: int) -> CountsAnswer:
    """The share of records up to each bin's last value, with a band.

    The band for the population adds that of Dvoretzky, Kiefer & Wolfowitz (Massart 1990).
    """
    field, n = table.report.axes[axis], table.records
    counts = table.onto(axis)
    sums = counts.map(lambda values: np.cumsum(values, axis=-1))
    shares = np.cumsum(as_paths(counts.value, 1.0, 1))
    least, most = sums.ends(noise_level(level), 1)
    apart = sqrt(log(1 / sampling_tail(level)) / (2 * n))
    band = Bounds.within(least / n - apart, most / n + apart, 0, 1)
    intervals = {**_intervals(sums, level, 1.0), POPULATION_BAND: band}
    series = Series(field.field, ends_of_bins(field)[1].tolist(), shares.tolist(), intervals)
    return CountsAnswer(
        "ecdf",
        f"distribution of {field.field}",
        level,
        field.field,
        "share of records up to it",
        [series],
        _quartiles(counts, field, level),
        notes_of(field),
    )


def _intervals(numbers: NoisyNumbers, level: float, most: float) -> dict[str, Bounds]:
    """Intervals for numbers of records, each alone and all together. Args: most: that of all n."""
    n = numbers.records
    sampled = _sampled(numbers.ends(noise_level(level)), n, n, sampling_tail(level))
    found = {
        RECORDS: [ends / (n / most) for ends in numbers.ends(level)],
        BAND: [ends / (n / most) for ends in numbers.ends(level, numbers.value.ndim)],
        POPULATION: [ends * most for ends in sampled],
    }
    return {
        kind: Bounds.within(low.ravel(), high.ravel(), 0, most)
        for kind, (low, high) in found.items()
    }


def _sampled(
    ends: tuple[Floats, Floats], total: Floats | float, count: Floats | float, tail: float
) -> tuple[Floats, Floats]:
    """Ends of an interval for a probability, from ends for the number of records."""
    low, high = ends
    return wilson(low / total, count, tail)[0], wilson(high / total, count, tail)[1]


def quantiles(
    table: CountTable, level: float, axis: int, share: float | None = None
) -> CountsAnswer:
    """A quantile of a field with its intervals, or the quartiles. Raises: as `_quantile`."""
    field, counts = table.report.axes[axis], table.onto(axis)
    if share is None:
        numbers = _quartiles(counts, field, level)
    else:
        numbers = [_quantile(counts, field, level, share)]
    title = f"quantiles of {field.field}"
    return CountsAnswer("quantiles", title, level, "", "", [], numbers, notes_of(field))


def _quartiles(counts: NoisyNumbers, field: CountedAxis, level: float) -> list[Number]:
    """The quartiles, and the range between them, whose intervals are those of both together."""
    found = [_quantile(counts, field, level, share) for share in QUARTILES]
    first, _, third = (_quantile(counts, field, (1 + level) / 2, share) for share in QUARTILES)
    intervals: dict[str, Ends] = {
        kind: (
            max(0.0, _known(third.intervals[kind][0]) - _known(first.intervals[kind][1])),
            _known(third.intervals[kind][1]) - _known(first.intervals[kind][0]),
        )
        for kind in first.intervals
    }
    width = _known(found[2].value) - _known(found[0].value)
    return [*found, Number("interquartile range", width, intervals)]


def _known(value: float | None) -> float:
    return 0.0 if value is None else value


def _quantile(counts: NoisyNumbers, field: CountedAxis, level: float, share: float) -> Number:
    """The least value at or below which a share of the records lies (Hyndman & Fan 1996, type 1).

    They are those of one group, whose number may be private. The quantile is in bin k if and only
    if P_k − p·P ≥ 0 > P_{k−1} − p·P for the running totals P_k and the whole total P. Both are
    linear in the counts. So the bins that no test of these two excludes hold it as often as the
    level says, whatever the other bins are.

    Raises: StudyError for a share that is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise StudyError(f"a quantile is of a share between 0 and 1, got {share}")

    def over(values: Floats) -> Floats:
        sums = np.cumsum(values, axis=-1)
        return np.asarray(sums - share * sums[..., -1:])

    def bins(level: float, slack: float) -> tuple[int, int]:
        low, high = reached.ends(level)
        before = np.concatenate([[-1.0], low[:-1] - slack])
        high = np.concatenate([high[:-1] + slack, [0.0]])
        found = np.flatnonzero((high > -ROUNDING) & (before < -ROUNDING))
        # noise may exclude all bins, but only where the interval misses
        return (int(found[0]), int(found[-1])) if len(found) else (0, len(high) - 1)

    reached, (first, last) = counts.map(over), ends_of_bins(field)
    total = float(np.sum(counts.value))
    most = counts.map(lambda values: values.sum(axis=-1)).ends(level)[1]
    spread = sqrt(max(float(most), 1.0) * share * (1 - share))
    slack = normal_quantile(1 - sampling_tail(level)) * spread + 0.5
    held = {RECORDS: bins(level, 0.0), POPULATION: bins(noise_level(level), slack)}
    intervals: dict[str, Ends] = {
        kind: (float(first[low]), float(last[high])) for kind, (low, high) in held.items()
    }
    repaired = as_paths(counts.value, max(total, 1.0), 1)
    sums = np.cumsum(repaired)
    at = min(int(np.searchsorted(sums, share * sums[-1] - ROUNDING)), len(sums) - 1)
    part = (share * sums[-1] - (sums[at] - repaired[at])) / max(float(repaired[at]), ROUNDING)
    inside = first[at] + min(max(part, 0.0), 1.0) * (last[at] - first[at])
    name = {0.5: "median", 0.25: "first quartile", 0.75: "third quartile"}.get(share)
    return Number(name or f"quantile {share:g}", float(inside), intervals)


ROUNDING = 1e-9


def histogram(table: CountTable, level: float, *axes: int) -> CountsAnswer:
    """The number of records in each cell of a field, or of several fields."""
    fields, n = [table.report.axes[axis] for axis in axes], table.records
    names = ", ".join(field.field for field in fields)
    labels = [", ".join(each) for each in product(*map(names_of_cells, fields))]
    series = cells(table.onto(*axes), n, level, names, labels)
    title = f"counts of {names}"
    return CountsAnswer(
        "histogram", title, level, names, "records", [series], [], [_LEAST], form=BARS
    )


_LEAST = "no count is shown below 0 or above the number of records"


def cells(counts: NoisyNumbers, n: int, level: float, name: str, labels: list[str]) -> Series:
    """One bar for each cell, with intervals for each alone and for all together."""
    value = as_counts(counts.value, n, counts.value.ndim).ravel()
    places = [float(at) for at in range(value.size)]
    return Series(name, places, value.tolist(), _intervals(counts, level, n), labels)


# --- two fields -----------------------------------------------------------------------------------


def roc(
    table: CountTable, level: float, score: int, label: int, share: float = SPECIFICITY
) -> CountsAnswer:
    """Sensitivity against 1 − specificity at each cut point, and the area under the curve.

    The area's numerator and denominator are products of counts. For the true area A, numerator less
    A times denominator is 0, so A is in the interval unless that number is outside what the noise
    makes of 0 (Fieller 1954). The law of the noise's effect on it is simulated at the released
    table.
    """
    axes = table.report.axes
    counts = table.onto(score, label)
    shares = as_counts(counts.value, 1.0, 2)
    above = np.cumsum(shares[::-1], axis=0)[::-1]
    rates = above / np.maximum(above[0], ROUNDING)
    first, _ = ends_of_bins(axes[score])

    def sides(values: Floats) -> Floats:
        """Each class' records from a bin on, and below it: (…, 2, bins, 2)."""
        sums = np.cumsum(values, axis=-2)
        below = sums - values
        return np.stack([sums[..., -1:, :] - below, below], axis=-3)

    split = counts.map(sides)
    found: dict[str, tuple[Floats, Floats]] = {}
    both = np.moveaxis(split.errors, 1, 3)  # the two sides last: they hold together
    pairs = NoisyNumbers(np.moveaxis(split.value, 0, 2), both, table.records)
    inner = noise_level(level)
    tail = sampling_tail(level)
    for kind in (RECORDS, BAND, POPULATION, POPULATION_BAND):
        at = level if kind in (RECORDS, BAND) else inner
        many = 1 if kind in (RECORDS, POPULATION) else 3
        low, high = (np.maximum(ends, 0) for ends in pairs.ends(at, many))
        a, b = _share(low[..., 0], high[..., 1]), _share(high[..., 0], low[..., 1])
        known = low.sum(axis=-1)
        if kind == POPULATION:
            a, b = _sampled((a, b), 1.0, known, tail)
        if kind == POPULATION_BAND:
            # a band for both classes at once (Massart 1990), half of the tail for each
            apart = np.sqrt(log(2 / tail) / (2 * np.maximum(known.max(axis=0), ROUNDING)))
            a, b = a - apart, b + apart
        found[kind] = a, b
    other, sensitivity = (
        {kind: Bounds.within(a[:, side], b[:, side], 0, 1) for kind, (a, b) in found.items()}
        for side in (0, 1)
    )
    labels = [f"{axes[score].field} ≥ {at:.6g}" for at in first]
    curve = Series("sensitivity", rates[:, 0].tolist(), rates[:, 1].tolist(), sensitivity, labels)
    false = Series("1 − specificity", rates[:, 0].tolist(), rates[:, 0].tolist(), other, labels)
    numbers = [area(table, counts, level), _at_specificity(curve, other, share)]
    return CountsAnswer(
        "roc",
        f"ROC curve of {axes[score].field} for {axes[label].field}",
        level,
        "1 − specificity",
        "sensitivity",
        [curve, false],
        numbers,
        notes_of(axes[score]),
        form=PATH,
    )


def _share(part: Floats, rest: Floats) -> Floats:
    """part/(part + rest), which is 0 or 1 only where that is known."""
    total = part + rest
    return np.asarray(np.where(total > 0, part / np.where(total > 0, total, 1), part >= 0))


def area(table: CountTable, counts: NoisyNumbers, level: float) -> Number:
    """The area under the ROC curve: the chance that a record of class 1 has the higher score.

    Samples for the population are drawn from the released table without its negative counts.
    """

    def products(values: Floats) -> Floats:
        """(…, 2): pairs in order, with ties half, and all pairs of both classes."""
        sums = np.cumsum(values, axis=-2)
        middle = sums[..., 0] - values[..., 0] / 2
        ordered = (middle * values[..., 1]).sum(axis=-1)
        return np.stack([ordered, sums[..., -1, 0] * sums[..., -1, 1]], axis=-1)

    seen = products(counts.value)
    repaired = as_counts(counts.value, counts.records, 2)
    sampled = table.drawn(repaired, "area") - repaired
    ordered, pairs = products(repaired)
    value = float(ordered / pairs) if pairs > 0 else None
    outside = RUNS - 1 - order_of((1 + level) / 2)
    intervals: dict[str, Ends] = {}
    for kind, moved in ((RECORDS, counts.errors), (POPULATION, counts.errors + sampled)):
        # what the true products are, if this was the error
        true = 2 * seen - products(counts.value + moved)
        known = true[:, 1] > 0
        areas = np.where(known, true[:, 0] / np.where(known, true[:, 1], 1), np.inf)
        low, high = np.sort(np.where(known, areas, -np.inf)), np.sort(areas)
        ends = np.clip([low[outside], high[-1 - outside]], 0.0, 1.0)
        intervals[kind] = float(ends[0]), float(ends[1])
        if kind == RECORDS and value is not None:
            # counts without negative ones are nearer to an area of one half
            value = float(np.clip(value, *ends))
    return Number("area under the curve", value, intervals)


def _at_specificity(curve: Series, false: dict[str, Bounds], specificity: float) -> Number:
    """The largest sensitivity of a cut point with at least this specificity.

    Bands hold all rates at once, so they hold those of the cut point that is the best one.
    """
    if not 0 < specificity < 1:
        raise StudyError(f"a specificity is between 0 and 1, got {specificity}")

    def best(false: list[float], true: list[float]) -> float:
        most = 1 - specificity + ROUNDING
        return max((b for a, b in zip(false, true, strict=True) if a <= most), default=0.0)

    intervals: dict[str, Ends] = {}
    for kind, band in ((RECORDS, BAND), (POPULATION, POPULATION_BAND)):
        true, other = curve.intervals[band], false[band]
        intervals[kind] = best(other.high, true.low), best(other.low, true.high)
    name = f"sensitivity at specificity {specificity:g}"
    return Number(name, best(curve.x, curve.value), intervals)


def qq(table: CountTable, level: float, axis: int, group: int) -> CountsAnswer:
    """Quantiles of the second group against those of the first one."""
    axes = table.report.axes
    names, counts = names_of_cells(axes[group]), table.onto(axis, group)
    shares = [(at + 1) / (QQ_POINTS + 1) for at in range(QQ_POINTS)]
    points = [
        [_quantile(counts.at(place), axes[axis], level, share) for share in shares]
        for place in (0, 1)
    ]
    xs, ys = ([_known(each.value) for each in numbers] for numbers in points)
    first, second = (
        {
            kind: Bounds(*([_known(each.intervals[kind][end]) for each in own] for end in (0, 1)))
            for kind in (RECORDS, POPULATION)
        }
        for own in points
    )
    series = Series(f"{names[1]} against {names[0]}", xs, ys, second)
    return CountsAnswer(
        "qq",
        f"quantiles of {axes[axis].field} in two groups of {axes[group].field}",
        level,
        f"{axes[axis].field} in {names[0]}",
        f"in {names[1]}",
        [series, Series(f"{names[0]} itself", xs, xs, first)],
        [],
        notes_of(axes[axis]),
        form=PATH,
    )
