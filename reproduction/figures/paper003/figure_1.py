"""Figure 1: the Gini mean difference of uniform records, over n: bytes online and error."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.figures.drawing import Panel, panels
from reproduction.figures.figure import Agreement, Figure, Point, Row, row_at
from reproduction.figures.paper003.claims import ratio, times, verdict, worst
from reproduction.figures.paper003.measures import errors_and_bytes
from reproduction.figures.paper003.protocols import predicted_error
from reproduction.figures.paper003.series import PAPER, names, point

RECORDS = (100, 300, 1000, 3000, 10_000)
BINS = 256
PROTOCOLS = (*PAPER, "bell-2pc", "central")


def points(quick: bool) -> list[Point]:
    return [
        point(protocol, n, {"data": "uniform", "n": n, "t": BINS, "epsilon": "1"}, quick)
        for n in (RECORDS[:2] if quick else RECORDS)
        for protocol in PROTOCOLS
    ]


def sites(rows: Sequence[Row], n: float) -> str:
    """One clause: Umpc's bytes for a record, if each party has one record, and with four sites."""
    found = row_at(rows, "Umpc", n).means
    alone, at_sites = found["bytes"] / n, found["bytes_at_sites"] / n
    return f"that is {alone:.0f} bytes a record, and {at_sites:.1f} with four sites"


def agreement(rows: Sequence[Row]) -> Agreement:
    n = max(row.x for row in rows)
    error, traffic = (ratio(rows, n, quantity) for quantity in ("squared_error", "bytes"))
    best = min(error("Bell (LDP)"), error("Ghazi"), error("GhaziSM")) > 1
    alike = 1 / 3 < traffic("Bell (LDP)") < 3
    return Agreement(
        verdict(best, alike),
        f"At n = {n:,.0f} the error of Bell is {times(error('Bell (LDP)'))}, Ghazi's "
        f"{times(error('Ghazi'))} and GhaziSM's {times(error('GhaziSM'))} that of Umpc: the order "
        f"{'holds' if best else 'does not hold'}. Umpc sends {times(1 / traffic('Bell (LDP)'))} "
        "the bytes of Bell, whose answer is one byte where the paper counts t numbers of 40 "
        f"bits, {times(1 / traffic('Ghazi'))} those of Ghazi, whose record is one bit and a seed "
        f"where the paper counts ε²n·ln t numbers, and {times(1 / traffic('GhaziSM'))} those of "
        f"GhaziSM; {sites(rows, n)}. {worst(rows)}",
    )


FIGURE = Figure(
    name="003-figure-1",
    title="Gini mean difference over n",
    quantity="squared_error",
    claim="Umpc has a smaller mean squared error than Bell, Ghazi and GhaziSM, at a communication "
    "as low as Bell's (ε = 1, t = 256).",
    points=points,
    measure=errors_and_bytes,
    predict=predicted_error,
    agreement=agreement,
    draw=panels(
        Panel("bytes", "parties n", "bytes online", only=names(PROTOCOLS[:-1])),
        Panel("squared_error", "parties n", "mean squared error"),
        quantity="squared_error",
        title="Gini mean difference of uniform records, ε = 1, t = 256, |E| = 2n",
    ),
)
