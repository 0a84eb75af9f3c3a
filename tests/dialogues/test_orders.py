"""Each order in which messages may arrive, and each message late: the study ends as it should."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from itertools import permutations

import pytest

from tests.dialogues.house import NODES
from tests.dialogues.network import Pipe, Said
from tests.dialogues.scripts import DIALOGUES, LARGE, MESSAGES, NEW_CHANNEL, Line, house_for
from tests.dialogues.talk import SECONDS, Scene, check, study_of
from umpc.errors import UmpcError
from umpc.study.report import Report

LATE = 0.8 * SECONDS
"""Seconds by which a message is late, within the time of a step."""
PROCESSES = ("coordinator", "dealer", "north", "south")
OF_CHANNELS = ("ot_choice", "ot_offer", "ot_trees")
KINDS = sorted({line.kind for line in MESSAGES})


def ends_well(result: Report | UmpcError, scene: Scene, kind: str) -> None:
    """Check that a study ended with its whole dialogue, and the result that its records have."""
    assert isinstance(result, Report), repr(result)
    nodes = [node.name for node in scene.study.nodes]
    dialogue = {**DIALOGUES, **LARGE}[kind, len(nodes)].replace(NEW_CHANNEL, "")
    check(without_new_channel(scene.house.network.said), dialogue, nodes)


def without_new_channel(said: Sequence[Said]) -> list[Said]:
    """The part that is about the study itself: a channel for the next one may come too late."""
    links = [(each.sender, each.receiver, each.names) for each in said]
    return [
        each
        for place, each in enumerate(said)
        if each.names[0] not in OF_CHANNELS or links.index(links[place]) == place
    ]


@pytest.mark.parametrize("fast", list(permutations(PROCESSES)), ids=" ".join)
def test_whoever_is_faster_the_study_is_the_same(house, fast):
    scene = Scene(house, study_of("tables", *NODES[:2], name=f"fast {fast}", epsilon="1e6"))

    def choose(waiting: Sequence[Pipe]) -> Pipe:
        return min(waiting, key=lambda pipe: fast.index(pipe.sender))

    ends_well(scene.run(lambda: house.in_turns(choose)), scene, "tables")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_messages_that_arrive_in_any_order_make_the_same_study(request, kind, seed):
    house = house_for(request, kind)
    scene = Scene(house, study_of(kind, *NODES[:2], name=f"{kind} {seed}"))
    chance = random.Random(seed)
    ends_well(scene.run(lambda: house.in_turns(chance.choice)), scene, kind)


def test_a_node_that_does_not_check_waits_for_those_that_do(house):
    """Each of two nodes is late within its step, and the third one hears nothing meanwhile."""
    study = study_of("verified grid", *NODES[:3], name="two are late", max_colluding=1)
    scene = Scene(house, study)
    moments = [
        house.network.at(sender, "coordinator", name, hold=True)
        for sender, name in (("south", "proof"), ("north", "total_signed"))
    ]

    async def late() -> None:
        for moment in moments:
            await moment.came.wait()
            await asyncio.sleep(LATE)
            moment.release()

    assert isinstance(scene.run(late), Report)


@pytest.mark.parametrize("line", MESSAGES, ids=str)
def test_a_late_message_is_waited_for(request, line: Line):
    house = house_for(request, line.kind)
    scene = Scene(house, study_of(line.kind, *NODES[:2], name=str(line)))
    moment = house.network.at(line.sender, line.receiver, line.name, count=line.number, hold=True)

    async def late() -> None:
        await moment.came.wait()
        await asyncio.sleep(LATE)
        moment.release()

    ends_well(scene.run(late), scene, line.kind)
