"""Table 1: error, communication and computation: measured numbers over the paper's expressions.

A party's seconds of Umpc include the work before the data. That work is the term n of |E|/n + n.
"""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.figures.drawing import table
from reproduction.figures.figure import Agreement, Figure, Measured, Point, Row
from reproduction.figures.paper003.claims import verdict
from reproduction.figures.paper003.constants import (
    SAME,
    SIZES,
    Constants,
    columns,
    constants,
    place,
    told,
)
from reproduction.figures.paper003.expressions import BITS, ERROR, PARTY, SERVER
from reproduction.figures.paper003.measures import everything
from reproduction.figures.paper003.protocols import predicted_error
from reproduction.figures.paper003.series import PAPER, point


def points(quick: bool) -> list[Point]:
    return [
        point(
            protocol, place(n, t), {"data": "uniform", "n": n, "t": t, "epsilon": "1"}, quick, 400
        )
        for n, t in (SIZES[:2] if quick else SIZES)
        for protocol in PAPER
    ]


def measure(point: Point, seed: bytes) -> Measured:
    found = dict(everything(point, seed))
    found["bits"] = 8 * found["bytes"]
    found["party_seconds"] = found["node_seconds"] + found.get("node_seconds_before", 0)
    return found


def all_constants(rows: Sequence[Row]) -> list[Constants]:
    return [
        *constants(rows, "squared_error", "error", ERROR),
        *constants(rows, "bits", "bits", BITS),
        *constants(rows, "party_seconds", "party's time", PARTY),
        *constants(rows, "server_seconds", "server's time", SERVER),
    ]


def agreement(rows: Sequence[Row]) -> Agreement:
    found = all_constants(rows)
    ours = [each.spread <= SAME for each in found if each.series == "Umpc"]
    others = [each.spread <= SAME for each in found if each.series != "Umpc"]
    return Agreement(
        verdict(*ours, *others),
        f"{told(found)} Bell and Ghazi cost less than the paper counts: an answer of Bell is log₂ "
        "t bits, one of Ghazi a bit and a seed; Bell's server adds up a histogram; Ghazi's "
        "vectors have at most t dimensions. Times are of this machine.",
    )


def cells(rows: Sequence[Row]) -> list[list[str]]:
    return [each.cells for each in all_constants(rows)]


FIGURE = Figure(
    name="003-table-1",
    title="Constants of table 1",
    quantity="squared_error",
    claim="Error, communication and computation grow as table 1 says.",
    points=points,
    measure=measure,
    predict=predicted_error,
    agreement=agreement,
    draw=table(
        columns, cells, "Table 1, measured over expression (ε = 1, ℓ = 40; seconds for operations)"
    ),
)
