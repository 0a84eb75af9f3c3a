"""umpc.coordinator.client: for whom a run waits, and for how long."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.studies import STUDY, make_study
from umpc.coordinator import client
from umpc.coordinator.client import Returning
from umpc.coordinator.links import Losses
from umpc.errors import PeerLost, PeerUnavailable, PolicyRefused, StepTimeout

FIRST = STUDY.nodes[0]
LOST = PeerLost("it went away", culprit=FIRST.name, step="release")


def test_only_a_node_that_was_lost_after_it_was_ready_is_awaited():
    study = make_study(nodes=5, may_miss=2)
    name = study.nodes[3].name
    losses = Losses(study)
    for error in (PeerLost("gone", culprit=name), PeerUnavailable("gone", culprit=name)):
        assert losses.returning(error) is None, "before the release it is left out"
        losses.is_settled = True
        assert losses.returning(error) == study.nodes[3]
        losses.is_settled = False
    losses.is_settled = True
    for error in (
        StepTimeout("slow", culprit=name),
        PolicyRefused("no", culprit=name),
        PeerLost("gone", culprit="dealer"),
        PeerLost("somebody went away"),
    ):
        assert losses.returning(error) is None


def test_all_losses_of_a_run_share_one_time_and_then_the_loss_is_shown(limit):
    limit(client, PAUSE_SECONDS=0.0)
    given: list[float] = []

    async def reach(node, seconds):
        assert node == FIRST
        given.append(seconds)
        if len(given) == 2:
            raise PeerUnavailable("a hub does not expect it yet", culprit=node.name)

    async def nowhere(node, seconds):
        raise PeerUnavailable("nobody is there", culprit=node.name)

    async def scenario():
        patience = Returning(reach, 30.0)
        await patience.wait_for(FIRST, LOST)
        await patience.wait_for(FIRST, LOST)
        assert len(given) == 3, "it is called again where it is not there at once"
        assert 29 < given[0] <= 30.0 and given == sorted(given, reverse=True)
        with pytest.raises(PeerLost):
            await Returning(reach, 0.0).wait_for(FIRST, LOST)
        assert len(given) == 3, "without patience nobody is called"
        with pytest.raises(PeerLost) as caught:
            await Returning(nowhere, 0.05).wait_for(FIRST, LOST)
        assert caught.value is LOST

    asyncio.run(scenario())
