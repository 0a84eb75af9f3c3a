"""Whole grids in memory: every statistic is the clear one over all pairs, at its predicted cost."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.protocols.u_mpc.test_library import (
    PARAMETERS,
    TABLES,
    columns_of,
    counts_of,
    fields_of,
    tables_of,
)
from tests.support.grid import COUNTS, GridRun, grid_study, silent
from tests.support.protocols import noise_of
from tests.support.studies import (
    Entropy,
    clear_sums,
    graph_of,
    library_study,
    random_tables,
)
from umpc.errors import ImpossibleResult, KernelError, RangeError, StudyError
from umpc.proto.codec import encode_frame
from umpc.protocols.grid.binding import ring_of
from umpc.protocols.registry import checked, protocol_of
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.study.cost import Measured
from umpc.study.document import Study
from umpc.study.sizes import Sizes
from umpc.testing import lying
from umpc.ustat.estimators import estimate
from umpc.ustat.statistics import LIBRARY

GRID = {"protocol": "grid", "backend": "grid", "noise": "distributed"}


def study_of(name: str, nodes: int) -> Study:
    """A library statistic by the grid, without noise. Raises: KernelError, RangeError."""
    study = library_study(
        name, fields_of(name), nodes, columns_of(name), parameters=PARAMETERS.get(name), **GRID
    )
    return checked(study)


FOURS = {name for name, statistic in LIBRARY.items() if statistic.degree == 4}
REFUSED = {"mean", "triples_skewness", "triangle_density"} | FOURS
"""The library's statistics that the grid does not take."""
TAKEN = [name for name in LIBRARY if name not in REFUSED]


def run_and_check(study: Study, tables, label: str) -> Simulated:
    """A whole study in memory: all sums and the estimate are the clear ones."""
    run = simulate(study, tables, Entropy(label))
    expected = clear_sums(study, tables, all_pairs(study, run))
    multiplied = noisy_sums(run.transcript.shares, len(study.kernels))
    assert [each // run.attempt.factor for each in multiplied] == expected, label
    exact = [
        float(total * kernel.unit / run.report.edges)
        for total, kernel in zip(map(Fraction, expected), study.parsed_kernels, strict=True)
    ]
    zeros = [0.0] * len(exact)
    value = estimate(study.estimator, exact, zeros, zeros, run.attempt.sizes.sets, study.pair_ends)
    assert run.report.estimate == value.value
    check_cost(run)
    return run


def all_pairs(study: Study, run: Simulated):
    return graph_of(study, run.report)


def check_cost(run: Simulated, rounds: int = 2) -> None:
    """Prediction is measurement, and what is measured is what protobuf takes."""
    report, sent = run.report, run.transcript
    cost = protocol_of(run.attempt.study).cost(run.attempt)
    assert report.rounds == report.rounds_predicted == cost.rounds == rounds
    assert report.bytes_online == report.bytes_online_predicted == cost.bytes_online
    assert report.bytes_offline == report.bytes_offline_predicted == cost.bytes_offline
    online, told, offline = (
        sum(len(encode_frame(frame).SerializeToString()) for *_, frame in frames)
        for frames in (sent.online, sent.told, sent.offline)
    )
    assert online + told + sum(map(len, sent.shares)) == cost.bytes_online
    assert offline == cost.bytes_offline


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_the_grid_takes_all_statistics_but_these(name):
    with pytest.raises((KernelError, RangeError, StudyError)):
        study_of(name, 2)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("nodes", [1, 2, 5])
@pytest.mark.parametrize("name", TAKEN)
def test_every_statistic_is_the_clear_one(name, nodes, kind):
    """Ties, bounds, all equal, and a node without records among five."""
    study, label = study_of(name, nodes), f"grid {name} {nodes} {kind}"
    run_and_check(study, tables_of(study, kind, counts_of(name, nodes), label), label)


@settings(max_examples=40, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_tables_at_any_nodes(data):
    name = data.draw(st.sampled_from(TAKEN))
    counts = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    counts[0] += max(0, LIBRARY[name].degree - sum(counts))
    study = study_of(name, len(counts))
    kind = data.draw(st.sampled_from(sorted(TABLES)))
    label = f"any grid {name} {counts} {kind} {data.draw(st.integers(0, 9))}"
    run_and_check(study, tables_of(study, kind, counts, label), label)


def test_several_sums_come_from_one_table():
    """Tau-b is made of three sums: three forms of one histogram, which travels once."""
    study = study_of("kendall_tau_b", 3)
    run = run_and_check(study, tables_of(study, "ties", COUNTS, "several"), "several")
    assert len(run.attempt.grid.forms) == len(study.kernels) == 3
    assert len(run.transcript.shares[0]) == 3 * run.attempt.ring.bytes
    vectors = [frame for _, _, frame in run.transcript.online]
    assert sum(frame.count for frame in vectors) == 3 * run.attempt.grid.cells


@pytest.mark.parametrize("noise", ["in_mpc", "binomial", "skellam"])
def test_a_committees_noise_is_doubled_and_costs_what_was_predicted(noise):
    delta = "" if noise == "in_mpc" else "1e-9"
    study = checked(grid_study(noise=noise, delta=delta, epsilon="4", max_colluding=2))
    run = simulate(study, random_tables(COUNTS, noise), Entropy(noise))
    (total,) = noisy_sums(run.transcript.shares, 1)
    assert total % run.attempt.factor == 0
    check_cost(run)
    has_links = any(node.peers for node in run.nodes)
    assert has_links == (noise != "skellam")


def test_nodes_have_no_links_where_each_draws_its_own_noise():
    run = simulate(grid_study(), random_tables(COUNTS, "links"), Entropy("links"))
    assert all(node.peers == () for node in run.nodes)
    talk = {(sender, receiver) for sender, receiver, _ in run.transcript.online}
    assert talk == {(node.name, "coordinator") for node in run.attempt.study.nodes}


# --- what comes out -------------------------------------------------------------------------------


def test_an_odd_total_is_impossible():
    run = GridRun(grid_study(), random_tables(COUNTS, "odd")).up_to_release()
    first, *others = [node.release() for node in run.nodes]
    lie = replace(first, share=bytes([first.share[0] ^ 1]) + first.share[1:])
    assert run.coordinator.finish([first, *others], Measured()).estimate is not None
    with pytest.raises(ImpossibleResult, match="a multiple of 2"):
        run.coordinator.finish([lie, *others], Measured())


def forgotten(honest, of_node, table, own):
    """Nodes do not take f(r, r) off."""
    return honest(of_node, table, [0] * len(own))


def test_power_a_forgotten_diagonal_is_found():
    study = silent(grid_study("a.x == b.x"))
    tables = random_tables(COUNTS, "diagonal")
    run_and_check(study, tables, "diagonal")
    with lying("node", put=forgotten), pytest.raises((AssertionError, ImpossibleResult)):
        run_and_check(study, tables, "diagonal")


def test_the_ring_holds_twice_the_sum_and_its_noise():
    """At the least number of records that takes 64 bits, 32 bits would not do."""
    study = grid_study("a.x * b.x", x=("0", "1000"))

    def bound(records: int) -> int:
        sizes = Sizes(study, records)
        (noise,), (kernel,) = noise_of(sizes), study.parsed_kernels
        return 2 * (sizes.edges * kernel.magnitude_units + noise.tail_bound())

    widths = {records: ring_of(Sizes(study, records)).bits for records in range(2, 80)}
    for records, bits in widths.items():
        assert bound(records) < 1 << (bits - 1)
        assert bits == 32 or bound(records) >= 1 << 31
    assert set(widths.values()) == {32, 64}


def test_a_sum_that_no_ring_holds_is_refused_with_what_to_do():
    study = grid_study("a.x * b.x", x=("0", "1000000000"))
    with pytest.raises(RangeError, match=r"narrow the fields' bounds.*backend = \"shared\""):
        ring_of(Sizes(study, 10_000))


def test_the_largest_sums_do_not_wrap():
    """All records at the bound: the sum is as large as it can be."""
    study = silent(grid_study("a.x * b.x", nodes=2, x=("0", "2000")))
    tables = [{"x": np.full(30, 2000)}, {"x": np.full(20, 2000)}]
    run = run_and_check(study, tables, "largest")
    assert run.report.estimate == 4_000_000
