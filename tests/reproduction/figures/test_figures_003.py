"""Figures of paper003: they measure what they predict, at the protocols' own costs."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest

from bench.simulated_study import Simulated
from reproduction.figures.draws import bits_of, seed_of
from reproduction.figures.figure import Figure, Measured, Point, Row
from reproduction.figures.paper003 import FIGURES, clocks, figure_1, figure_4, table_2, table_3
from reproduction.figures.paper003.data import load, uniform
from reproduction.figures.paper003.protocols import histogram_estimate, protocol_of
from reproduction.figures.paper003.theory import moments_of
from reproduction.figures.paper003.traffic import bytes_of, noise_bytes, study_of, umpc_parties
from umpc.mpc.backends import predict
from umpc_papers.ghazi_shuffle.mechanism import GhaziShuffle
from umpc_papers.ghazi_shuffle.split_mix import add_up

SIGMAS = 4.0
"""Standard errors that a mean may be off."""
SMALL = {"n": 40, "t": 4, "epsilon": "1", "runs": 3}
BY_NAME = {figure.name: figure for figure in FIGURES}


def measured(
    figure: Figure, facts: dict, x: float = 40, label: str = "tests"
) -> tuple[Point, Measured]:
    point = Point("series", x, 1, facts)
    return point, figure.measure(point, seed_of(label))


def accept(figure: Figure, point: Point, values) -> None:
    """The mean is as predicted, and a third or three times of that would be noticed."""
    values, predicted = np.asarray(values), figure.predict(point)
    error = values.std(ddof=1) / len(values) ** 0.5
    for factor in (1, 1 / 3, 3):
        off = (values.mean() - factor * predicted) / error
        assert (abs(off) < SIGMAS) == (factor == 1), (
            f"{point.facts}: {off:.1f} standard errors from {factor:.2g} times"
        )


RUNS = {
    "umpc": 250,
    "central": 250,
    "bell-ldp": 250,
    "ghazi-ldp": 250,
    "ghazi-shuffle": 250,
    "bell-2pc": 250,
}


@pytest.mark.parametrize("protocol", RUNS)
@pytest.mark.parametrize("data", ["uniform", "bank"])
def test_errors_are_those_that_are_predicted(data, protocol):
    figure = {"uniform": figure_1, "bank": figure_4}[data].FIGURE
    facts = SMALL | {"protocol": protocol, "data": data, "n": 60, "runs": RUNS[protocol]}
    point, found = measured(figure, facts)
    assert len(found["squared_error"]) == RUNS[protocol]
    accept(figure, point, found["squared_error"])


def test_population_errors_are_those_that_are_predicted():
    facts = SMALL | {"protocol": "umpc", "data": "uniform", "n": 50, "runs": 250}
    point, found = measured(table_3.FIGURE, facts)
    accept(table_3.FIGURE, point, found["population_error"])
    assert np.mean(found["sample_error"]) < np.mean(found["population_error"])


@pytest.fixture
def few_jobs(monkeypatch):
    """Table 2 of 60 records, with theory from more graphs."""
    monkeypatch.setattr(table_2, "RECORDS", 60)
    monkeypatch.setattr(table_2, "PAIRS", 60 * 59 // 2)
    monkeypatch.setattr(table_2, "GRAPHS", 100)
    table_2.all_pairs.cache_clear()
    yield
    table_2.all_pairs.cache_clear()


@pytest.mark.parametrize("rule", table_2.RULES)
def test_every_way_to_draw_e_has_the_error_that_is_predicted(few_jobs, rule):
    point, found = measured(table_2.FIGURE, {"rule": rule, "runs": 100}, x=240)
    accept(table_2.FIGURE, point, found["squared_error"])
    degrees = set(found["greatest_degree"])
    assert degrees == {8} if rule == "balanced" else min(degrees) > 8


def small_point(figure: Figure) -> tuple[dict, float]:
    point = figure.points(True)[0]
    return (point.facts | SMALL if "n" in point.facts else point.facts | {"runs": 3}), 40


@pytest.mark.parametrize("name", BY_NAME)
def test_every_figure_measures_what_it_says(few_jobs, name):
    figure = BY_NAME[name]
    _, found = measured(figure, *small_point(figure))
    values = np.atleast_1d(found[figure.quantity])
    assert len(values) in (1, 3) and np.all(values > 0)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_figure_has_the_points_that_its_agreement_reads(name):
    """All means are 1. No series is better than another, so no claim about an order holds."""
    figure = BY_NAME[name]
    points = figure.points(False)
    quantities = {
        "squared_error",
        "bytes",
        "bytes_at_sites",
        "bits",
        "greatest_degree",
        "population_error",
        "sample_error",
    }
    quantities |= {f"{of}_seconds" for of in ("node", "party", "server", "total")} | {
        "node_seconds_before"
    }
    means = dict.fromkeys(quantities, 1.0)
    rows = [Row(point, means, dict.fromkeys(quantities, 0.1), 9, 1.0) for point in points]
    verdict, reason = figure.agreement(rows)
    assert verdict in ("in part", "disagrees") and "1" in reason
    assert len({(point.series, point.x) for point in points}) == len(points)


def test_figure_1_agrees_only_where_umpc_is_best_and_sends_as_little():
    def told(bell_error: float, bell_bytes: float) -> str:
        rows = [
            Row(point, {"squared_error": 2.0, "bytes": 100.0}, {"squared_error": 0.1}, 9, 2.0)
            for point in figure_1.points(False)
        ]
        changed = {"Umpc": {"squared_error": 1.0, "bytes": 100.0, "bytes_at_sites": 9.0}}
        changed["Bell (LDP)"] = {"squared_error": bell_error, "bytes": bell_bytes}
        rows = [
            Row(row.point, changed.get(row.series, row.means), row.errors, 9, 2.0) for row in rows
        ]
        return figure_1.agreement(rows).verdict

    assert [told(2, 90), told(2, 1), told(0.5, 90), told(0.5, 1)] == [
        "agrees",
        "in part",
        "in part",
        "disagrees",
    ]


# --- theory ---


def test_the_error_of_a_balanced_e_is_exact():
    """All numberings of a graph with 5 vertices: a path of 4 edges, and a cycle with a chord."""
    data = uniform(5, seed_of("five"))
    x, exact = data.columns["x"].astype(float), moments_of(data)
    pairs = [abs(a - b) for a, b in combinations(x, 2)]
    assert exact.mean == pytest.approx(np.mean(pairs)) and exact.square == pytest.approx(
        np.mean(np.square(pairs))
    )
    cycle = [(i, (i + 1) % 5) for i in range(5)]
    for edges, touching in (
        (cycle, 10),
        (cycle[:4], 6),
        ([*cycle, (0, 2)], 18),
        ([(0, 1), (2, 3)], 0),
    ):
        sums = [np.mean([abs(x[p[a]] - x[p[b]]) for a, b in edges]) for p in permutations(range(5))]
        assert exact.of_graph(len(edges), touching) == pytest.approx(np.var(sums))
    assert exact.of_balanced(5) == pytest.approx(exact.of_graph(5, 10))
    assert exact.of_balanced(4) == pytest.approx(exact.of_graph(4, 6))
    assert exact.of_balanced(10) == pytest.approx(0, abs=1e-6) == exact.of_uniform(10)


def test_the_gini_mean_difference_from_the_order_of_values():
    values = np.array([3, 9, 4, 4, 0])
    assert table_3.gini(values) == pytest.approx(
        np.mean([abs(a - b) for a, b in combinations(values, 2)])
    )


# --- what stands in for whole protocols ---


def test_the_estimate_from_sums_is_that_of_the_shuffled_messages():
    data = load("uniform", 60)
    protocol = GhaziShuffle(Fraction(1), data.cells(4), 60, 30, kappa=8)
    bits = bits_of(seed_of("shuffled"))
    mixed = protocol.shuffle([protocol.randomise(data.columns, bits)], [60], bits)
    total = add_up(protocol.decode(mixed, 60), protocol.width)
    assert protocol.aggregate(mixed).value == pytest.approx(
        histogram_estimate(protocol, total.astype(float))
    )


@pytest.mark.parametrize("records", [8, 20])
def test_bytes_of_parties_with_one_record_are_those_of_the_plan(records):
    """20 nodes draw noise by a committee of some; 8 all together."""
    data = load("bank", records)
    attempt = Simulated(study_of(data, records, "1"), 1).attempt
    cost, found = predict(attempt), umpc_parties(data, "1")
    assert noise_bytes(attempt) > 0 and attempt.sizes.edges == 2 * records
    assert found == {"bytes": cost.bytes_online, "bytes_offline": cost.bytes_offline}
    told = bytes_of({"protocol": "umpc", "data": "bank", "n": records, "epsilon": "1"})
    assert found.items() <= told.items() and 0 < told["bytes_at_sites"] < told["bytes"]


@pytest.mark.parametrize("protocol", clocks.TIMED)
def test_seconds_in_all_are_the_servers_and_every_partys(protocol, monkeypatch):
    monkeypatch.setattr(clocks, "LEAST", 0.001)
    facts = SMALL | {"protocol": protocol, "data": "uniform"}
    found = clocks.clock(Point("", 40, 1, facts), seed_of("seconds"))
    assert found["total_seconds"] == pytest.approx(
        found["server_seconds"] + 40 * found["node_seconds"]
    )
    assert min(found.values()) > 0 and ("node_seconds_before" in found) == (protocol == "umpc")


def test_cells_of_two_fields_are_a_square_and_categories_have_their_own():
    assert [load(name, 50).cells(64).size for name in ("bank", "heart", "uniform")] == [64, 64, 64]
    assert (
        load("diagnosis", 50).cells(64).size == len(load("diagnosis", 50).fields[0].categories) <= 5
    )
    assert (
        protocol_of(
            {"protocol": "bell-ldp", "data": "bank", "n": 50, "t": 16, "epsilon": "0.1"}
        ).cells.size
        == 16
    )
