"""Figure 6: the ratio of pairs with the same diagnosis in the heart data, over n.

The paper has t = 64 bins for a diagnosis of five values; a category is a bin here, so t = 5.
"""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.figures.drawing import panels
from reproduction.figures.figure import Agreement, Figure, Point, Row
from reproduction.figures.paper003.claims import ratio, times, verdict, worst
from reproduction.figures.paper003.figure_5 import FOUR, points_of
from reproduction.figures.paper003.measures import everything
from reproduction.figures.paper003.protocols import predicted_error


def points(quick: bool) -> list[Point]:
    return points_of("diagnosis", quick)


def agreement(rows: Sequence[Row]) -> Agreement:
    n = max(row.x for row in rows)
    traffic, node, server, error = (
        ratio(rows, n, q) for q in ("bytes", "node_seconds", "server_seconds", "squared_error")
    )
    others = ("Ghazi", "GhaziSM", "Umpc")
    cheapest = all(
        traffic("Bell (LDP)") < traffic(each) and node("Bell (LDP)") < node(each) for each in others
    )
    loads = all(server("Bell (LDP)") > server(each) for each in others)
    apart = min(error("Bell (LDP)"), error("Ghazi")) > 3 * max(1, error("GhaziSM"))
    return Agreement(
        verdict(cheapest, loads, apart),
        f"At n = {n:,.0f} a party of Bell sends {times(traffic('Bell (LDP)'))} the bytes and "
        f"takes {times(node('Bell (LDP)'))} the time of one of Umpc; its server takes "
        f"{times(server('Bell (LDP)'))} as long (Ghazi's {times(server('Ghazi'))}, GhaziSM's "
        f"{times(server('GhaziSM'))}). The errors of Bell and Ghazi are "
        f"{times(error('Bell (LDP)'))} and {times(error('Ghazi'))}, of GhaziSM "
        f"{times(error('GhaziSM'))} that of Umpc, "
        f"{'so the two kinds are apart' if apart else 'so the two kinds are not clearly apart'}; "
        "all pairs are in GhaziSM's estimate, 2n of them in Umpc's. Times are of this machine. "
        f"{worst(rows)}",
    )


FIGURE = Figure(
    name="003-figure-6",
    title="Duplicate pair ratio of the heart data over n",
    quantity="squared_error",
    claim="Bell is best in communication and in a party's computation, its server has the main "
    "load; and central privacy (Umpc, GhaziSM) is clearly apart from local (Bell, Ghazi) in mean "
    "squared error.",
    points=points,
    measure=everything,
    predict=predicted_error,
    agreement=agreement,
    data="heart",
    draw=panels(
        *FOUR, quantity="squared_error", title="Same diagnosis, heart data, ε = 1, t = 5, |E| = 2n"
    ),
)
