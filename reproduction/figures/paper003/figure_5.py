"""Figure 5: Kendall's tau of blood pressure and cholesterol of the heart data, over n."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.figures.drawing import Panel, panels
from reproduction.figures.figure import Agreement, Figure, Point, Row
from reproduction.figures.paper003.claims import ratio, times, verdict, worst
from reproduction.figures.paper003.measures import everything
from reproduction.figures.paper003.protocols import predicted_error
from reproduction.figures.paper003.series import PAPER, names, point

RECORDS = (100, 200, 400, 600, 834)
BINS = 64
PROTOCOLS = (*PAPER, "bell-2pc", "central")
FOUR = (
    Panel("bytes", "parties n", "bytes online", only=names(PROTOCOLS[:-1])),
    Panel("squared_error", "parties n", "mean squared error"),
    Panel("node_seconds", "parties n", "seconds of a party"),
    Panel("server_seconds", "parties n", "seconds of the server"),
)


def points_of(data: str, quick: bool) -> list[Point]:
    return [
        point(protocol, n, {"data": data, "n": n, "t": BINS, "epsilon": "1"}, quick)
        for n in (RECORDS[:2] if quick else RECORDS)
        for protocol in PROTOCOLS
    ]


def points(quick: bool) -> list[Point]:
    return points_of("heart", quick)


def agreement(rows: Sequence[Row]) -> Agreement:
    n = max(row.x for row in rows)
    traffic, error, server = (
        ratio(rows, n, q) for q in ("bytes", "squared_error", "server_seconds")
    )
    bell, shuffled = error("Bell (LDP)"), error("GhaziSM")
    return Agreement(
        verdict(traffic("Bell (LDP)") < 1, bell > 1, server("Bell (LDP)") > 1),
        f"At n = {n:,.0f} Umpc sends {times(1 / traffic('Bell (LDP)'))} the bytes of Bell; Bell's "
        f"error is {times(bell)} that of Umpc (Ghazi's {times(error('Ghazi'))}, GhaziSM's "
        f"{times(shuffled)}), and its server takes {times(server('Bell (LDP)'))} as long. Times "
        f"are of this machine. {worst(rows)}",
    )


FIGURE = Figure(
    name="003-figure-5",
    title="Kendall's tau of the heart data over n",
    quantity="squared_error",
    claim="Umpc sends more than Bell, with a lower mean squared error and less computation at the "
    "server (ε = 1, t = 64).",
    points=points,
    measure=everything,
    predict=predicted_error,
    agreement=agreement,
    data="heart",
    draw=panels(
        *FOUR, quantity="squared_error", title="Kendall's tau, heart data, ε = 1, t = 64, |E| = 2n"
    ),
)
