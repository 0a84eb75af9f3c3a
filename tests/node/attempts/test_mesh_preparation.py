"""umpc.node.attempts.attempt_runner: what a node does at the same time before the data."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from umpc.node.attempts.attempt_runner import AttemptRunner, MeshPreparation, RunParts
from umpc.node.attempts.peers import PeerLink, peer_stream


def preparation(runner: AttemptRunner, mesh: Any) -> MeshPreparation:
    run = runner.compute, runner.links, runner.material, runner.traffic, runner.channels
    return MeshPreparation(runner.site, RunParts(*run), runner._rounds_over(mesh, None), (), ())


def test_nodes_connect_while_the_dealers_seed_is_on_its_way_and_toss_after_it(monkeypatch):
    """The dealer here sends the seed only once the links are there."""
    done: list[str] = []

    async def scenario() -> None:
        runner = AttemptRunner(cast(Any, SimpleNamespace(workers=None)), tell=cast(Any, None))
        attempt = SimpleNamespace(
            needs_dealer=True,
            program=SimpleNamespace(window=None),
            tree_hash=lambda: None,
            chunks_of=lambda node: (),
            makes_ahead=False,
        )
        mesh = cast(Any, SimpleNamespace(attempt=attempt, index=0, peers=(), tosses_early=False))
        steps = preparation(runner, mesh)
        connected = asyncio.Event()

        async def connect(mesh: Any) -> None:
            connected.set()
            done.append("connected")

        async def seed(mesh: Any, ahead: bool) -> None:
            await connected.wait()
            done.append("seed")

        async def set_up(mesh: Any) -> None:
            done.append("set up")

        for name, step in (("_connect", connect), ("_take_seed", seed), ("_set_up", set_up)):
            monkeypatch.setattr(steps, name, step)
        try:
            async with asyncio.timeout(20):
                assert await steps.ready(ahead=False) == []
        finally:
            runner.close()

    asyncio.run(scenario())
    assert done == ["connected", "seed", "set up"]


@pytest.mark.parametrize("waits", [True, False])
def test_a_set_up_by_points_begins_while_the_nodes_connect(waits):
    """The peer here answers only once it has begun. With a channel that may wait, none begins."""
    begun: list[int] = []
    has_begun = asyncio.Event()

    class Mesh:
        index, peers, channel_peers = 0, (1,), (1,)
        attempt = SimpleNamespace(
            id=bytes(32),
            study=SimpleNamespace(nodes=[SimpleNamespace(name=name) for name in ("a", "b")]),
            program=SimpleNamespace(window=None),
            tree_hash=lambda: None,
            toss_plan=None,
        )

        def set_up(self, peer: int) -> Iterator[None]:
            begun.append(peer)
            return first_step()

        def channel(self, peer: int) -> Any: ...

        def take_up(self, peer: int, channel: Any) -> None:
            begun.append(-1)

        def toss(self) -> None: ...

    def first_step() -> Iterator[None]:
        loop.call_soon_threadsafe(has_begun.set)
        yield from ()

    async def dial(*_: Any) -> Any:
        link = PeerLink(peer_stream("b"))
        if waits:
            link.channel = cast(Any, SimpleNamespace(channel=None))
        else:
            await has_begun.wait()
        return link

    async def scenario() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        channels = SimpleNamespace(may_have=lambda peer: waits and peer == "b", drop=print)
        site = SimpleNamespace(dial=dial, channels=channels, workers=None)
        runner = AttemptRunner(cast(Any, site), tell=cast(Any, None))
        mesh = cast(Any, Mesh())
        runner.channels.count_set_up = cast(Any, lambda mesh: None)
        try:
            await preparation(runner, mesh)._meet(mesh)
        finally:
            runner.close()

    loop = cast(asyncio.AbstractEventLoop, None)
    asyncio.run(scenario())
    assert begun == ([-1] if waits else [1])
