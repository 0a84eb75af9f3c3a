"""Figure 5: the AUC protocol on synthetic scores, over the domain size d = 2^levels."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.figures.figure import Agreement, Figure, Point, Row
from reproduction.figures.paper001 import auc
from reproduction.figures.paper001.claims import beside_theory, errors, verdict
from reproduction.figures.paper001.pictures import of_data

DATA = ("auc_one", "ur", "ithdigit")
LEVELS = (2, 4, 6, 8, 10, 12, 13, 14, 16, 18, 20)
EPSILONS = ("0.5", "1", "2")
PER_CLASS = 1_000_000
RUNS = 40
"""Runs of a point; the paper has 20."""


def points(quick: bool) -> list[Point]:
    if quick:
        return auc.points("bell-auc", DATA, LEVELS[::4], EPSILONS[1:2], 3, 10_000)
    return auc.points("bell-auc", DATA, LEVELS, EPSILONS, RUNS, PER_CLASS)


def agreement(rows: Sequence[Row]) -> Agreement:
    one, uniform, digit = (errors(rows, f"{name}: ε = 1") for name in DATA)
    first, last = min(one), max(one)
    predicted = [row.predicted for row in rows if row.series == "auc_one: ε = 1"]
    grows = predicted == sorted(predicted) and one[last] > one[first]
    lower = max(uniform[x] / one[x] for x in one if x >= 8) < 0.5
    before = min(value for x, value in digit.items() if x <= 13)
    after = max((value for x, value in digit.items() if x >= 14), default=0.5)
    learns = before > 0.45 and after < 0.1
    return Agreement(
        verdict(grows, lower, learns),
        f"At ε = 1, d = 2^{first:.0f} → 2^{last:.0f}: auc_one {one[first]:.2g} → {one[last]:.2g} "
        f"(theory grows with every level: {'yes' if grows else 'no'}), ur {uniform[first]:.2g} → "
        f"{uniform[last]:.2g}, at most {max(uniform[x] / one[x] for x in one if x >= 8):.2f} of "
        f"auc_one's from d = 2^8. ithdigit: at least {before:.3f} up to 2^13 (its one bin counts "
        f"half), at most {after:.2g} from 2^14. {beside_theory(rows)}",
    )


FIGURE = Figure(
    name="001-figure-5",
    title="AUC protocol on synthetic data",
    quantity="absolute_error",
    claim="The error on auc_one grows with every level, ur's is much lower, ithdigit learns "
    "nothing until d = 2^14 and has a low error from there on.",
    points=points,
    measure=auc.measure,
    predict=auc.predict,
    agreement=agreement,
    draw=of_data("AUC by hierarchical histograms", "log2 of the domain size d"),
)
