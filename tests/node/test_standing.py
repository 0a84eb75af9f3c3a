"""Standing with other nodes: each channel serves once, at its end, for some time, with its keys.

docs/protocol.md, "Channels made after a study".
"""

from __future__ import annotations

import asyncio

import pytest

from tests.support.garbled import without_points
from umpc.crypto.rounds import run_in_memory
from umpc.mpc.transfers.channel_set_up import open_receiver, open_sender
from umpc.mpc.transfers.correlated_ot import fresh_delta
from umpc.node.standing import (
    CHAIN_SECONDS,
    KEPT_AT_MOST,
    KEPT_SECONDS,
    LONGEST,
    Chain,
    KeptChannel,
    Standing,
    StandingWith,
)

NAME = bytes(32)
CERTIFICATES = (b"own", b"peer's")


@pytest.fixture(scope="module")
def ends():
    """Both ends of a channel."""
    seed = bytes(range(32))
    sender = open_sender(seed, fresh_delta(seed), NAME, "south")
    with without_points():
        made, _ = run_in_memory([sender, open_receiver(seed, NAME, "north")])
    return made


def offered(standing: Standing, peer: str, certificates=CERTIFICATES) -> KeptChannel | None:
    return asyncio.run(StandingWith(standing, peer, certificates).offer())


def accepted(
    standing: Standing, peer: str, name: bytes, certificates=CERTIFICATES
) -> KeptChannel | None:
    return asyncio.run(StandingWith(standing, peer, certificates).accept(name))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def kept(peer: str, channel, name: bytes = NAME, since: float = 0.0) -> KeptChannel:
    return KeptChannel(peer, name, channel, Chain(0.0), CERTIFICATES, since)


def test_each_end_of_a_channel_is_handed_out_once(ends):
    north, south = Standing(Clock()), Standing(Clock())
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
    standing = Standing(clock)
    for number in range(KEPT_AT_MOST + 1):
        standing.keep(kept(f"node-{number}", ends[0]))
    assert len(standing) == KEPT_AT_MOST and offered(standing, "node-0") is None
    clock.now = KEPT_SECONDS
    assert offered(standing, "node-1") is not None
    clock.now = KEPT_SECONDS + 1
    assert offered(standing, "node-2") is None and len(standing) == 0


def test_channels_to_a_peer_of_a_failed_run_are_dropped_and_no_others(ends):
    standing = Standing(Clock())
    for peer in ("south", "south", "west"):
        standing.keep(kept(peer, ends[0]))
    standing.end(["south", "east"])
    assert len(standing) == 1 and offered(standing, "west") is not None


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
        standing = Standing()
        south, west = (StandingWith(standing, peer, CERTIFICATES) for peer in ("south", "west"))
        going_on = asyncio.Event()

        async def making() -> None:
            await going_on.wait()
            south.keep(NAME, ends[0], Chain(0.0))

        standing.make(["south"], making())
        waiting = asyncio.create_task(south.offer())
        assert await west.offer() is None
        await asyncio.sleep(0)
        assert not waiting.done()
        going_on.set()
        assert await waiting is not None
        assert await south.offer() is None

    asyncio.run(scenario())


@pytest.mark.parametrize("renewed", [(b"own renewed", b"peer's"), (b"own", b"peer's renewed")])
def test_a_renewed_certificate_of_either_node_ends_the_standing(ends, renewed):
    """A stolen key that was exchanged tells nothing of what follows, nor does a later one."""
    standing = Standing(Clock())
    for peer in ("south", "west"):
        standing.keep(kept(peer, ends[0]))
    assert asyncio.run(StandingWith(standing, "south", renewed).offer()) is None
    assert len(standing) == 1, "it is gone, and that with another node stays"
    standing.keep(kept("south", ends[0]))
    assert offered(standing, "south", renewed) is None and len(standing) == 1
    assert offered(standing, "south") is None, "the former key does not bring it back"
    assert offered(standing, "west") is not None
    standing.keep(kept("north", ends[1]))
    assert accepted(standing, "north", NAME, renewed) is None and len(standing) == 0


def test_nothing_is_kept_once_the_process_ends(ends):
    async def scenario() -> None:
        standing = Standing()
        south = StandingWith(standing, "south", CERTIFICATES)
        south.keep(NAME, ends[0], Chain(0.0))
        standing.close()
        assert len(standing) == 0
        south.keep(NAME, ends[0], Chain(0.0))  # it was still being made
        assert len(standing) == 0

    asyncio.run(scenario())
