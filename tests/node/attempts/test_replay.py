"""umpc.node.attempts.replay: a study that umpc 0.1 released is not charged a second time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ledgers import charged, kinds, opened
from tests.support.sites import site_of
from tests.support.studies import make_study
from umpc.errors import AlreadyReleased, DataError, UmpcError
from umpc.node.attempts.replay import refuse_former
from umpc.node.attempts.study_run import StudyRun
from umpc.node.budget.ledger import Ledger
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.former import former_hash, second_hash

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

    run = StudyRun(site_of(ledger), study.coordinator, receive, send)
    with pytest.raises(UmpcError) as caught:
        asyncio.run(run.run())
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
