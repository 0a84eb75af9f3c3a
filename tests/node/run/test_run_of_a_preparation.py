"""umpc.node.run.earlier: the run of what a node has prepared, led by a liar.

docs/decisions/0090-fewer-rounds-of-a-prepared-run.md.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.node.test_prepared_attempts import park, prepared
from tests.support.ledgers import opened
from tests.support.node_talks import run_of
from tests.support.protocols import with_facts
from tests.support.sessions import Run
from tests.support.signed import signatures_of
from tests.support.sites import site_of
from umpc.crypto.signing import Holder, is_signature
from umpc.errors import (
    CertificateError,
    DataError,
    PeerLost,
    PeerUnavailable,
    PolicyRefused,
    PreparationLost,
    RemoteProtocolError,
    StudyAborted,
    UmpcError,
)
from umpc.node.prepared_attempts import PreparedAttempt
from umpc.node.run.study import run_study
from umpc.study import messages as m
from umpc.study.members import attempt_statement, members_statement
from umpc.study.parts import Participant

Order = Callable[[], Awaitable[m.CoordinatorMessage]]
"""A coordinator's message, and what it does before."""
BUDGET = Fraction(10**13)


class Prepared:
    """node-0 of three, with a prepared study that waits, and a coordinator that says anything."""

    def __init__(self, folder: Path, ledger: Any):
        self.run: Run = prepared(label="waits")
        for node in self.run.nodes:
            node.check_agreed(self.signatures(self.members_statement))
        self.parked: PreparedAttempt = park(self.run, folder)[0]
        self.ledger = ledger
        self.dialled: list[bytes] = []
        self.addresses: list[str] = []
        self.proposed = self.study
        self.closed: list[int] = []
        self.used: list[str] = []
        self.refuses = ""
        self.never_answers = ""
        self.alarms: list[Any] = []
        self.is_deaf = False
        self.read_ahead = 0
        """The payloads of the material that were read when records were used first."""
        self.going_on: set[Any] = set()
        self.ruled_out = ""
        self.site = site_of(
            ledger, dial=self._dial, permit=self._permit, permit_delta=self._permit_delta
        )
        ledger.reserve(self.study.whole.hash, self.study.exact_epsilon, name=self.study.name)
        self.site.parking._later = lambda delay, act: SimpleNamespace(cancel=lambda: None)
        self.site.parking.put(self.parked)
        node = self.parked.side
        node.fields_for = self._use  # type: ignore[method-assign]

    @property
    def study(self) -> Any:
        return self.run.study

    @property
    def members(self) -> tuple[Any, ...]:
        return tuple(self.run.members)

    @property
    def members_statement(self) -> bytes:
        return members_statement(self.study, self.members)

    def signatures(self, statement: bytes) -> tuple[bytes, ...]:
        return tuple(signatures_of(statement, self.members))

    @property
    def evaluate(self) -> m.Evaluate:
        return m.Evaluate(self.signatures(attempt_statement(self.run.attempt.id)))

    def _permit(self, study: Any, records: int) -> None:
        self._rule("the study")

    def _permit_delta(self, delta: Fraction) -> None:
        self._rule("delta")

    def _rule(self, what: str) -> None:
        if what == self.ruled_out:
            raise PolicyRefused(f"node-0 refuses {what}")

    def _use(self, peer: int) -> Any:
        self.used.append(f"masked records for {peer}")
        assert self.parked.spool is not None
        self.read_ahead = len(self.parked.spool._at_hand)
        raise StudyAborted("the records are in use, and the test ends")

    async def _dial(self, study: Any, peer: int, meeting: bytes, standing: Any) -> Any:
        self.dialled.append(meeting)
        self.addresses.append(study.nodes[peer].address)
        if self.refuses:
            raise PeerUnavailable(f"{self.refuses} is gone", culprit=self.refuses, step="prepare")
        if self.never_answers == study.nodes[peer].name:
            await asyncio.Event().wait()
        return SimpleNamespace(
            peer=study.nodes[peer].name,
            is_awaited=False,
            on_violation=self.alarms.append,
            close=lambda: self.closed.append(peer),
            rounds_used=set(),
            sent={},
        )

    def hear(self, *orders: Order | m.CoordinatorMessage) -> tuple[list[m.NodeMessage], UmpcError]:
        """Propose, and say one of these after each message. Returns: what the node did."""
        said: list[m.NodeMessage] = []
        left: list[Order | m.CoordinatorMessage] = [m.Propose(self.proposed.encode()), *orders]

        async def receive() -> m.CoordinatorMessage:
            for _ in range(20):  # the node's other tasks have their turn
                await asyncio.sleep(0)
            if not left:
                raise StudyAborted("the coordinator ended the study")
            order = left.pop(0)
            return await order() if callable(order) else order

        async def send(message: m.NodeMessage) -> None:
            if self.is_deaf:
                await asyncio.sleep(0)
                raise PeerLost("the coordinator is gone", culprit=self.study.coordinator)
            said.append(message)

        async def whole() -> None:
            try:
                async with asyncio.timeout(5):
                    await run_study(run_of(self.site, self.study.coordinator, receive, send))
            finally:
                for _ in range(9):  # what was cancelled ends
                    await asyncio.sleep(0)
                self.going_on = asyncio.all_tasks() - {asyncio.current_task()}

        with pytest.raises(UmpcError) as caught:
            asyncio.run(whole())
        return said, caught.value

    def check_said(self, opened: m.Opened, prepared: m.Prepared) -> None:
        """Check what node-0 says of its attempt, whose signatures differ from time to time."""
        key = self.parked.side._keys[0]
        attempt = self.run.attempt.id
        assert opened.opening == self.run.openings[0]
        assert is_signature(key, self.members_statement, opened.signature)
        assert (prepared.attempt, prepared.bytes_received, prepared.ahead) == (attempt, 7, True)
        assert is_signature(key, attempt_statement(attempt), prepared.signature)

    def nothing_is_left(self) -> None:
        """The preparation is used up, and cost nothing."""
        assert not self.going_on, "nothing of the run goes on"
        assert len(self.site.parking) == 0
        assert self.parked.spool is not None and self.parked.spool._cipher is None
        balance = self.ledger.balance()
        assert (balance.reserved, balance.spent) == (0, 0)


@pytest.fixture
def node(path: Path, tmp_path: Path) -> Iterator[Prepared]:
    with opened(path, total=BUDGET) as ledger:
        yield Prepared(tmp_path, ledger)


def test_it_says_at_once_what_it_said_in_the_preparation(node):
    (accepted,), _ = node.hear()
    assert accepted.member == node.members[0]
    node.check_said(accepted.waiting.opened, accepted.waiting.prepared)
    node.nothing_is_left()


def test_with_everybodys_signatures_the_order_to_evaluate_is_obeyed(node):
    said, _ = node.hear(node.evaluate)
    assert len(said) == 1 and node.used
    assert len(node.dialled) == 2 and len(node.closed) == 2
    (meeting,) = set(node.dialled)
    assert meeting != node.run.attempt.id, "else its links would have the preparation's keys"
    assert node.read_ahead == len(node.parked.chunks)
    assert len(node.alarms) == 2, "a violation of either peer ends the run"
    node.nothing_is_left()


def test_its_links_are_made_anew_at_the_addresses_of_the_run(node):
    """A study with new addresses is the same study."""
    nodes = tuple(
        Participant(each.name, f"moved:{number}") for number, each in enumerate(node.study.nodes)
    )
    node.proposed = with_facts(node.study, nodes=nodes)
    assert node.proposed.hash == node.study.hash
    node.hear(node.evaluate)
    assert sorted(node.addresses) == ["moved:1", "moved:2"] and node.used
    node.nothing_is_left()


def another_preparation(node: Prepared) -> Sequence[bytes]:
    """Signatures of all nodes, of another preparation of the same study."""
    other = prepared(label="another")
    assert other.study.hash == node.study.hash
    return signatures_of(attempt_statement(other.attempt.id), other.members)


def the_members(node: Prepared) -> Sequence[bytes]:
    return node.signatures(node.members_statement)


def one_short(node: Prepared) -> Sequence[bytes]:
    return node.evaluate.signatures[:2]


def one_twice(node: Prepared) -> Sequence[bytes]:
    first, _, third = node.evaluate.signatures
    return (first, first, third)


@pytest.mark.parametrize("lie", [another_preparation, the_members, one_short, one_twice])
@pytest.mark.parametrize("agrees", [False, True])
def test_no_record_is_used_without_everybodys_signature_of_this_attempt(node, lie, agrees):
    lied = m.Evaluate(tuple(lie(node)))
    said, error = node.hear(*(agreement(node) if agrees else ()), lied)
    assert isinstance(error, RemoteProtocolError), error
    assert (error.culprit, error.step) == ("coordinator", "evaluate")
    assert node.used == [] and len(said) == (3 if agrees else 1)
    node.nothing_is_left()


def agreement(node: Prepared, **changes: Any) -> list[m.CoordinatorMessage]:
    """Return what a coordinator passes on where some node has nothing prepared, or a change."""
    members = changes.get("members", node.members)
    openings = changes.get("openings", tuple(node.run.openings))
    signatures = changes.get("signatures", node.signatures(node.members_statement))
    return [m.Agree(members), m.Begin(openings, signatures)]


def test_members_are_agreed_on_again_with_the_same_answers(node):
    said, _ = node.hear(*agreement(node), node.evaluate)
    node.check_said(*said[1:])
    assert node.used


def test_a_node_that_came_with_another_member_is_named_though_it_cannot_be_reached(node, caplog):
    node.refuses = "node-1"
    first, second, third = node.members
    altered = (first, replace(second, records=second.records + 1), third)
    said, error = node.hear(*agreement(node, members=altered))
    assert isinstance(error, PreparationLost) and error.culprit == "node-1"
    assert len(said) == 1, "no opening in an agreement with other members"
    node.nothing_is_left()
    del error  # its traceback keeps the task
    gc.collect()
    assert "never retrieved" not in caplog.text


def swapped(node: Prepared) -> dict[str, Any]:
    first, second, third = node.signatures(node.members_statement)
    return {"signatures": (first, third, second)}


def of_the_attempt(node: Prepared) -> dict[str, Any]:
    return {"signatures": node.evaluate.signatures}


def another_opening(node: Prepared) -> dict[str, Any]:
    return {"openings": (*node.run.openings[:2], bytes(32))}


@pytest.mark.parametrize("lie", [swapped, of_the_attempt, another_opening])
def test_a_second_agreement_is_checked_like_the_first(node, lie):
    said, error = node.hear(*agreement(node, **lie(node)), node.evaluate)
    assert isinstance(error, RemoteProtocolError) and error.culprit == "coordinator"
    assert len(said) == 2 and node.used == [], "it is not prepared"
    node.nothing_is_left()


def test_a_peer_that_does_not_connect_is_named_before_records_are_used(node):
    node.refuses = "node-2"
    said, error = node.hear(node.evaluate)
    assert isinstance(error, PeerUnavailable) and error.culprit == "node-2"
    assert len(said) == 1 and node.used == []
    node.nothing_is_left()


def test_a_run_that_ends_while_a_peer_is_awaited_leaves_nothing(node):
    node.never_answers = "node-2"
    _, error = node.hear()
    assert isinstance(error, StudyAborted) and len(node.closed) == 1
    node.nothing_is_left()


def test_a_coordinator_that_is_gone_at_once_leaves_nothing(node):
    node.is_deaf, node.never_answers = True, "node-2"
    said, error = node.hear()
    assert isinstance(error, PeerLost) and said == [] and len(node.dialled) == 2
    node.nothing_is_left()


@pytest.mark.parametrize("what", ["the study", "delta"])
def test_a_site_whose_rules_have_changed_says_nothing(node, what):
    node.ruled_out = what
    said, error = node.hear(node.evaluate)
    assert isinstance(error, PolicyRefused) and said == [] and node.dialled == []
    node.nothing_is_left()


def test_a_node_that_was_revoked_since_the_preparation_is_refused_before_anything_is_said(node):
    """Nodes at one hub shake no hands, so nothing else looks at certificates in this run."""
    side = node.parked.side
    before = side._own.verify

    def now(certificate: bytes) -> Holder:
        holder = before(certificate)
        if holder.name == "node-2":
            raise CertificateError("the certificate of node-2 was revoked", culprit="node-2")
        return holder

    side._own = replace(side._own, verify=now)
    said, error = node.hear(node.evaluate)
    assert isinstance(error, PreparationLost) and error.culprit == "node-2"
    assert said == [] and node.dialled == [] and node.used == []
    node.nothing_is_left()


@pytest.mark.parametrize(
    "order", [m.Release(), m.Park(), m.Drop(), m.Begin((), ())], ids=lambda order: type(order)
)
def test_any_other_order_ends_the_run(node, order):
    said, error = node.hear(order)
    assert isinstance(error, RemoteProtocolError) and error.culprit == "coordinator"
    assert "Agree or Evaluate was due" in error.message and len(said) == 1
    node.nothing_is_left()


def test_it_is_used_up_by_a_run_that_failed(node):
    node.hear()
    node.nothing_is_left()
    said, error = node.hear(node.evaluate)
    assert isinstance(error, DataError) and said == [], "a run from the start, which reads records"


def test_two_runs_at_once_do_not_use_the_same_masks(node):
    ended: list[str] = []

    async def led_by_another() -> m.CoordinatorMessage:
        async def propose() -> m.CoordinatorMessage:
            return m.Propose(node.study.encode())

        async def said_nothing(message: m.NodeMessage) -> None:
            raise AssertionError(message)

        second = run_of(node.site, node.study.coordinator, propose, said_nothing)
        with pytest.raises(UmpcError) as caught:
            await run_study(second)
        ended.append(caught.value.message)
        return node.evaluate

    node.hear(led_by_another)
    assert "another run of the study" in ended[0]
    assert node.used, "the first run goes on"
    node.nothing_is_left()
