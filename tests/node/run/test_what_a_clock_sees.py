"""The messages between two nodes, and their sizes, with and without a channel from before.

docs/protocol.md, "Channels made after a study": over a kept channel a study's messages are those
of any study without the set-up, and the greeting names the channel. Nothing else may differ, and
nothing may depend on the data: a network or a hub sees every size.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.protocols.u_mpc.test_garbled_node import GarbledRun
from tests.support.garbled import without_points
from tests.support.memory_links import Sent, in_place, linked
from tests.support.sessions import Run
from tests.support.studies import KENDALL
from umpc.crypto.prg import SEED_BYTES
from umpc.mpc.transfers.channels import chained_shapes
from umpc.mpc.transfers.message_shapes import TREES
from umpc.node.run.chunks import evaluate_chunks
from umpc.node.run.prepare import channel_name, ended_links, make_channels, standing_of
from umpc.node.run.rounds import Rounds, exchange_fields
from umpc.node.standing import Standing
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.messages import frame_of

NAMES = ("node-0", "node-1")
SET_UP = ("ot_offer", "ot_choice", TREES)
PIECES = {"x": ("0", "200"), "noise": "in_mpc"}
KINDS = {
    "garbled": lambda label: GarbledRun(label=label, **PIECES),
    "coins": lambda label: Run(label=label, kernels=KENDALL, edges="all", noise="in_mpc"),
}


async def study(run: Run, stores: list[Standing]) -> tuple[list[Sent], list[Sent]]:
    """Everything between the nodes of a study, and after it. stores: the nodes' kept channels."""
    links = linked(*NAMES)
    nodes = run.agree().begin().nodes
    if isinstance(run, GarbledRun):
        run.seed()
    first, second = (
        standing_of(store, node)[1 - own]
        for own, (store, node) in enumerate(zip(stores, nodes, strict=True))
    )
    links[0].channel = await first.offer()
    if links[0].channel is not None:
        links[1].channel = await second.accept(links[0].channel.name)
        assert links[1].channel is not None
    rounds = [
        Rounds(node, {1 - own: link}, None, in_place, in_place, in_silence)
        for own, (node, link) in enumerate(zip(nodes, links, strict=True))
    ]
    await asyncio.gather(*(one_node(each, isinstance(run, GarbledRun)) for each in rounds))
    during = [*links[0].sent, *links[1].sent]
    await asyncio.gather(
        *(
            make_channels(
                ended_links(store, node, {1 - own: link}),
                in_place,
                in_silence,
            )
            for own, (store, node, link) in enumerate(zip(stores, nodes, links, strict=True))
        )
    )
    after = [*links[0].sent, *links[1].sent]
    return during, [each for each in after if each not in during]


async def one_node(rounds: Rounds, has_edges: bool) -> None:
    """A node's rounds with its peer, up to the release."""
    (peer,) = rounds.links
    await rounds.set_up(peer)
    await rounds.toss()
    if has_edges:
        rounds.begin_step("evaluate")
        await exchange_fields(rounds, [peer])
        chunks = list(rounds.session.attempt.chunks_of(rounds.session.index))
        await evaluate_chunks(rounds, [each for each in chunks if not each.noise])


async def in_silence(*_: object) -> None: ...


def three_studies(kind: str) -> list[tuple[list[Sent], list[Sent]]]:
    """A first study, and two over kept channels with other records of the same numbers."""

    async def scenario() -> list[tuple[list[Sent], list[Sent]]]:
        stores = [Standing() for _ in NAMES]
        return [await study(KINDS[kind](f"study {n}"), stores) for n in range(3)]

    with without_points():
        return asyncio.run(scenario())


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_channel_shows_in_the_set_up_alone(kind):
    first, second, third = three_studies(kind)
    assert [each.step for each in first[0]].count(TREES) == 1
    assert second[0] == [each for each in first[0] if each.step not in SET_UP]
    assert third[0] == second[0], "no size depends on records, or on how long a chain is"


@pytest.mark.parametrize("kind", KINDS)
def test_after_each_study_come_the_three_messages_of_a_set_up(kind):
    owners = (0, 1)
    due = [
        Sent(NAMES[not sends], m.step, m.round, 1, frame_of(m, owners, 1).wire_bytes)
        for sends, m in chained_shapes()
    ]
    for _, after in three_studies(kind):
        assert sorted(after) == sorted(due)


def test_the_greeting_is_longer_by_a_name_of_one_length():
    plain = pb.PeerHello(attempt=bytes(range(32))).SerializeToString()
    sizes = set()
    for attempt in range(20):
        name = channel_name(bytes([attempt]) * SEED_BYTES, *NAMES)
        sizes.add(len(pb.PeerHello(attempt=bytes(range(32)), channel=name).SerializeToString()))
    assert sizes == {len(plain) + 34}


@pytest.mark.parametrize(
    "mutate",
    [
        lambda sent: sent[:-1],
        lambda sent: [*sent, sent[0]],
        lambda sent: [*sent[:-1], sent[-1]._replace(size=sent[-1].size + 1)],
    ],
    ids=["one less", "one more", "one longer"],
)
def test_power_one_message_or_one_byte_more_is_noticed(mutate):
    first, second, _ = three_studies("coins")
    assert mutate(second[0]) != [each for each in first[0] if each.step not in SET_UP]
