"""Shuffled studies of many records: limits, pieces, and who is honest."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.limits import small_heaps
from tests.support.local import bins, local_tables
from tests.support.protocols import messages_of
from tests.support.shuffled import protocol_of, shuffled_study
from tests.support.studies import GINI, Entropy
from umpc.errors import EncodingError, LocalProtocolError, RangeError, TooFewRecords
from umpc.simulation import simulate
from umpc.study.messages import Frame
from umpc_papers.ghazi_shuffle.inbox import Inbox
from umpc_papers.ghazi_shuffle.messages import MOST_HEAP, MOST_MESSAGE, honest_records, pieces

TWO_CELLS = shuffled_study(2, kernels=GINI, bins=bins(x=2), max_colluding=1)


def test_the_honest_are_those_that_are_left_if_the_largest_nodes_collude():
    assert [honest_records((5, 100, 7), colluding) for colluding in (0, 1, 2)] == [112, 12, 5]
    with pytest.raises(
        TooFewRecords,
        match=r"without the 1 node.s. with most records 18 records are left.*fewer than 19",
    ):
        messages_of(TWO_CELLS, [(0, 500), (0, 18)])
    assert messages_of(TWO_CELLS, [(0, 500), (0, 19)]).protocol.honest == 19
    with pytest.raises(LocalProtocolError, match="the records of 2 nodes, got 0"):
        messages_of(TWO_CELLS)


def test_what_is_too_large_for_a_ledger_or_for_a_shuffler_is_refused():
    names = [node.name for node in TWO_CELLS.nodes]
    counts = [(0, 10**7), (0, 400_000)]
    with pytest.raises(
        RangeError, match=r"message of node-0 would have .* ledger keeps at most .* fewer bins"
    ) as caught:
        messages_of(TWO_CELLS, counts).check_sizes(names, counts)
    assert caught.value.culprit == "node-0"
    many = shuffled_study(8, kernels=GINI, bins=bins(x=2))
    counts = [(0, 1_200_000)] * 8
    of = messages_of(many, counts)
    assert (
        of.message_bytes(counts[0]) < MOST_MESSAGE and 8 * of.message_bytes(counts[0]) > MOST_HEAP
    )
    with pytest.raises(RangeError, match=r"messages of all nodes .* a shuffler takes at most"):
        of.check_sizes([node.name for node in many.nodes], counts)


def test_nodes_with_54000_records_are_shuffled():
    """20 MB a node for 16 cells, where 8 MB were the limit once."""
    study = shuffled_study(3, max_colluding=1, bins=bins(x=4, y=4))
    counts = [(0, 54_000)] * 3
    of = messages_of(study, counts)
    assert of.protocol.dimension == 16 and of.message_bytes(counts[0]) > 15 << 20
    of.check_sizes([node.name for node in study.nodes], counts)


def test_a_study_of_54000_records_a_node_ends_at_its_cells_own_value():
    study = shuffled_study(3, max_colluding=1, bins=bins(x=4, y=4))
    rng = np.random.default_rng(54)
    tables = [{name: rng.integers(0, 4, 54_000) for name in "xy"} for _ in range(3)]
    run = simulate(study, tables, Entropy("54,000"))
    assert run.report.bytes_online == run.report.bytes_online_predicted
    together = {name: np.concatenate([table[name] for table in tables]) for name in "xy"}
    exact = protocol_of(run.attempt).quantised(together, 0)
    assert abs(run.report.estimate - exact) < 6 * run.report.noise_std
    frames = [frame for _, _, frame in run.transcript.online if frame.step == "heap"]
    assert len(frames) > 100 and max(len(frame.payload) for frame in frames) <= 1 << 20


def test_large_messages_go_in_several_frames_of_whole_bytes(limit):
    small_heaps(limit)
    study = shuffled_study(2)
    report = (run := simulate(study, local_tables(study, (60, 40)), Entropy("frames"))).report
    frames = [frame for _, _, frame in run.transcript.online]
    assert max(len(frame.payload) for frame in frames) <= 1000 < max(report.bytes_online_by_node)
    assert report.bytes_online == report.bytes_online_predicted
    assert list(pieces(0, 9)) == [(0, 0)] and [size for _, size in pieces(1000, 9)] == [888, 112]


def test_frames_of_another_place_size_or_number_are_refused():
    """Each by what is wrong with it."""
    good = Frame("shares", (1,), 0, 10, 9, bytes(12))
    for what, bad in {
        "was due, and pad": Frame("pad", (1,), 0, 10, 9, bytes(12)),
        r"of cell \(0,\)": Frame("shares", (0,), 0, 10, 9, bytes(12)),
        "chunk 1": Frame("shares", (1,), 1, 10, 9, bytes(12)),
        "11 × 9 bits, came": Frame("shares", (1,), 0, 11, 9, bytes(12)),
        "10 × 10 bits, came": Frame("shares", (1,), 0, 10, 10, bytes(12)),
        "came with 13 bytes": Frame("shares", (1,), 0, 10, 9, bytes(13)),
    }.items():
        with pytest.raises(EncodingError, match=what):
            Inbox("shares", (1,), 10, 9).take(bad)
    inbox = Inbox("shares", (1,), 10, 9)
    inbox.take(good)
    assert inbox.is_complete and inbox.data == bytes(12) and inbox.wire_bytes == good.wire_bytes
    with pytest.raises(EncodingError, match="came after all that was due"):
        inbox.take(good)
