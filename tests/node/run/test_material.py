"""umpc.node.run.material: the dealer is dialled early, and asked with signed facts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.garbled import NO_DEALER
from tests.support.node_talks import run_of
from tests.support.sessions import Run
from tests.support.sites import idle_site, unused
from umpc.errors import LocalProtocolError, PeerUnavailable
from umpc.node.run.material import DealerCall, Material
from umpc.protocols.base.node import NodeSide


def dealt_run(dial: Any, nodes: int = 2, **changes: Any) -> tuple[Material, NodeSide]:
    """The material of a run whose site dials the dealer so, and its node's side, which agreed."""
    run = run_of(idle_site(dial_helper=dial), "coordinator", unused, unused)
    return Material(run), Run((3,) * nodes, **changes).agree().nodes[0]


@pytest.mark.parametrize(
    ("nodes", "changes", "is_due"),
    [(2, {}, True), (2, {"dealer": None}, False), (2, NO_DEALER, False), (1, {}, False)],
    ids=["dealt", "no dealer", "transfers", "one node"],
)
def test_the_dealer_is_dialled_before_e_is_known_only_where_the_edges_surely_need_it(
    nodes, changes, is_due
):
    """It is dialled while the members agree, and asked with facts of which none follows from E."""
    said: list[str] = []

    async def dial(call: DealerCall) -> None:
        said.append(f"dial {call.stream.peer}")

    material, side = dealt_run(dial, nodes, **changes)

    async def scenario() -> None:
        material.dial(side)
        await asyncio.sleep(0)
        assert said == ["dial dealer"] * is_due
        if is_due:  # nothing was connected here, so the request does not leave
            with pytest.raises(LocalProtocolError, match="before it was connected"):
                await material.ask(side, ())
        else:
            await material.ask(side, ())
        material.close(keep_spool=False)

    asyncio.run(scenario())


def test_a_dealer_that_cannot_be_reached_is_told_of_when_it_is_asked():
    async def dial(call: DealerCall) -> None:
        raise PeerUnavailable("no dealer", culprit="dealer")

    material, side = dealt_run(dial)

    async def scenario() -> None:
        material.dial(side)
        await asyncio.sleep(0)
        with pytest.raises(PeerUnavailable, match="no dealer"):
            await material.ask(side, ())
        material.close(keep_spool=False)

    asyncio.run(scenario())


def test_a_run_that_ends_before_the_dealer_is_asked_ends_the_dialling():
    ended: list[str] = []

    async def dial(call: DealerCall) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(call.stream.peer)

    material, side = dealt_run(dial)

    async def scenario() -> None:
        material.dial(side)
        await asyncio.sleep(0)
        material.close(keep_spool=False)
        await asyncio.sleep(0)
        assert ended == ["dealer"]

    asyncio.run(scenario())
