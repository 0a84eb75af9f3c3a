"""Channels of transfers that wait for the next study: used once, at the right end, for some time.

docs/decisions/0087-one-chain-of-channels.md.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.support.garbled import without_points
from umpc.crypto.rounds import run_in_memory
from umpc.mpc.transfers.channel_set_up import open_receiver, open_sender
from umpc.mpc.transfers.correlated_ot import fresh_delta
from umpc.node.attempts.next_channels import (
    CHAIN_SECONDS,
    KEPT_AT_MOST,
    KEPT_SECONDS,
    LONGEST,
    Chain,
    ChannelsOfKind,
    KeptChannel,
    NextChannels,
)

NAME = bytes(32)


@pytest.fixture(scope="module")
def ends():
    """Both ends of a channel, the unchecked and then the checked one."""
    seed = bytes(range(32))
    kinds = []
    for checked in (False, True):
        sender = open_sender(seed, fresh_delta(seed), NAME, "south", checked=checked)
        receiver = open_receiver(seed, NAME, "north", checked=checked)
        with without_points():
            made, _ = run_in_memory([sender, receiver])
        kinds.append(made)
    return kinds


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def kept(peer: str, channel, name: bytes = NAME, since: float = 0.0) -> KeptChannel:
    return KeptChannel(peer, name, channel, Chain(0.0), since)


def test_each_end_of_a_channel_is_handed_out_once(ends):
    north, south = NextChannels(Clock()), NextChannels(Clock())
    north.keep(kept("south", ends[0][0]))
    south.keep(kept("north", ends[0][1]))
    unchecked = {"checked": False}
    assert north.offer("west", **unchecked) is None
    assert north.accept("south", NAME, **unchecked) is None, "this end sends: it is offered"
    taken = north.offer("south", **unchecked)
    assert taken is not None and (taken.name, taken.channel) == (NAME, ends[0][0])
    assert north.offer("south", **unchecked) is None
    assert south.offer("north", **unchecked) is None
    assert south.accept("west", NAME, **unchecked) is None, "another node's channel"
    assert south.accept("north", bytes(31), **unchecked) is None, "another channel"
    taken = south.accept("north", NAME, **unchecked)
    assert taken is not None and taken.channel is ends[0][1]
    assert south.accept("north", NAME, **unchecked) is None
    assert len(north) == len(south) == 0


def test_a_run_gets_channels_of_its_kind_only(ends):
    channels = NextChannels(Clock())
    for sender, _ in ends:
        channels.keep(kept("south", sender))

    async def offers() -> list:
        kinds = [ChannelsOfKind(channels, checked) for checked in (True, True, False)]
        return [await kind.offer("south") for kind in kinds]

    first, second, third = asyncio.run(offers())
    assert first.channel is ends[1][0] and second is None and third.channel is ends[0][0]


def test_a_channel_waits_for_some_time_and_one_too_many_ends_the_oldest(ends):
    clock = Clock()
    channels = NextChannels(clock)
    for number in range(KEPT_AT_MOST + 1):
        channels.keep(kept(f"node-{number}", ends[0][0]))
    assert len(channels) == KEPT_AT_MOST and channels.offer("node-0", checked=False) is None
    clock.now = KEPT_SECONDS
    assert channels.offer("node-1", checked=False) is not None
    clock.now = KEPT_SECONDS + 1
    assert channels.offer("node-2", checked=False) is None and len(channels) == 0


def test_channels_to_a_peer_of_a_failed_run_are_dropped_and_no_others(ends):
    channels = NextChannels(Clock())
    for peer in ("south", "south", "west"):
        channels.keep(kept(peer, ends[0][0]))
    channels.drop(["south", "east"])
    assert len(channels) == 1 and channels.offer("west", checked=False) is not None


def test_a_chain_has_an_end():
    chain = Chain(born=5.0)
    assert not chain.ends(CHAIN_SECONDS + 4.0) and chain.ends(CHAIN_SECONDS + 5.0)
    for _ in range(LONGEST - 1):
        assert not chain.ends(6.0)
        chain = chain.longer
    assert chain.ends(6.0) and chain.born == 5.0


def test_secrets_are_not_shown(ends):
    assert "channel=" not in repr(kept("south", ends[0][0]))


def test_the_next_study_waits_until_a_channel_to_its_peer_is_made(ends):
    async def scenario() -> None:
        channels = NextChannels()
        going_on = asyncio.Event()

        async def making() -> None:
            await going_on.wait()
            channels.keep(kept("south", ends[0][0], since=channels.now()))

        channels.make(["south"], making())
        assert channels.may_have("south") and not channels.may_have("west")
        waiting = asyncio.create_task(ChannelsOfKind(channels, False).offer("south"))
        assert await ChannelsOfKind(channels, False).offer("west") is None
        await asyncio.sleep(0)
        assert not waiting.done()
        going_on.set()
        assert await waiting is not None
        assert not channels.may_have("south")
        channels.keep(kept("south", ends[0][0], since=channels.now()))
        assert channels.may_have("south")

    asyncio.run(scenario())
