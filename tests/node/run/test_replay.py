"""umpc.node.run.study: a study that was released is not charged a second time.

That holds for studies of umpc 0.1, and for those that this version would refuse if they were new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.fields import number_field
from tests.support.ledgers import charged, kinds, opened, pay
from tests.support.local import local_study
from tests.support.node_talks import run_of, talk_to
from tests.support.sites import site_of
from tests.support.studies import AUC, CLASSES, make_study
from tests.support.studyfiles import participants, planned_file
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import AlreadyReleased, DataError, RangeError, UmpcError
from umpc.node.audit.trail import AuditRow
from umpc.node.budget.ledger import Ledger
from umpc.node.run.release import question_digest, refuse_former
from umpc.node.run.study import run_study
from umpc.proto.codec import encode_kept
from umpc.study import messages as m
from umpc.study.computation import former_hash, second_hash
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.study.rules import with_other_direction
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.text import to_text

STUDY = make_study(name="tau-2026")
OTHERS = (STUDY.replaced(name="tau-2027"), STUDY.replaced(epsilon="1/2"))
"""Studies that umpc 0.1 did not release."""


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A ledger on disk in which umpc 0.1 charged STUDY."""
    with opened(path) as ledger:
        charged(ledger, former_hash(STUDY))
        yield ledger


def propose(study: Study, ledger: Ledger) -> tuple[UmpcError, list[m.NodeMessage]]:
    """The error with which a node ends a proposed study, and the messages that it sent."""
    sent: list[m.NodeMessage] = []

    async def receive() -> m.CoordinatorMessage:
        return m.Propose(study.encode(), False)

    async def send(message: m.NodeMessage) -> None:
        sent.append(message)

    with pytest.raises(UmpcError) as caught:
        asyncio.run(run_study(run_of(site_of(ledger), study.coordinator, receive, send)))
    return caught.value, sent


def test_a_study_that_the_former_version_released_is_refused_with_advice(ledger):
    with pytest.raises(
        AlreadyReleased, match=r"with umpc 0\.1.*keep the old report, or give"
    ) as no:
        refuse_former(site_of(ledger), STUDY)
    assert (no.value.culprit, no.value.step) == ("node-0", "propose")
    for other in OTHERS:
        refuse_former(site_of(ledger), other)


def test_a_study_that_was_released_under_the_second_tag_is_refused_too(ledger):
    study = OTHERS[0]
    charged(ledger, second_hash(study))
    with pytest.raises(AlreadyReleased, match=r"with an earlier state of umpc 0\.2.*keep the old"):
        refuse_former(site_of(ledger), study)


def test_a_node_refuses_it_before_it_reserves_or_sends_anything(ledger):
    before = kinds(ledger), ledger.balance()
    error, sent = propose(STUDY, ledger)
    assert isinstance(error, AlreadyReleased) and not sent
    assert (kinds(ledger), ledger.balance()) == before


@pytest.mark.parametrize("study", OTHERS, ids=["another name", "another epsilon"])
def test_a_node_goes_on_with_any_other_study(ledger, study):
    error, _ = propose(study, ledger)
    assert isinstance(error, DataError)


def test_it_survives_a_restart_of_the_node(ledger, path):
    ledger.close()
    with opened(path) as again:
        assert isinstance(propose(STUDY, again)[0], AlreadyReleased)


EVENTS = FieldText("event", "1", "2", whole=True)
CENSORED = make_study(
    tuple(map(to_text, LIBRARY["concordance_index"].expressions(["x", "y", "event"]))),
    name="survival-2026",
    statistic="concordance_index",
    estimator="ratio",
    fields=(number_field("x", "0", "9"), number_field("y", "0", "9"), EVENTS),
)
"""A study whose event is coded 1 and 2, which former versions ran."""


def test_a_new_study_whose_field_does_not_fit_is_refused_before_anything_is_reserved(path):
    with opened(path) as ledger:
        before = kinds(ledger), ledger.balance()
        error, sent = propose(CENSORED, ledger)
        assert isinstance(error, RangeError) and not sent
        assert 'write categories = ["1", "2"], the second counts' in error.message
        assert (kinds(ledger), ledger.balance()) == before


def test_a_released_study_whose_field_does_not_fit_answers_again_at_no_cost(path):
    released = m.Released(b"a" * 32, b"share", 9, 0)
    with opened(path) as ledger:
        ledger.reserve(CENSORED.hash, Fraction(1), Fraction(0))
        pay(ledger, CENSORED.hash, released.attempt, encode_kept(released))
        before = ledger.balance()
        assert sent_by(CENSORED, ledger) == [released]
        assert ledger.balance() == before


def test_the_same_file_whose_public_classes_were_exchanged_is_not_charged_again(path):
    """Files once listed the class that should score higher first."""
    auc = make_study(
        AUC,
        fields=(number_field("x", "0", "9"), CLASSES),
        sampling="two_sample",
        statistic="auc",
    )
    today = with_other_direction(auc)
    with opened(path) as ledger:
        charged(ledger, auc.hash)
        before = kinds(ledger), ledger.balance()
        error, sent = propose(today, ledger)
        assert isinstance(error, AlreadyReleased) and not sent
        assert 'Write categories = ["control", "case"]' in error.message
        assert "'case' should score higher there" in error.message
        assert (kinds(ledger), ledger.balance()) == before


@pytest.mark.parametrize("edges", [{}, {"edges": "all"}], ids=str)
@pytest.mark.parametrize("identity", [lambda study: study.hash, second_hash], ids=["3", "2"])
def test_pairs_that_a_file_without_a_backend_was_are_not_charged_again(path, edges, identity):
    """Where nodes may lie, such files were once of pairs, and now may be of the grid."""
    (dealer,) = participants("dealer")
    asked = {"dealer": dealer, "adversary": "lying_nodes", "max_colluding": 1, **edges}

    def study_of(**changes: str) -> Study:
        file = planned_file(path.parent, ("node-0", "south"), **asked, **changes)
        return load_study_file(file).study("coordinator")

    pairs, today = study_of(backend="shared"), study_of()
    assert (pairs.backend, today.backend) == ("shared", "grid")
    with opened(path) as ledger:
        charged(ledger, identity(pairs))
        before = kinds(ledger), ledger.balance()
        for open_file in (today, study_of(backend="auto")):
            error, sent = propose(open_file, ledger)
            assert isinstance(error, AlreadyReleased) and not sent
            assert 'Write backend = "shared" to have that result again at no cost' in error.message
        assert (kinds(ledger), ledger.balance()) == before
        refuse_former(site_of(ledger), today.replaced(name="anew"))
        refuse_former(site_of(ledger), today.replaced(epsilon="1/2"))


def test_the_result_of_these_pairs_is_sent_again(path):
    (dealer,) = participants("dealer")
    asked = {"dealer": dealer, "adversary": "lying_nodes", "max_colluding": 1, "backend": "shared"}
    file = planned_file(path.parent, ("node-0", "south"), **asked)
    pairs = load_study_file(file).study("coordinator")
    released = m.Released(b"a" * 32, b"share", 9, 0)
    with opened(path) as ledger:
        ledger.reserve(pairs.hash, Fraction(1), Fraction(0))
        pay(ledger, pairs.hash, released.attempt, encode_kept(released))
        before = ledger.balance()
        assert sent_by(pairs, ledger) == [released]
        assert ledger.balance() == before


def sent_by(study: Study, ledger: Ledger) -> list[m.NodeMessage]:
    """The messages that a node sends for a proposed study whose run ends well."""
    sent: list[m.NodeMessage] = []

    async def receive() -> m.CoordinatorMessage:
        return m.Propose(study.encode(), False)

    async def send(message: m.NodeMessage) -> None:
        sent.append(message)

    asyncio.run(run_study(run_of(site_of(ledger), study.coordinator, receive, send)))
    return sent


def test_an_answer_that_is_sent_again_has_a_row_in_the_audit_trail(path):
    """The bytes of a release that is sent again have one, too. Neither of them costs anything."""
    study = local_study("ghazi-rounds", 1)
    released, question = m.Released(b"a" * 32, b"share", 9), b"question"
    rows: list[AuditRow] = []
    with opened(path) as ledger:
        ledger.reserve(study.hash, study.exact_epsilon, Fraction(0))
        pay(ledger, study.hash, released.attempt, encode_kept(released))
        asked = question_digest(study, released.attempt, question)
        ledger.answer(study.hash, released.attempt, asked, b"answer")
        site = site_of(ledger, record=lambda *more: rows.extend(more))
        for _ in range(2):
            assert talk_to(site, study, [m.Ask(question)]) == (
                [released, m.Answer(b"answer")],
                None,
            )
        told = talk_to(site, study, [m.Ask(b"another question")])
    assert isinstance(told[1], AlreadyReleased) and told[0] == [released]
    events = [row.event for row in rows]
    assert events == [*["proposal", "release", "answer"] * 2, "proposal", "release"]
    again = [row for row in rows if row.event == "answer"]
    assert {(row.epsilon, row.delta, row.note) for row in again} == {
        ("0", "0", "again, nothing charged")
    }
