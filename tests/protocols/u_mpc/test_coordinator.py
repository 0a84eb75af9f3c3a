"""The coordinator's session: everybody must have said the same, and only shares of one attempt add
up.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.protocols import coordinator_of
from tests.support.signed import opened
from tests.support.studies import AUC, GINI, KENDALL, SPEARMAN, TRIPLE, make_members, make_study
from umpc.errors import (
    AlreadyReleased,
    RangeError,
    RemoteProtocolError,
    StudyError,
    TooFewRecords,
    UmpcError,
)
from umpc.protocols.u_mpc.protocol import UMpcCoordinator
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.study import messages as m
from umpc.study.cost import Measured

STUDY = make_study(nodes=3)
COUNTS = [2, 3, 4]
MEMBERS, OPENINGS = make_members(STUDY, COUNTS)
ACCEPTED = [m.Accepted(STUDY.hash, member) for member in MEMBERS]
OPENED = opened(STUDY, MEMBERS, OPENINGS)


def begun() -> UMpcCoordinator:
    session = coordinator_of(STUDY)
    session.agree(ACCEPTED)
    session.begin(OPENED)
    return session


def released(attempt: bytes, size: int = 4, values=(1, 2, 3)) -> list[m.Released]:
    return [
        m.Released(attempt, v.to_bytes(size, "little"), c)
        for v, c in zip(values, COUNTS, strict=True)
    ]


SUMS = make_study((KENDALL, GINI), 3, estimator="ratio", epsilon="1e12")
"""Two sums: a ratio."""
FIRST = [2, 0, 3]
"""Records of the first class, where there are classes."""


def released_sums(attempt: bytes) -> list[m.Released]:
    """Shares of a first sum of −12 and a second of 24."""
    return [
        m.Released(attempt, b"".join((v % 2**32).to_bytes(4, "little") for v in pair), c)
        for pair, c in zip([(-2, 30), (-20, -3), (10, -3)], COUNTS, strict=True)
    ]


@pytest.mark.parametrize("change", [{"study_hash": bytes(32)}, {"member": MEMBERS[0]}])
def test_an_answer_for_another_study_or_name_names_its_node(change):
    answers = [ACCEPTED[0], replace(ACCEPTED[1], **change), ACCEPTED[2]]
    with pytest.raises(RemoteProtocolError) as caught:
        coordinator_of(STUDY).agree(answers)
    assert (caught.value.culprit, caught.value.step) == ("node-1", "propose")


def test_a_study_that_cannot_run_is_refused_before_any_opening():
    for study, error, counts in (
        (STUDY, TooFewRecords, [1, 0, 0]),
        (make_study(nodes=3, edges="100"), StudyError, COUNTS),
        (make_study("a.x * b.x", 3, x=("0", "4000000000")), RangeError, COUNTS),
        (
            make_study((KENDALL, "a.x * b.x"), 3, x=("0", "4000000000"), estimator="ratio"),
            RangeError,
            COUNTS,
        ),
        (make_study(SPEARMAN, 3, degree=3), TooFewRecords, [1, 1, 0]),
        (make_study(TRIPLE, 3, degree=3, edges="100"), StudyError, COUNTS),
        (make_study("a.x", 3, degree=1), TooFewRecords, [0, 0, 0]),
        (make_study(AUC, 3, sampling="two_sample"), TooFewRecords, COUNTS),
    ):
        members, _ = make_members(study, counts)
        with pytest.raises(error):
            coordinator_of(study).agree([m.Accepted(study.hash, member) for member in members])


def test_shares_of_one_attempt_add_up():
    session = begun()
    report = session.finish(
        released(session.attempt.id, values=(2**32 - 7, 2, 3)), Measured(rounds=3)
    )
    assert report.estimate == -2 / 36 and report.records_by_node == COUNTS and report.rounds == 3


def test_shares_of_several_sums_add_up_sum_by_sum():
    session = coordinator_of(SUMS)
    members, openings = make_members(SUMS, COUNTS)
    session.agree([m.Accepted(SUMS.hash, member) for member in members])
    session.begin(opened(session.study, members, openings))
    report = session.finish(released_sums(session.attempt.id), Measured())
    assert [entry.mean for entry in report.sums] == [
        -12 / 36,
        24 / 36,
    ] and report.estimate == -1 / 2


@pytest.mark.parametrize("size", [4, 12, 16])
def test_shares_that_do_not_hold_the_studys_sums_in_its_ring_are_refused(size):
    """Two sums in the ring of 32 bits take 8 bytes, however many nodes agree on another size."""
    session = coordinator_of(SUMS)
    members, openings = make_members(SUMS, COUNTS)
    session.agree([m.Accepted(SUMS.hash, member) for member in members])
    session.begin(opened(session.study, members, openings))
    answers = [m.Released(session.attempt.id, bytes(size), count) for count in COUNTS]
    with pytest.raises(UmpcError):
        session.finish(answers, Measured())


@pytest.mark.parametrize("node", range(3))
def test_shares_of_mixed_attempts_name_the_node(node):
    session = begun()
    answers = released(session.attempt.id)
    answers[node] = replace(answers[node], attempt=bytes(32))
    with pytest.raises(AlreadyReleased, match="another attempt") as caught:
        session.finish(answers, Measured())
    assert caught.value.culprit == f"node-{node}"


def test_shares_of_mixed_rings_are_refused():
    session = begun()
    answers = released(session.attempt.id)
    answers[2] = replace(answers[2], share=bytes(8))
    with pytest.raises(RemoteProtocolError, match="node-2 released 8 bytes, 4 were due"):
        session.finish(answers, Measured())


def test_a_study_that_all_nodes_released_is_replayed():
    session, answers = coordinator_of(STUDY), released(bytes(32))
    assert session.agree(answers) is None
    report = session.replay(answers, Measured(replayed=True))
    assert (report.estimate, report.replayed, report.edges) == (6 / 36, True, 36)


def test_several_sums_are_replayed():
    session, answers = coordinator_of(SUMS), released_sums(bytes(32))
    assert session.agree(answers) is None
    assert session.replay(answers, Measured(replayed=True)).estimate == -1 / 2


def test_a_replay_of_two_samples_takes_the_classes_from_the_nodes_answers():
    study = make_study(AUC, 3, sampling="two_sample")
    members, openings = make_members(study, COUNTS, first=FIRST)
    session = coordinator_of(study)
    session.agree([m.Accepted(study.hash, member) for member in members])
    session.begin(opened(session.study, members, openings))
    answers = [
        m.Released(session.attempt.id, bytes([i, 0, 0, 0]), count, first)
        for i, (count, first) in enumerate(zip(COUNTS, FIRST, strict=True), 1)
    ]
    report, again = (
        session.finish(answers, Measured()),
        coordinator_of(study).replay(answers, Measured()),
    )
    assert (report.edges, report.sets, report.max_degree, report.first_class_by_node) == (
        20,
        20,
        5,
        FIRST,
    )
    same = (
        "estimate",
        "noise_std",
        "low",
        "high",
        "edges",
        "sets",
        "max_degree",
        "records",
        "sums",
    )
    assert {key: getattr(again, key) for key in same} == {key: getattr(report, key) for key in same}


@pytest.mark.parametrize("size", [4, 12, 20])
def test_a_replay_of_shares_that_do_not_hold_the_studys_sums_is_refused(size):
    """No size of a share may end in anything but an error of ours: five sums of 4 bytes are not two
    of 10.
    """
    answers = [m.Released(bytes(32), bytes(size), count) for count in COUNTS]
    with pytest.raises(UmpcError):
        coordinator_of(SUMS).replay(answers, Measured(replayed=True))


def test_a_replay_of_mixed_attempts_is_refused():
    answers = released(bytes(32))
    answers[1] = replace(answers[1], attempt=b"\1" * 32)
    with pytest.raises(AlreadyReleased) as caught:
        coordinator_of(STUDY).replay(answers, Measured())
    assert caught.value.culprit == "node-1"


@pytest.mark.parametrize("count", [1, 2])
def test_a_study_that_only_some_nodes_released_is_refused(count):
    answers = released(bytes(32))[:count] + ACCEPTED[count:]
    with pytest.raises(AlreadyReleased, match=r"node-0.*not by all nodes"):
        coordinator_of(STUDY).agree(answers)


def test_a_sum_is_read_with_its_sign_in_the_shares_ring():
    assert noisy_sums([(2**32 - 5).to_bytes(4, "little"), (3).to_bytes(4, "little")], 1) == [-2]
    assert noisy_sums([(2**32 - 5).to_bytes(8, "little")], 1) == [2**32 - 5]
    assert noisy_sums([(2**32 - 5).to_bytes(8, "little")], 2) == [-5, 0]
