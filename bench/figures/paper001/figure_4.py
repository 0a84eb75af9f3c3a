"""Figure 4: Kendall's tau of two columns of six values, over ε: TripAdvisor if given, and the bank data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bench.figures.figure import Agreement, Figure, Point, Row
from bench.figures.given import digest_of, is_given
from bench.figures.paper001 import kendall
from bench.figures.paper001.claims import beside_theory, error, verdict
from bench.figures.paper001.drawing import of_data
from bench.figures.paper001.ratings import label_of, load

EPSILONS = ("0.1", "0.5", "1", "2", "5", "10")
RUNS = 200
PAPER_RECORDS = 246_000
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
    digest = {"digest": digest_of(data)} if data == "tripadvisor" and is_given(data) else {}
    found = []
    for name, (protocol, pairings) in SERIES.items():
        facts = {"data": data, "protocol": protocol, "pairings": pairings, "runs": 3 if quick else RUNS} | digest
        for epsilon in EPSILONS:
            found.append(Point(f"{label_of(data)}: {name}", float(epsilon), 1, facts | {"epsilon": epsilon}))
    return found


def agreement(data: str, rows: Sequence[Row]) -> Agreement:
    def at(name: str, epsilon: float) -> float:
        return error(rows, f"{label_of(data)}: {name}", epsilon)

    high = [float(epsilon) for epsilon in EPSILONS if float(epsilon) <= 2]
    factors = [min(at(name, epsilon) for name in OTHERS) / at(ONE, epsilon) for epsilon in high]
    one_is_best = all(at(ONE, epsilon) < at(FIVE, epsilon) for epsilon in high)
    order = all(at(OTHERS[0], epsilon) < at(OTHERS[1], epsilon) for epsilon in high)
    large = _factor_of_paper(data)
    records = rows[0].means["records"]
    return Agreement(
        verdict(min(factors) > 5, one_is_best and at(FIVE, 10) < at(ONE, 10), order),
        f"On {label_of(data)} (n = {records:,.0f}), for ε from {high[0]:g} to {high[-1]:g} the lesser error of Bell "
        f"and 2PC over all pairs is {max(factors):.0f} to {min(factors):.1f} times that of P = 1 (theory for "
        f"{PAPER_RECORDS:,} records like these, ε = 0.1 and 2: {large[0]:.0f} and {large[1]:.1f} times); 2PC over all "
        f"pairs has {at(OTHERS[1], 1) / at(OTHERS[0], 1):.2g} times Bell's error at ε = 1. P = 5 has "
        f"{at(FIVE, 1) / at(ONE, 1):.1f} times the error of P = 1 at ε = 1 and {at(FIVE, 10) / at(ONE, 10):.2f} times "
        f"at ε = 10. One sum's noise (Umpc) has {at('Umpc, 2n pairs', 1) / at(ONE, 1):.2g} times the error of P = 1 at "
        f"ε = 1 with 2n pairs, {at('Umpc, all pairs', 1) / at(ONE, 1):.2g} times with all. {beside_theory(rows)}",
    )


def _factor_of_paper(data: str) -> list[float]:
    """In theory, were there as many records as in the paper."""
    counts = load(data).counts
    many = counts * round(PAPER_RECORDS / counts.sum())
    ratios = []
    for epsilon in ("0.1", "2"):
        others = (kendall.predicted_error(*SERIES[name][:1], many, epsilon, 0) for name in OTHERS)
        ratios.append(min(others) / kendall.predicted_error("2pc", many, epsilon, 1))
    return ratios


def figure(name: str, data: str, needs: str = "") -> Figure:
    return Figure(
        name=name,
        title="Kendall's tau over ε",
        quantity="absolute_error",
        claim="2PC with subsampling has the least error, by an order of magnitude for ε ≤ 2; P = 1 is best in high "
        "privacy, P > 1 helps in low privacy; 2PC over all pairs (δ = 1e-8) is worst, randomised response slightly "
        "better.",
        points=partial(points, data),
        measure=kendall.measure,
        predict=kendall.predict,
        agreement=partial(agreement, data),
        draw=of_data("Kendall's tau of two columns of six values", "ε", "log"),
        needs=needs,
    )


FIGURE = figure("001-figure-4", "tripadvisor", needs="tripadvisor")
SUBSTITUTE = figure("001-figure-4-substitute", "bank")
