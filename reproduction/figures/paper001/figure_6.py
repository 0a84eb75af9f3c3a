"""Figure 6: the generic protocol for the AUC on the same synthetic scores, over d."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.figures.figure import Agreement, Figure, Point, Row
from reproduction.figures.paper001 import auc
from reproduction.figures.paper001.claims import beside_theory, errors, verdict
from reproduction.figures.paper001.figure_5 import DATA, EPSILONS, LEVELS, PER_CLASS
from reproduction.figures.paper001.pictures import of_data

RUNS = 100
SMALL = 4
"""Levels of a small domain, d = 16."""


def points(quick: bool) -> list[Point]:
    if quick:
        return auc.points("generic", DATA, LEVELS[::4], EPSILONS[1:2], 3, 10_000)
    return auc.points("generic", DATA, LEVELS, EPSILONS, RUNS, PER_CLASS)


def agreement(rows: Sequence[Row]) -> Agreement:
    one, uniform, digit = (errors(rows, f"{name}: ε = 1") for name in DATA)
    last = max(one)
    scales_badly = min(one[last], uniform[last]) > 1
    small = [own[x] for own in (one, uniform) for x in own if x <= SMALL]
    place = min(digit, key=digit.__getitem__)
    return Agreement(
        verdict(scales_badly, max(small) < 0.02, digit[place] > 0.1),
        f"At ε = 1: on auc_one and ur at most {max(small):.2g} up to d = 2^{SMALL}, "
        f"{one[last]:.3g} and {uniform[last]:.3g} at d = 2^{last:.0f}, where an AUC between 0 and "
        f"1 is drowned; on ithdigit never below {digit[place]:.2g} (d = 2^{place:.0f}). Classes "
        f"are public, as in the paper. {beside_theory(rows)}",
    )


FIGURE = Figure(
    name="001-figure-6",
    title="Generic protocol on synthetic data",
    quantity="absolute_error",
    claim="The generic protocol scales very poorly with d, is good for small d on auc_one and ur, "
    "and has a very large error on ithdigit for every d.",
    points=points,
    measure=auc.measure,
    predict=auc.predict,
    agreement=agreement,
    draw=of_data(
        "AUC by randomised response of the score's bin, public classes", "log2 of the domain size d"
    ),
)
