"""What is computed from the released means: a ratio, an entropy, a total; with what the noise does to it.

Post-processing of differentially private numbers costs no privacy. Two errors are reported, never added:

- *noise*: known law, independent between sums. noise_std by the delta method, [low, high] holds the value without noise
  with 95 %.
- *sampling*: of taking some edges instead of all. Only bounds of its standard deviation are known, and the sums' errors
  are correlated because they share edges, so the bound is Σ |∂ value / ∂ mean_i| · bound_i.

| name | value | of the sums |
|---|---|---|
| mean | s0 | the kernel |
| total | s0 · sets | the kernel |
| ratio | s0 / s1 | numerator, denominator |
| geometric_ratio | s0 / √(s1·s2) | numerator, two factors |
| collision_entropy | −log2 s0 | pairs that collide |

A value is withheld where its denominator cannot be told from zero at 95 %: then no bounded interval holds the ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite, log, log2, sqrt

from umpc.errors import KernelError

QUANTILE = log(20) / sqrt(2)
"""95 % of a sum's noise lies within so many standard deviations: 2.118, the Laplace law's, where the normal has 1.960.

The noise of N nodes of which any h suffice is a difference of two gammas of shape N/h ≥ 1 (negative binomials on the
grid of the sum's unit): Laplace for N = h, closer to normal for more nodes. Its 95 % quantile, in standard deviations,
falls from 2.118 to 1.960 as N/h grows, and likewise for a linear combination of independent such noises, as in
Fieller's theorem: so 2.118 holds for all of them. The grid matters where noise is a few units of the sum: coverage is
at least 94 % from a standard deviation of four units on, and may be 83 % below one, where noise is no concern.
"""


@dataclass(frozen=True)
class Estimate:
    """A released statistic; all in its own unit. note: why there is no value, else empty."""

    value: float | None
    noise_std: float | None
    low: float | None
    high: float | None
    sampling_std_bound: float | None
    note: str = ""


@dataclass(frozen=True)
class Sum:
    """A released mean over edges, its noise's standard deviation, its sampling error's bound. number: from 1."""

    number: int
    mean: float
    noise: float
    sampling: float

    @property
    def is_above_zero(self) -> bool:
        """At 95 %, against its noise: Fieller's g = (QUANTILE · noise / mean)² is below 1."""
        return self.mean > QUANTILE * self.noise


@dataclass(frozen=True)
class Estimator:
    """sums: how many means it takes. compute: from these, and the number of all possible sets of records."""

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
) -> Estimate:
    """A statistic from its sums.

    Args:
        means: released means over edges, noise included. noise_stds: of each, in its unit.
        sampling_bounds: upper bounds of each mean's standard deviation from taking some edges; 0 for all edges.
        sets: how many edges are possible: C(n, k), or n0·n1 for two samples.

    Raises: KernelError for an unknown estimator, or another number of sums than it takes.
    """
    estimator = find_estimator(name)
    if not len(means) == len(noise_stds) == len(sampling_bounds) == estimator.sums:
        raise KernelError(
            f"{name} is {estimator.formula}, of {estimator.sums} sum(s); got {len(means)}"
        )
    numbers = [
        tuple(map(float, row)) for row in zip(means, noise_stds, sampling_bounds, strict=True)
    ]
    if not all(
        isfinite(mean) and noise >= 0 and sampling >= 0 for mean, noise, sampling in numbers
    ):
        raise KernelError(f"{name} takes finite means and errors of at least 0, got {numbers}")
    return estimator.compute([Sum(number, *row) for number, row in enumerate(numbers, 1)], sets)


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


def _scaled(of: Sum, factor: int) -> Estimate:
    value, noise = of.mean * factor, of.noise * factor
    return Estimate(
        value, noise, value - QUANTILE * noise, value + QUANTILE * noise, of.sampling * factor
    )


def _ratio(sums: Sequence[Sum], sets: int) -> Estimate:
    numerator, denominator = sums
    return _drowned(sums[1:]) or _fieller(numerator, denominator)


def _geometric_ratio(sums: Sequence[Sum], sets: int) -> Estimate:
    """Its denominator √(s1·s2) is linearised, with its noise by the delta method; then as a ratio."""
    numerator, first, second = sums
    return _drowned(sums[1:]) or _fieller(numerator, _geometric_mean(first, second))


def _geometric_mean(first: Sum, second: Sum) -> Sum:
    mean = sqrt(first.mean) * sqrt(second.mean)
    noise = mean / 2 * sqrt((first.noise / first.mean) ** 2 + (second.noise / second.mean) ** 2)
    return Sum(
        first.number,
        mean,
        noise,
        mean / 2 * (first.sampling / first.mean + second.sampling / second.mean),
    )


def _fieller(numerator: Sum, denominator: Sum) -> Estimate:
    """The ratio of two independent noisy numbers (Fieller 1954): all θ with |s0 − θ·s1| ≤ z·√(σ0² + θ²·σ1²)."""
    value = numerator.mean / denominator.mean
    g = (QUANTILE * denominator.noise / denominator.mean) ** 2
    spread = sqrt(numerator.noise**2 * (1 - g) + (value * denominator.noise) ** 2)
    centre, half = value / (1 - g), QUANTILE * spread / (denominator.mean * (1 - g))
    return Estimate(
        value,
        sqrt(numerator.noise**2 + (value * denominator.noise) ** 2) / denominator.mean,
        centre - half,
        centre + half,
        (numerator.sampling + abs(value) * denominator.sampling) / denominator.mean,
    )


def _collision_entropy(sums: Sequence[Sum], sets: int) -> Estimate:
    """Decreasing in the mean, so the interval is the mean's, transformed."""
    (of,) = sums
    slope = 1 / (of.mean * log(2)) if of.is_above_zero else 0.0
    return _drowned(sums) or Estimate(
        0.0 - log2(of.mean),
        slope * of.noise,
        0.0 - log2(of.mean + QUANTILE * of.noise),
        0.0 - log2(of.mean - QUANTILE * of.noise),
        slope * of.sampling,
    )


def _drowned(denominators: Sequence[Sum]) -> Estimate | None:
    """No value, where one of the denominators (or the logarithm's argument) cannot be told from zero."""
    for of in denominators:
        if not of.is_above_zero:
            size = f"{of.mean:.3g} ± {of.noise:.2g} (noise)" if of.noise else "0"
            cure = (
                "give it more epsilon, or run over more records" if of.noise else "take more edges"
            )
            note = f"no value: sum {of.number}, {size}, cannot be told from zero and has to be above it; {cure}"
            return Estimate(None, None, None, None, None, note)
    return None


ESTIMATORS = {
    estimator.name: estimator
    for estimator in (
        Estimator("mean", 1, "the mean", _mean),
        Estimator("total", 1, "the mean times the number of possible sets", _total),
        Estimator("ratio", 2, "sum 1 / sum 2", _ratio),
        Estimator("geometric_ratio", 3, "sum 1 / sqrt(sum 2 * sum 3)", _geometric_ratio),
        Estimator("collision_entropy", 1, "-log2 of the mean", _collision_entropy),
    )
}
