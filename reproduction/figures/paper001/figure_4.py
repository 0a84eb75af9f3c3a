"""Figure 4: Kendall's tau of two columns of six values, over ε: TripAdvisor, or the bank data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from reproduction.figures.figure import Agreement, Figure, Point, Row
from reproduction.figures.paper001 import kendall
from reproduction.figures.paper001.claims import beside_theory, error, verdict
from reproduction.figures.paper001.pictures import of_data
from reproduction.figures.paper001.ratings import label_of, load

EPSILONS = ("0.1", "0.5", "1", "2", "5", "10")
RUNS = 200
PAPER_RECORDS = 246_000
ORDER_OF_MAGNITUDE = 5
"""The least factor that counts as an order of magnitude; the paper says "roughly"."""
SERIES = {
    "Bell (LDP), 36 cells": ("bell-ldp", 0),
    "2PC, P = 1": ("2pc", 1),
    "2PC, P = 5": ("2pc", 5),
    "2PC, all pairs": ("2pc-all", 0),
    "Umpc, 2n pairs": ("umpc", 0),
    "Umpc, all pairs": ("umpc-all", 0),
}
ONE, FIVE = "2PC, P = 1", "2PC, P = 5"
OTHERS = ("Bell (LDP), 36 cells", "2PC, all pairs")


def points(data: str, quick: bool) -> list[Point]:
    found = []
    for name, (protocol, pairings) in SERIES.items():
        facts = {
            "data": data,
            "protocol": protocol,
            "pairings": pairings,
            "runs": 3 if quick else RUNS,
        }
        for epsilon in EPSILONS:
            found.append(
                Point(f"{label_of(data)}: {name}", float(epsilon), 1, facts | {"epsilon": epsilon})
            )
    return found


def agreement(data: str, rows: Sequence[Row]) -> Agreement:
    def at(name: str, epsilon: float) -> float:
        return error(rows, f"{label_of(data)}: {name}", epsilon)

    high = [float(epsilon) for epsilon in EPSILONS if float(epsilon) <= 2]
    factors = {name: [at(name, epsilon) / at(ONE, epsilon) for epsilon in high] for name in OTHERS}
    one_is_best = all(at(ONE, epsilon) < at(FIVE, epsilon) for epsilon in high)
    order = all(at(OTHERS[0], epsilon) < at(OTHERS[1], epsilon) for epsilon in high)
    bell, everything = (", ".join(f"{factor:.2g}" for factor in factors[name]) for name in OTHERS)
    large = {
        name: ", ".join(f"{factor:.2g}" for factor in _factors_of_paper(data, name))
        for name in OTHERS
    }
    records = rows[0].means["records"]
    said = (
        f"On {label_of(data)} (n = {records:,.0f}), at ε = "
        f"{', '.join(f'{epsilon:g}' for epsilon in high)}",
        f"Bell's error is {bell} times that of P = 1 (theory for {PAPER_RECORDS:,} such records: "
        f"{large[OTHERS[0]]}),",
        f"that of 2PC over all pairs {everything} times ({large[OTHERS[1]]}; for small ε √(2 ln "
        "10^8) = 6.1).",
        f"P = 5 has {at(FIVE, 1) / at(ONE, 1):.1f} times the error of P = 1 at ε = 1 and",
        f"{at(FIVE, 10) / at(ONE, 10):.2f} times at ε = 10.",
        f"One sum's noise (Umpc) has {at('Umpc, 2n pairs', 1) / at(ONE, 1):.2g} times the error "
        "of P = 1 at ε = 1 with",
        f"2n pairs, {at('Umpc, all pairs', 1) / at(ONE, 1):.2g} times with all.",
        beside_theory(rows),
    )
    is_much_less = min(map(min, factors.values())) > ORDER_OF_MAGNITUDE
    parts = is_much_less, one_is_best and at(FIVE, 10) < at(ONE, 10), order
    return Agreement(verdict(*parts), " ".join(said))


def _factors_of_paper(data: str, name: str) -> list[float]:
    """The error over that of P = 1, for ε up to 2, in theory.

    The theory is that of about as many records as in the paper.
    """
    counts = load(data).counts
    many = counts * max(1, round(PAPER_RECORDS / counts.sum()))
    high = [epsilon for epsilon in EPSILONS if float(epsilon) <= 2]
    return [
        kendall.predicted_error(SERIES[name][0], many, epsilon, 0)
        / kendall.predicted_error("2pc", many, epsilon, 1)
        for epsilon in high
    ]


def figure(name: str, data: str) -> Figure:
    return Figure(
        name=name,
        title="Kendall's tau over ε",
        quantity="absolute_error",
        claim="2PC with subsampling has the least error, by an order of magnitude for ε ≤ 2; P = "
        "1 is best in high privacy, P > 1 helps in low privacy; 2PC over all pairs (δ = 1e-8) is "
        "worst, randomised response slightly better.",
        points=partial(points, data),
        measure=kendall.measure,
        predict=kendall.predict,
        agreement=partial(agreement, data),
        draw=of_data("Kendall's tau of two columns of six values", "ε", "log"),
        data=data,
    )


FIGURE = figure("001-figure-4", "tripadvisor")
SUBSTITUTE = figure("001-figure-4-substitute", "bank")
