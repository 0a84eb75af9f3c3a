"""Each process is lost before or after each of its messages: who is named, and what is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from tests.dialogues.house import House
from tests.dialogues.network import Said
from tests.dialogues.talk import Scene, study_of
from umpc.errors import PeerLost, StudyAborted
from umpc.study.report import Report

TURNS = 5
"""Turns of the event loop after which a message has been read."""
OF_ALL = [
    *(("coordinator", "south", name) for name in ("propose", "agree", "begin", "evaluate", "release")),
    *(("north", "coordinator", name) for name in ("accepted", "opened", "prepared", "ready", "released")),
]
OF_MASKED = [
    *OF_ALL,
    ("north", "dealer", "deal"),
    ("dealer", "south", "node_seed"),
    *(("north", "south", name) for name in ("hello", "masked_fields", "open 1")),
    *(("south", "north", name) for name in ("hello", "masked_fields", "open 1")),
]


def lost_at(house: House, sender: str, receiver: str, name: str, *, after: bool) -> None:
    """Lose the sender of a message, which arrives or not."""

    def lose(said: Said) -> Iterable[bytes]:
        if not after:
            house.network.lose(sender)
            return []
        later(TURNS)
        return [said.data]

    def later(turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(later, turns - 1)
        else:
            house.network.lose(sender)

    house.network.at(sender, receiver, name, lose)


def is_lost(house: House, kind: str, nodes: int, link: tuple[str, str, str], *, after: bool) -> None:
    lost = link[0]
    scene = Scene(house, study_of(kind, *list(house.nodes)[:nodes], name=f"{kind} {link} {after}"))
    lost_at(house, *link, after=after)
    result = scene.run()
    if isinstance(result, Report):
        assert after and link[2] in ("released", "answer", "heap", "node_seed"), "else it is missed"
        return
    assert isinstance(result, PeerLost), repr(result)
    if lost == "coordinator":
        found = [error for error in scene.errors.values() if error is not None]
        assert all(isinstance(error, PeerLost | StudyAborted) for error in found), found
        assert all(error.culprit == "coordinator" for error in found)
    else:
        assert result.culprit == lost
    scene.check_said()
    scene.run_again()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("link", OF_MASKED, ids=" ".join)
def test_a_process_is_lost_at_each_of_its_messages(house, link, after):
    is_lost(house, "tables", 2, link, after=after)
