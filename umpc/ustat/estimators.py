"""Statistics that are computed from the released means, such as ratios and entropies, with errors.

Post-processing of differentially private numbers costs no privacy. Two errors are reported and are
never added up:

- *noise*: its law is known, and it is independent between sums. `noise_std` follows by the delta
  method. `intervals.py` has the interval that holds the value without noise.
- *sampling*: the error of taking some edges instead of all. Only bounds of its standard deviation
  are known. The sums' errors are correlated because they share edges, so the bound is
  Σ |∂ value / ∂ mean_i| · bound_i.

| name | value | sums s0, s1, s2 |
|---|---|---|
| mean | s0 | the kernel |
| total | s0 · sets | the kernel |
| ratio | s0 / s1 | numerator, denominator |
| geometric_ratio | s0 / √(s1·s2) | numerator, two factors |
| difference | s0 − s1 | two kernels |
| difference_ratio | (s0 − s1) / s2 | two numerators, denominator |
| collision_entropy | −log2 s0 | pairs that collide |
| collision_entropy_nats | −ln s0 | pairs that collide |
| mean_with_variance | s0 | a kernel of pairs over triples, and its second sum (`strata.py`) |
| means | no single number: the means themselves | any number of kernels |

`sets` is the number of possible edges. A value is withheld where its denominator cannot be told
from zero at 95 %: then no bounded interval holds the ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import e, isfinite, log, log2, sqrt

from umpc.errors import KernelError
from umpc.ustat.pair_quantiles import MEDIAN, curve_of, median_spread, quantile_of, spread_of

QUANTILE = log(20) / sqrt(2)
"""A denominator is told from zero if it is above so many standard deviations of its noise.

95 % of Laplace noise lies within them. The number is part of what a report promises: a value whose
denominator is not above it is withheld. Intervals do not depend on it; their ends are quantiles of
the noise's own law (`intervals.py`).
"""


WITH_VARIANCE = "mean_with_variance"
"""The estimator of a mean whose second sum gives the variance for a population."""
VECTOR = "means"
"""The estimator whose result are the means themselves."""
PAIR_MEDIAN = "pair_median"
"""The estimator of the median of pairs' values, from shares of pairs between thresholds."""
ANY = 0
"""Any number of sums."""


@dataclass(frozen=True)
class Estimate:
    """A released statistic and its errors, all in its own unit.

    Args:
        value: None where it is withheld; then all other numbers are None too.
        noise_std: the standard deviation of the value's noise.
        sampling_std_bound: a bound of the standard deviation from taking some edges.
        note: the reason why there is no value, or whether noise made it impossible; else empty.
    """

    value: float | None
    noise_std: float | None
    sampling_std_bound: float | None
    note: str = ""


@dataclass(frozen=True)
class Sum:
    """A released mean over edges and its errors.

    Args:
        number: which of the statistic's sums, from 1.
        noise: the noise's standard deviation.
        sampling: a bound of the sampling error's standard deviation.
    """

    number: int
    mean: float
    noise: float
    sampling: float

    @property
    def is_above_zero(self) -> bool:
        """Whether the mean can be told from zero at 95 %, against its noise.

        It then is positive.
        """
        return self.mean > QUANTILE * self.noise


@dataclass(frozen=True)
class Estimator:
    """A way to compute one number from the sums' means.

    Args:
        sums: the number of means that it takes; ANY for a vector.
        formula: the same in words.
        compute: from the means and the number of possible edges to the estimate.
    """

    name: str
    sums: int
    formula: str
    compute: Callable[[Sequence[Sum], int], Estimate]


def estimate(
    name: str,
    means: Sequence[float],
    noise_stds: Sequence[float],
    sampling_bounds: Sequence[float],
    sets: int,
    ends: Sequence[float] = (),
) -> Estimate:
    """A statistic from its sums.

    Args:
        name: the estimator's.
        means: the released means over edges, noise included.
        noise_stds: the standard deviation of each mean's noise, in the mean's unit.
        sampling_bounds: upper bounds of each mean's standard deviation from taking some edges; 0
            for all edges.
        sets: the number of possible edges: C(n, k), or n0·n1 for two samples.
        ends: the thresholds of a pair median, between the least and the largest possible value.

    Raises: KernelError for an unknown estimator, another number of sums than it takes, an infinite
    mean, or a negative error.
    """
    estimator = find_estimator(name)
    due = len(means) if estimator.sums == ANY else estimator.sums
    if not len(means) == len(noise_stds) == len(sampling_bounds) == due:
        raise KernelError(
            f"{name} is {estimator.formula}, of {estimator.sums} sum(s); got {len(means)}"
        )
    rows = zip(means, noise_stds, sampling_bounds, strict=True)
    numbers = [(float(mean), float(noise), float(sampling)) for mean, noise, sampling in rows]
    for mean, noise, sampling in numbers:
        if not (isfinite(mean) and noise >= 0 and sampling >= 0):
            raise KernelError(f"{name} takes finite means and errors of at least 0, got {numbers}")
    sums = [Sum(number, *row) for number, row in enumerate(numbers, 1)]
    return _pair_median(sums, ends) if name == PAIR_MEDIAN else estimator.compute(sums, sets)


def find_estimator(name: str) -> Estimator:
    """The estimator of that name. Raises: KernelError listing the names."""
    if name not in ESTIMATORS:
        raise KernelError(
            f"there is no estimator {name!r}; there are {', '.join(sorted(ESTIMATORS))}"
        )
    return ESTIMATORS[name]


def _mean(sums: Sequence[Sum], sets: int) -> Estimate:
    return _scaled(sums[0], 1)


def _total(sums: Sequence[Sum], sets: int) -> Estimate:
    return _scaled(sums[0], sets)


def _scaled(total: Sum, factor: int) -> Estimate:
    return Estimate(total.mean * factor, total.noise * factor, total.sampling * factor)


def _ratio(sums: Sequence[Sum], sets: int) -> Estimate:
    numerator, denominator = sums
    return _drowned(sums[1:]) or _quotient(numerator, denominator)


def _geometric_ratio(sums: Sequence[Sum], sets: int) -> Estimate:
    """s0 / √(s1·s2), as a ratio whose denominator's errors follow by the delta method."""
    numerator, first, second = sums
    return _drowned(sums[1:]) or _quotient(numerator, _geometric_mean(first, second))


def _geometric_mean(first: Sum, second: Sum) -> Sum:
    """√(s1·s2), linearised: its relative errors are half of those of the product."""
    mean = sqrt(first.mean) * sqrt(second.mean)
    noise = mean / 2 * sqrt((first.noise / first.mean) ** 2 + (second.noise / second.mean) ** 2)
    sampling = mean / 2 * (first.sampling / first.mean + second.sampling / second.mean)
    return Sum(first.number, mean, noise, sampling)


def _quotient(numerator: Sum, denominator: Sum) -> Estimate:
    """The ratio of two independent noisy numbers, with its errors by the delta method."""
    value = numerator.mean / denominator.mean
    noise = sqrt(numerator.noise**2 + (value * denominator.noise) ** 2) / denominator.mean
    sampling = (numerator.sampling + abs(value) * denominator.sampling) / denominator.mean
    return Estimate(value, noise, sampling)


ENTROPIES = {"collision_entropy": 2.0, "collision_entropy_nats": e}
"""The estimators that are minus the logarithm of a mean, with their bases: bits and nats."""


def log_of(number: float, base: float) -> float:
    """The logarithm to one of the bases of `ENTROPIES`, exact for powers of 2 where it is 2."""
    return log2(number) if base == 2 else log(number)


def _collision_entropy(base: float, sums: Sequence[Sum], sets: int) -> Estimate:
    """−log of the share of pairs that collide."""
    if withheld := _drowned(sums):
        return withheld
    (share,) = sums
    slope = 1 / (share.mean * log(base))
    # 0.0 − x is never −0.0
    value = 0.0 - log_of(share.mean, base)
    return Estimate(value, slope * share.noise, slope * share.sampling)


def _vector(sums: Sequence[Sum], sets: int) -> Estimate:
    """No single number: the released means are the result."""
    note = f"the result is a vector of {len(sums)} mean(s), which are listed as sums"
    return Estimate(None, None, None, note)


DIFFERENCES = {"difference": "mean", "difference_ratio": "ratio"}
"""The estimators of sum 1 − sum 2 in place of sum 1, with the estimator that takes it then."""


def _difference(
    compute: Callable[[Sequence[Sum], int], Estimate], sums: Sequence[Sum], sets: int
) -> Estimate:
    """An estimator of sum 1 − sum 2. Args: compute: what takes it."""
    one, other, *rest = sums
    noise = sqrt(one.noise**2 + other.noise**2)
    difference = Sum(1, one.mean - other.mean, noise, one.sampling + other.sampling)
    return compute([difference, *rest], sets)


def _pair_median(sums: Sequence[Sum], ends: Sequence[float]) -> Estimate:
    """The median, interpolated between two thresholds; no value beyond all thresholds."""
    means, cuts = [each.mean for each in sums], len(ends) - 2
    if len(sums) - cuts not in (1, 2):
        raise KernelError(f"{PAIR_MEDIAN} takes disjoint cells of pairs, got {len(sums)} sum(s)")
    rest = Sum(len(sums), 1 - means[-1], sums[-1].noise, 0.0)
    if len(sums) - cuts == 2 and (withheld := _drowned([rest])):
        return withheld
    curve = curve_of(means, cuts)
    if not curve[1] < MEDIAN < curve[-2]:
        side, end = (
            ("above the highest", ends[-2])
            if curve[-2] <= MEDIAN
            else ("below the lowest", ends[1])
        )
        note = f"no value: the median lies {side} threshold, {end:g}, or noise hides where"
        return Estimate(None, None, None, f"{note}; take other thresholds, or more epsilon")

    def noise(weights: Sequence[float], constant: float) -> float:
        rows = zip(weights, sums, strict=True)
        return sqrt(sum((weight * each.noise) ** 2 for weight, each in rows))

    return Estimate(
        quantile_of(curve, ends, MEDIAN),
        median_spread(means, ends, noise),
        spread_of(curve, ends, max(each.sampling for each in sums)),
    )


def _drowned(denominators: Sequence[Sum]) -> Estimate | None:
    """No value, where a denominator (or the logarithm's argument) cannot be told from zero.

    Returns: None where all of them can.
    """
    for total in denominators:
        if total.is_above_zero:
            continue
        size, cure = "0", "take more edges"
        if total.noise:
            size = f"{total.mean:.3g} ± {total.noise:.2g} (noise)"
            cure = "give it more epsilon, or run over more records"
        note = (
            f"no value: sum {total.number}, {size}, cannot be told from zero and has to be above "
            f"it; {cure}"
        )
        return Estimate(None, None, None, note)
    return None


ESTIMATORS = {
    estimator.name: estimator
    for estimator in (
        Estimator("mean", 1, "the mean", _mean),
        Estimator(WITH_VARIANCE, 2, "the mean; sum 2 gives its variance in a population", _mean),
        Estimator("total", 1, "the mean times the number of possible sets", _total),
        Estimator("ratio", 2, "sum 1 / sum 2", _ratio),
        Estimator("geometric_ratio", 3, "sum 1 / sqrt(sum 2 * sum 3)", _geometric_ratio),
        Estimator("difference", 2, "sum 1 - sum 2", partial(_difference, _mean)),
        Estimator("difference_ratio", 3, "(sum 1 - sum 2) / sum 3", partial(_difference, _ratio)),
        *(
            Estimator(name, 1, f"-{log_name} of the mean", partial(_collision_entropy, base))
            for (name, base), log_name in zip(ENTROPIES.items(), ("log2", "ln"), strict=True)
        ),
        Estimator(VECTOR, ANY, "the means themselves", _vector),
        Estimator(PAIR_MEDIAN, ANY, "the median of the pairs' values, by shares", _vector),
    )
}
