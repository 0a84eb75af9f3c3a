"""umpc_papers.ghazi_shuffle.coordinator: heaps that do not fit are named, sizes are refused
early, a replay needs no openings.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.local import bins, local_tables
from tests.support.protocols import coordinator_of
from tests.support.shuffled import protocol_of, shuffled_study
from tests.support.studies import Entropy, make_members
from umpc.errors import (
    AlreadyReleased,
    EncodingError,
    LocalProtocolError,
    RemoteProtocolError,
    TooFewRecords,
)
from umpc.simulation import Simulated, simulate
from umpc.study import messages as m
from umpc.study.cost import Measured
from umpc.study.messages import Frame
from umpc_papers.ghazi_shuffle.coordinator import ShuffleCoordinator, cost_of_shuffling

STUDY, COUNTS = shuffled_study(2, bins=bins(x=3, y=3)), (25, 30)


def simulated() -> Simulated:
    return simulate(STUDY, local_tables(STUDY, COUNTS), Entropy("coordinator"))


def released(run: Simulated) -> list[m.Released]:
    return [m.Released(run.attempt.id, b"", count) for count in COUNTS]


def heap_frames(run: Simulated, place: int) -> list[Frame]:
    return [
        frame for sender, _, frame in run.transcript.online if sender == STUDY.shufflers[place].name
    ]


def recalled(run: Simulated, spoil=lambda frame: frame) -> ShuffleCoordinator:
    """A session of another run, with both heaps; spoil: what happens to the second one's."""
    coordinator = coordinator_of(STUDY)
    assert coordinator.agree(released(run)) is None
    assert coordinator.recall(released(run)) == run.attempt.id
    for place in (0, 1):
        frames = heap_frames(run, place)
        done = [coordinator.receive(place, spoil(frame) if place else frame) for frame in frames]
        assert done == [False] * (len(frames) - 1) + [True]
    return coordinator


def test_the_stored_study_gives_the_same_estimate_again():
    run = simulated()
    replayed = recalled(run).replay(released(run), Measured(replayed=True))
    for key in ("estimate", "noise_std", "low", "high", "epsilon", "delta", "edges", "records"):
        assert getattr(replayed, key) == getattr(run.report, key), key
    assert replayed.replayed and (
        replayed.rounds_predicted,
        replayed.bytes_online_by_shuffler_predicted,
    ) == (0, [])


def test_a_heap_that_does_not_decode_is_refused_as_it_comes():
    """`ShufflerLink.collect` then names the shuffler."""
    run = simulated()
    with pytest.raises(EncodingError, match=r"the padding after .* is not zero"):
        recalled(run, lambda frame: replace(frame, payload=frame.payload[:-1] + b"\xff"))


def test_frames_that_are_not_due_are_refused():
    run = simulated()
    coordinator = coordinator_of(STUDY)
    coordinator.recall(released(run))
    for bad in (heap_frames(run, 1)[0], replace(heap_frames(run, 0)[0], count=1)):
        with pytest.raises(EncodingError):
            coordinator.receive(0, bad)


def test_without_both_heaps_there_is_no_report():
    run = simulated()
    coordinator = coordinator_of(STUDY)
    for begin in (lambda: None, lambda: coordinator.recall(released(run))):
        begin()
        with pytest.raises(LocalProtocolError, match="the heaps come before the report"):
            coordinator.replay(released(run), Measured())


def test_shufflers_of_different_orders_are_noticed():
    coordinator = coordinator_of(STUDY)
    coordinator.check_runs([bytes(32), bytes(32)])
    with pytest.raises(
        RemoteProtocolError, match="shuffler-1 and shuffler-2 have different orders"
    ):
        coordinator.check_runs([bytes(32), bytes(31) + b"1"])


def test_a_node_that_sends_the_coordinator_something_is_named():
    run = simulated()
    coordinator = recalled(run)
    with pytest.raises(RemoteProtocolError, match="node-1 released something beside") as caught:
        coordinator.replay([released(run)[0], replace(released(run)[1], share=b"1")], Measured())
    assert caught.value.culprit == "node-1"


def test_different_attempts_and_some_nodes_only_are_refused():
    run = simulated()
    answers = released(run)
    with pytest.raises(
        AlreadyReleased, match="node-1 released the study 'study' in another attempt"
    ):
        coordinator_of(STUDY).recall([answers[0], replace(answers[1], attempt=bytes(32))])
    with pytest.raises(AlreadyReleased, match="released before by node-0, but not by all"):
        coordinator_of(STUDY).agree(
            [answers[0], m.Accepted(STUDY.hash, make_members(STUDY, COUNTS)[0][1])]
        )


def test_too_few_records_are_refused_before_any_opening():
    members, _ = make_members(STUDY, (10, 8))
    with pytest.raises(TooFewRecords, match="18 records are left"):
        coordinator_of(STUDY).agree([m.Accepted(STUDY.hash, member) for member in members])


def test_the_cost_is_both_halves_of_every_message_and_both_heaps():
    run = simulated()
    of = protocol_of(run.attempt)
    cost, numbers = cost_of_shuffling(of, [(0, 25), (0, 30)]), 9 * 55 * of.protocol.shares
    assert (cost.rounds, cost.bytes_offline, len(cost.heaps)) == (2, 0, 2)
    assert (
        3 * numbers * of.protocol.width / 8
        < cost.bytes_online
        < 3 * numbers * of.protocol.width / 8 + 250
    )
