"""Randomised response between two public classes: mean, stated variance, a study of the AUC."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from tests.support.local import bins, local_study, local_tables, quantised
from tests.support.moments import SCHEMA, accept_moments, part, records
from tests.support.paper_bounds import theorem_1
from tests.support.statistical import SeededBits
from tests.support.studies import AUC, Entropy
from umpc.cli.table import exact_over_all
from umpc.errors import EncodingError
from umpc.protocols.registry import protocol_of
from umpc.simulation import simulate
from umpc.ustat.kernel import Kernel
from umpc_papers.local.bell_ldp_classes import BellLdpClasses
from umpc_papers.local.quantisation import Bins, Quantiser

ABOVE = "(sign(a.x - b.x) + 1) * (1/2)"
FIRST, SECOND = records(70, 3), records(45, 4)
FIRST["x"] = np.maximum(FIRST["x"], records(70, 5)["x"])


def two_classes(epsilon: int, count: int = 5) -> BellLdpClasses:
    kernel = Kernel.from_text(ABOVE, SCHEMA, symmetric=False)
    cells = Quantiser(kernel, (Bins.equal(SCHEMA["x"], count),), "average", two_sample=True)
    return BellLdpClasses(Fraction(epsilon), cells)


def run(protocol: BellLdpClasses, bits: SeededBits, cut: int = 20):
    received = []
    for columns in (FIRST, SECOND):
        n = len(columns["x"])
        parts = part(columns, 0, cut), part(columns, cut, n)
        received.append(([protocol.randomise(mine, bits) for mine in parts], [cut, n - cut]))
    return protocol.aggregate_classes(*received)


def test_the_estimate_has_the_stated_mean_and_variance():
    protocol = two_classes(2)
    accept_moments(
        lambda bits: run(protocol, bits).value,
        protocol.cells.quantised_classes(FIRST, SECOND),
        protocol.predicted_mse_of_classes(FIRST, SECOND),
        "bell of two classes",
        250,
    )


def test_the_variance_is_that_of_all_outcomes():
    """Two records of a class and one of the other: all cells they can send, with their odds."""
    protocol = two_classes(1, 3)
    sides = part(FIRST, 0, 2), part(SECOND, 0, 1)
    truth = [protocol.cells.laws(columns)[1].nonzero()[0] for columns in sides]
    rows = [np.repeat(truth[0], 2)[:2] if len(truth[0]) == 1 else truth[0], truth[1]]
    cells = [*rows[0], *rows[1]]
    first = second = 0.0
    for told in np.ndindex(3, 3, 3):
        law = [
            protocol.truth * (a == b) + (1 - protocol.truth) / 3
            for a, b in zip(told, cells, strict=True)
        ]
        value = protocol.value_of_classes(
            np.bincount(told[:2], minlength=3).astype(float),
            np.bincount(told[2:], minlength=3).astype(float),
        )
        first, second = first + np.prod(law) * value, second + np.prod(law) * value**2
    assert first == pytest.approx(protocol.cells.quantised_classes(*sides))
    assert second - first**2 == pytest.approx(protocol.predicted_mse_of_classes(*sides))


def test_with_a_huge_epsilon_it_is_the_statistic_of_the_cells_and_its_bias_counts():
    protocol = two_classes(60)
    value = protocol.cells.quantised_classes(FIRST, SECOND)
    assert run(protocol, SeededBits("huge")).value == pytest.approx(value, abs=1e-9)
    assert protocol.predicted_mse_of_classes(FIRST, SECOND) == pytest.approx(0, abs=1e-12)
    wrong = protocol.predicted_mse_of_classes(FIRST, SECOND, exact=value - 0.1)
    assert wrong == pytest.approx(0.01)
    low, high = protocol.possible_of_classes(70, 45)
    assert low < 0 < value < 1 < high


def test_the_variance_is_within_theorem_1_of_the_smaller_class():
    """Each class alone is at most a sample of that size with theorem 1's variance."""
    protocol = two_classes(1)
    bound = theorem_1(70, protocol.truth) + 2 * theorem_1(45, protocol.truth)
    assert protocol.predicted_mse_of_classes(FIRST, SECOND) < bound
    estimate = run(protocol, SeededBits("own error"))
    predicted = sqrt(protocol.predicted_mse_of_classes(FIRST, SECOND))
    assert estimate.std == pytest.approx(predicted, rel=0.5) and estimate.records == 115


def test_a_malformed_message_is_refused():
    protocol = two_classes(1)
    good = protocol.randomise(part(FIRST, 0, 4), SeededBits("good"))
    for bad in (good[:-1], good + b"\0", b"\xff" * len(good)):
        with pytest.raises(EncodingError):
            protocol.aggregate_classes(([good], [4]), ([bad], [4]))


def test_a_study_of_the_auc_by_cells_is_near_the_exact_value_at_the_predicted_bytes():
    study = local_study("bell-ldp", 3, kernels=AUC, sampling="two_sample", epsilon="3")
    assert protocol_of(study).messages(study).limits() is None
    tables = local_tables(study, (300, 2, 401))
    report = simulate(study, tables, Entropy("auc by cells")).report
    exact = exact_over_all(study, tables)
    assert quantised(study, tables) == pytest.approx(exact, abs=1e-12)
    assert abs(report.estimate - exact) < 6 * report.noise_std and 0.001 < report.noise_std < 0.1
    assert report.bytes_online == report.bytes_online_predicted
    assert report.bytes_online_by_node == report.bytes_online_by_node_predicted
    assert (report.epsilon, report.delta, report.rounds) == (3, 0, 1)


def test_with_fewer_bins_than_values_its_report_names_them():
    study = local_study(
        "bell-ldp", kernels=AUC, sampling="two_sample", x=("0", "9"), bins=bins(x=3), epsilon="4"
    )
    rng = np.random.default_rng(2)
    tables = [{"x": rng.integers(0, 10, 200), "label": np.arange(200) % 2} for _ in range(2)]
    report = simulate(study, tables, Entropy("bins")).report
    assert "x has 3 bins for 10 values" in report.to_dict()["note"]
    assert abs(report.estimate - quantised(study, tables)) < 6 * report.noise_std
