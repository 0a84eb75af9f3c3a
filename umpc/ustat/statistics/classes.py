"""Statistics of classes: how well a score ranks them, and losses over pairs.

A record's class is public, or it is a private label.

*Strata.* Statistics of those pairs that can be compared: inside one stratum, or under censoring.

Each releases two sums: the comparable pairs in the right order, and all comparable pairs.

*Comparisons.* Two columns are compared on the same records. Both are scores, and each pair of
records has an order that is due. A pair counts 1 for a score that has it in this order, 1/2 for a
tie, 0 else. The first sum is the part by which the first score is better on a pair, the second sum
that of the second score:

    u = max(0, A − B),  v = max(0, B − A).

u − v is the difference. (u − v)² ≤ u + v, so the same two sums bound its variance (McNemar 1947 has
them for pairs of yes and no). One sum of u − v would have twice the range of either.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import permutations
from operator import add, xor
from typing import Any, TypeAlias

from umpc.ustat.pair_quantiles import cells
from umpc.ustat.statistics.statistic import (
    SCORES_HIGHER,
    THREE_CLASSES,
    THRESHOLDS,
    TWO_CLASSES,
    FieldRule,
    KernelFunction,
    Parameter,
    Statistic,
)
from umpc.ustat.tracing import maximum, select, sign

Orders: TypeAlias = tuple[Any, Any]
"""Whether a score has a pair in the due order with ties, and whether it does so without a tie."""


def _auc(score: str) -> KernelFunction:
    return lambda a, b: (sign(a[score] - b[score]) + 1) / 2


def _hodges_lehmann_shift(x: str, thresholds: Sequence[Fraction]) -> KernelFunction:
    return lambda a, b: cells(lambda c: a[x] - b[x] < c, thresholds)


def _auc_null_variance(first: int, second: int) -> Fraction:
    """The variance of U by Mann & Whitney 1947, divided by (n0·n1)²."""
    return Fraction(first + second + 1, 12 * first * second)


def _auc_private(score: str, label: str) -> KernelFunction:
    """Two sums: pairs of different labels in the right order, and all pairs of different labels.

    Ties count half.
    """

    def kernel(a: Any, b: Any) -> Any:
        first, second = a[label] == 1, b[label] == 1
        above = (sign(a[score] - b[score]) + 1) / 2
        ordered = select(first, select(second, 0, above), select(second, 1 - above, 0))
        return ordered, first ^ second

    return kernel


def _vus(score: str, label: str) -> KernelFunction:
    """Two sums: triples with labels 0, 1, 2 in the right order, and triples with all three labels.

    A triple's value is its share of right orders when ties are broken at random: 1 if its scores
    rise strictly, 1/2 with one tie, 1/6 if all are equal. It is written as 1/6, 1/3 and 1/2 of
    three conditions, each stronger than the one before, so that the range is [0, 1]. At most one of
    the six permutations has the labels, so the exclusive or adds them up.
    """

    def kernel(a: Any, b: Any, c: Any) -> Any:
        level: list[Any] = []
        rising: list[Any] = []
        strict: list[Any] = []
        different: list[Any] = []
        for p, q, r in permutations((a, b, c)):
            labels = (p[label] == 0) & (q[label] == 1) & (r[label] == 2)
            ordered = labels & (p[score] <= q[score]) & (q[score] <= r[score])
            level.append(ordered)
            rising.append(ordered & (p[score] < r[score]))
            strict.append(labels & (p[score] < q[score]) & (q[score] < r[score]))
            different.append(labels)
        in_order = reduce(xor, level) / 6 + reduce(xor, rising) / 3 + reduce(xor, strict) / 2
        return in_order, reduce(xor, different)

    return kernel


def _ranking_hinge(*x: str, weights: tuple[Fraction, ...], margin: Fraction) -> KernelFunction:
    return lambda a, b: maximum(0, margin - _difference(a, b, x, weights))


def _contrastive_loss(
    label: str, *x: str, weights: tuple[Fraction, ...], margin: Fraction
) -> KernelFunction:
    """D² for pairs of one label and max(0, margin − D)² for others, with D = |w·(x − x')|."""

    def kernel(a: Any, b: Any) -> Any:
        difference = _difference(a, b, x, weights)
        near = (difference < margin) & (-margin < difference)
        others = select(near, (margin - abs(difference)) ** 2, 0)
        return select(a[label] == b[label], difference**2, others)

    return kernel


def _difference(a: Any, b: Any, x: tuple[str, ...], weights: tuple[Fraction, ...]) -> Any:
    """w·(x − x')."""
    parts = []
    for name, weight in zip(x, weights, strict=True):
        difference = a[name] - b[name]
        parts.append(difference if weight == 1 else weight * difference)
    return reduce(add, parts)


_LINEAR = (
    Parameter("weights", default=1, per_column=True),
    Parameter("margin", default=1, positive=True),
)

CLASSES = (
    Statistic(
        "hodges_lehmann_shift",
        "Hodges and Lehmann's shift: the median of the differences of two classes' records",
        ("x",),
        "Hodges & Lehmann 1963, of two samples",
        _hodges_lehmann_shift,
        estimator="pair_median",
        sampling="two_sample",
        parameters=(THRESHOLDS,),
    ),
    Statistic(
        "auc",
        "Area under the ROC curve, public labels: the second category scores above the first",
        ("score",),
        "Hanley & McNeil 1982; Sinh & Ramon 2025, A.5.3, with ties counted half",
        _auc,
        sampling="two_sample",
        null_variance=_auc_null_variance,
    ),
    Statistic(
        "auc_private",
        "Area under the ROC curve, private labels: 1 (the second category) scores above 0",
        ("score", "label"),
        "Hanley & McNeil 1982; Bell et al. 2020, equation 7, with ties counted half",
        _auc_private,
        estimator="ratio",
        rules=(FieldRule("label", TWO_CLASSES, SCORES_HIGHER),),
    ),
    Statistic(
        "mann_whitney_u",
        "Mann and Whitney's U, public labels",
        ("score",),
        "Mann & Whitney 1947: the AUC times the number of pairs, null variance of the AUC",
        _auc,
        estimator="total",
        sampling="two_sample",
        null_variance=_auc_null_variance,
    ),
    Statistic(
        "vus",
        "Volume under the ROC surface of three ordered classes, private labels 0, 1, 2 or words",
        ("score", "label"),
        "Mossman 1999; Nakas & Yiannoutsos 2004 for ties",
        _vus,
        degree=3,
        estimator="ratio",
        rules=(FieldRule("label", THREE_CLASSES, "scores should rise from {0} over {1} to {2}"),),
    ),
    Statistic(
        "ranking_hinge",
        "Hinge loss of a public linear ranking, public labels: max(0, margin − w·(x − x'))",
        ("x...",),
        "Herbrich, Graepel & Obermayer 2000; Clémençon, Lugosi & Vayatis 2008",
        _ranking_hinge,
        sampling="two_sample",
        parameters=_LINEAR,
    ),
    Statistic(
        "contrastive_loss",
        "Contrastive loss of a public linear projection D = |w·(x − x')|: "
        "D² or max(0, margin − D)²",
        ("label", "x..."),
        "Hadsell, Chopra & LeCun 2006, without the factor 1/2",
        _contrastive_loss,
        parameters=_LINEAR,
    ),
)


# --- strata ---------------------------------------------------------------------------------------


def _stratified_kendall_tau(x: str, y: str, stratum: str) -> KernelFunction:
    def kernel(a: Any, b: Any) -> Any:
        same = a[stratum] == b[stratum]
        return select(same, sign(a[x] - b[x]) * sign(a[y] - b[y]), 0), same

    return kernel


def _stratified_superiority(score: str, label: str, stratum: str) -> KernelFunction:
    def kernel(a: Any, b: Any) -> Any:
        same = a[stratum] == b[stratum]
        first = same & (a[label] == 1) & (b[label] != 1)
        second = same & (b[label] == 1) & (a[label] != 1)
        return _in_order(score, first, second, a, b), first ^ second

    return kernel


def _concordance_index(score: str, time: str, event: str) -> KernelFunction:
    """A pair is comparable if one of its records has its event while the other is at risk.

    A record is at risk until its time. A record that is censored at the time of another's event was
    still at risk. Two events at one time are not comparable.
    """

    def kernel(a: Any, b: Any) -> Any:
        first, second = _earlier(time, event, a, b)
        return _in_order(score, first, second, a, b), first ^ second

    return kernel


def _earlier(time: str, event: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Whether a's event comes while b is at risk, and b's while a is."""
    event_of_a, event_of_b = a[event] == 1, b[event] == 1
    together = a[time] == b[time]
    first = event_of_a & ((a[time] < b[time]) ^ (together & ~event_of_b))
    second = event_of_b & ((b[time] < a[time]) ^ (together & ~event_of_a))
    return first, second


def _in_order(score: str, first: Any, second: Any, a: Any, b: Any) -> Any:
    """1 if the record that should score higher does so, 1/2 for a tie, else 0.

    Args: first, second: whether a or b should score higher; 0 where neither should.

    The halves of two conditions, one stronger than the other, keep the range at [0, 1].
    """
    at_least, above = _orders(score, first, second, a, b)
    return at_least / 2 + above / 2


def _orders(score: str, first: Any, second: Any, a: Any, b: Any) -> Orders:
    """Whether the record that should score higher scores at least as high, and above the other."""
    at_least = (first & (a[score] >= b[score])) ^ (second & (b[score] >= a[score]))
    above = (first & (a[score] > b[score])) ^ (second & (b[score] > a[score]))
    return at_least, above


STRATA = (
    Statistic(
        "stratified_kendall_tau",
        "Kendall's tau-a of pairs inside one stratum: concordance / pairs of one stratum",
        ("x", "y", "stratum"),
        "Korn 1984; Taylor 1987, each stratum weighted by its number of pairs",
        _stratified_kendall_tau,
        estimator="ratio",
    ),
    Statistic(
        "stratified_superiority",
        "Probability of superiority inside one stratum, private labels: 1 scores above 0",
        ("score", "label", "stratum"),
        "Vargha & Delaney 2000, each stratum weighted by its pairs of different labels",
        _stratified_superiority,
        estimator="ratio",
        rules=(FieldRule("label", TWO_CLASSES, SCORES_HIGHER),),
    ),
    Statistic(
        "concordance_index",
        "Harrell's concordance index with censoring: who has the event earlier scores higher",
        ("score", "time", "event"),
        "Harrell, Califf, Pryor, Lee & Rosati 1982, with ties of scores counted half",
        _concordance_index,
        estimator="ratio",
        rules=(FieldRule("event", TWO_CLASSES, "{high} is the event, {low} is censored"),),
    ),
)


# --- comparisons ----------------------------------------------------------------------------------


def _better(first: Orders, second: Orders) -> Any:
    """Twice the part by which the first score is better on a pair: 0, 1 or 2."""
    return (first[0] & ~second[0]) + (first[1] & ~second[1])


def _both(score_a: str, score_b: str, first: Any, second: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Twice the parts by which either score is better. Args: first, second: as in `_in_order`."""
    one, other = (_orders(score, first, second, a, b) for score in (score_a, score_b))
    return _better(one, other), _better(other, one)


def _auc_difference(score_a: str, score_b: str, label: str) -> KernelFunction:
    def kernel(a: Any, b: Any) -> Any:
        first, second = a[label] == 1, b[label] == 1
        due = first & ~second, second & ~first
        one, other = _both(score_a, score_b, *due, a, b)
        return one / 2, other / 2, first ^ second

    return kernel


def _auc_difference_public(score_a: str, score_b: str) -> KernelFunction:
    def kernel(a: Any, b: Any) -> Any:
        one, other = ((a[score] >= b[score], a[score] > b[score]) for score in (score_a, score_b))
        return _better(one, other) / 2, _better(other, one) / 2

    return kernel


def _tau_difference(x: str, y: str, z: str) -> KernelFunction:
    """A pair untied in z has tau's value 2·A − 1, where A says how x has it in the order of z."""
    return lambda a, b: _both(x, y, a[z] > b[z], b[z] > a[z], a, b)


def _concordance_difference(score_a: str, score_b: str, time: str, event: str) -> KernelFunction:
    def kernel(a: Any, b: Any) -> Any:
        first, second = _earlier(time, event, a, b)
        one, other = _both(score_a, score_b, first, second, a, b)
        return one / 2, other / 2, first ^ second

    return kernel


COMPARISONS = (
    Statistic(
        "auc_difference",
        "Difference of two scores' AUC on the same records, private labels",
        ("score_a", "score_b", "label"),
        "DeLong, DeLong & Clarke-Pearson 1988, with ties counted half",
        _auc_difference,
        estimator="difference_ratio",
        rules=(FieldRule("label", TWO_CLASSES, SCORES_HIGHER),),
    ),
    Statistic(
        "auc_difference_public",
        "Difference of two scores' AUC on the same records, public labels",
        ("score_a", "score_b"),
        "DeLong, DeLong & Clarke-Pearson 1988, with ties counted half",
        _auc_difference_public,
        estimator="difference",
        sampling="two_sample",
    ),
    Statistic(
        "tau_difference",
        "Difference of Kendall's tau-a: two columns, each with a third one",
        ("x", "y", "z"),
        "Kendall 1938; the difference of two dependent ones as in Cliff & Charlin 1991",
        _tau_difference,
        estimator="difference",
    ),
    Statistic(
        "concordance_difference",
        "Difference of two scores' concordance index on the same records",
        ("score_a", "score_b", "time", "event"),
        "Harrell, Califf, Pryor, Lee & Rosati 1982; Antolini, Nam & D'Agostino 2004",
        _concordance_difference,
        estimator="difference_ratio",
        rules=(FieldRule("event", TWO_CLASSES, "{high} is the event, {low} is censored"),),
    ),
)
