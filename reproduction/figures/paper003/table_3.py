"""Table 3: squared errors towards the population and towards the sample, over the expressions.

Each run draws new records, so that the sampling of records counts. For the Gini mean difference of
uniform records everything is known: E|X − Y|, and the variances ζ1 = 1/180 of E[f(x, Y)] and ζ2 =
1/18 of f.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reproduction.figures.drawing import table
from reproduction.figures.draws import stream_of
from reproduction.figures.figure import Agreement, Figure, Measured, Point, Row
from reproduction.figures.paper003.claims import verdict, worst
from reproduction.figures.paper003.constants import (
    SAME,
    SIZES,
    Constants,
    columns,
    constants,
    place,
    told,
)
from reproduction.figures.paper003.data import GRID, uniform
from reproduction.figures.paper003.expressions import ERROR, POPULATION
from reproduction.figures.paper003.protocols import ESTIMATES, predicted_error
from reproduction.figures.paper003.series import point
from reproduction.figures.paper003.theory import Moments

MEAN = (GRID**2 - 1) / (3 * GRID) / GRID
"""The mean of |X − Y| for X and Y uniform on the grid."""
ZETA_1, ZETA_2 = 1 / 180, 1 / 18


def points(quick: bool) -> list[Point]:
    return [
        point(
            protocol, place(n, t), {"data": "uniform", "n": n, "t": t, "epsilon": "1"}, quick, 400
        )
        for n, t in (SIZES[:2] if quick else SIZES)
        for protocol in ("bell-ldp", "ghazi-ldp", "umpc")
    ]


def gini(values: np.ndarray) -> float:
    """The mean of |x − y| over all pairs, from the order of the values."""
    n = len(values)
    return float(np.sort(values) @ (2 * np.arange(n) - n + 1)) * 2 / (n * (n - 1))


def sampling_variance(n: int) -> float:
    """The variance of the U-statistic, Hoeffding 1948."""
    return (4 * (n - 2) * ZETA_1 + 2 * ZETA_2) / (n * (n - 1))


def measure(point: Point, seed: bytes) -> Measured:
    facts, population, sample = point.facts, [], []
    for run in range(facts["runs"]):
        own = stream_of(seed, run).bytes(32)
        data = uniform(facts["n"], own)
        exact = gini(data.columns["x"])
        value = ESTIMATES[facts["protocol"]](data, Moments(facts["n"], exact, 0, 0), facts, own)
        population.append((value - MEAN) ** 2)
        sample.append((value - exact / GRID) ** 2)
    return {"population_error": population, "sample_error": sample}


def predict(point: Point) -> float:
    """The error on the records of table 1, plus that of sampling records.

    The former differs little from the mean over records.
    """
    return predicted_error(point) + sampling_variance(point.facts["n"])


def all_constants(rows: Sequence[Row]) -> list[Constants]:
    return [
        *constants(rows, "population_error", "population error", POPULATION),
        *constants(
            rows, "sample_error", "sample error", {name: ERROR[name] for name in POPULATION}
        ),
    ]


def agreement(rows: Sequence[Row]) -> Agreement:
    found = all_constants(rows)
    return Agreement(
        verdict(*(each.spread <= SAME for each in found)),
        f"{told(found)} Where t is not small against ε√n, Bell's error grows as t⁴/(nε²)², the "
        f"square of the paper's term (docs/papers.md). {worst(rows, 'population_error')}",
    )


def cells(rows: Sequence[Row]) -> list[list[str]]:
    return [each.cells for each in all_constants(rows)]


FIGURE = Figure(
    name="003-table-3",
    title="Constants of table 3",
    quantity="population_error",
    claim="Errors grow as table 3 says; Umpc's towards the population as 1/n, towards the sample "
    "as 1/|E| + 1/(n²ε²).",
    points=points,
    measure=measure,
    predict=predict,
    agreement=agreement,
    draw=table(columns, cells, "Table 3, measured over expression (ε = 1)"),
)
