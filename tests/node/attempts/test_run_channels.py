"""From which chains a run makes channels for the next study, and when it makes none.

docs/decisions/0087-one-chain-of-channels.md.
"""

from __future__ import annotations

import asyncio
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from umpc.node.attempts import run_channels
from umpc.node.attempts.attempt_runner import AttemptRunner
from umpc.node.attempts.next_channels import Chain, KeptChannel

NODES = range(4)


class Mesh:
    """Node's side of a garbled study of four nodes, in which all pairs of nodes share edges."""

    def __init__(self, index: int):
        self.index = index
        self.peers = self.channel_peers = tuple(each for each in NODES if each != index)
        self.attempt = SimpleNamespace(id=bytes(32))

    def channel(self, peer: int) -> Any:
        return f"channel {peer}"

    def take_up(self, peer: int, channel: Any) -> None: ...


def link_to(peer: int, chain: Chain | None = None) -> Any:
    kept = KeptChannel(f"node-{peer}", bytes(32), None, chain or Chain(0.0))
    return SimpleNamespace(
        peer=f"node-{peer}", channel=kept, close=lambda **_: None, bytes_sent=0, is_awaited=False
    )


def runner_of(mesh: Mesh, links: dict[int, Any], channels: Any = None) -> AttemptRunner:
    site: Any = SimpleNamespace(name=f"node-{mesh.index}", channels=channels, workers=None)
    runner = AttemptRunner(site, tell=site)
    runner._side = SimpleNamespace(mesh=mesh)  # type: ignore[assignment]
    runner.links.made = links
    return runner


def test_a_prepared_run_goes_on_with_the_chain_of_its_preparation():
    """Its links are new, so it does not follow from them where its channels come from."""
    mesh = Mesh(0)
    channels: Any = SimpleNamespace(now=lambda: 50.0, drop=lambda _: None)
    preparation = runner_of(mesh, {2: link_to(2, chain=Chain(5.0, 7))}, channels)
    parked = preparation.park(Fraction(0))
    preparation.ended_well = preparation._has_met = True
    assert not preparation._makes_channels()
    new = link_to(2)
    new.channel = None

    async def resumed() -> AttemptRunner:
        runner = runner_of(mesh, {2: new}, channels)
        mesh.attempt.size = 1
        mesh.attempt.tree_hash = lambda: None
        runner.links.has_begun = True
        await runner.resume(parked, SimpleNamespace(seconds_per_step=5))  # type: ignore[arg-type]
        return runner

    runner = asyncio.run(resumed())
    (ended,) = runner.channels.ended(runner.site, runner.side.mesh)  # type: ignore[arg-type]
    assert ended.chain == Chain(5.0, 8)


@pytest.mark.parametrize("made", [True, False])
def test_the_last_message_of_a_set_up_is_not_overtaken_by_the_end_of_the_call(made, monkeypatch):
    """A cancelled call drops what its peer has not read. A failure drops all channels at once."""
    done: list[Any] = []

    class Link:
        peer, channel, bytes_sent = "node-2", None, 0

        async def finish(self) -> None:
            done.append("finished")

        def close(self) -> None:
            done.append("closed")

        async def ended(self) -> None: ...

    async def make_channels(_channels: Any, _ended: Any, _compute: Any, close: Any):
        await close(made)

    async def scenario() -> None:
        tasks: list[Any] = []
        channels: Any = SimpleNamespace(
            now=lambda: 0.0,
            make=lambda peers, making: tasks.append(making),
            drop=lambda peers: done.append(peers),
        )
        runner = runner_of(Mesh(0), {2: Link()}, channels)
        runner.ended_well = runner._has_met = True
        runner.end()
        await tasks[0]

    monkeypatch.setattr(run_channels, "make_channels", make_channels)
    asyncio.run(scenario())
    assert done == (["finished", "closed"] if made else ["closed", ["node-2"]])


@pytest.mark.parametrize("lacks", ["ended_well", "_has_met"])
def test_a_run_that_failed_makes_no_channel_and_drops_those_to_its_peers(lacks):
    """A failed check gives no second try; before the set-up there is nothing to make one from."""
    dropped: list[Any] = []
    channels: Any = SimpleNamespace(now=lambda: 0.0, drop=dropped.append)
    runner = runner_of(Mesh(0), {2: link_to(2)}, channels)
    runner.ended_well = runner._has_met = True
    setattr(runner, lacks, False)
    runner.end()
    assert dropped == ([["node-2"]] if lacks == "ended_well" else [])
