"""Two nodes keep a channel for their next study after a good run, and none after a bad one.

docs/protocol.md, "Channels made after a study".
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialogues.house import NODES, House
from tests.dialogues.network import Said
from tests.dialogues.talk import study_of
from tests.dialogues.test_lies import flipped
from umpc.coordinator.conductor import Preparation
from umpc.errors import UmpcError
from umpc.study.document import Study
from umpc.study.report import Report


@pytest.fixture
def first(house: House) -> House:
    """A house in which no two nodes know each other, and then one study has ended well."""
    house.mend()
    assert sets_up(house, tossed("first"))
    return house


def tossed(name: str) -> Study:
    """A study whose nodes toss coins over a channel of transfers."""
    return study_of("committee", *NODES[:2], name=name)


def ended(house: House, work: Any, end: type) -> None:
    """Let a run end in this way, and all be quiet. Channels that are kept do not end meanwhile."""

    async def all_quiet() -> None:
        assert isinstance(await work, end)
        await house.clock.quiet()

    house.network.said.clear()
    house.run(all_quiet())


def unreadable(said: Said) -> list[bytes]:
    """A message that cannot be read in place of another one."""
    return [b"\xff" * len(said.data)]


def sets_up(house: House, study: Study) -> bool:
    """Run a study. Returns: whether its nodes set up a channel, so they had kept none."""
    ended(house, house.study(study), Report)
    names = [name for said in house.network.said for name in said.names]
    greeted = len(names) - names[::-1].index("hello")
    return "ot_offer" in names[greeted : names.index("ready")]


def test_the_next_study_uses_the_channel_that_was_made_after_the_last_one(first):
    assert not sets_up(first, tossed("second")) and not sets_up(first, tossed("third"))


def test_after_a_preparation_its_run_makes_the_channel(first):
    """It would hold up the run, which may come at once."""
    study = tossed("ahead")
    ended(first, first.prepare(study), Preparation)
    assert sets_up(first, tossed("between"))
    assert not sets_up(first, study) and not sets_up(first, tossed("after"))


def test_a_run_that_ends_before_its_nodes_meet_keeps_the_channel(first):
    first.network.at("north", "coordinator", "opened", lambda said: [flipped(said)])
    ended(first, first.study(tossed("not met")), UmpcError)
    assert not sets_up(first, tossed("after"))


@pytest.mark.parametrize("name", ["toss 1", "ready"])
def test_a_run_that_fails_once_its_nodes_have_met_ends_their_channels(first, name):
    """A failed check gives no second try."""
    first.network.at("north", "*", name, unreadable)
    ended(first, first.study(tossed(f"failed at {name}")), UmpcError)
    assert sets_up(first, tossed("after"))


def test_a_node_that_starts_again_keeps_no_channel(first):
    first.restart("south")
    first.mend()
    assert sets_up(first, tossed("after"))
