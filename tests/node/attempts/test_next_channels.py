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
    KeptChannel,
    NextChannels,
)

NAME = bytes(32)


@pytest.fixture(scope="module")
def ends():
    """Both ends of a channel."""
    seed = bytes(range(32))
    sender = open_sender(seed, fresh_delta(seed), NAME, "south")
    with without_points():
        made, _ = run_in_memory([sender, open_receiver(seed, NAME, "north")])
    return made


def offered(channels: NextChannels, peer: str) -> KeptChannel | None:
    return asyncio.run(channels.offer(peer))


def accepted(channels: NextChannels, peer: str, name: bytes) -> KeptChannel | None:
    return asyncio.run(channels.accept(peer, name))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def kept(peer: str, channel, name: bytes = NAME, since: float = 0.0) -> KeptChannel:
    return KeptChannel(peer, name, channel, Chain(0.0), since)


def test_each_end_of_a_channel_is_handed_out_once(ends):
    north, south = NextChannels(Clock()), NextChannels(Clock())
    north.keep(kept("south", ends[0]))
    south.keep(kept("north", ends[1]))
    assert offered(north, "west") is None
    assert accepted(north, "south", NAME) is None, "this end sends: it is offered"
    taken = offered(north, "south")
    assert taken is not None and (taken.name, taken.channel) == (NAME, ends[0])
    assert offered(north, "south") is None
    assert offered(south, "north") is None
    assert accepted(south, "west", NAME) is None, "another node's channel"
    assert accepted(south, "north", bytes(31)) is None, "another channel"
    taken = accepted(south, "north", NAME)
    assert taken is not None and taken.channel is ends[1]
    assert accepted(south, "north", NAME) is None
    assert len(north) == len(south) == 0


def test_a_channel_waits_for_some_time_and_one_too_many_ends_the_oldest(ends):
    clock = Clock()
    channels = NextChannels(clock)
    for number in range(KEPT_AT_MOST + 1):
        channels.keep(kept(f"node-{number}", ends[0]))
    assert len(channels) == KEPT_AT_MOST and offered(channels, "node-0") is None
    clock.now = KEPT_SECONDS
    assert offered(channels, "node-1") is not None
    clock.now = KEPT_SECONDS + 1
    assert offered(channels, "node-2") is None and len(channels) == 0


def test_channels_to_a_peer_of_a_failed_run_are_dropped_and_no_others(ends):
    channels = NextChannels(Clock())
    for peer in ("south", "south", "west"):
        channels.keep(kept(peer, ends[0]))
    channels.drop(["south", "east"])
    assert len(channels) == 1 and offered(channels, "west") is not None


def test_a_chain_has_an_end():
    chain = Chain(born=5.0)
    assert not chain.ends(CHAIN_SECONDS + 4.0) and chain.ends(CHAIN_SECONDS + 5.0)
    for _ in range(LONGEST - 1):
        assert not chain.ends(6.0)
        chain = chain.longer
    assert chain.ends(6.0) and chain.born == 5.0


def test_secrets_are_not_shown(ends):
    assert "channel=" not in repr(kept("south", ends[0]))


def test_the_next_study_waits_until_a_channel_to_its_peer_is_made(ends):
    async def scenario() -> None:
        channels = NextChannels()
        going_on = asyncio.Event()

        async def making() -> None:
            await going_on.wait()
            channels.keep(kept("south", ends[0], since=channels.now()))

        channels.make(["south"], making())
        assert channels.may_have("south") and not channels.may_have("west")
        waiting = asyncio.create_task(channels.offer("south"))
        assert await channels.offer("west") is None
        await asyncio.sleep(0)
        assert not waiting.done()
        going_on.set()
        assert await waiting is not None
        assert not channels.may_have("south")
        channels.keep(kept("south", ends[0], since=channels.now()))
        assert channels.may_have("south")

    asyncio.run(scenario())
