"""Channels of transfers that wait for the next study: used once, at the right end, for some time.

docs/decisions/0080-a-small-studys-steps.md.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.support.garbled import without_points
from umpc.crypto.rounds import run_in_memory
from umpc.errors import PeerLost
from umpc.mpc.transfers.correlated_ot import (
    CorrelatedReceiver,
    CorrelatedSender,
    fresh_delta,
    open_receiver,
    open_sender,
)
from umpc.node.attempts import next_channels
from umpc.node.attempts.next_channels import KEPT_AT_MOST, KEPT_SECONDS, NextChannels, channel_name

NAME = channel_name(bytes(32), "north", "south")


@pytest.fixture(scope="module")
def ends() -> tuple[CorrelatedSender, CorrelatedReceiver]:
    seed = bytes(range(32))
    sender = open_sender(seed, fresh_delta(seed), NAME, "south")
    with without_points():
        made, _ = run_in_memory([sender, open_receiver(seed, NAME, "north")])
    return made[0], made[1]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_each_end_of_a_channel_is_handed_out_once(ends):
    north, south = NextChannels(Clock()), NextChannels(Clock())
    north.keep("south", NAME, ends[0])
    south.keep("north", NAME, ends[1])
    assert north.offer("west") is None
    assert north.accept("south", NAME) is None, "this end sends, so it is offered by the dialler"
    assert north.offer("south") == (NAME, ends[0]) and north.offer("south") is None
    assert south.offer("north") is None
    assert south.accept("west", NAME) is None, "another node's channel"
    assert south.accept("north", bytes(32)) is None, "another channel"
    assert south.accept("north", NAME) is ends[1] and south.accept("north", NAME) is None
    assert len(north) == len(south) == 0


def test_a_channel_waits_for_some_time_and_one_too_many_ends_the_oldest(ends):
    clock = Clock()
    kept = NextChannels(clock)
    for number in range(KEPT_AT_MOST + 1):
        kept.keep(f"node-{number}", NAME, ends[0])
    assert len(kept) == KEPT_AT_MOST and kept.offer("node-0") is None
    clock.now = KEPT_SECONDS
    assert kept.offer("node-1") is not None
    clock.now = KEPT_SECONDS + 1
    assert kept.offer("node-2") is None and len(kept) == 0


@pytest.mark.parametrize("fails", [False, True])
def test_links_end_after_the_channel_is_made_and_are_kept_only_if_it_was(ends, fails):
    closed = []

    async def scenario() -> NextChannels:
        channels = NextChannels()
        going_on = asyncio.Event()

        async def drive(link, protocol):
            protocol.close()
            await going_on.wait()
            if fails:
                raise PeerLost("south went away", culprit="south")
            return ends[0]

        async def close(made: bool) -> None:
            closed.append(made)

        channels.make("north", bytes(32), {"south": (None, True)}, drive, close)
        waiting = asyncio.create_task(channels.settled("south"))
        await channels.settled("west")
        await asyncio.sleep(0)
        assert not waiting.done() and not closed
        going_on.set()
        await waiting
        assert closed == [not fails]
        return channels

    channels = asyncio.run(scenario())
    assert [kept.name for kept in channels._kept] == ([] if fails else [NAME])


def test_both_ends_have_one_name_and_every_attempt_another():
    names = {channel_name(bytes([attempt]) * 32, "north", "south") for attempt in range(3)}
    assert len(names) == 3 and channel_name(bytes(32), "south", "north") in names


def test_an_opening_draws_its_seeds_anew(monkeypatch):
    drawn = []
    monkeypatch.setattr(next_channels, "fresh_delta", drawn.append)
    monkeypatch.setattr(next_channels, "open_sender", lambda seed, *rest: drawn.append(seed))
    for _ in range(2):
        next_channels._opening(NAME, "south", sends=True)
    assert len(set(drawn)) == 4
