"""umpc.protocols.base.one_message_protocol: malformed messages name their node.

Stored messages give the same estimate again.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.local import ALONE, bins, local_study, local_tables
from tests.support.protocols import (
    ONE_MESSAGE,
    coordinator_of,
    messages_of,
)
from tests.support.released import check_replay, released_by
from tests.support.studies import make_members, make_study
from umpc.errors import AlreadyReleased, RangeError, RemoteProtocolError, StudyError, TooFewRecords
from umpc.protocols.base.one_message_protocol import OneMessageCoordinator, cost_of_messages
from umpc.protocols.u_mpc.protocol import UMpcCoordinator
from umpc.study import messages as m
from umpc.study.cost import Measured
from umpc_papers.ghazi_rounds.coordinator import RoundsCoordinator

by_protocol = pytest.mark.parametrize("protocol", ONE_MESSAGE)
COUNTS = (21, 33)


def released(study, counts=COUNTS) -> tuple[OneMessageCoordinator, list[m.Released]]:
    """A session before its last step, and what the nodes released."""
    return released_by(study, local_tables(study, counts), counts)[:2]


def test_every_protocol_has_its_session():
    assert type(coordinator_of(make_study())) is UMpcCoordinator
    for protocol in ONE_MESSAGE:
        kind = OneMessageCoordinator if protocol in ALONE else RoundsCoordinator
        assert type(coordinator_of(local_study(protocol))) is kind


def spoiled(share: bytes, how: str) -> bytes:
    """Damage a share of 33 records: 33 bits in five bytes, or 33 cells of four bits in 17 bytes."""
    return {
        "short": share[:-1],
        "long": share + b"\0",
        "empty": b"",
        "padding": share[:-1] + bytes([share[-1] | 0x80]),
        "cell": b"\xff" + share[1:],
    }[how]


@pytest.mark.parametrize(
    ("protocol", "how"),
    [
        *(
            (protocol, how)
            for protocol in ONE_MESSAGE
            for how in ("short", "long", "empty", "padding")
        ),
        ("bell-ldp", "cell"),
    ],
)
@pytest.mark.parametrize("again", [False, True], ids=["first", "replayed"])
def test_a_malformed_message_names_its_node(protocol, how, again):
    study = local_study(
        protocol, **({"bins": bins(x=3, y=["1", "2"])} if protocol == "bell-ldp" else {})
    )
    coordinator, answers = released(study)
    coordinator = coordinator_of(study) if again else coordinator
    answers[1] = replace(answers[1], share=spoiled(answers[1].share, how))
    with pytest.raises(RemoteProtocolError, match="node-1 released a malformed message") as caught:
        (coordinator.replay if again else coordinator.finish)(answers, Measured())
    assert (caught.value.culprit, caught.value.step) == ("node-1", "release")


@pytest.mark.parametrize("protocol", ALONE)
def test_stored_messages_give_the_same_estimate_again(protocol):
    study = local_study(protocol)
    coordinator, answers = released(study)
    report = coordinator.finish(answers, Measured(1, [20]))
    check_replay(report, coordinator_of(study), answers)


@by_protocol
def test_messages_of_mixed_attempts_and_of_some_nodes_only_are_refused(protocol):
    study = local_study(protocol)
    coordinator, answers = released(study)
    with pytest.raises(
        AlreadyReleased, match="node-1 released the study 'study' in another attempt"
    ):
        coordinator.finish([answers[0], replace(answers[1], attempt=bytes(32))], Measured())
    with pytest.raises(AlreadyReleased, match="released before by node-0, but not by all"):
        coordinator_of(study).agree(
            [answers[0], m.Accepted(study.hash, make_members(study, COUNTS)[0][1])]
        )


@by_protocol
def test_too_few_records_are_refused_before_any_opening(protocol):
    """A mean takes one record, all others pairs."""
    counts = (0, 0) if protocol == "local-mean" else (1, 0)
    with pytest.raises((TooFewRecords, StudyError)):
        released(local_study(protocol), counts)


@by_protocol
def test_a_message_that_is_too_large_is_refused_before_any_opening(protocol):
    """A message of 2^24 records has more than 1 MiB, whatever the protocol is."""
    study = local_study(protocol)
    members, _ = make_members(study, (33, 1 << 24), first=(9, 9))
    with pytest.raises(RangeError, match="message of node-1 would have") as caught:
        coordinator_of(study).agree([m.Accepted(study.hash, member) for member in members])
    assert caught.value.culprit == "node-1"


def test_the_cost_is_every_nodes_message():
    cost = cost_of_messages(messages_of(local_study("bell-ldp")), [(0, 21), (0, 33)])
    assert (cost.rounds, cost.bytes_online, cost.bytes_offline) == (1, 11 + 17, 0)
    cost = cost_of_messages(messages_of(local_study("bell-auc")), [(9, 12), (1, 32)])
    assert cost.bytes_online == 4 * 32 + 2 + 2 + 1 + 4
    assert (
        cost_of_messages(messages_of(local_study("ghazi-ldp")), [(0, 21), (0, 33)]).bytes_online
        == 2 * 32 + 3 + 5
    )
