"""umpc.node.run.study: one node from its preparation to its release, in memory.

It notes the state on disk at each message (docs/protocol.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support.ledgers import kinds, opened
from tests.support.node_talks import run_of
from tests.support.sites import site_of
from tests.support.studies import make_study
from umpc.errors import (
    PeerLost,
    PolicyRefused,
    PreparationError,
    RemoteProtocolError,
    StudyAborted,
    UmpcError,
)
from umpc.node.budget.ledger import Ledger
from umpc.node.prepared_attempts import PreparedAttempt
from umpc.node.records import Records
from umpc.node.run.coordinator import PATIENCE_SECONDS, CoordinatorStream
from umpc.node.run.study import run_study
from umpc.study import messages as m

STUDY = make_study(nodes=1, dealer=None, preprocessing="none", backend="garbled")
STEP = STUDY.seconds_per_step


class Node:
    """node-0, the only one of its study. Its state on disk is noted at each of its messages."""

    def __init__(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
        self.ledger = ledger
        columns = {name: np.arange(9, dtype=np.int64) % 4 for name in ("x", "y")}
        self.site = site_of(
            ledger,
            load=lambda study: Records(columns, 9, 0),
            permit=self._permit,
            permit_delta=lambda delta: None,
        )
        self.site.parking._later = lambda delay, act: SimpleNamespace(cancel=lambda: None)
        self.at: dict[str, tuple[bool, bool]] = {}
        """Message → whether a finished share is held then, and whether it is charged."""
        self.waited: dict[Any, float | None] = {}
        self.waited_with: list[bool] = []
        """For each answer to a proposal, whether a prepared attempt goes on."""
        self.refuses = False
        self.fails_at: type | None = None
        expect = CoordinatorStream.expect

        def noted(
            stream: CoordinatorStream, kind: Any, seconds: float | None = None
        ) -> Awaitable[Any]:
            self.waited[kind] = seconds
            return expect(stream, kind, seconds)

        monkeypatch.setattr(CoordinatorStream, "expect", noted)

    def _permit(self, study: Any, records: int) -> None:
        if self.refuses:
            raise PolicyRefused("node-0 refuses")

    def _note(self, message: m.NodeMessage) -> None:
        hash_ = STUDY.whole.hash
        state = self.ledger.held(hash_) is not None, "charge" in kinds(self.ledger)
        self.at[type(message).__name__] = state

    def lead(
        self, answer: Callable[[m.NodeMessage], m.CoordinatorMessage], *, ahead: bool = False
    ) -> UmpcError | None:
        """Lead a study as `answer` says, which is asked after each message. Returns: its end."""
        said: list[m.NodeMessage] = []

        async def receive() -> m.CoordinatorMessage:
            await asyncio.sleep(0)
            return answer(said[-1]) if said else m.Propose(STUDY.encode(), ahead)

        async def send(message: m.NodeMessage) -> None:
            if type(message) is self.fails_at:
                raise PeerLost("the coordinator is gone", culprit=STUDY.coordinator)
            self._note(message)
            said.append(message)
            if isinstance(message, m.Accepted):
                self.waited_with.append(message.waiting is not None)

        async def whole() -> None:
            self.run = run_of(self.site, STUDY.coordinator, receive, send)
            await run_study(self.run)

        try:
            asyncio.run(whole())
        except UmpcError as error:
            return error
        return None


def honest(message: m.NodeMessage) -> m.CoordinatorMessage:
    """An honest coordinator's next order."""
    match message:
        case m.Accepted(_, member, None):
            return m.Agree((member,))
        case m.Accepted(_, _, waiting) if waiting is not None:
            return m.Evaluate((waiting.prepared.signature,))
        case m.Opened(opening, signature):
            return m.Begin((opening,), (signature,))
        case m.Prepared(signature=signature):
            return m.Evaluate((signature,))
        case m.Ready():
            return m.Release()
        case _:
            raise StudyAborted("the coordinator ended the study")


def parking(message: m.NodeMessage) -> m.CoordinatorMessage:
    """An honest coordinator that has a study prepared."""
    return m.Park() if isinstance(message, m.Prepared) else honest(message)


@pytest.fixture
def node(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    with opened(path) as ledger:
        yield Node(ledger, monkeypatch)


@pytest.mark.parametrize("ahead", [False, True])
def test_the_share_is_on_disk_before_ready_and_charged_before_it_leaves(node, ahead):
    if ahead:
        assert node.lead(parking, ahead=True) is None
        assert node.at["Parked"] == (False, False) and len(node.site.parking) == 1
    assert node.lead(honest) is None
    assert node.at["Accepted"] == (False, False)
    assert node.at["Ready"] == (True, False)
    assert node.at["Released"][1]
    assert node.ledger.released(STUDY.whole.hash) is not None
    assert node.ledger.balance().reserved == 0
    assert node.ledger.balance().spent == STUDY.exact_epsilon


@pytest.mark.parametrize(("ahead", "seconds"), [(False, None), (True, 2 * STEP + PATIENCE_SECONDS)])
def test_the_release_may_come_two_steps_after_a_prepared_node_is_ready(node, ahead, seconds):
    """Other nodes may still have to meet. Else it comes after one step, and some seconds."""
    if ahead:
        node.lead(parking, ahead=True)
    node.lead(honest)
    assert node.waited[m.Release] == seconds


def test_a_second_order_to_evaluate_releases_nothing(node):
    def twice(message: m.NodeMessage) -> m.CoordinatorMessage:
        if isinstance(message, m.Ready):
            return m.Evaluate((b"",))
        return honest(message)

    node.lead(parking, ahead=True)
    error = node.lead(twice)
    assert isinstance(error, RemoteProtocolError) and error.culprit == STUDY.coordinator
    assert "Released" not in node.at and node.ledger.balance().spent == 0


def test_the_rules_are_asked_again_before_a_prepared_run_says_anything(node):
    node.lead(parking, ahead=True)
    node.at.clear()
    node.refuses = True
    assert isinstance(node.lead(honest), PolicyRefused)
    assert node.at == {} and node.ledger.balance().reserved == 0


def test_an_aborted_prepared_run_gives_its_reservation_back(node):
    def aborts(message: m.NodeMessage) -> m.CoordinatorMessage:
        raise StudyAborted("the coordinator ended the study")

    node.lead(parking, ahead=True)
    assert node.ledger.balance().reserved == STUDY.exact_epsilon
    assert isinstance(node.lead(aborts), StudyAborted)
    assert node.ledger.balance().reserved == 0 and len(node.site.parking) == 0


def test_a_study_that_waits_needs_no_coordinator_any_more(node):
    assert node.lead(parking, ahead=True) is None
    assert node.run.stream.answered and node.run.parked is not None


def test_a_preparation_of_which_nobody_could_be_told_does_not_wait(node):
    node.fails_at = m.Parked
    assert isinstance(node.lead(parking, ahead=True), PeerLost)
    assert len(node.site.parking) == 0 and node.ledger.balance().reserved == 0


def test_a_preparation_for_which_there_is_no_room_any_more_leaves_no_file(node, monkeypatch):
    closed: list[PreparedAttempt] = []
    monkeypatch.setattr(PreparedAttempt, "close", lambda parked: closed.append(parked))

    def full(message: m.NodeMessage) -> m.CoordinatorMessage:
        node.site.parking._most = 0
        return parking(message)

    assert isinstance(node.lead(full, ahead=True), PreparationError)
    assert len(closed) == 1 and node.ledger.balance().reserved == 0


def test_nothing_is_prepared_without_everybodys_signature_of_the_members(node):
    def lies(message: m.NodeMessage) -> m.CoordinatorMessage:
        if isinstance(message, m.Opened):
            return m.Begin((message.opening,), (bytes(64),))
        return honest(message)

    error = node.lead(lies)
    assert isinstance(error, RemoteProtocolError) and error.culprit == STUDY.coordinator
    assert "Prepared" not in node.at and node.ledger.balance().reserved == 0


def test_a_study_that_is_prepared_anew_drops_the_earlier_preparation(node):
    for _ in range(2):
        assert node.lead(parking, ahead=True) is None
    assert len(node.site.parking) == 1
    assert node.lead(honest) is None
    assert node.waited_with == [False, False, True]


def test_a_preparation_with_other_survivors_is_dropped(node):
    """It is charged under the same name, and its attempt has other members."""
    node.lead(parking, ahead=True)
    (place,) = node.site.parking._places.values()
    place.parked.side.study = SimpleNamespace(hash=bytes(32), whole=STUDY.whole)
    assert node.lead(honest) is None
    assert node.waited_with == [False, False]
    assert node.ledger.balance().spent == STUDY.exact_epsilon


def test_the_last_look_before_the_charge_ends_the_run_without_it(node):
    def replays(message: m.NodeMessage) -> m.CoordinatorMessage:
        if isinstance(message, m.Ready):
            node.run.guard.note(RemoteProtocolError("a replayed frame", culprit="node-9"))
        return honest(message)

    error = node.lead(replays)
    assert isinstance(error, RemoteProtocolError) and error.culprit == "node-9"
    assert "Released" not in node.at and node.ledger.balance().spent == 0


def test_no_record_is_used_without_everybodys_signature_of_the_attempt(node):
    def lies(message: m.NodeMessage) -> m.CoordinatorMessage:
        return m.Evaluate((bytes(64),)) if isinstance(message, m.Prepared) else honest(message)

    error = node.lead(lies)
    assert isinstance(error, RemoteProtocolError)
    assert (error.culprit, error.step) == (STUDY.coordinator, "evaluate")
    assert "Ready" not in node.at and node.ledger.balance().reserved == 0
