"""Figure 7: the generic protocol on a classifier's scores, over d: Diabetes, and the bank data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from reproduction.figures.figure import Agreement, Figure, Point, Row
from reproduction.figures.paper001 import auc
from reproduction.figures.paper001.claims import beside_theory, errors, verdict
from reproduction.figures.paper001.pictures import of_data

LEVELS = (1, 2, 3, 4, 5, 6, 8, 10)
EPSILONS = ("0.5", "1", "2", "4", "8")
PRIVATE_LEVELS = (1, 2, 3, 4, 5, 6)
PRIVATE_EPSILONS = ("1",)
RUNS = 200


def points(data: str, quick: bool) -> list[Point]:
    if quick:
        usual = auc.points("generic", (data,), LEVELS[:3], EPSILONS[1:], 3)
        return usual + auc.points(
            "generic, private classes", (data,), PRIVATE_LEVELS[:3], PRIVATE_EPSILONS, 3
        )
    usual = auc.points("generic", (data,), LEVELS, EPSILONS, RUNS)
    return usual + auc.points(
        "generic, private classes", (data,), PRIVATE_LEVELS, PRIVATE_EPSILONS, RUNS
    )


def agreement(data: str, rows: Sequence[Row]) -> Agreement:
    least = {}
    for epsilon in EPSILONS[1:]:
        own = errors(rows, f"{auc.label_of(data)}: ε = {epsilon}")
        place = min(own, key=own.__getitem__)
        least[epsilon] = own[place], place
    private = errors(rows, f"{auc.label_of(data)}: ε = 1, private classes")
    told = ", ".join(
        f"{value:.2g} at ε = {epsilon} (d = 2^{place:.0f})"
        for epsilon, (value, place) in least.items()
    )
    largest = errors(rows, f"{auc.label_of(data)}: ε = 1")
    last = max(largest)
    row = rows[0].means
    return Agreement(
        verdict(least["1"][0] < 0.1, least["2"][0] < 0.05),
        f"On {auc.label_of(data)} ({row['negatives']:,.0f} negatives, {row['positives']:,.0f} "
        f"positives) the least error over d is {told}; at ε = 1 and d = 2^{last:.0f} it is "
        f"{largest[last]:.2g}. If records hide their class too, with 2d cells, the least is "
        f"{min(private.values()):.2g} at ε = 1. {beside_theory(rows)}",
    )


def figure(name: str, data: str) -> Figure:
    return Figure(
        name=name,
        title="Generic protocol on scores of a logistic regression",
        quantity="absolute_error",
        claim="Scores of the two classes are well separated, so quantised to a small domain they "
        "have a small error.",
        points=partial(points, data),
        measure=auc.measure,
        predict=auc.predict,
        agreement=partial(agreement, data),
        draw=of_data("AUC by randomised response of the score's bin", "log2 of the domain size d"),
        data=data,
    )


FIGURE = figure("001-figure-7", "diabetes")
SUBSTITUTE = figure("001-figure-7-substitute", "bank")
