"""The share of equal pairs over four values: Laplace noise, and noise for what the records allow.

The records are as even as they can be, so the statistic is degenerate. `grid` and `hajek-grid` are
whole runs of three nodes and a dealer in one process. `central` is the curator's mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import comb

import numpy as np

from reproduction.figures.drawing import Panel, panels
from reproduction.figures.draws import bits_of, stream_of
from reproduction.figures.figure import Agreement, Figure, Measured, Point, Row, row_at
from umpc.protocols.grid.settings import GridSettings
from umpc.protocols.registry import checked
from umpc.protocols.u_mpc.noise_binding import noise_of_sums
from umpc.simulation import simulate
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant
from umpc.study.sizes import Sizes
from umpc_papers.central.central_mechanisms import Choice
from umpc_papers.central.hajek import bernstein_concentration
from umpc_papers.central.private_spread import FAILURE
from umpc_papers.central.terms import CompleteFamily
from umpc_papers.hajek_grid.binding import bound_of, hajek_grid_of, value_law
from umpc_papers.hajek_grid.settings import HajekGridSettings

VALUES = 4
NODES = 3
RECORDS = (500, 2_000, 8_000, 32_000, 128_000)
MOST_OF_CURATOR = 2_000
"""A curator evaluates all pairs one by one."""
RUNS, BATCHES = 60, 4
LAPLACE, OWN, CURATOR = "Laplace (grid)", "hajek-grid", 'curator, hajek, "degenerate"'
SETTINGS = {
    LAPLACE: GridSettings(dealer=Participant("dealer", "")),
    OWN: HajekGridSettings(dealer=Participant("dealer", ""), delta="1e-9"),
}


@cache
def study_of(series: str) -> Study:
    """The study of a series without a curator; ε = 1, and no node colludes."""
    return checked(
        Study(
            name="gain",
            statistic="collision",
            kernels=("a.x == b.x",),
            fields=(FieldText("x", "0", str(VALUES - 1), whole=True),),
            epsilon="1",
            max_colluding=0,
            coordinator="coordinator",
            nodes=tuple(Participant(f"node-{number}", "") for number in range(NODES)),
            settings=SETTINGS[series],
        )
    )


@cache
def choice_of(records: int) -> Choice:
    """The curator's mechanism."""
    one = Fraction(1)
    kernel = study_of(LAPLACE).parsed_kernels[0]
    xi = bernstein_concentration(records, 2, one, one / 4, FAILURE)
    return Choice("hajek", kernel, one, concentration=xi)


def counts_of(records: int) -> np.ndarray:
    """The number of records of each value."""
    return np.bincount(np.arange(records) % VALUES, minlength=VALUES)


def points(quick: bool) -> list[Point]:
    found = []
    for series in (LAPLACE, OWN, CURATOR):
        for records in RECORDS[:2] if quick or series == CURATOR else RECORDS:
            runs = 2 if quick else RUNS // BATCHES
            found.append(Point(series, records, 1 if quick else BATCHES, {"runs": runs}))
    return found


def measure(point: Point, seed: bytes) -> Measured:
    records = int(point.x)
    values = np.arange(records) % VALUES
    counts = counts_of(records)
    exact = float((counts * (counts - 1)).sum()) / (records * (records - 1))
    runs = range(point.facts["runs"])
    if point.series == CURATOR:
        choice = choice_of(records)
        found = [float(choice.estimate({"x": values}, bits_of(seed, run))) for run in runs]
    else:
        tables = [{"x": part} for part in np.array_split(values, NODES)]
        study = study_of(point.series)
        found = [
            simulate(study, tables, stream_of(seed, run).bytes).report.estimate for run in runs
        ]
    return {"squared_error": [(each - exact) ** 2 for each in found]}


def predict(point: Point) -> float:
    records = int(point.x)
    if point.series == CURATOR:
        return choice_of(records).noise_std(records, CompleteFamily(records, 2)) ** 2
    sizes = Sizes(study_of(point.series), records, 0, NODES)
    if point.series == LAPLACE:
        return (noise_of_sums(sizes)[0].std / comb(records, 2)) ** 2
    gram = hajek_grid_of(sizes.study).projections.gram
    counts = counts_of(records)
    squares = int(counts @ gram @ counts - gram.diagonal() @ counts) // 2
    return (value_law(sizes, bound_of(sizes, squares)).std / comb(records, 2)) ** 2


def gains(rows: Sequence[Row], series: str, records: float) -> float:
    """How many times smaller the standard deviation is than that of Laplace noise."""
    errors = [row_at(rows, each, records).means["squared_error"] for each in (LAPLACE, series)]
    return float((errors[0] / errors[1]) ** 0.5)


def agreement(rows: Sequence[Row]) -> Agreement:
    places = sorted({row.x for row in rows if row.series == OWN})
    found = [gains(rows, OWN, place) for place in places]
    said = ", ".join(
        f"n = {place:,.0f}: {gain:.2g}" for place, gain in zip(places, found, strict=True)
    )
    verdict = "agrees" if found[-1] > max(1.0, found[0]) else "disagrees"
    return Agreement(
        verdict, f"Times that the error without a curator is below that of Laplace noise: {said}."
    )


FIGURE = Figure(
    name="002-gain",
    title="Where knowledge of the local sensitivity gains",
    quantity="squared_error",
    claim="For degenerate kernels noise for the local sensitivity falls with n^(-3/2), where "
    "Laplace noise falls with 1/n; umpc's own: without a curator, too.",
    points=points,
    measure=measure,
    predict=predict,
    agreement=agreement,
    draw=panels(
        Panel("squared_error", "records", "mean squared error"),
        quantity="squared_error",
        columns=1,
        title="share of equal pairs over 4 values, ε = 1, δ = 1e-9 for hajek-grid",
    ),
)
