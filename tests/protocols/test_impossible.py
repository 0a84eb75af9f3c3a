"""Each protocol's own range: honest results pass, and changed messages give no estimate."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.support.bell import bell_study
from tests.support.gopa import gopa_study, tables_of
from tests.support.moments import SCHEMA, make_cells, records
from tests.support.protocols import coordinator_of, make_node, run_own_steps
from tests.support.statistical import SeededBits
from tests.support.studies import KENDALL, Entropy, random_tables
from umpc.errors import ImpossibleResult
from umpc.simulation import simulate
from umpc.study import messages as m
from umpc.study.cost import Measured
from umpc_papers.bell_2pc.coordinator import pair_values
from umpc_papers.ghazi_shuffle.mechanism import GhaziShuffle
from umpc_papers.gopa.messages import gopa_messages
from umpc_papers.local.bell_ldp import BellLdp
from umpc_papers.local.estimate import likely_range
from umpc_papers.local.ghazi_ldp import GhaziLdp
from umpc_papers.local.quantisation import Bins

CELLS = make_cells("abs(a.x - b.x)", Bins.equal(SCHEMA["x"], 3))
COUNTS = (5, 0, 7)


def released():
    """A session of `gopa` before its last step, and what the nodes released."""
    study = gopa_study(3)
    coordinator = coordinator_of(study)
    nodes = [
        make_node(node.name, study, table, count, Entropy(node.name))
        for node, table, count in zip(study.nodes, tables_of(COUNTS), COUNTS, strict=True)
    ]
    agree = coordinator.agree([m.Accepted(study.hash, node.accept()) for node in nodes])
    begin = coordinator.begin(
        [m.Opened(node.agree(agree.members), node.sign_members()) for node in nodes]
    )
    for node in nodes:
        node.begin(begin.openings)
        run_own_steps(node)
    return coordinator, [node.release() for node in nodes]


def test_a_gopa_total_that_no_records_and_no_noise_give_is_refused():
    """Each number fits its own range, because pairwise noise is large; the total does not."""
    coordinator, answers = released()
    size = len(answers[2].share)
    value = int.from_bytes(answers[2].share, "little", signed=True)
    own = gopa_messages(coordinator.study).noise.own
    lie = (value + 2000 * round(own**0.5)).to_bytes(size, "little", signed=True)
    assert coordinator.finish(answers, Measured()).estimate is not None
    with pytest.raises(ImpossibleResult):
        coordinator.finish([*answers[:2], replace(answers[2], share=lie)], Measured())


def test_every_pair_of_bell_is_looked_at():
    study = bell_study(KENDALL, x=("0", "3"), epsilon="1000")
    run = simulate(study, random_tables([4, 4], "pairs"), Entropy("pairs"))
    values = np.concatenate(list(pair_values(run.transcript.shares, run.attempt)), axis=1)
    assert values.shape == (1, run.report.edges)
    assert values.sum() == pytest.approx(run.report.estimate * run.report.edges)


def test_a_likely_range_is_mcdiarmids():
    low, high = likely_range(0.0, 1.0, 3.0, 100)
    margin = high - 1
    bounded = 2 * 3.0 / 100
    assert low == pytest.approx(-margin)
    chance = 2 * np.exp(-2 * margin**2 / (100 * bounded**2))
    assert chance == pytest.approx(2.0**-64)


@pytest.mark.parametrize("vectors", ["histogram", "factors"])
def test_counts_that_no_records_give_are_impossible(vectors):
    protocol = GhaziShuffle(Fraction(2), CELLS, 60, 40, kappa=8, vectors=vectors)
    heap = protocol.split_records(records(60), SeededBits("honest heap"))
    assert protocol.is_possible(heap)
    high = np.uint64(1 << (protocol.width - 1))
    changed = heap.copy()
    changed[0, 0] = (changed[0, 0] + high) & np.uint64((1 << protocol.width) - 1)
    assert not protocol.is_possible(changed)


@pytest.mark.parametrize("kind", [BellLdp, GhaziLdp])
def test_a_local_estimate_of_honest_answers_is_possible_and_an_extreme_one_is_not(kind):
    protocol = kind(Fraction(4), CELLS)
    message = protocol.randomise(records(4000), SeededBits("local"))
    estimate = protocol.aggregate([message], [4000])
    low, high = protocol.possible(4000)
    assert low <= estimate.value <= high
    matrix = CELLS.matrix
    assert low <= matrix.min() and matrix.max() <= high
    assert high - low < 100 * np.ptp(matrix), "the range means something"
