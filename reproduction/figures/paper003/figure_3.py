"""Figure 3: Kendall's tau of the bank data, over the number of bins t: bytes and computation."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.figures.drawing import Panel, panels
from reproduction.figures.figure import Agreement, Figure, Point, Row, row_at
from reproduction.figures.paper003.claims import ratio, times, verdict
from reproduction.figures.paper003.measures import nothing, seconds_and_bytes
from reproduction.figures.paper003.series import NAMES, PAPER, timed

RECORDS = 4521
BINS = (4, 16, 64, 256, 1024)
ON_EPSILON = ("ghazi-ldp", "ghazi-shuffle")
"""Protocols that the paper draws for both ε."""


def points(quick: bool) -> list[Point]:
    found = []
    for t in BINS[:2] if quick else BINS:
        for protocol in PAPER:
            for epsilon in ("1", "0.1") if protocol in ON_EPSILON else ("1",):
                facts = {"data": "bank", "n": RECORDS, "t": t, "epsilon": epsilon}
                label = f"{NAMES[protocol]}, ε = {epsilon}" if protocol in ON_EPSILON else ""
                found.append(timed(protocol, t, facts, quick, label))
    return found


def agreement(rows: Sequence[Row]) -> Agreement:
    t = max(row.x for row in rows)
    traffic, work = (ratio(rows, t, quantity) for quantity in ("bytes", "total_seconds"))
    more = {
        name: traffic(f"{name}, ε = 1") / traffic(f"{name}, ε = 0.1")
        for name in ("Ghazi", "GhaziSM")
    }
    dearer = traffic("Ghazi, ε = 1") > 1
    others = {name: work(name) for name in ("Bell (LDP)", "Ghazi, ε = 1", "GhaziSM, ε = 1")}
    least = min(others.values()) > 1
    growth = (
        row_at(rows, "Bell (LDP)", t).means["server_seconds"]
        / row_at(rows, "Bell (LDP)", BINS[0]).means["server_seconds"]
    )
    return Agreement(
        verdict(min(more.values()) > 1.5, dearer, least),
        f"From ε = 0.1 to 1 the bytes of Ghazi are multiplied by {more['Ghazi']:.2f}, those of "
        f"GhaziSM by {more['GhaziSM']:.2f}: an answer of Ghazi is one bit whatever ε is, for a "
        "projection to more than t dimensions saves nothing, and it sends "
        f"{times(traffic('Ghazi, ε = 1'))} the bytes of Umpc. At t = {t:,.0f} all computation of "
        f"Bell takes {times(others['Bell (LDP)'])}, of Ghazi {times(others['Ghazi, ε = 1'])}, of "
        f"GhaziSM {times(others['GhaziSM, ε = 1'])} that of Umpc; Bell's server takes "
        f"{times(growth)} what it takes at t = {BINS[0]}. Times are of this machine.",
    )


FIGURE = Figure(
    name="003-figure-3",
    title="Communication and computation over t",
    quantity="total_seconds",
    claim="Ghazi and GhaziSM send more as ε grows, for ε ≥ 1 Ghazi more than Umpc; and from some "
    "t on Umpc has the least computation in all.",
    points=points,
    measure=seconds_and_bytes,
    predict=nothing,
    agreement=agreement,
    data="bank",
    draw=panels(
        Panel("bytes", "bins t", "bytes online"),
        Panel("total_seconds", "bins t", "seconds, server and all parties"),
        quantity="total_seconds",
        title="Kendall's tau, bank data, n = 4,521, |E| = 2n",
    ),
)
