"""Intervals, tests and the four sources of error of one report.

*Private variance.* A mean over pairs whose variance in the population is bounded by a released
second sum.

For records drawn independently, the mean U of a kernel f over all pairs of n records has

    Var U = (4(n − 2)·ζ₁ + 2·ζ₂) / (n(n − 1))                            (Hoeffding 1948, 5.13),

where ζ₂ = Var f, and ζ₁ is the variance of the projection of f. The second sum has the mean
μ = ζ₁ + θ² (`umpc/ustat/strata.py`). An upper end for μ counts all of that sum's errors: its
noise, the sampling of E and the drawing of the records. It is below μ with a probability of at most
MISSED times that of the interval to miss. For each θ, ζ₁ is then at most the upper end less θ², and
at most ζ₂/2; ζ₂ is at most the largest variance of a kernel with the mean θ.

*Differences.* The difference of two sums u and v of kernels of at least 0, of which one is 0 on
each set of records.

Let |u − v| be at most H. Then (u − v)² ≤ H·(u + v), so the variance of the kernel u − v is at most
H times the mean of u + v, and so is that of u − v − θ·w if it has the mean 0, u + v is 0 where w
is, and w is 0 or 1. An upper end for the mean of u + v counts all errors of both sums, as above.
With it the statistic's variance is at most 2/n times H·end, or 1/min(n0, n1) times, also for given
private labels (Hoeffding 1948). Two scores that agree on most pairs then have a small variance,
which no public number tells.

*Tests with an upper end.* A test at level α takes the end that is too low with a probability of at
most MISSED·α, and rejects if the p-value with it is at most (1 − MISSED)·α. Its p-value is the
least α at which it rejects (Berger & Boos 1994 add a fixed probability instead).

An error law with Hoeffding's bound for the population, for every number of records.

A U-statistic of n records is a mean, over all orders of the records, of means of m = n/k
independent values of its kernel (Hoeffding 1963, section 5a). So every bound by the exponential
moment of such a mean holds for it. For values in [low, high] with mean 0,

    P(U >= t) <= exp(−m·KL(q ‖ p)),  p = −low/(high − low),  q = (t − low)/(high − low)

(Hoeffding 1963, theorem 1). The noise is independent of the records, so with its exact law

    P(noise + U >= x) <= Σ over noise values e of P(e)·bound(x − e).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf, isfinite, isqrt, log, sqrt
from typing import Any

import numpy as np

from umpc.errors import StudyError, UmpcError
from umpc.inference.hypotheses import HYPOTHESES, DrawnRecords, Hypothesis
from umpc.inference.null_laws import (
    ALTERNATIVES,
    GREATER,
    LEAST,
    LESS,
    TWO_SIDED,
    NormalLaw,
    NullLaw,
    NullTest,
    p_value,
    told,
)
from umpc.study.making_report import MOVED, SETS, released_sums
from umpc.study.parts import FieldText
from umpc.study.report import Report
from umpc.ustat.error_law import ErrorLaw, Floats
from umpc.ustat.estimators import DIFFERENCES, ENTROPIES, PAIR_MEDIAN, WITH_VARIANCE
from umpc.ustat.intervals import (
    BOTH,
    TAIL,
    contrast_of,
    covering_interval,
    pair_interval,
    population_std,
    theta_of,
)
from umpc.ustat.kernel import Kernel
from umpc.ustat.pair_quantiles import curve_of, ends_of, quantile_of
from umpc.ustat.released_means import ReleasedStatistic, ReleasedSum, joint_values
from umpc.ustat.schema import Schema
from umpc.ustat.strata import PAIR

NOISE, RECORDS, POPULATION, HOEFFDING = "noise", "records", "population", "hoeffding"
KINDS = (NOISE, RECORDS, POPULATION, HOEFFDING)
"""The kinds of intervals; each counts more errors, or bounds them in a stronger way."""
USUAL_LEVEL = 0.95
LARGEST_LAW = "normal law of the largest variance"
LARGEST = "the largest that the released values leave open"
"""Where a standard deviation is a bound, which the true one is often far below."""


@dataclass(frozen=True)
class ReportInterval:
    """An interval. covers: the value that it is for. level: how often it holds that value."""

    low: float
    high: float
    level: float
    kind: str
    covers: str

    def __iter__(self) -> Any:
        """(low, high), so that `low, high = result.interval()`."""
        return iter((self.low, self.high))


@dataclass(frozen=True)
class PairQuantile:
    """The value below which a share of pairs lies, with its interval. covers: as `ReportInterval`.

    low, high: thresholds of the study, or an end of all possible values.
    """

    share: float
    value: float
    low: float
    high: float
    level: float
    covers: str


@dataclass(frozen=True)
class ErrorSource:
    """One source of error. std: in the estimate's unit, at most; None where it is not bounded."""

    name: str
    std: float | None
    about: str

    @property
    def size(self) -> str:
        """The standard deviation in words. That of the noise is known; others are bounds."""
        if self.std is None:
            return "not bounded by public numbers"
        known = self.name == NOISE or not self.std
        return f"{self.std:.3g}" if known else f"at most {self.std:.3g}"


class Inference:
    """Inference from one report. Nothing here takes further ε.

    With variance = "private" the statistic is the mean of the first sum, over pairs; the second sum
    only bounds its variance.

    Raises: StudyError in all methods where the report has no value.
    """

    def __init__(self, report: Report):
        self.report = report
        self.has_variance = report.estimator == WITH_VARIANCE
        self.estimator = "mean" if self.has_variance else report.estimator
        self.bounded_by = "by the private variance" if self.has_variance else ""
        if report.estimator in DIFFERENCES and report.statistic in HYPOTHESES:
            self.bounded_by = "by how often the two differ"

    # --- intervals -----------------------------------------------------------------------------

    def interval(self, level: float = USUAL_LEVEL, kind: str = RECORDS) -> ReportInterval:
        """An interval for the statistic.

        Args:
            level: how often the interval holds the value, between 0.5 and 1.
            kind: "noise" for the value on the sampled sets; "records" for the value on all sets of
                these records; "population" for the law from which the records are drawn, with the
                largest variance that the estimate leaves, or the private one of the study, and a
                normal law; "hoeffding" for the same with a bound that holds for every number of
                records.
        Raises: StudyError for another level or kind.
        """
        self._check_value()
        if kind not in KINDS or not 0.5 <= level < 1:
            raise StudyError(
                f"an interval has a level from 0.5 to below 1 and a kind of {', '.join(KINDS)}; "
                f"got {level} and {kind!r}"
            )
        tail = TAIL if level == USUAL_LEVEL else (1 - level) / 2
        if kind == POPULATION and self.bounded_by:
            statistic = self.bounded(1 - level)
            tail *= 1 - MISSED
        else:
            statistic = self._statistic(kind)
        low, high = covering_interval(self.estimator, statistic, self.report.sets, tail)
        if not (isfinite(low) and isfinite(high)):
            raise StudyError(
                f"an interval of kind {kind!r} has no end at level {level}: a denominator cannot "
                f"be told from zero, or the noise has heavy tails; take more records, more edges "
                f"or a lower level"
            )
        return ReportInterval(low, high, level, kind, self._covers(kind))

    def pair_quantile(self, share: float, level: float, kind: str) -> PairQuantile:
        """The value below which a share of pairs lies. Raises: StudyError as `interval`."""
        interval = self.interval(level, kind)
        if self.estimator != PAIR_MEDIAN or not 0 < share < 1:
            raise StudyError(
                f"a quantile of pairs takes a share between 0 and 1, and a study of "
                f"hodges_lehmann, hodges_lehmann_shift or theil_sen; got {share} and "
                f"{self.report.statistic}"
            )
        statistic = self._statistic(kind)
        low, high = pair_interval(statistic, share, (1 - level) / 2)
        curve = curve_of(self._means, len(statistic.ends) - 2)
        value = quantile_of(curve, statistic.ends, share)
        return PairQuantile(share, min(max(value, low), high), low, high, level, interval.covers)

    def _covers(self, kind: str) -> str:
        if kind == NOISE:
            is_all = self.report.edges == self.report.sets
            sets = SETS.get(self.report.degree, "sets")
            return f"the value on {'all' if is_all else 'the sampled'} {sets}"
        if kind == RECORDS:
            return self.report.interval_covers
        drawn = "the population that the records are a random sample of"
        if kind == HOEFFDING:
            return f"{drawn}, by a bound for every number of records"
        return f"{drawn}, {self.bounded_by or 'by the largest variance that it may have'}"

    def _statistic(self, kind: str) -> ReleasedStatistic:
        """The released means, with the errors that the kind of interval counts."""
        sums, edges = self._released(), self.report.edges
        if self.has_variance:
            sums = sums[:1]
        ends = ends_of(self._kernels) if self.estimator == PAIR_MEDIAN else ()
        if kind == POPULATION:
            return ReleasedStatistic(sums, self._points, 1 / self._independent, edges, ends)
        if kind == HOEFFDING:
            # the bound is in the law; here it only widens what the other sums may be
            independent = self._independent
            return BoundedStatistic(
                sums, self._points, 1 / independent, edges, ends, independent=int(independent)
            )
        found = ReleasedStatistic(sums, self._points, edges=edges, ends=ends)
        return found.noise_alone if kind == NOISE else found

    def _released(self) -> list[ReleasedSum]:
        """All released sums."""
        return released_sums(self.report.sums, self._kernels)

    def bounded(self, level: float) -> ReleasedStatistic:
        """The statistic with the released bound of its variance.

        Args: level: the bound is too low with a probability of at most MISSED times this.
        """
        report, missed = self.report, MISSED * level
        if not self.has_variance:
            found, points = self._statistic(POPULATION), self._points
            if report.statistic == "auc_difference":
                missed /= 2
                found = replace(found, population=self._given_labels(found, missed))
            both = replace(found, sums=found.sums[:2], points=points[:, :2])
            end = covering_interval(BOTH, both, report.sets, missed)[1]
            largest = float(np.abs(points[:, 0] - points[:, 1]).max())
            return replace(found, largest=largest * end)
        first, second = self._released()
        ends = joint_values(self._kernels[1:])
        upper = upper_second(second, ends, report.records, missed, report.edges)
        return EstimatedVariance(
            [first], self._points, edges=report.edges, records=report.records, second=upper
        )

    def _given_labels(self, found: ReleasedStatistic, missed: float) -> float:
        """The part of the kernel's variance that is left in the mean, given the private labels.

        The labels make two samples, so an AUC's variance has the factor 1/min(n0, n1), and those of
        the sums n0·n1/C(n, 2) times that: max(n0, n1)/C(n, 2). The third sum tells n0·n1.

        Args: missed: how often it may be too small.
        """
        share = ReleasedStatistic(found.sums[2:], np.array([[0.0], [1.0]]), edges=found.edges)
        least = covering_interval("mean", share, self.report.sets, missed)[0]
        pairs, records = self.report.sets, self.report.records
        return (records + sqrt(max(0.0, records**2 - 4 * least * pairs))) / 2 / pairs

    # --- tests ---------------------------------------------------------------------------------

    @property
    def hypothesis(self) -> Hypothesis | None:
        """The statistic's own hypothesis; None where the library knows none."""
        return HYPOTHESES.get(self.report.statistic)

    def test(self, alternative: str | None = None, null: float | None = None) -> NullTest:
        """Test the statistic's hypothesis, or that its value in the population is `null`.

        Args:
            alternative: "two-sided", "greater" or "less"; by default the statistic's usual one.
                The hypothesis of tau* has "greater" only.
            null: a value. Its law is then normal, with the largest variance that any population
                with this value has, which is more than most have, or with the released bound of it
                where there is one.
        Raises: StudyError where the statistic has no hypothesis and no value is given, and where
            the test of its hypothesis has no such alternative.
        """
        self._check_value()
        if alternative is not None and alternative not in ALTERNATIVES:
            raise StudyError(
                f"alternative is one of {', '.join(ALTERNATIVES)}, got {alternative!r}"
            )
        hypothesis = self.hypothesis
        if null is None and hypothesis is not None and hypothesis.law is None:
            found = self._test_value(hypothesis.value, alternative or hypothesis.alternative)
            return replace(found, hypothesis=hypothesis.text)
        if null is None and hypothesis is not None:
            return self._test_hypothesis(hypothesis, alternative or hypothesis.alternative)
        if self.estimator == PAIR_MEDIAN:
            raise StudyError(
                f"{self.report.statistic} has intervals and no test; for one take "
                f"wilcoxon_signed_rank, mann_whitney_u or kendall_tau of the same columns"
            )
        if null is None:
            raise StudyError(
                f"{self.report.statistic} has no hypothesis whose law is known; give a value, as "
                f"p_value(null=0.0)"
            )
        return self._test_value(null, alternative or TWO_SIDED)

    def usual_test(self) -> NullTest | None:
        """The test of the statistic's own hypothesis; None where there is none."""
        try:
            return self.test()
        except UmpcError:
            return None

    def _test_hypothesis(self, hypothesis: Hypothesis, alternative: str) -> NullTest:
        if alternative not in hypothesis.alternatives:
            raise StudyError(
                f"the test of {self.report.statistic} has the alternative "
                f"{hypothesis.alternative!r} only: {hypothesis.one_sided}; got {alternative!r}; "
                f"leave it out, or name a value by null"
            )
        law, errors = self.null_law(hypothesis)
        means = self._means
        seen = float(np.dot(hypothesis.weights, means)) - hypothesis.constant
        value = hypothesis.value
        if self.report.estimator == "total":
            value *= self.report.sets
        found = p_value(law, errors, seen, alternative)
        size, is_below = told(found, errors)
        return NullTest(size, alternative, value, hypothesis.text, law.name, is_below)

    def null_law(self, hypothesis: Hypothesis) -> tuple[NullLaw, ErrorLaw]:
        """The laws of the hypothesis' combination without noise, and of its errors.

        Raises: StudyError where the hypothesis has no law.
        """
        if hypothesis.law is None:
            raise StudyError(f"the law is not known if {hypothesis.text}; test a value by null")
        weights = list(hypothesis.weights)
        errors = self._statistic(RECORDS).law(weights, hypothesis.constant)
        return hypothesis.law(self._drawn), errors

    def _test_value(self, null: float, alternative: str) -> NullTest:
        estimator, means = self.estimator, self._means
        theta = theta_of(estimator, null, self.report.sets)
        weights, constant = contrast_of(estimator, means)[0](theta)
        seen = float(np.dot(weights, means)) - constant
        if estimator in ENTROPIES:  # it decreases in the mean
            alternative_of_mean = {GREATER: LESS, LESS: GREATER}.get(alternative, alternative)
        else:
            alternative_of_mean = alternative
        errors = self._statistic(RECORDS).law(weights, constant)

        def p_of(statistic: ReleasedStatistic) -> float:
            whole = statistic.law(weights, constant)
            law = NormalLaw(0.0, whole.normal)
            errors = ErrorLaw(whole.noises, whole.weights, whole.sampling)
            return p_value(law, errors, seen, alternative_of_mean)

        if self.bounded_by and not self.has_variance:
            name = f"normal law, {self.bounded_by}"
            found = least_level(lambda level: p_of(self.bounded(level)))
        else:
            name, found = LARGEST_LAW, p_of(self._statistic(POPULATION))
        size, is_below = told(found, errors)
        return NullTest(size, alternative, null, f"the value is {null:g}", name, is_below)

    # --- the four sources of error -------------------------------------------------------------

    def errors(self) -> list[ErrorSource]:
        """Noise, sampling of E, coarse values and population, each by itself."""
        self._check_value()
        report = self.report
        sets = SETS.get(report.degree, "sets")
        is_all = report.edges == report.sets
        drawn = "all sets were taken" if is_all else f"{report.edges:,} of {report.sets:,} {sets}"
        if self.bounded_by:
            statistic = self.bounded(1 - USUAL_LEVEL)
        else:
            # the sampling has a line of its own
            statistic = replace(self._statistic(NOISE), population=1 / self._independent)
        coarse = report.note.partition(MOVED)[0].removesuffix("; ")
        population = population_std(self.estimator, statistic, report.sets)
        for_population = self.bounded_by or LARGEST
        return [
            ErrorSource(NOISE, report.noise_std, "added for privacy"),
            ErrorSource("sampling of sets", report.sampling_std, f"{drawn}; {LARGEST}"),
            ErrorSource(
                "coarse values", None, coarse or "values between two steps count as the nearer"
            ),
            ErrorSource(POPULATION, population, f"the records are a sample; {for_population}"),
        ]

    # --- what is known about the records -------------------------------------------------------

    def _check_value(self) -> None:
        if self.report.counts is not None:
            raise StudyError(
                "a number that was read off a table of counts has the report's own intervals and "
                "tests; for another level take `umpc infer REPORT.json --level 0.9`, or from "
                "Python result.km(), result.logrank(), result.quantile(0.5) and others"
            )
        if self.report.estimate is None:
            told = "; take one of result.parts, or --part" if self.report.parts else ""
            raise StudyError(f"the study has no value to infer from: {self.report.note}{told}")

    @cached_property
    def _fields(self) -> list[FieldText]:
        return [FieldText.from_dict(values) for values in self.report.fields]

    @cached_property
    def _two_sample(self) -> bool:
        return any(field.public for field in self._fields)

    @cached_property
    def _kernels(self) -> tuple[Kernel, ...]:
        schema = Schema(field.schema() for field in self._fields)
        degree, symmetric = self.report.degree, not self._two_sample
        return tuple(
            Kernel.from_text(entry.kernel, schema, degree, symmetric) for entry in self.report.sums
        )

    @cached_property
    def _points(self) -> Any:
        return joint_values(self._kernels[:1] if self.has_variance else self._kernels)

    @property
    def _means(self) -> list[float]:
        means = [entry.mean for entry in self.report.sums]
        return means[:1] if self.has_variance else means

    @cached_property
    def classes(self) -> tuple[int, int] | None:
        """The records of both classes in two-sample studies; None in others.

        A replay tells only their product and their sum, so the smaller one then comes first.
        """
        if not self._two_sample:
            return None
        report = self.report
        if report.first_class_by_node:
            first = sum(report.first_class_by_node)
        else:
            first = (report.records - isqrt(report.records**2 - 4 * report.sets)) // 2
        return first, report.records - first

    @cached_property
    def _independent(self) -> float:
        """How many disjoint sets the records make: n/k, or the smaller class."""
        if self.classes:
            return max(1, min(self.classes))
        degree = PAIR if self.has_variance else self.report.degree
        return max(1, self.report.records // degree)

    @cached_property
    def _drawn(self) -> DrawnRecords:
        used = {name for kernel in self._kernels for name in kernel.fields}
        schemas = [field.schema() for field in self._fields if field.name in used]
        values = [float(each.upper_units - each.lower_units + 1) for each in schemas]
        lowest = float(self._kernels[0].interval.low)
        return DrawnRecords(self.report.records, self.classes, tuple(values), lowest)


# --- private variance -----------------------------------------------------------------------------

MISSED = 0.1
"""The part of an interval's probability to miss that the upper end takes."""
HALVINGS = 14


@dataclass(frozen=True)
class EstimatedVariance(ReleasedStatistic):
    """A mean over pairs for the population. Its one sum is of the kernel over triples.

    Args: records: n. second: the upper end for ζ₁ + θ².
    """

    records: int = 0
    second: float = 0.0

    @property
    def has_one_law(self) -> bool:
        """False: the drawing of the records is an error, and its law depends on the value."""
        return False

    def law(self, weights: Sequence[float], constant: float) -> ErrorLaw:
        """The law of the error of the mean, if `constant` is its true value θ."""
        law = super().law(weights, constant)
        values = self.points @ weights - constant
        largest = float(-values.min() * values.max())
        if largest <= 0:
            return law
        single = min(largest / 2, max(0.0, self.second - constant**2))
        n = self.records
        return replace(law, normal=sqrt((4 * (n - 2) * single + 2 * largest) / (n * (n - 1))))


def least_level(p_of: Callable[[float], float]) -> float:
    """The least level at which a test with an upper end rejects, up to 0.2 %; 1 for none.

    Args: p_of: level → the p-value with the end of this level.
    """
    low, high = log(LEAST) - 1, 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        rejects = p_of(exp(middle)) <= (1 - MISSED) * exp(middle)
        low, high = (low, middle) if rejects else (middle, high)
    return exp(high)


def upper_second(
    second: ReleasedSum, points: Floats, records: int, missed: float, edges: int = 0
) -> float:
    """The upper end for the population's mean of the second sum.

    Args:
        points: (points, 1) the ends of its kernel. missed: how often the end may be too low.
        edges: |E|; 0 where it is not known.
    """
    independent = max(1, records // 3)
    statistic = ReleasedStatistic([second], points, 1 / independent, edges)
    return covering_interval("mean", statistic, 1, missed)[1]


# --- bounds for every number of records -----------------------------------------------------------


STEPS = 22
ROUNDING = 1e-6
"""A quantile is moved outward by this part of it. The end of the range may be a quantile."""
TOGETHER = 16
"""Neighbouring points of the error's grid are taken together, at the outer end of each group."""


@dataclass(frozen=True)
class BoundedErrorLaw(ErrorLaw):
    """Noise and sampling, and the population's error by its bound.

    Args: low, high: the ends of the combination, low < 0 < high. independent: m.
    """

    low: float = 0.0
    high: float = 0.0
    independent: int = 1

    def central(self, tail: float) -> tuple[float, float]:
        """(low, high): the error lies beyond either with a probability of at most `tail`.

        Both are infinite for a tail that heavy tails beyond the grid may have.
        """
        tail -= self.beyond
        if tail <= 0:
            return -inf, inf
        places, masses = self.masses()
        above = self._end(places, masses, self.low, self.high, tail)
        below = self._end(-places, masses, -self.high, -self.low, tail)
        return -below, above

    def _end(self, places: Floats, masses: Floats, low: float, high: float, tail: float) -> float:
        """The least error that is exceeded with a probability of at most `tail`."""
        shifted, masses = _grouped(places, masses)
        shifted = shifted + self.slack
        inside, outside = 0.0, high + float(shifted.max()) + self.slack
        for _ in range(STEPS):
            middle = (inside + outside) / 2
            bound = float(masses @ self._bound(middle - shifted, low, high))
            inside, outside = (middle, outside) if bound > tail else (inside, middle)
        return outside * (1 + ROUNDING)

    def _bound(self, values: Floats, low: float, high: float) -> Floats:
        """The bound of P(U >= value), for values in [low, high] with mean 0."""
        p = -low / (high - low)
        q = np.clip((values - low) / (high - low), p, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            first = q * np.log(q / p)
            second = np.where(q < 1, (1 - q) * np.log((1 - q) / (1 - p)), 0.0)
        bound: Floats = np.exp(-self.independent * (first + second))
        return np.where(values > high, 0.0, bound)


def _grouped(places: Floats, masses: Floats) -> tuple[Floats, Floats]:
    """Fewer points, none of which lies below those that it stands for."""
    order = np.argsort(places)
    starts = np.arange(0, len(places), TOGETHER)
    return (
        np.maximum.reduceat(places[order], starts),
        np.add.reduceat(masses[order], starts),
    )


@dataclass(frozen=True)
class BoundedStatistic(ReleasedStatistic):
    """A released statistic whose population error is bounded for every number of records.

    independent: m, the number of disjoint sets of records.
    """

    independent: int = 1

    def law(self, weights: Sequence[float], constant: float) -> ErrorLaw:
        inner = super().law(weights, constant)
        values = self.points @ np.array(weights) - constant
        low, high = float(values.min()), float(values.max())
        if low >= 0 or high <= 0:
            return inner
        return BoundedErrorLaw(
            inner.noises,
            inner.weights,
            inner.sampling,
            low=low,
            high=high,
            independent=self.independent,
        )
