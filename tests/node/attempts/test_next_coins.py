"""Coins that are tossed after one study for the next one: exact, used once, for the same plan only.

docs/decisions/0083-fewer-milliseconds-a-study.md.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.support.garbled import without_points
from umpc.crypto.prg import SEED_BYTES
from umpc.crypto.ring import RINGS
from umpc.crypto.rounds import Message, run_in_memory
from umpc.mpc.masked.committee_coins import CoinToss
from umpc.mpc.transfers.channel_set_up import open_receiver, open_sender
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender, fresh_delta
from umpc.mpc.transfers.toss_plan import FEW_ANDS, TossPlan
from umpc.node.attempts import next_coins
from umpc.node.attempts.next_coins import bytes_of_toss, toss_ahead
from umpc.study.frames import Frame, Key

NAME = bytes(range(32))
NEVER, SURELY = 1, (1 << 64) - 1
"""Thresholds of coins that come up with probability 2^-64, and 1 - 2^-64."""


def plan_of(*thresholds: int, members: int = 2) -> TossPlan:
    weights = tuple(10**place for place in range(len(thresholds)))
    return TossPlan(members, RINGS[0], (CoinToss(thresholds, weights),))


PLAN = plan_of(NEVER, SURELY, NEVER, SURELY)


class Line:
    """A link in memory. `peer` is the name of the other end, which is `other`."""

    other: Line

    def __init__(self, peer: str):
        self.peer = peer
        self.sent: list[Frame] = []
        self._frames: dict[Key, asyncio.Future[Message]] = {}

    def _due(self, key: Key) -> asyncio.Future[Message]:
        return self._frames.setdefault(key, asyncio.get_running_loop().create_future())

    async def send(self, frame: Frame) -> None:
        self.sent.append(frame)
        self.other._due(frame.key).set_result(frame.message)

    async def receive(self, key: Key) -> Message:
        return await self._due(key)


def ends() -> tuple[CorrelatedSender, CorrelatedReceiver]:
    seed = bytes(range(32))
    sender = open_sender(seed, fresh_delta(seed), NAME, "south")
    with without_points():
        made, _ = run_in_memory([sender, open_receiver(seed, NAME, "north")])
    return made[0], made[1]


def tossed(sender, receiver, plan: TossPlan = PLAN) -> tuple[list[list[int]], list[Line]]:
    """Both ends' shares of a toss, and their links."""

    async def compute(function, *arguments):
        return function(*arguments)

    async def scenario():
        north, south = Line("south"), Line("north")
        north.other, south.other = south, north
        shares = await asyncio.gather(
            toss_ahead(north, sender, "north", plan, (0, 1), compute),
            toss_ahead(south, receiver, "south", plan, (0, 1), compute),
        )
        return list(shares), [north, south]

    return asyncio.run(scenario())


def test_both_ends_share_the_sum_of_the_coins():
    shares, _ = tossed(*ends())
    assert (shares[0][0] + shares[1][0]) % (1 << RINGS[0].bits) == 10 + 1000
    others = [tossed(*ends())[0] for _ in range(16)]
    assert any(each != shares for each in others), "a share tells nothing"


def test_each_toss_draws_its_numbers_anew_and_in_frames_of_its_own(monkeypatch):
    drawn: list[bytes] = []

    def draw(count: int) -> bytes:
        drawn.append(bytes([len(drawn)]) * count)
        return drawn[-1]

    monkeypatch.setattr(next_coins.os, "urandom", draw)
    shares, lines = tossed(*ends())
    assert len(drawn) == 2 and all(len(each) == SEED_BYTES for each in drawn)
    again, _ = tossed(*ends())
    assert shares[0] != again[0]
    for line in lines:
        keys = [frame.key for frame in line.sent]
        assert len(keys) == len(set(keys))
        assert min(key[-1] for key in keys) >= 2, "0 and 1 are those of set-ups"


def test_the_toss_uses_a_fork_and_leaves_the_channel_to_the_study():
    sender, receiver = ends()
    fresh, _ = ends()
    tossed(sender, receiver)
    assert sender.session == fresh.session == NAME
    assert sender._batch == fresh._batch and receiver._batch == 0


def test_what_is_sent_is_what_a_toss_inside_the_study_sends():
    _, lines = tossed(*ends())
    for number, line in enumerate(lines):
        payloads = sum(len(frame.payload) for frame in line.sent)
        shapes = PLAN.shapes(number, 1 - number)
        assert payloads == sum(len(shape.payload) for shape in shapes if shape.width)
        assert bytes_of_toss(PLAN, number) > payloads


@pytest.mark.parametrize(
    ("plan", "expected"),
    [(PLAN, True), (plan_of(NEVER, members=3), False)],
)
def test_only_few_coins_of_two_members_are_tossed_ahead(plan, expected):
    assert plan.is_tossed_ahead == expected


def test_many_coins_are_tossed_in_their_study():
    many = plan_of(*[(1 << 64) - 3] * 100)
    assert many.work > FEW_ANDS and not many.is_tossed_ahead


def test_the_hash_of_a_toss_is_no_other_channels(monkeypatch):
    """Its Δ is the channel's, whose other forks also number their transfers from 0."""
    forks = []
    fork = CorrelatedSender.fork

    def spy(sender, *labels, session=b""):
        forks.append((labels, fork(sender, *labels, session=session)))
        return forks[-1][1]

    monkeypatch.setattr(CorrelatedSender, "fork", spy)
    for name in (NAME, bytes(32)):
        channel = CorrelatedSender.__new__(CorrelatedSender)
        channel.__dict__.update(ends()[0].__dict__, session=name)
        tossed(channel, ends()[1])
    (labels, first), (_, second) = forks
    assert labels[0] not in ("attempt", "next", "toss"), (
        "those of the study and of the next channel"
    )
    assert len({NAME, bytes(32), first.session, second.session}) == 4
