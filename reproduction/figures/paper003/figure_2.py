"""Figure 2: the Gini mean difference of uniform records, over n: seconds of party and server."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from reproduction.figures.drawing import Panel, panels
from reproduction.figures.figure import Agreement, Figure, Point, Row, row_at
from reproduction.figures.paper003.claims import ratio, times, verdict
from reproduction.figures.paper003.figure_1 import BINS, RECORDS
from reproduction.figures.paper003.measures import nothing, seconds_and_bytes
from reproduction.figures.paper003.series import PAPER, timed


def points(quick: bool) -> list[Point]:
    return [
        timed(protocol, n, {"data": "uniform", "n": n, "t": BINS, "epsilon": "1"}, quick)
        for n in (RECORDS[:2] if quick else RECORDS)
        for protocol in PAPER
    ]


def growth(rows: Sequence[Row], series: str, quantity: str) -> float:
    """The power of n with which a quantity grows, from the second largest n to the largest."""
    *_, low, high = sorted({row.x for row in rows})
    first, second = (row_at(rows, series, n).means[quantity] for n in (low, high))
    return log(second / first) / log(high / low)


def agreement(rows: Sequence[Row]) -> Agreement:
    n = max(row.x for row in rows)
    node, server = (ratio(rows, n, quantity) for quantity in ("node_seconds", "server_seconds"))
    others = ("Ghazi", "GhaziSM", "Umpc")
    party = all(node("Bell (LDP)") < node(other) for other in others)
    dearest = all(server("Bell (LDP)") > server(other) for other in others)
    before = row_at(rows, "Umpc", n).means["node_seconds_before"]
    return Agreement(
        verdict(party, dearest),
        f"At n = {n:,.0f} a party of Bell takes {times(node('Bell (LDP)'))} a party of Umpc, of "
        f"Ghazi {times(node('Ghazi'))}, of GhaziSM {times(node('GhaziSM'))}. Bell's server takes "
        f"{times(server('Bell (LDP)'))} that of Umpc, Ghazi's {times(server('Ghazi'))}, GhaziSM's "
        f"{times(server('GhaziSM'))}: a quadratic form of the histogram of answers, n + t² "
        "operations (here growing with n to the power "
        f"{growth(rows, 'Bell (LDP)', 'server_seconds'):.1f}), where the paper counts n²t². "
        "Before the data each party of Umpc also agrees on zero shares with n − 1 others, "
        f"{before:.2g} s. Times are of this machine.",
    )


FIGURE = Figure(
    name="003-figure-2",
    title="Computation of a party and of the server over n",
    quantity="node_seconds",
    claim="A party's computation is least with Bell, at the expense of higher computation at the "
    "server (ε = 1, t = 256).",
    points=points,
    measure=seconds_and_bytes,
    predict=nothing,
    agreement=agreement,
    draw=panels(
        Panel("node_seconds", "parties n", "seconds of a party"),
        Panel("server_seconds", "parties n", "seconds of the server"),
        quantity="node_seconds",
        title="Gini mean difference of uniform records, ε = 1, t = 256: seconds of a processor, "
        "on data",
    ),
)
