"""umpc_papers.ghazi_rounds.coordinator: the same question again, and malformed answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.local import local_study, local_tables
from tests.support.protocols import coordinator_of, messages_of
from tests.support.released import released_by
from tests.support.studies import make_study
from umpc.coordinator.links import most_telling
from umpc.errors import AlreadyReleased, LocalProtocolError, PeerLost, RemoteProtocolError
from umpc.study import messages as m
from umpc.study.cost import Measured
from umpc_papers.ghazi_rounds.coordinator import RoundsCoordinator, cost_of_rounds
from umpc_papers.ghazi_rounds.node import RoundsNode

COUNTS = (61, 73)
STUDY = local_study("ghazi-rounds")


def released() -> tuple[RoundsCoordinator, list[m.Released], list[RoundsNode]]:
    """A session before its question, what the nodes released, and the nodes."""
    return released_by(STUDY, local_tables(STUDY, COUNTS), COUNTS)


def test_the_stored_messages_lead_to_the_same_question_and_the_same_estimate():
    coordinator, answers, nodes = released()
    ask = coordinator.ask(answers)
    told = [m.Answer(node.answer(ask.question)) for node in nodes]
    coordinator.hear(told)
    report = coordinator.finish(answers, Measured(2, [20, 20]))
    again = coordinator_of(STUDY)
    assert again.agree(answers) is None and again.ask(answers) == ask
    again.hear(told)
    replayed = again.replay(answers, Measured(replayed=True))
    for key in ("estimate", "noise_std", "low", "high", "epsilon", "delta", "edges", "records"):
        assert getattr(replayed, key) == getattr(report, key), key
    assert (report.rounds_predicted, replayed.rounds_predicted, replayed.replayed) == (2, 0, True)


@pytest.mark.parametrize("how", ["short", "long", "empty", "padding"])
@pytest.mark.parametrize("again", [False, True], ids=["first", "replayed"])
def test_a_malformed_first_message_names_its_node_before_anybody_is_asked(how, again):
    coordinator, answers, _ = released()
    coordinator = coordinator_of(STUDY) if again else coordinator
    share = answers[1].share
    bad = {
        "short": share[:-1],
        "long": share + b"\0",
        "empty": b"",
        "padding": share[:-1] + b"\xff",
    }[how]
    with pytest.raises(RemoteProtocolError, match="node-1 released a malformed message") as caught:
        coordinator.ask([answers[0], replace(answers[1], share=bad)])
    assert (caught.value.culprit, caught.value.step) == ("node-1", "release")


@pytest.mark.parametrize("how", ["short", "long", "empty", "padding"])
def test_a_malformed_answer_names_its_node(how):
    coordinator, answers, nodes = released()
    question = coordinator.ask(answers).question
    told, good = (node.answer(question) for node in nodes)
    bad = {"short": good[:-1], "long": good + b"\0", "empty": b"", "padding": good[:-1] + b"\xff"}[
        how
    ]
    with pytest.raises(RemoteProtocolError, match="node-1 sent a malformed answer") as caught:
        coordinator.hear([m.Answer(told), m.Answer(bad)])
    assert (caught.value.culprit, caught.value.step) == ("node-1", "ask")


def test_steps_come_once_and_in_order():
    coordinator, answers, nodes = released()
    with pytest.raises(LocalProtocolError, match="after the question"):
        coordinator.hear([m.Answer(b""), m.Answer(b"")])
    with pytest.raises(LocalProtocolError, match="led to the question"):
        coordinator.finish(answers, Measured())
    ask = coordinator.ask(answers)
    with pytest.raises(LocalProtocolError, match="one question is asked"):
        coordinator.ask(answers)
    with pytest.raises(LocalProtocolError, match="led to the question"):
        coordinator.finish(answers, Measured())
    coordinator.hear([m.Answer(node.answer(ask.question)) for node in nodes])
    assert coordinator.finish(answers, Measured()).rounds_predicted == 2


def test_messages_of_other_attempts_lead_to_no_question():
    coordinator, answers, _ = released()
    for session in (coordinator, coordinator_of(STUDY)):
        with pytest.raises(
            AlreadyReleased, match="node-1 released the study 'study' in another attempt"
        ):
            session.ask([answers[0], replace(answers[1], attempt=bytes(32))])


def test_other_protocols_ask_nothing():
    for study in (make_study(), local_study("ghazi-ldp")):
        session = coordinator_of(study)
        assert session.ask([]) is None
        with pytest.raises(LocalProtocolError, match="asks no question"):
            session.hear([])


def test_the_cost_is_both_messages_and_the_question():
    cost = cost_of_rounds(messages_of(STUDY), [(0, 21), (0, 33)])
    assert (cost.rounds, cost.revealed, cost.asked) == (2, (32 + 3 + 1, 32 + 5 + 1), (128, 128))
    assert cost.bytes_online == 36 + 38 + 256


def test_a_failure_after_the_release_says_what_is_charged():
    gone = most_telling({"node-1": PeerLost("node-1 is gone", culprit="node-1")}, "ask")
    assert gone.message == (
        "node-1 is gone. There is no result yet, and all nodes have charged epsilon for their "
        "first message. Run the study again under its name: it then finishes, and no node charges "
        "twice."
    )
