"""Which channels and coins of former studies a run uses, and of which chains it makes others.

docs/decisions/0083-fewer-milliseconds-a-study.md, 0087-one-chain-of-channels.md.
"""

from __future__ import annotations

import asyncio
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from tests.node.attempts.test_next_coins import NEVER, PLAN, plan_of
from umpc.node.attempts import run_channels
from umpc.node.attempts.attempt_runner import AttemptRunner
from umpc.node.attempts.next_channels import Chain, KeptChannel, TossedCoins
from umpc.node.attempts.next_coins import bytes_of_toss

COMMITTEE = (0, 2)
"""The committee of a garbled study of four nodes, in which all pairs of nodes share edges."""
NODES = range(4)


class Mesh:
    """Node's side of that study."""

    checks_channels = False

    def __init__(self, index: int, plan=PLAN):
        self.index = index
        self.peers = self.channel_peers = tuple(each for each in NODES if each != index)
        self.taken: list[list[int]] = []
        self.attempt = SimpleNamespace(
            id=bytes(32), toss_plan=plan, committee=COMMITTEE, tosses=self.tosses
        )

    def tosses(self, *nodes: int) -> bool:
        return self.attempt.toss_plan is not None and set(nodes) <= set(COMMITTEE)

    def channel(self, peer: int) -> Any:
        return f"channel {peer}"

    def take_up(self, peer: int, channel: Any) -> None: ...

    def take_coins(self, shares: list[int]) -> None:
        self.taken.append(shares)


def link_to(peer: int, coins: TossedCoins | None = None, chain: Chain | None = None) -> Any:
    kept = KeptChannel(f"node-{peer}", bytes(32), None, chain or Chain(0.0), 0.0, coins)
    return SimpleNamespace(
        peer=f"node-{peer}", channel=kept, close=lambda **_: None, bytes_sent=0, is_awaited=False
    )


def runner_of(mesh: Mesh, links: dict[int, Any], channels: Any = None) -> AttemptRunner:
    site: Any = SimpleNamespace(name=f"node-{mesh.index}", channels=channels, workers=None)
    runner = AttemptRunner(site, tell=site)
    runner._side = SimpleNamespace(mesh=mesh)  # type: ignore[assignment]
    runner.links.made = links
    return runner


@pytest.mark.parametrize("index", NODES)
def test_only_coins_of_the_committees_own_channel_are_used(index):
    """The others' channels may have coins from a study in which these two were the committee."""
    mesh = Mesh(index)
    links = {peer: link_to(peer, TossedCoins(PLAN, [peer])) for peer in mesh.channel_peers}
    runner = runner_of(mesh, links)
    is_member = index in COMMITTEE
    assert runner.channels.take_coins(mesh) == is_member  # type: ignore[arg-type]
    assert mesh.taken == ([[sum(COMMITTEE) - index]] if is_member else [])
    due = bytes_of_toss(PLAN, COMMITTEE.index(index)) if is_member else 0
    assert runner.traffic.bytes_offline == due


@pytest.mark.parametrize("plan", [None, plan_of(NEVER)])
def test_coins_of_another_plan_are_not_used(plan):
    mesh = Mesh(0, plan)
    runner = runner_of(mesh, {2: link_to(2, TossedCoins(PLAN, [7]))})
    assert not runner.channels.take_coins(mesh) and mesh.taken == []  # type: ignore[arg-type]
    assert runner.traffic.bytes_offline == 0


def test_a_channel_without_coins_gives_none():
    mesh = Mesh(0)
    assert not runner_of(mesh, {2: link_to(2)}).channels.take_coins(mesh)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("owners", "plan", "expected"),
    [((0, 2), PLAN, True), ((0, 1), PLAN, False), ((1, 3), PLAN, False), ((0, 2), None, False)],
)
def test_only_the_two_members_of_a_committee_toss_for_the_next_study(
    owners, plan, expected, monkeypatch
):
    async def toss_ahead(*_: Any) -> list[int]:
        return [3]

    monkeypatch.setattr(run_channels, "toss_ahead", toss_ahead)
    mesh: Any = Mesh(owners[0], plan)
    runner = runner_of(mesh, {})
    ended: Any = SimpleNamespace(link=None, owners=owners)
    made: Any = SimpleNamespace(session=bytes(32))
    found = asyncio.run(runner.channels.toss_ahead(runner.site, mesh, ended, made))
    assert found == (TossedCoins(PLAN, [3]) if expected else None)


def test_shares_are_not_shown():
    assert "77" not in repr(link_to(2, TossedCoins(PLAN, [77])).channel)
    assert "77" not in repr(TossedCoins(PLAN, [77]))


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
def test_the_last_message_of_a_toss_is_not_overtaken_by_the_end_of_the_call(made, monkeypatch):
    """A cancelled call drops what its peer has not read. A failure drops all channels at once."""
    done: list[Any] = []

    class Link:
        peer, channel, bytes_sent = "node-2", None, 0

        async def finish(self) -> None:
            done.append("finished")

        def close(self, *, keep: bool) -> None:
            done.append(("closed", keep))

        async def ended(self) -> None: ...

    async def make_channels(_channels: Any, _ended: Any, _compute: Any, close: Any, _toss: Any):
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
    assert done == (["finished", ("closed", True)] if made else [("closed", False), ["node-2"]])


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
