"""Statistics of those pairs that can be compared: inside one stratum, or under censoring.

Each releases two sums: the comparable pairs in the right order, and all comparable pairs.
"""

from __future__ import annotations

from typing import Any

from umpc.ustat.statistics.statistic import (
    SCORES_HIGHER,
    TWO_CLASSES,
    FieldRule,
    KernelFunction,
    Statistic,
)
from umpc.ustat.tracing import select, sign


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
        event_of_a, event_of_b = a[event] == 1, b[event] == 1
        together = a[time] == b[time]
        first = event_of_a & ((a[time] < b[time]) ^ (together & ~event_of_b))
        second = event_of_b & ((b[time] < a[time]) ^ (together & ~event_of_a))
        return _in_order(score, first, second, a, b), first ^ second

    return kernel


def _in_order(score: str, first: Any, second: Any, a: Any, b: Any) -> Any:
    """1 if the record that should score higher does so, 1/2 for a tie, else 0.

    Args: first, second: whether a or b should score higher; 0 where neither should.

    The halves of two conditions, one stronger than the other, keep the range at [0, 1].
    """
    at_least = (first & (a[score] >= b[score])) ^ (second & (b[score] >= a[score]))
    above = (first & (a[score] > b[score])) ^ (second & (b[score] > a[score]))
    return at_least / 2 + above / 2


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
