"""Shuffled studies in memory, by the real sides: the estimate, its variance, its cost, and the
views.

The views are those of either shuffler and of the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest
from scipy import stats

from tests.support.local import bins, local_tables
from tests.support.moments import accept_moments
from tests.support.protocols import coordinator_of, messages_of
from tests.support.shuffled import heaps, messages, one_protocol, protocol_of, shuffled_study, sums
from tests.support.studies import GINI, Entropy
from umpc.edges_in_memory import Transcript
from umpc.protocols.base.one_message import uniform_std
from umpc.simulation import Simulated, shuffle, simulate
from umpc.study import messages as m
from umpc.study.cost import Measured
from umpc_papers.ghazi_shuffle.messages import (
    ShuffleMessages,
)
from umpc_papers.ghazi_shuffle.mixing import delta_of_mixing
from umpc_papers.testing import lying

FAR = 8
"""Standard deviations of the noise."""
ALPHA = 1e-6
"""Chance that a test of a right view fails, had its seed been chosen at random."""
COUNTS = {1: (700,), 2: (300, 401), 5: (2, 0, 300, 1, 450)}
TWO_CELLS = shuffled_study(2, kernels=GINI, bins=bins(x=2), max_colluding=1)
SMALL = (19, 19)


def pooled(tables):
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


@pytest.mark.parametrize("nodes", COUNTS)
def test_the_estimate_is_near_the_records_own_value_at_the_predicted_cost(nodes):
    study = shuffled_study(nodes, epsilon="2")
    tables = local_tables(study, COUNTS[nodes])
    run = simulate(study, tables, Entropy(f"near {nodes}"))
    report, of = run.report, protocol_of(run.attempt)
    assert (
        abs(report.estimate - of.quantised(pooled(tables), 0)) < FAR * report.noise_std
        and report.noise_std < 0.1
    )
    for what in (
        "bytes_online",
        "bytes_online_by_node",
        "bytes_online_by_step",
        "bytes_online_by_shuffler",
        "rounds",
    ):
        assert getattr(report, what) == getattr(report, f"{what}_predicted"), what
    assert report.bytes_online == sum(frame.wire_bytes for _, _, frame in run.transcript.online)
    assert list(report.bytes_online_by_step) == ["shares", "pad", "heap"] and report.rounds == 2
    assert (
        report.bytes_offline == report.bytes_offline_predicted == 0 and run.transcript.offline == []
    )
    assert (report.noise, report.backend, report.edges, report.sampling_std_bound) == (
        "shuffled",
        "none",
        report.sets,
        0,
    )
    assert report.delta == float(delta_of_mixing(Fraction(2)))
    assert (1 + exp(2)) / 2**40 <= report.delta < 1.001 * (1 + exp(2)) / 2**40


def test_what_nodes_send_adds_up_to_their_counts_and_their_noise():
    """With hardly any noise, exactly the histogram; the heaps are the same numbers in another
    order.
    """
    study = shuffled_study(3, epsilon="60")
    tables = local_tables(study, (30, 0, 25))
    run = simulate(study, tables, Entropy("exact"))
    sent, (first, second) = messages(run), heaps(run)
    cells = [table["x"] * 4 + table["y"] for table in tables]
    for numbers, own in zip(sent, cells, strict=True):
        assert sums(numbers, run).tolist() == np.bincount(own, minlength=16).tolist()
    heap = (first + second) & protocol_of(run.attempt).mask
    together = np.concatenate(sent, axis=1)
    assert np.array_equal(np.sort(heap, axis=1), np.sort(together, axis=1)) and not np.array_equal(
        heap, together
    )
    assert run.report.estimate == pytest.approx(
        protocol_of(run.attempt).quantised(pooled(tables), 0), abs=1e-9
    )


def test_the_error_of_many_runs_is_the_predicted_one():
    """One of two nodes may collude: noise three times that of honest ones alone. Other scales would
    be noticed.
    """
    study = shuffled_study(2, epsilon="2", kernels=GINI, bins=bins(x=3), max_colluding=1)
    tables = local_tables(study, (20, 40))
    of = messages_of(study, [(0, 20), (0, 40)])
    assert of.protocol.honest == 20 and of.protocol.noise.variance == pytest.approx(
        3 * 2 * of_ratio(of)
    )
    with one_protocol():
        accept_moments(
            lambda bits: (
                simulate(study, tables, lambda n: bits(8 * n).to_bytes(n, "little")).report.estimate
            ),
            *(
                of.quantised(pooled(tables), 0),
                of.predicted_std(pooled(tables), 0) ** 2,
                "shuffled runs",
            ),
        )


def of_ratio(of: ShuffleMessages) -> float:
    """Half the variance of discrete Laplace noise of the protocol's ratio: q/(1 − q)²."""
    q = exp(-float(of.protocol.noise.log_ratio))
    return q / (1 - q) ** 2


# --- what they see
# ------------------------------------------------------------------------------------------


def view(run: Simulated, place: int) -> np.ndarray:
    """Numbers of a shuffler's view, in [0, 1): of each node's message some numbers, and sums of
    them all.

    The first has numbers under their pads, the second the pads.
    """
    of, found = protocol_of(run.attempt), []
    for member, delivery in zip(run.attempt.members, run.transcript.deliveries, strict=True):
        numbers = np.stack(
            [*of.rows(place, delivery.seed if place else delivery.masked, member.records)]
        )
        rows = numbers.sum(axis=1, dtype=np.uint64)
        found += [numbers[0, 0], numbers[1, -1], *rows, rows.sum(dtype=np.uint64)]
    return (np.array(found, dtype=np.uint64) & of.mask).astype(float) / 2**of.protocol.width


def laws(look: Callable[[Simulated], np.ndarray], runs: int = 150) -> tuple[float, float]:
    """p-values: both tables' views are uniform, and both have the same law."""
    seen = []
    for value in (0, 3):
        table, entropy = {name: np.full(19, value) for name in "xy"}, Entropy(f"views of {value}")
        seen.append(
            np.array([look(simulate(TWO_CELLS, [table, table], entropy)) for _ in range(runs)])
        )
    counts = np.array(
        [[np.bincount((column * 8).astype(int), minlength=8) for column in one.T] for one in seen]
    )
    uniform = (
        min(stats.chisquare(row).pvalue for one in counts for row in one) * counts.shape[1] * 2
    )
    pairs = [pair[:, pair.sum(axis=0) > 0] for pair in counts.transpose(1, 0, 2)]
    return uniform, min(stats.chi2_contingency(pair).pvalue for pair in pairs) * len(pairs)


def no_pads(honest, of, seed, columns):
    return iter(np.zeros((2, columns), dtype=np.uint64))


def as_they_come(honest, rows, stream):
    return rows


@pytest.mark.parametrize("place", [0, 1])
def test_a_shuffler_sees_uniform_numbers_whatever_the_records_are(place):
    with one_protocol():
        uniform, same = laws(lambda run: view(run, place))
        assert min(uniform, same) > ALPHA, (uniform, same)
        if place == 0:  # without the pad the same numbers tell
            with lying("node", pads=no_pads):
                uniform, same = laws(lambda run: view(run, place))
            assert max(uniform, same) < ALPHA, (uniform, same)


def test_seeds_are_fresh_in_every_run_and_for_every_node():
    with one_protocol():
        table, entropy = {name: np.zeros(19, dtype=np.int64) for name in "xy"}, Entropy("seeds")
        runs = [simulate(TWO_CELLS, [table, table], entropy) for _ in range(20)]
    assert len({delivery.seed for run in runs for delivery in run.transcript.deliveries}) == 40


def scores_of_places(runs: int) -> np.ndarray:
    """By run and coordinate, how far the first node's numbers lie towards the end of the heap:
    standard normal.
    """
    found, entropy = [], Entropy("places")
    table = {name: np.zeros(19, dtype=np.int64) for name in "xy"}
    for _ in range(runs):
        run = simulate(TWO_CELLS, [table, table], entropy)
        of, (first, second), delivery = (
            protocol_of(run.attempt),
            heaps(run),
            run.transcript.deliveries[0],
        )
        mine = [
            np.stack([*of.rows(place, half, 19)])
            for place, half in enumerate((delivery.masked, delivery.seed))
        ]
        for row in range(2):
            pairs, own = (
                one[row] << np.uint64(32) | other[row] for one, other in ((first, second), mine)
            )
            places = np.flatnonzero(np.isin(pairs, own))
            size, count = len(pairs), len(places)
            assert 19 * of.protocol.shares <= count < 20 * of.protocol.shares
            found.append(
                (places.mean() - (size - 1) / 2) / sqrt((size + 1) * (size - count) / (12 * count))
            )
    return np.array(found)


def test_where_a_number_lies_in_the_heap_does_not_tell_whose_it_is():
    """The rank sum of the first node's numbers; as they come, without an order, they are told apart
    at once.
    """
    with one_protocol():
        scores = scores_of_places(60)
        assert (
            abs(scores.mean()) * sqrt(len(scores)) < 5
            and stats.kstest(scores, "norm").pvalue > ALPHA
        )
        with lying("node", mix_rows=as_they_come):
            assert np.abs(scores_of_places(2)).min() > 20


def test_every_coordinate_has_an_order_of_its_own():
    """Where each place's pair went, in one row and in the other; all pairs are there, so both heaps
    have one order.
    """
    with one_protocol():
        table = {name: np.zeros(19, dtype=np.int64) for name in "xy"}
        run = simulate(TWO_CELLS, [table, table], Entropy("orders"))
    of, found = protocol_of(run.attempt), []
    halves = [
        [(each.masked, each.seed)[place] for each in run.transcript.deliveries] for place in (0, 1)
    ]
    sent = [
        np.concatenate([np.stack([*of.rows(p, half, 19)]) for half in halves[p]], axis=1).astype(
            int
        )
        for p in (0, 1)
    ]
    first, second = (heap.astype(int) for heap in heaps(run))
    for row in range(2):
        places = {
            pair: place for place, pair in enumerate(zip(first[row], second[row], strict=True))
        }
        found.append([places[pair] for pair in zip(sent[0][row], sent[1][row], strict=True)])
    assert len(set(found[0])) > 0.99 * len(found[0])
    assert abs(stats.spearmanr(*found).statistic) * sqrt(len(found[0])) < 5
    for row in found:
        assert abs(stats.spearmanr(row, range(len(row))).statistic) * sqrt(len(row)) < 5


def shares_of_a_record_together(run: Simulated) -> int:
    """The number of runs of r neighbours in a message that add up to 0 or 1, as shares do."""
    shares, found = protocol_of(run.attempt).protocol.shares, 0
    for numbers in messages(run):
        for row in numbers:
            groups = (
                row.reshape(-1, shares).sum(axis=1, dtype=np.uint64) & protocol_of(run.attempt).mask
            )
            found += int((groups <= 1).sum())
    return found


def test_a_node_puts_its_shares_out_of_order_itself_so_nobody_reads_a_record_in_them():
    """Not even shufflers who collude; without that, all its records stand there one after the
    other.
    """
    study = shuffled_study(2, kernels=GINI, bins=bins(x=2), epsilon="60")
    tables = local_tables(study, SMALL)
    assert shares_of_a_record_together(simulate(study, tables, Entropy("own order"))) < 10
    with lying("node", mix_rows=as_they_come):
        run = simulate(study, tables, Entropy("own order"))
    assert shares_of_a_record_together(run) == 2 * 2 * 19


def test_shuffled_again_the_heaps_are_the_first_ones_rows_in_another_order():
    """Whoever has the first heap can draw the second: shuffled rows of (masked number, pad)."""
    study = shuffled_study(3)
    run = simulate(study, local_tables(study, (30, 20, 40)), Entropy("first"))
    again = Transcript(deliveries=run.transcript.deliveries)
    coordinator = coordinator_of(study)
    answers = [m.Released(run.attempt.id, b"", each.records) for each in run.attempt.members]
    assert coordinator.recall(answers) == run.attempt.id
    shuffle(coordinator, run.attempt, again, Entropy("again"))
    replayed = Simulated(run.report, run.attempt, again, run.nodes)
    first, second = (np.stack(heaps(each), axis=2) for each in (run, replayed))
    assert not np.array_equal(first, second)
    for before, after in zip(first, second, strict=True):
        assert sorted(map(tuple, before.tolist())) == sorted(map(tuple, after.tolist()))
    assert coordinator.replay(answers, Measured()).estimate == run.report.estimate


def test_the_error_for_uniform_records_is_the_librarys():
    study, rng = shuffled_study(1, epsilon="2"), np.random.default_rng(5)
    tables = [{name: rng.integers(0, 4, 2000) for name in "xy"}]
    report = simulate(study, tables, Entropy("uniform")).report
    counts = [(0, 2000)]
    assert uniform_std(study, counts, messages_of(study, counts)) == pytest.approx(
        report.noise_std, rel=0.25
    )
