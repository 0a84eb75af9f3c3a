"""umpc.coordinator.conductor: the run of a prepared study, and totals that nodes sign.

docs/decisions/0090-fewer-rounds-of-a-prepared-run.md.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.protocols.base.test_resume import ATTEMPT, MEMBERS, STUDY, answers, changed
from tests.support.protocols import coordinator_of
from tests.support.signed import opened, prepared
from umpc.coordinator import conductor
from umpc.coordinator.client import silent
from umpc.coordinator.conductor import ANSWER_SECONDS, Conductor, expect_nothing
from umpc.coordinator.links import UNCHARGED, Encoded
from umpc.coordinator.losses import Losses
from umpc.errors import PeerLost, RemoteProtocolError, TooFewRecords, UmpcError
from umpc.proto import codec
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.study import messages as m

STEP = STUDY.seconds_per_step
SAYS = {
    m.Propose: answers(),
    m.Agree: opened(STUDY, MEMBERS, ATTEMPT.openings),
    m.Begin: prepared(ATTEMPT),
}


class Link:
    """A link to a node that answers as in `said`, and is lost when it is to evaluate."""

    def __init__(self, place: int, said: dict[Any, Any]):
        self.node = STUDY.nodes[place]
        self.asked: dict[str, tuple[m.CoordinatorMessage, float]] = {}
        self._place, self._said = place, said

    async def ask(self, step: str, told: Encoded, kinds: Any, seconds: float) -> Any:
        message = codec.decode_coordinator(*told)
        self.asked[step] = message, seconds
        if isinstance(message, m.Evaluate):
            raise PeerLost(f"{self.node.name} is gone", culprit=self.node.name, step=step)
        return self._said[type(message)][self._place]


def run_of(links: list[Any], shufflers: Any = ()) -> Conductor:
    side = coordinator_of(STUDY)
    return Conductor(side, links, silent, 0.0, list(shufflers), expect_nothing, Losses(STUDY))


def conduct(proposed: list[Any], shufflers: Any = ()) -> tuple[dict[str, Any], UmpcError]:
    """Conduct a run. Returns: what the first node was asked, and how the run ended."""
    links: list[Any] = [Link(place, {**SAYS, m.Propose: proposed}) for place in range(3)]
    with pytest.raises(UmpcError) as caught:
        asyncio.run(run_of(links, shufflers).conduct())
    return links[0].asked, caught.value


@pytest.mark.parametrize("lost_in", [m.Evaluate, m.Release])
def test_nodes_keep_what_they_hold_once_a_release_was_asked_for(lost_in):
    """From then on some node may have charged, and the others must be able to finish."""

    class Answers(Link):
        async def ask(self, step, told, kinds, seconds):
            message = codec.decode_coordinator(*told)
            if isinstance(message, lost_in):
                raise PeerLost(f"{self.node.name} is gone", culprit=self.node.name, step=step)
            return m.Ready((), 0, 1) if step == "evaluate" else self._said[type(message)][0]

    said = {place: {**SAYS, m.Propose: [answers()[place]]} for place in range(3)}
    run = run_of([Answers(place, said[place]) for place in range(3)])
    with pytest.raises(PeerLost):
        asyncio.run(run.conduct())
    assert run.may_be_charged == (lost_in is m.Release)


def test_nodes_that_have_all_prepared_are_asked_to_evaluate_at_once():
    asked, error = conduct(answers())
    assert isinstance(error, PeerLost) and list(asked) == ["propose", "evaluate"]
    message, _ = asked["evaluate"]
    waiting = [each.waiting.prepared for each in answers() if each.waiting is not None]
    assert [len(each) for each in message.signatures] == [len(each.signature) for each in waiting]


def test_nodes_that_have_yet_to_meet_get_the_time_of_both_steps():
    """A peer that met them late and then stalled once made the coordinator name a node that waits.

    The nodes name that peer when their own time for the second step is up.
    """
    at_once, _ = conduct(answers())
    assert at_once["evaluate"][1] == 2 * STEP + ANSWER_SECONDS
    assert at_once["propose"][1] == STEP + ANSWER_SECONDS
    agreed, _ = conduct(changed(1, waiting=None))
    assert list(agreed) == ["propose", "agree", "prepare", "evaluate"]
    assert {seconds for _, seconds in agreed.values()} == {STEP + ANSWER_SECONDS}


def test_a_run_of_too_few_records_says_that_it_charged_nothing(monkeypatch):
    def refuse(side, found):
        raise TooFewRecords("no record has the second class")

    monkeypatch.setattr(CoordinatorSide, "agree", refuse)
    asked, error = conduct(changed(1, waiting=None))
    assert list(asked) == ["propose"] and isinstance(error, TooFewRecords)
    assert error.message == f"no record has the second class. {UNCHARGED}."


def test_a_study_with_shufflers_is_agreed_on_again():
    """Each shuffler has to hear of the attempt, which it does in the step prepare."""
    asked, _ = conduct(answers(), shufflers=["shuffler"])
    assert "agree" in asked


def test_a_false_word_in_place_of_a_preparation_names_its_node_before_data_are_used():
    lie = answers()
    first = lie[2].waiting
    assert first is not None
    lie[2] = replace(lie[2], waiting=m.WaitingAttempt(first.opened, prepared(ATTEMPT)[1]))
    asked, error = conduct(lie)
    assert isinstance(error, RemoteProtocolError) and error.culprit == MEMBERS[2].name
    assert list(asked) == ["propose"]


def totalling(check_signed: Any) -> Any:
    """A coordinator's side that adds up vectors."""
    aggregation = SimpleNamespace(
        add=print,
        total=lambda: iter(()),
        check_signed=check_signed,
    )
    return SimpleNamespace(
        study=STUDY,
        attempt=SimpleNamespace(size=1),
        aggregation=aggregation,
        evaluate=lambda: m.Evaluate(()),
    )


def test_a_total_that_a_node_did_not_sign_is_confirmed_to_nobody():
    """The nodes would notice, too, and name the coordinator."""
    asked: list[Encoded] = []

    def check_signed(signatures: Any) -> None:
        assert signatures == (b"0", b"1", b"2")
        raise RemoteProtocolError("node-1 signed another total", culprit="node-1")

    def link(place: int) -> Any:
        async def collect(*_: Any) -> None:
            """All frames have come."""

        async def deliver(*_: Any) -> m.TotalSigned:
            return m.TotalSigned(str(place).encode())

        async def ask(step: str, told: Encoded, *_: Any) -> None:
            asked.append(told)

        node = STUDY.nodes[place]
        return SimpleNamespace(node=node, collect=collect, deliver=deliver, ask=ask)

    side = totalling(check_signed)
    links = [link(place) for place in range(3)]
    run = Conductor(side, links, silent, 0.0, [], expect_nothing, Losses(STUDY))
    with pytest.raises(RemoteProtocolError, match="signed another total"):
        asyncio.run(run._evaluate())
    assert asked == []


def test_a_reports_seconds_end_with_the_last_share(monkeypatch):
    """The coordinator's own work on the report is no time of the study."""
    now = [5.0]
    monkeypatch.setattr(conductor, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    shares = [m.Released(ATTEMPT.id, b"share", each.records) for each in MEMBERS]
    said = {m.Evaluate: [m.Ready((), 0, 1)] * 3, m.Release: shares}

    class Answers(Link):
        async def ask(self, step, told, kinds, seconds):
            now[0] += 1.0
            message = codec.decode_coordinator(*told)
            if type(message) in said:
                return said[type(message)][self._place]
            return await super().ask(step, told, kinds, seconds)

        async def hang_up(self):
            now[0] += 100.0

    side = coordinator_of(STUDY)
    monkeypatch.setattr(side, "finish", lambda released, measured: measured)
    links: list[Any] = [Answers(place, {**SAYS, m.Propose: answers()}) for place in range(3)]
    parts = (side, links, silent, 5.0, [], expect_nothing, Losses(STUDY))
    measured = asyncio.run(Conductor(*parts).conduct())
    # propose, evaluate and release: three nodes and a second each
    assert (measured.seconds_total, measured.seconds_online) == (9.0, 6.0)
