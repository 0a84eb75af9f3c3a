"""umpc_papers.ghazi_rounds.node: one question, one answer, and never another."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.local import local_study, local_tables
from tests.support.protocols import make_node, run_own_steps
from tests.support.studies import Entropy
from umpc.errors import AlreadyReleased, LocalProtocolError, RemoteProtocolError
from umpc.node.budget.ledger_store import StoredAnswer
from umpc.node.run.release import question_digest, stored_answer
from umpc.protocols.base.one_message import OneMessageNode
from umpc_papers.ghazi_rounds.node import RoundsNode
from umpc_papers.testing import lying

STUDY = local_study("ghazi-rounds", 1)
QUESTION = np.linspace(-1, 1, 16).astype("<f8").tobytes()


def randomised() -> RoundsNode:
    (table,) = local_tables(STUDY, (60,))
    node = make_node("node-0", STUDY, table, 60, Entropy("node"))
    node.begin([node.agree([node.accept()])])
    run_own_steps(node)
    return node


def test_a_study_that_asks_has_a_session_that_answers():
    assert type(randomised()) is RoundsNode
    (table,) = local_tables(STUDY, (60,))
    other = make_node("node-0", local_study("ghazi-ldp", 1), table, 60, Entropy("node"))
    assert type(other) is OneMessageNode


def test_one_question_is_answered_after_the_release():
    node = randomised()
    with pytest.raises(LocalProtocolError, match="after the release"):
        node.answer(QUESTION)
    first = node.release()
    answer = node.answer(QUESTION)
    assert len(first.share) + len(answer) == 32 + 8 + 1
    for question in (QUESTION, bytes(len(QUESTION))):
        with pytest.raises(LocalProtocolError, match="one question is answered"):
            node.answer(question)


def test_a_later_process_answers_about_the_records_that_the_ledger_kept():
    """Without noise the answer is the same, whatever the table has become."""
    node = randomised()
    share = node.release().share
    rest = node.rest
    none = {name: column[:0] for name, column in node.columns.items()}
    later = make_node("node-0", STUDY, none, 0, Entropy("later"))
    with pytest.raises(LocalProtocolError, match="recalls none"):
        node.recall(share, rest)
    later.recall(share, rest)
    silent = {
        "respond": lambda honest, values, *_: values,
        "bernoulli": lambda honest, odds, stream, chosen: odds[chosen] > 0.5,
    }
    with lying("node", **silent):
        answer = later.answer(QUESTION)
        assert answer == node.answer(QUESTION) and len(set(answer)) > 1
    with pytest.raises(LocalProtocolError, match="one question is answered"):
        later.answer(QUESTION)
    with pytest.raises(LocalProtocolError, match="before the answer"):
        _ = node.rest


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (b"", "16 cells take 128 bytes, got 0"),
        (QUESTION + b"\0", "got 129"),
        (b"\xff" * 128, "is not finite"),
    ],
    ids=["empty", "long", "nan"],
)
def test_a_malformed_question_names_the_coordinator_and_is_not_followed_by_another(
    question, reason
):
    node = randomised()
    node.release()
    with pytest.raises(
        RemoteProtocolError, match=f"malformed question: .*{reason}.*nothing was answered"
    ) as caught:
        node.answer(question)
    assert (caught.value.culprit, caught.value.step) == ("coordinator", "ask")
    with pytest.raises(LocalProtocolError):
        node.answer(QUESTION)


def test_what_is_stored_goes_to_the_same_question_only():
    asked = question_digest(STUDY, bytes(32), QUESTION)
    stored = StoredAnswer(asked, b"answer")
    assert stored_answer(stored, asked, STUDY, "node-0") == b"answer"
    others = [
        question_digest(STUDY, bytes(32), bytes(128)),
        question_digest(STUDY, b"\1" * 32, QUESTION),
        question_digest(local_study("ghazi-rounds", 2), bytes(32), QUESTION),
    ]
    assert len({asked, *others}) == 4 and len(asked) == 32
    cases = [
        *((stored, other, "another question") for other in others),
        (None, asked, "it never answered"),
    ]
    for found, of, why in cases:
        reason = f"node-0 released .*{why}.* charged and incomplete; .* new name"
        with pytest.raises(AlreadyReleased, match=reason) as e:
            stored_answer(found, of, STUDY, "node-0")
        assert (e.value.culprit, e.value.step) == ("node-0", "ask")


def test_it_shows_nothing_of_itself():
    assert repr(randomised()).endswith("<redacted>)") and "answer=" not in repr(
        StoredAnswer(bytes(32), b"secret")
    )
