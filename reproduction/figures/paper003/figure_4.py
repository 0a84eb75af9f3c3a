"""Figure 4: Kendall's tau of the bank data: squared error over the bins t, and over bytes."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from statistics import mean

from reproduction.figures.drawing import Panel, panels
from reproduction.figures.figure import Agreement, Figure, Point, Row, row_at
from reproduction.figures.paper003.claims import times, verdict, worst
from reproduction.figures.paper003.figure_3 import BINS, RECORDS
from reproduction.figures.paper003.measures import errors_and_bytes
from reproduction.figures.paper003.protocols import predicted_error
from reproduction.figures.paper003.series import NAMES, PAPER, point

EPSILONS = ("1", "0.1")
PROTOCOLS = (*PAPER, "bell-2pc", "central")
FEWER = {"umpc": 400, "central": 400, "bell-2pc": 200}
"""Runs of protocols that do not depend on t; they are measured again for each t."""
USUAL_BINS = 64
"""The t of the paper's figures 5 and 6."""
FOUR_ORDERS = (3e3, 3e4)
LONG = {256: 100, 1024: 40}
"""Runs of the other protocols at these t."""


def label(protocol: str, epsilon: str) -> str:
    return f"{NAMES[protocol]}, ε = {epsilon}"


def points(quick: bool) -> list[Point]:
    found = []
    for t in BINS[:2] if quick else BINS:
        for protocol in PROTOCOLS:
            for epsilon in EPSILONS:
                facts = {"data": "bank", "n": RECORDS, "t": t, "epsilon": epsilon}
                runs = FEWER.get(protocol) or LONG.get(t)
                found.append(point(protocol, t, facts, quick, runs, label(protocol, epsilon)))
    return found


def least(rows: Sequence[Row], protocol: str, epsilon: str, quantity: str) -> Row:
    """The row of a series with the least mean of a quantity."""
    own = [row for row in rows if row.series == label(protocol, epsilon)]
    return min(own, key=lambda row: row.means[quantity])


def greatest(rows: Sequence[Row]) -> tuple[float, Row]:
    """The largest factor of a baseline's error over Umpc's, over all t and ε, and its row."""
    found = []
    for row in rows:
        epsilon = row.point.facts["epsilon"]
        if row.point.facts["protocol"] in PAPER[:3]:
            ours = row_at(rows, label("umpc", epsilon), row.x).means["squared_error"]
            found.append((row.means["squared_error"] / ours, row))
    return max(found, key=lambda each: each[0])


def factor_at(rows: Sequence[Row], t: float, epsilon: str) -> float | None:
    """The largest factor of a baseline's error over Umpc's at one t; None without such a point."""
    own = [row for row in rows if row.x == t and row.point.facts["epsilon"] == epsilon]
    found = {row.point.facts["protocol"]: row.means["squared_error"] for row in own}
    return max(found[name] for name in PAPER[:3]) / found["umpc"] if found else None


def _is_four_orders(factor: float) -> bool:
    return FOUR_ORDERS[0] < factor < FOUR_ORDERS[1]


def _four_orders(factor: float | None) -> str:
    if factor is None:
        return ""
    return (
        f"At ε = 1 and t = {USUAL_BINS}, the paper's t elsewhere, the largest factor is "
        f"{times(factor)}, {'about' if _is_four_orders(factor) else 'not'} four orders. "
    )


def agreement(rows: Sequence[Row]) -> Agreement:
    parts, lowest, fewest = [], True, True
    for epsilon in EPSILONS:
        ours = mean(
            row.means["squared_error"] for row in rows if row.series == label("umpc", epsilon)
        )
        others = {
            name: least(rows, name, epsilon, "squared_error") for name in PAPER if name != "umpc"
        }
        factors = {name: row.means["squared_error"] / ours for name, row in others.items()}
        lowest &= min(factors.values()) > 1
        traffic = {name: least(rows, name, epsilon, "bytes").means["bytes"] for name in PAPER}
        fewest &= min(traffic, key=traffic.__getitem__) == "bell-ldp"
        told = ", ".join(
            f"{NAMES[name]} {times(factors[name])} at t = {others[name].x:.0f}" for name in factors
        )
        parts.append(
            f"ε = {epsilon}: least error of all t, beside Umpc's {ours:.2g} whatever t is: {told}"
        )
    most, where = greatest(rows)
    told = factor_at(rows, USUAL_BINS, "1")
    return Agreement(
        verdict(lowest, fewest, told is not None and _is_four_orders(told)),
        f"{'; '.join(parts)}. {_four_orders(told)}"
        f"Over all t the greatest factor is 10^{log10(most):.1f} "
        f"({where.series}, t = {where.x:.0f}), of an unbiased estimate whose error is "
        f"{where.means['squared_error']:.2g} for a number between −1 and 1. Bell sends 1 or 2 "
        f"bytes a record, {'the' if fewest else 'not the'} fewest. Bins are of equal width and "
        f"blind to the data, and most balances are in few of them. {worst(rows)}",
    )


def _panel(epsilon: str, x: str, xlabel: str) -> Panel:
    only = tuple(label(protocol, epsilon) for protocol in PROTOCOLS)
    return Panel("squared_error", xlabel, f"mean squared error, ε = {epsilon}", x, only)


FIGURE = Figure(
    name="003-figure-4",
    title="Error over t and over communication",
    quantity="squared_error",
    claim="For ε = 0.1 and 1 Umpc has the smallest mean squared error, by up to four orders of "
    "magnitude, and Bell sends the fewest bytes.",
    points=points,
    measure=errors_and_bytes,
    predict=predicted_error,
    agreement=agreement,
    data="bank",
    draw=panels(
        *(
            _panel(epsilon, x, name)
            for epsilon in EPSILONS
            for x, name in (("x", "bins t"), ("bytes", "bytes online"))
        ),
        quantity="squared_error",
        title="Kendall's tau, bank data, n = 4,521, |E| = 2n",
    ),
)
