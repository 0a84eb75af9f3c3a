"""umpc.coordinator.conductor: when a run agrees again, and what it says of its end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from tests.protocols.base.test_resume import ATTEMPT, MEMBERS, STUDY, answers, changed
from tests.support.protocols import coordinator_of
from tests.support.signed import opened, prepared
from umpc.coordinator.conductor import Conductor
from umpc.coordinator.links import UNCHARGED, Encoded, Losses, silent
from umpc.errors import PeerLost, TooFewRecords, UmpcError
from umpc.proto import codec
from umpc.study import messages as m
from umpc.testing import lying

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


@dataclass
class Clock:
    """The module `time`, of which the conductor reads one clock. A test moves it by hand."""

    now: float

    def perf_counter(self) -> float:
        return self.now


def run_of(links: list[Any], shufflers: Any = ()) -> Conductor:
    side = coordinator_of(STUDY)
    return Conductor(side, links, silent, 0.0, list(shufflers), None, Losses(STUDY))


def conduct(proposed: list[Any], shufflers: Any = ()) -> tuple[dict[str, Any], UmpcError]:
    """Conduct a run. Returns: what the first node was asked, and how the run ended."""
    links: list[Any] = [Link(place, {**SAYS, m.Propose: proposed}) for place in range(3)]
    with pytest.raises(UmpcError) as caught:
        asyncio.run(run_of(links, shufflers).conduct())
    return links[0].asked, caught.value


def test_a_run_of_too_few_records_says_that_it_charged_nothing():
    def refuse(honest, side, found):
        raise TooFewRecords("no record has the second class")

    with lying("coordinator", agree=refuse):
        asked, error = conduct(changed(1, waiting=None))
    assert list(asked) == ["propose"] and isinstance(error, TooFewRecords)
    assert error.message == f"no record has the second class. {UNCHARGED}."


def test_a_study_with_shufflers_is_agreed_on_again():
    """Each shuffler has to hear of the attempt, which it does in the step prepare."""
    asked, _ = conduct(answers(), shufflers=["shuffler"])
    assert "agree" in asked


def test_a_reports_seconds_end_with_the_last_share():
    """The coordinator's own work on the report is no time of the study."""
    clock = Clock(5.0)
    shares = [m.Released(ATTEMPT.id, b"share", each.records) for each in MEMBERS]
    said = {m.Evaluate: [m.Ready((), 0, 1)] * 3, m.Release: shares}

    class Answers(Link):
        async def ask(self, step, told, kinds, seconds):
            clock.now += 1.0
            message = codec.decode_coordinator(*told)
            if type(message) in said:
                return said[type(message)][self._place]
            return await super().ask(step, told, kinds, seconds)

        async def hang_up(self):
            clock.now += 100.0

    side = coordinator_of(STUDY)
    links: list[Any] = [Answers(place, {**SAYS, m.Propose: answers()}) for place in range(3)]
    parts = (side, links, silent, 5.0, [], None, Losses(STUDY))
    plain = lying("coordinator", finish=lambda _, side, released, measured: measured)
    with plain, lying("machine", time=lambda _: clock):
        measured = asyncio.run(Conductor(*parts).conduct())
    # propose, evaluate and release: three nodes and a second each
    assert (measured.seconds_total, measured.seconds_online) == (9.0, 6.0)
