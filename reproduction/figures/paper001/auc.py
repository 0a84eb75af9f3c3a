"""Points of the AUC's figures: one run of each protocol on scores, and its mean error in theory.

| protocol | a run |
|---|---|
| `bell-auc` | up to WHOLE records a class: all messages; above: their exact law, `auc_law` |
| `generic` | the law of the told histograms, then the estimate: `generic_auc` |
| `generic, private classes` | all messages and the aggregation of `BellLdp` |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from reproduction.figures.draws import bits_of
from reproduction.figures.figure import Measured, Point
from reproduction.figures.given import is_made_up
from reproduction.figures.paper001.auc_law import draw_auc
from reproduction.figures.paper001.errors import folded_normal, of_runs
from reproduction.figures.paper001.generic_auc import GenericAuc, labelled, private_classes
from reproduction.figures.paper001.scores import Scores, load, score_field
from umpc_papers.local.bell_auc import BellAuc

WHOLE = 10_000
Facts = Mapping[str, Any]


def points(
    protocol: str,
    data: Sequence[str],
    levels: Sequence[int],
    epsilons: Sequence[str],
    runs: int,
    per_class: int = 0,
) -> list[Point]:
    """Points for domain sizes 2^levels, one batch each.

    per_class: the number of records of each class, for synthetic data.
    """
    found = []
    for name in data:
        facts = {
            "data": name,
            "protocol": protocol,
            "per_class": per_class,
            "runs": runs,
        }
        for epsilon in epsilons:
            label = f"{label_of(name)}: ε = {epsilon}"
            if protocol.endswith("private classes"):
                label += ", private classes"
            found += [
                Point(label, level, 1, facts | {"epsilon": epsilon, "levels": level})
                for level in levels
            ]
    return found


def label_of(name: str) -> str:
    """The name of the data in series and pictures."""
    if name == "bank":
        return f"{'made-up scores' if is_made_up(name) else 'bank data'} in place of Diabetes"
    return name


def measure(point: Point, seed: bytes) -> Measured:
    facts = point.facts
    scores = load(facts["data"], facts["per_class"])
    run = RUNS[facts["protocol"]]
    errors = [run(scores, facts, seed, number) - scores.exact for number in range(facts["runs"])]
    bias, variance = _moments(point)
    minus, plus = scores.sizes
    return of_runs(errors, bias**2 + variance) | {"negatives": [minus], "positives": [plus]}


def predict(point: Point) -> float:
    return folded_normal(*_moments(point))


def _moments(point: Point) -> tuple[float, float]:
    facts = point.facts
    return moments(
        facts["protocol"], facts["data"], facts["per_class"], facts["levels"], facts["epsilon"]
    )


@lru_cache(maxsize=64)
def moments(
    protocol: str, data: str, per_class: int, levels: int, epsilon: str
) -> tuple[float, float]:
    """The estimate's error: (bias, variance)."""
    scores = load(data, per_class)
    return MOMENTS[protocol](scores, levels, Fraction(epsilon))


def generator(seed: bytes, number: int) -> np.random.Generator:
    """A run's random numbers."""
    return np.random.default_rng([*seed, number])


# --- the protocol for the AUC ---


def bell_auc(scores: Scores, facts: Facts, seed: bytes, number: int) -> float:
    protocol = BellAuc(Fraction(facts["epsilon"]), score_field(), facts["levels"])
    if max(scores.sizes) > WHOLE:
        return draw_auc(protocol, scores.negatives, scores.positives, generator(seed, number))
    received = []
    for label, own in (("negatives", scores.negatives), ("positives", scores.positives)):
        message = protocol.randomise({"score": own}, bits_of(seed, label, number))
        received.append(([message], [len(own)]))
    return protocol.aggregate(*received).value


def bell_auc_moments(scores: Scores, levels: int, epsilon: Fraction) -> tuple[float, float]:
    """(bias, variance), where the walk follows the true counts: `BellAuc.predicted_mse`."""
    protocol = BellAuc(epsilon, score_field(), levels)
    exact = [
        [own.reshape(1 << level, -1).sum(axis=1) for level in range(levels + 1)]
        for own in scores.counts(levels)
    ]
    bias = protocol.value(*exact) - scores.exact
    columns = [{"score": own} for own in (scores.negatives, scores.positives)]
    return bias, max(0.0, protocol.predicted_mse(*columns, scores.exact) - bias**2)


# --- the generic protocol ---


def generic(scores: Scores, facts: Facts, seed: bytes, number: int) -> float:
    protocol, rng = (
        GenericAuc(Fraction(facts["epsilon"]), 1 << facts["levels"]),
        generator(seed, number),
    )
    return protocol.estimate(
        *(protocol.draw_told(counts, rng) for counts in scores.counts(facts["levels"]))
    )


def generic_moments(scores: Scores, levels: int, epsilon: Fraction) -> tuple[float, float]:
    protocol, counts = GenericAuc(epsilon, 1 << levels), scores.counts(levels)
    return protocol.expected(*counts) - scores.exact, protocol.variance(*counts)


@lru_cache(maxsize=4)
def _private(epsilon: str, levels: int):
    return private_classes(Fraction(epsilon), 1 << levels)


def generic_private(scores: Scores, facts: Facts, seed: bytes, number: int) -> float:
    protocol = _private(facts["epsilon"], facts["levels"])
    columns, factor = labelled(scores)
    message = protocol.randomise(columns, bits_of(seed, number))
    return protocol.aggregate([message], [sum(scores.sizes)]).value * factor


def generic_private_moments(scores: Scores, levels: int, epsilon: Fraction) -> tuple[float, float]:
    protocol = _private(str(epsilon), levels)
    columns, factor = labelled(scores)
    bias = protocol.cells.quantised(columns) * factor - scores.exact
    return bias, protocol.predicted_mse(columns) * factor**2


RUNS = {"bell-auc": bell_auc, "generic": generic, "generic, private classes": generic_private}
MOMENTS = {
    "bell-auc": bell_auc_moments,
    "generic": generic_moments,
    "generic, private classes": generic_private_moments,
}
