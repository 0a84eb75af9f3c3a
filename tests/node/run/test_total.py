"""umpc.node.run.study: the own vector up, the total down, and nothing before all signed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.support.grid import grid_study
from tests.support.node_talks import run_of
from tests.support.sites import idle_site
from umpc.errors import RemoteProtocolError
from umpc.node.run.prepare import Others
from umpc.node.run.study import add_up
from umpc.study import messages as m
from umpc.study.messages import Frame


def frame(step: str, number: int) -> Frame:
    return Frame(step, (), number, 1, 32, bytes(4))


class Aggregation:
    """A vector of two frames, which notes what it is asked."""

    exchanges = 1
    answers = 1
    asks = False

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def masked(self) -> Iterator[Frame]:
        yield from (frame("histogram", number) for number in range(2))

    def take(self, given: Frame) -> bool:
        self.asked.append(given.chunk)
        return given.chunk == 1

    def hear(self, given: Frame, dealer: bytes) -> bool:
        raise AssertionError("no dealer was asked")

    def sign(self) -> bytes:
        self.asked.append("sign")
        return bytes(64)

    def confirm(self, signatures: Sequence[bytes]) -> None:
        self.asked.append(tuple(signatures))


TOTAL = [m.Part(frame("total", number)) for number in range(2)]


def play(*said: m.CoordinatorMessage) -> tuple[list[Any], Aggregation, Others]:
    """One exchange. Args: said: by the coordinator. Returns: the node's words, and its parts."""
    sent: list[Any] = []
    aggregation = Aggregation()
    script = iter(said)

    async def receive() -> m.CoordinatorMessage:
        return next(script)

    async def send(message: m.NodeMessage) -> None:
        sent.append(message)

    async def scenario() -> Others:
        run = run_of(idle_site(), "coordinator", receive, send)
        run.stream.proposed = grid_study()
        others = Others(run)
        try:
            await add_up(run, others, bytes(32), aggregation)
        finally:
            others.end(is_good=False)
        return others

    return sent, aggregation, asyncio.run(scenario())


def test_a_vector_goes_up_and_the_total_is_confirmed():
    sent, aggregation, others = play(*TOTAL, m.TotalConfirmed((b"one", b"two")))
    assert [type(each) for each in sent] == [m.Part, m.Part, m.TotalSigned]
    assert aggregation.asked == [0, 1, "sign", (b"one", b"two")]
    size = frame("total", 0).wire_bytes + frame("total", 1).wire_bytes
    assert [(each.step, each.bytes) for each in others.links.bytes_online_by_round] == [
        ("histogram", size),
        ("total", size),
    ]
    assert others.links.rounds_used == 1


@pytest.mark.parametrize(
    "said",
    [
        [m.Release()],
        [TOTAL[0], m.TotalConfirmed(())],
        [*TOTAL, m.Release()],
        [*TOTAL, TOTAL[1]],
    ],
)
def test_another_message_than_the_one_that_is_due_names_the_coordinator(said):
    with pytest.raises(RemoteProtocolError, match="was due") as refusal:
        play(*said)
    assert refusal.value.culprit == "coordinator"
