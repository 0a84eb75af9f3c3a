"""Every statistic of the library under shares equals the clear backend over the same E, at its
predicted cost.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import count

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.protocols import noise_of
from tests.support.studies import (
    CLASSES,
    Entropy,
    clear_sums,
    compiled_once,
    generator,
    graph_of,
    library_study,
)
from umpc.errors import TooFewRecords
from umpc.mpc.backends import predict
from umpc.proto.codec import encode_frame
from umpc.protocols.registry import checked
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.ustat.estimators import PAIR_MEDIAN, estimate
from umpc.ustat.statistics import LIBRARY

LOW, HIGH = -5, 6
"""Bounds of every column of numbers, in steps of 1/2."""
SILENT = 200
"""ε over sensitivity, at least: a share of noise differs from 0 with a probability below 4·e^-200.
"""
PARAMETERS = {
    "uniformity": {"cells": 5},
    "ranking_hinge": {"weights": [2, "1/2"], "margin": "3/2"},
    "contrastive_loss": {"weights": [1, 1], "margin": 2},
    # few slopes, so that a grid of all of them has few cells
    "theil_sen": {"thresholds": ["-1", "0", "1"]},
}
SLOW = {
    "bergsma_dassios_tau_star": 2,
    "vus": 2,
    "cramer_von_mises": 2,
    "energy_distance": 2,
    "distance_covariance": 1,
}
"""Statistics of which a run takes up to a second, and the most records of a node in random runs."""
by_statistic = pytest.mark.parametrize("name", LIBRARY)


@pytest.fixture(autouse=True, scope="module")
def fast():
    with compiled_once():
        yield


def columns_of(name: str) -> list[str]:
    """A statistic's columns; two features where it takes any number."""
    return [c for a in LIBRARY[name].arguments for c in (["x", "y"] if a == "x..." else [a])]


def fields_of(name: str) -> list[FieldText]:
    """Numbers in halves; private classes have the values that the statistic knows; public labels
    are called `label`.
    """
    classes = {"label": "2", "event": "1", "stratum": "2", "vertex": "2"}
    classes |= {
        rule.argument: str(rule.classes - 1) for rule in LIBRARY[name].rules if rule.classes
    }
    # the Gini coefficient divides by the mean, which must be told from zero
    low = "0" if name == "gini_coefficient" else str(LOW / 2)
    fields = [
        FieldText(c, "0", classes[c], whole=True)
        if c in classes
        else FieldText(c, low, str(HIGH / 2), "1/2")
        for c in columns_of(name)
    ]
    return fields + [CLASSES] * (LIBRARY[name].sampling == "two_sample")


@cache
def study_of(name: str, nodes: int, edges: str = "all") -> Study:
    changes = {"edges": edges, "parameters": PARAMETERS.get(name), "max_colluding": nodes - 1}
    return checked(library_study(name, fields_of(name), nodes, columns_of(name), **changes))


TABLES = {
    "random": lambda rng, low, high, size: rng.integers(low, high + 1, size),
    "ties": lambda rng, low, high, size: rng.integers(max(low, -1), min(high, 1) + 1, size),
    "bounds": lambda rng, low, high, size: rng.choice([low, high], size),
    "all equal": lambda rng, low, high, size: np.full(size, high),
}


def tables_of(study: Study, kind: str, counts, label: str) -> list[dict[str, np.ndarray]]:
    """Tables with so many records; of two samples at least one record has either public label."""
    rng, records = generator(label), sum(counts)
    whole = {
        f.name: TABLES["random" if f.public else kind](
            rng, study.schema[f.name].lower_units, study.schema[f.name].upper_units, records
        ).astype(np.int64)
        for f in study.fields
    }
    return shared_out(study, whole, counts)


def shared_out(study: Study, whole, counts) -> list[dict[str, np.ndarray]]:
    """Every node's part of a table, in which both classes are, where the study has two."""
    if study.two_sample:
        whole["label"][[0, -1]] = 0, 1
    stops = np.cumsum(counts)
    return [
        {name: column[stop - n : stop] for name, column in whole.items()}
        for n, stop in zip(counts, stops, strict=True)
    ]


def run_and_check(study: Study, tables, label: str) -> Simulated:
    """A whole study in memory: every sum is the clear backend's over the same E, every cost the
    predicted one.
    """
    run = simulate(study, tables, Entropy(label))
    report, graph = run.report, graph_of(study, run.report)
    noises = noise_of(run.attempt.sizes)
    assert all(not noise.sensitivity or noise.log_ratio > SILENT for noise in noises)
    expected = clear_sums(study, tables, graph)
    assert noisy_sums(run.transcript.shares, len(study.kernels)) == expected, label
    exact = [
        float(total * kernel.unit / graph.edge_count)
        for total, kernel in zip(map(Fraction, expected), study.parsed_kernels, strict=True)
    ]
    assert [entry.mean for entry in report.sums] == exact
    bounds = [entry.sampling_std_bound for entry in report.sums]
    value = estimate(
        study.estimator,
        exact,
        [entry.noise_std for entry in report.sums],
        bounds,
        run.attempt.sizes.sets,
        study.pair_ends,
    )
    # without noise, its interval is the value; an end of the statistic's range is rounded apart
    assert report.estimate == value.value
    if value.value is None:
        assert report.noise_low is report.noise_high is None
    elif study.estimator == PAIR_MEDIAN:
        # without noise, the ends are the nearest thresholds that are not the median
        assert (report.noise_low, report.noise_high) == around_median(exact, study.pair_ends)
    else:
        ends = [report.noise_low, report.noise_high]
        assert ends == pytest.approx(2 * [value.value], rel=1e-12, abs=0)
    assert report.note == value.note
    check_cost(run)
    return run


def around_median(cells: list[float], ends: tuple[float, ...]) -> tuple[float, float]:
    """The highest end below which fewer than half of the pairs are, and the lowest with more.

    Args: cells: the shares of pairs in all cells; where there is one more than there are gaps
        between two ends, it is of pairs that do not count.
    """
    shares = np.cumsum([0.0, *cells[: len(ends) - 1]])
    half = shares[-1] / 2
    low = max(end for end, share in zip(ends, shares, strict=True) if share < half - 1e-12)
    high = min(end for end, share in zip(ends, shares, strict=True) if share > half + 1e-12)
    return low, high


def check_cost(run: Simulated) -> None:
    """Prediction is measurement, and what is measured is what protobuf takes."""
    report, cost, sent = run.report, predict(run.attempt), run.transcript
    assert report.rounds == report.rounds_predicted == cost.rounds
    assert report.bytes_online == report.bytes_online_predicted == cost.bytes_online
    assert report.bytes_offline == report.bytes_offline_predicted == cost.bytes_offline
    online, offline = (
        sum(len(encode_frame(frame).SerializeToString()) for *_, frame in frames)
        for frames in (sent.online, sent.offline)
    )
    assert (online + sum(map(len, sent.shares)), offline) == (cost.bytes_online, cost.bytes_offline)


def counts_of(name: str, nodes: int) -> list[int]:
    """Records that differ from node to node: 6 in all."""
    return {1: [6], 2: [4, 2], 3: [1, 3, 2], 5: [1, 2, 0, 1, 2]}[nodes]


def sampled(name: str) -> str:
    """Fewer edges than there are, a number that no degree divides."""
    return (
        {1: "4", 2: "7", 3: "11", 4: "8"}[LIBRARY[name].degree]
        if LIBRARY[name].sampling == "balanced"
        else "3"
    )


@pytest.mark.parametrize("sampling", ["all", "sampled"])
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("nodes", [1, 2, 3, 5])
@by_statistic
def test_under_shares_as_in_the_clear(name, nodes, kind, sampling):
    study = study_of(name, nodes, sampled(name) if sampling == "sampled" else "all")
    label = f"{name} {nodes} {kind} {sampling}"
    run = run_and_check(study, tables_of(study, kind, counts_of(name, nodes), label), label)
    assert (run.report.edges < run.report.sets) is (sampling == "sampled")


@pytest.mark.parametrize("nodes", [2, 3, 5])
@by_statistic
def test_nodes_of_one_record_each(name, nodes):
    study, label = study_of(name, nodes), f"one each {name} {nodes}"
    tables = tables_of(study, "ties", [1] * nodes, label)
    if nodes < study.degree:
        with pytest.raises(TooFewRecords, match=f"at least {study.degree} records"):
            simulate(study, tables, Entropy(label))
        return
    run = run_and_check(study, tables, label)
    assert all(len(set(owners)) == study.degree for owners in run.attempt.hypergraph.cells)


@pytest.mark.parametrize("counts", [[5, 0], [0, 3, 2], [2, 0, 0, 2, 1]], ids=str)
@by_statistic
def test_a_node_without_records_has_no_part_in_it_but_its_zero_share(name, counts):
    study, label = study_of(name, len(counts)), f"none {name} {counts}"
    run = run_and_check(study, tables_of(study, "ties", counts, label), label)
    absent = counts.index(0)
    talkers = {sender for sender, *_ in run.transcript.online} | {
        receiver for _, receiver, _ in run.transcript.online
    }
    assert run.nodes[absent].peers == () and study.nodes[absent].name not in talkers
    assert any(run.transcript.shares[absent])


@pytest.mark.parametrize("counts", [[5, 1], [1, 4, 2], [1, 1, 1, 3, 1]], ids=str)
@by_statistic
def test_a_node_whose_records_are_in_no_edge(name, counts):
    """One edge only; joint seeds are tried until it leaves out a node that has records."""
    study, records = study_of(name, len(counts), "1"), np.array(counts)
    for trial in count():
        label = f"left out {name} {counts} {trial}"
        run = run_and_check(study, tables_of(study, "bounds", counts, label), label)
        taking_part = {owner for owners in run.attempt.hypergraph.cells for owner in owners}
        if left_out := set(np.flatnonzero(records)) - taking_part:
            break
        assert trial < 60
    for node in left_out:
        assert run.nodes[node].peers == () and not run.attempt.hypergraph.degrees(node).any()


def drawn_tables(data, study: Study, counts: list[int]) -> list[dict[str, np.ndarray]]:
    records = sum(counts)
    whole = {}
    for name in (f.name for f in study.fields):
        field = study.schema[name]
        value = st.integers(field.lower_units, field.upper_units)
        drawn = data.draw(st.lists(value, min_size=records, max_size=records))
        whole[name] = np.array(drawn, dtype=np.int64)
    return shared_out(study, whole, counts)


@by_statistic
@settings(max_examples=12, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_tables_at_any_nodes(name, data):
    """Records, their values and how nodes share them out are anything; as is E."""
    most = SLOW.get(name, 3)
    counts = data.draw(st.lists(st.integers(0, most), min_size=1, max_size=5))
    study = study_of(name, len(counts))
    enough = study.degree - sum(counts)
    if enough > 0:
        counts[0] += enough
    tables = drawn_tables(data, study, counts)
    # each study of the last one takes half a second to check
    choices = ["all"] if name == "distance_covariance" else ["all", "1", "1n"]
    edges = data.draw(st.sampled_from(choices))
    run_and_check(study_of(name, len(counts), edges), tables, f"any {name} {counts} {edges}")


def test_the_noise_is_off_for_the_largest_sensitivity_of_these_runs():
    """A share of noise differs from 0 with a probability of 4·e^-log_ratio at most; here that is no
    float.
    """
    study = study_of("contrastive_loss", 2)
    run = run_and_check(study, tables_of(study, "bounds", [4, 2], "silent"), "silent")
    (noise,) = noise_of(run.attempt.sizes)
    assert noise.sensitivity > 100 and noise.log_ratio > 10**6 and noise.std == 0
