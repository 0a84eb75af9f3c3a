"""Each process is lost before or after each of its messages: who is named, and what is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from tests.dialogues.house import NODES, House
from tests.dialogues.network import Said
from tests.dialogues.scripts import MESSAGES, house_for
from tests.dialogues.talk import Scene, study_of
from umpc.errors import PeerLost, PeerUnavailable, StudyAborted
from umpc.study.report import Report

LAST = ("released", "answer", "heap", "node_seed")
"""After these words a process may be missed by nobody."""
TURNS = 5
"""Turns of the event loop after which a message has been read."""
ORDERS = ("propose", "agree", "begin", "evaluate", "release")
ANSWERS = ("accepted", "opened", "prepared", "ready", "released")
FRAMES = ("hello", "masked_fields", "open 1")
OF_MASKED = [
    *(("coordinator", "south", name) for name in ORDERS),
    *(("north", "coordinator", name) for name in ANSWERS),
    ("north", "dealer", "deal"),
    ("dealer", "south", "node_seed"),
    *(("north", "south", name) for name in FRAMES),
    *(("south", "north", name) for name in FRAMES),
]
"""One message of each kind of a study with tables, with its sender and its receiver."""


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


def is_lost(house: House, kind: str, sender: str, receiver: str, name: str, after: bool) -> None:
    """Check who is named, and what is on disk, where a process is lost; then run once more."""
    label = f"{kind}: {sender} > {receiver}: {name} {after}"
    scene = Scene(house, study_of(kind, *NODES[:2], name=label))
    lost_at(house, sender, receiver, name, after=after)
    result = scene.run()
    if isinstance(result, Report):
        assert after and name in LAST, "else it is missed"
        return
    # a process that ends before another one has called it is not there for that one
    is_uncalled = after and sender.startswith("shuffler") and isinstance(result, PeerUnavailable)
    assert isinstance(result, PeerLost) or is_uncalled, repr(result)
    if sender == "coordinator":
        found = [error for error in scene.errors.values() if error is not None]
        assert all(isinstance(error, PeerLost | StudyAborted) for error in found), found
        assert all(error.culprit == "coordinator" for error in found)
    else:
        assert result.culprit == sender
    scene.check_said()
    scene.run_again()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("link", OF_MASKED, ids=" ".join)
def test_a_process_is_lost_at_each_of_its_messages(house, link, after):
    is_lost(house, "tables", *link, after)


@pytest.mark.parametrize("line", [line for line in MESSAGES if line.number == 1], ids=str)
def test_a_process_is_lost_at_any_message_of_any_study(request, line):
    after = bool(MESSAGES.index(line) % 2)
    house = house_for(request, line.kind)
    is_lost(house, line.kind, line.sender, line.receiver, line.name, after)
