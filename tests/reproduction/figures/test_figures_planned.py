"""The planned errors beside runs: all protocols are there; a point is measured and predicted."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from reproduction.figures.figure import Row
from reproduction.figures.planned import figure
from reproduction.figures.planned.cases import case_of, sums_of_all_pairs_once
from umpc.protocols.registry import PROTOCOLS
from umpc.simulation import simulate

POINTS = {point.series: point for point in figure.points(True)}


def test_every_protocol_is_there_and_every_kind_of_its_noise():
    there = Counter(point.facts["protocol"] for point in POINTS.values())
    # a vector of sums has no single error; hajek-grid is in the figure 002-gain; people and linked
    # rows have the grid's noise of two nodes; overlap and counts have no statistic of kernels
    beside = {"vector", "hajek-grid", "people", "linked", "overlap", "counts"}
    assert set(there) == set(PROTOCOLS) - beside
    several = {}
    for protocol in PROTOCOLS.values():
        noises = [
            each.entries["noise"]
            for each in protocol.variants(None)
            if "noise" in each.entries and not each.is_tuned
        ]
        if noises:
            several[protocol.name] = noises
    assert set(several) == {"bell-2pc", "central"}
    for protocol, noises in several.items():
        facts = [point.facts for point in POINTS.values() if point.facts["protocol"] == protocol]
        assert [each["changes"]["noise"] for each in facts] == noises


@pytest.mark.parametrize("series", ["bell-ldp", "u-mpc, mean", "curator, coinpress subsampled"])
def test_a_point_is_measured_and_predicted(series):
    point = POINTS[series]
    measured, predicted = figure.measure(point, bytes(32))["squared_error"], figure.predict(point)
    assert len(measured) == point.facts["runs"] and predicted > 0
    assert max(measured) < 100 * predicted


def test_what_a_curator_computes_once_is_what_it_computes_every_time():
    case = case_of("kendall_tau")
    study = case.study("central", {"noise": "laplace"})
    with sums_of_all_pairs_once():
        first, second = (
            simulate(study, case.tables, lambda n: bytes(n)).report.estimate for _ in range(2)
        )
    assert first == second == simulate(study, case.tables, lambda n: bytes(n)).report.estimate


def rows(ratios: list[float]) -> list[Row]:
    points = list(POINTS.values())[: len(ratios)]
    return [
        Row(p, {"squared_error": r}, {"squared_error": 0.1}, 4, 1.0)
        for p, r in zip(points, ratios, strict=True)
    ]


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [([1, 1.4, 0.7], "agrees"), ([1, 1.6, 1], "in part"), ([0.5, 2], "disagrees")],
)
def test_the_verdict_follows_the_factor(ratios, verdict):
    found = figure.agreement(rows(ratios))
    assert found.verdict == verdict and f"{ratios[-1]:.2f} ± 0.10" in found.reason
    assert np.isclose(figure.ratio(rows(ratios)[0]), ratios[0])
