"""Nodes at one hub whose run has ended: one makes channels for the next study, its peer does not.

A session of a hub ends without a word, so the node that makes one would wait for its peer, and the
next study of both would wait for that (`NextChannels.settled`).
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_making_channels import NAME, ends, made_by

from tests.support.hub_wire import Wire, run
from umpc.node.attempts import making_channels
from umpc.node.attempts.attempt_runner import AttemptRunner
from umpc.node.attempts.making_channels import EndedLink
from umpc.node.attempts.next_channels import Chain, NextChannels

__all__ = ["ends"]


class Mesh:
    """The part of the later node, which has a channel to the earlier one, and to another one."""

    index, checks_channels = 1, False
    attempt = SimpleNamespace(id=bytes(32))
    channel_peers = peers = (0, 2)

    def channel(self, peer: int) -> Any: ...

    def take_up(self, peer: int, channel: Any) -> None: ...


def ended_run(link: Any) -> AttemptRunner:
    """Return the run of the later node, which ended well. Its links make no channels."""
    site: Any = SimpleNamespace(name="south", channels=None)
    runner = AttemptRunner(site, tell=site)
    runner._side = cast(Any, SimpleNamespace(mesh=Mesh()))
    runner.links.made[0] = link
    runner._has_met = runner.ended_well = True
    return runner


def test_a_node_that_makes_no_channel_says_so_to_the_one_that_waits_for_it(ends, monkeypatch):
    """It has more peers, or its chain is at its end."""
    monkeypatch.setattr(making_channels, "MAKE_SECONDS", 3600.0)

    async def scenario(wire: Wire) -> None:
        north, south = wire.links()
        ended = EndedLink(north, NAME, (0, 1), ends[0], Chain(0.0))
        making = asyncio.create_task(made_by(NextChannels(lambda: 0.0), [ended]))
        while not north.is_awaited:
            await asyncio.sleep(0.001)
        ended_run(south).end()
        wire.exchange()
        assert not await making

    run(scenario)


@pytest.mark.parametrize("why", ["it was made", "it is parked", "it failed"])
def test_nothing_is_said_where_nobody_waits(why):
    async def scenario(wire: Wire) -> None:
        _, south = wire.links()
        runner = ended_run(south)
        if why != "it was made":
            runner._is_parked = why == "it is parked"
            runner.ended_well = why != "it failed"  # then the coordinator ends all others
            runner.end()
        else:
            await runner._close_later(made=True)
        wire.exchange()
        assert wire.sent == []

    run(scenario)


def test_a_channel_that_could_not_be_made_is_waited_for_no_longer():
    async def scenario(wire: Wire) -> None:
        north, south = wire.links()
        await ended_run(south)._close_later(made=False)
        wire.exchange()
        assert north.session is not None and north.session.failure is not None

    run(scenario)


def test_the_later_node_says_nothing_to_one_that_comes_later_still():
    """That one speaks first if it makes a channel, and hears the refusal of what it sends."""
    made = AttemptRunner(cast(Any, None), tell=cast(Any, None)).channels
    assert made.waiting_for(cast(Any, Mesh())) == [0] and made.waiting_for(None) == []
