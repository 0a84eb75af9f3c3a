"""Two nodes that ended a study make a channel for the next one over the link that they have.

docs/protocol.md, "Channels made after a study".
"""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.support.garbled import NO_DEALER, without_points
from tests.support.memory_links import MemoryLink, in_place, linked
from tests.support.sessions import Run
from tests.support.transfers import bits_of, correlated
from umpc.crypto.rounds import run_in_memory
from umpc.errors import EncodingError, PeerLost, RemoteProtocolError, UmpcError
from umpc.mpc.transfers.channel_set_up import open_receiver, open_sender
from umpc.mpc.transfers.channels import MOST_PEERS
from umpc.mpc.transfers.correlated_ot import fresh_delta
from umpc.node.run.prepare import EndedLink, channel_name, ended_links, make_channels, next_channel
from umpc.node.standing import LONGEST, Chain, KeptChannel, Standing, StandingWith
from umpc.testing import lying

ATTEMPT = bytes(32)
NAME = channel_name(ATTEMPT, "north", "south")
CERTIFICATES = {"north": b"of north", "south": b"of south"}


@pytest.fixture
def ends():
    seed = bytes(range(32))
    sender = open_sender(seed, fresh_delta(seed), b"study", "south")
    with without_points():
        made, _ = run_in_memory([sender, open_receiver(seed, b"study", "north")])
    return made


def standing_with(standing: Standing, peer: str) -> StandingWith:
    (own,) = set(CERTIFICATES) - {peer}
    return StandingWith(standing, peer, (CERTIFICATES[own], CERTIFICATES[peer]))


def ended_link(link, end, standing: Standing, chain: Chain) -> EndedLink:
    return EndedLink(link, standing_with(standing, link.peer), NAME, (0, 1), end, chain)


async def made_by(ended: list[EndedLink]) -> bool:
    """Whether all channels were made."""
    closed = []

    async def close(made: bool) -> None:
        closed.append(made)

    await make_channels(ended, in_place, close)
    (made,) = closed
    return made


def test_both_nodes_keep_one_end_each_of_a_correlated_channel(ends):
    async def scenario() -> list[Standing]:
        stores = [Standing() for _ in ends]
        chain = Chain(5.0, 7)
        parties = [
            made_by([ended_link(link, end, store, chain)])
            for store, link, end in zip(stores, linked("north", "south"), ends, strict=True)
        ]
        assert await asyncio.gather(*parties) == [True, True]
        offered = await standing_with(stores[0], "south").offer()
        accepted = await standing_with(stores[1], "north").accept(NAME)
        assert offered.name == NAME and offered.chain == accepted.chain == chain
        choices = bits_of("made", 100)
        t, message = accepted.channel.extend(choices)
        q = offered.channel.extend(message, 100)
        assert correlated(q, t, choices, offered.channel.delta)
        assert (offered.channel.delta != ends[0].delta).any()
        return stores

    asyncio.run(scenario())


def test_a_failure_is_told_to_the_end_of_the_links_and_to_nobody_else(ends):
    async def scenario() -> None:
        store = Standing()
        failure = PeerLost("south went away", culprit="south")
        link, _ = linked("north", "south", failure=failure)
        ended = [ended_link(link, ends[0], store, Chain(0.0))]
        assert not await made_by(ended) and len(store) == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "violation",
    [
        EncodingError("a message of 3 bytes came, 4 were due"),
        RemoteProtocolError("south sent a wrong check", culprit="south"),
    ],
)
def test_a_peer_that_breaks_the_protocol_is_named_in_the_log(ends, violation, caplog):
    async def scenario(failure: UmpcError) -> None:
        link, _ = linked("north", "south", failure=failure)
        ended = [ended_link(link, ends[0], Standing(), Chain(0.0))]
        assert not await made_by(ended)

    asyncio.run(scenario(PeerLost("south went away", culprit="south")))
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    asyncio.run(scenario(violation))
    (told,) = (record for record in caplog.records if record.levelno >= logging.WARNING)
    assert "no channel to south is kept" in told.getMessage()
    assert violation.message in told.getMessage()


@pytest.fixture(scope="module")
def side():
    """Node 2 of a study that has ended, with a channel to every other node."""
    run = Run((1,) * (4 + MOST_PEERS), **NO_DEALER).agree().begin()
    for number, node in enumerate(run.nodes):
        node.receive_seed(bytes([number]) * 32)
    return run.set_up().nodes[2]


def found(side, peers, kept=None, keeps=True):
    """The channels that are to be made. Args: kept: the channel that each link took."""
    links = {peer: MemoryLink(f"node-{peer}", channel=kept) for peer in peers}
    return ended_links(Standing(lambda: 10.0) if keeps else None, side, links)


def test_links_over_which_a_channel_is_made(side):
    made = found(side, [0, 1, 3])
    assert [each.owners for each in made] == [(0, 2), (1, 2), (2, 3)]
    assert all(
        each.channel is side.channel(peer) for each, peer in zip(made, [0, 1, 3], strict=True)
    )
    assert made[0].name == channel_name(side.attempt.id, "node-2", "node-0")
    assert {each.chain for each in made} == {Chain(10.0)}
    of = [member.certificate for member in side.attempt.members]
    assert made[1].standing.certificates == (of[2], of[1])
    assert len(found(side, range(3, 3 + MOST_PEERS))) == MOST_PEERS
    assert found(side, range(3, 4 + MOST_PEERS)) == [] == found(side, [0], keeps=False)


def test_a_chain_grows_by_a_study_and_ends(side):
    kept = KeptChannel("node-0", NAME, None, Chain(5.0, 3), ())
    assert found(side, [0], kept)[0].chain == Chain(5.0, 4)
    assert found(side, [0], KeptChannel("node-0", NAME, None, Chain(5.0, LONGEST - 1), ())) == []
    assert found(side, [0], KeptChannel("node-0", NAME, None, Chain(-3600.0), ())) == []


def test_both_ends_have_one_name_and_every_attempt_another():
    names = {channel_name(bytes([attempt]) * 32, "north", "south") for attempt in range(3)}
    assert len(names) == 3 and channel_name(bytes(32), "south", "north") in names


def test_a_channel_draws_its_seeds_anew(ends):
    drawn = []

    def chain(honest, channel, seed, *rest):
        drawn.append(seed)

    delta = {"fresh_delta": lambda honest, seed: drawn.append(seed)}
    with lying("node", chain_sender=chain, chain_receiver=chain, **delta):
        for end in (*ends, *ends):
            next_channel(end, NAME, "peer")
    assert len(drawn) == len(set(drawn)) == 6
