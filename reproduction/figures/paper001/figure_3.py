"""Figure 3: the AUC protocol on a classifier's scores, over d: Diabetes if given, and bank data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from reproduction.figures.figure import Agreement, Figure, Point, Row
from reproduction.figures.paper001 import auc
from reproduction.figures.paper001.claims import beside_theory, errors, verdict
from reproduction.figures.paper001.pictures import of_data

LEVELS = (2, 3, 4, 6, 8, 10, 12, 14, 16)
EPSILONS = ("0.5", "1", "2", "4", "8")
RUNS = 100
DEEP = 6
"""Levels from which a domain is not small."""


def points(data: str, quick: bool) -> list[Point]:
    if quick:
        return auc.points("bell-auc", (data,), LEVELS[1:6:2], EPSILONS[1:], 3)
    return auc.points("bell-auc", (data,), LEVELS, EPSILONS, RUNS)


def agreement(data: str, rows: Sequence[Row]) -> Agreement:
    found = {
        epsilon: errors(rows, f"{auc.label_of(data)}: ε = {epsilon}") for epsilon in ("1", "2", "8")
    }
    two, eight = found["2"], found["8"]
    first, last = min(two), max(two)
    deep = [value for x, value in two.items() if x >= DEEP]
    spread, of_deep = max(two.values()) / min(two.values()), max(deep) / min(deep)
    gain = sum(eight.values()) / sum(two.values())
    before = sum(two.values()) / sum(found["1"].values())
    row = rows[0].means
    said = (
        f"On {auc.label_of(data)} ({row['negatives']:,.0f} negatives, {row['positives']:,.0f} "
        "positives), from",
        f"d = 2^{first:.0f} to 2^{last:.0f} the error at ε = 2 lies between "
        f"{min(two.values()):.2g} and",
        f"{max(two.values()):.2g}, {spread:.1f} times as large; from 2^{DEEP} on, {of_deep:.1f} "
        "times.",
        f"Over all d, ε from 1 to 2 multiplies it by {before:.2f}, ε from 2 to 8 by {gain:.2f}:",
        "a record's bit is then surely true, but still one bit of one level.",
        beside_theory(rows),
    )
    return Agreement(verdict(spread < 2, of_deep < 2, gain > 0.5), " ".join(said))


def figure(name: str, data: str) -> Figure:
    return Figure(
        name=name,
        title="AUC protocol on scores of a logistic regression",
        quantity="absolute_error",
        claim="The error is quite robust to the domain size d, and ε beyond 2 does not improve it "
        "significantly.",
        points=partial(points, data),
        measure=auc.measure,
        predict=auc.predict,
        agreement=partial(agreement, data),
        draw=of_data(
            "AUC by hierarchical histograms, scores of a logistic regression",
            "log2 of the domain size d",
        ),
        data=data,
    )


FIGURE = figure("001-figure-3", "diabetes")
SUBSTITUTE = figure("001-figure-3-substitute", "bank")
