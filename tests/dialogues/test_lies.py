"""Each process lies at each of its messages: who is named, and that nothing is charged for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

from tests.dialogues.house import NODES, House
from tests.dialogues.network import Said
from tests.dialogues.scripts import MESSAGES, house_for
from tests.dialogues.talk import Scene, study_of
from umpc.errors import (
    AlreadyReleased,
    EncodingError,
    ImpossibleResult,
    PeerLost,
    RemoteProtocolError,
    StepTimeout,
    UmpcError,
)
from umpc.study.report import Report
from umpc.testing import lying, without

NAMED = """
                              | garbage          | twice             | flipped           | former
coordinator > south: propose  | unreadable south | broke coordinator | unreadable south  |
coordinator > south: agree    | unreadable south | broke coordinator | broke coordinator | broke coordinator
coordinator > south: begin    | unreadable south | broke coordinator | broke coordinator | broke coordinator
coordinator > south: evaluate | unreadable south | broke coordinator | broke coordinator | broke coordinator
coordinator > south: release  | unreadable south | well              |                   | well
north > coordinator: accepted | lost north       | broke north       | broke north       | broke north
north > coordinator: opened   | lost north       | broke north       | broke north       | broke north
north > coordinator: prepared | lost north       | broke north       | broke north       | broke north
north > coordinator: ready    | lost north       | broke north       |                   | well
north > coordinator: released | lost north       | well              | released north    | released north
north > dealer: deal          | unreadable north | well              | unreadable north  | late
dealer > south: node_seed     | lost dealer      | broke dealer      | spoiled           | spoiled
north > south: hello          | unreadable south | broke north       | late              | late
north > south: masked_fields  | broke north      | well              | spoiled           | spoiled
north > south: open 1         | broke north      | well              | spoiled           | spoiled
south > north: hello          | lost south       | broke south       | well              | well
south > north: masked_fields  | lost south       | well              | spoiled           | spoiled
south > north: open 1         | lost south       | well              | spoiled           | spoiled
"""  # noqa: E501
"""How a study with tables ends where a message is replaced, and who is named.

*Spoiled* is a result of other values, or none that the records can give: in the grade `honest`
nodes and dealer follow the protocol. A *former* message is that of another study. A node whose
caller's bytes do not decode refuses the call itself, so it is the one that is named.
"""
CLASSES: dict[str, tuple[type, ...]] = {
    "unreadable": (EncodingError,),
    "broke": (RemoteProtocolError,),
    "lost": (PeerLost,),
    "late": (StepTimeout,),
    "released": (AlreadyReleased,),
    "well": (Report,),
    "spoiled": (Report, ImpossibleResult),
}
Lie = Callable[[Said], Iterable[bytes]]
LIES: dict[str, Lie] = {
    "garbage": lambda said: [b"\xff" * 9],
    "twice": lambda said: [said.data, said.data],
    "flipped": lambda said: [flipped(said)],
}


def flipped(said: Said) -> bytes:
    """The message with one bit of its first bytes flipped."""
    assert flip(said.message)
    return said.other(said.message)


def flip(message: Any) -> bool:
    """Flip a bit of the first bytes in a message. Returns: whether it has any."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_BYTES:
            first = value[0] if field.is_repeated else value
            other = bytes([first[0] ^ 1]) + first[1:]
            if field.is_repeated:
                value[0] = other
            else:
                setattr(message, field.name, other)
            return True
        if field.type == field.TYPE_MESSAGE:
            return any(flip(each) for each in (value if field.is_repeated else [value]))
    return False


def cases(*lies: str) -> list[tuple[str, str, str]]:
    """Message, lie and outcome, as the table has them."""
    head, *rows = [[cell.strip() for cell in row.split("|")] for row in NAMED.split("\n") if row]
    found = [(row[0], lie, row[head.index(lie)]) for row in rows for lie in lies]
    return [case for case in found if case[2]]


def told(link: str) -> tuple[str, str, str]:
    """Sender, receiver and name of a message."""
    ends, _, name = link.partition(": ")
    sender, _, receiver = ends.partition(" > ")
    return sender, receiver, name


def lied(house: House, link: str, lie: str) -> tuple[Scene, Report | UmpcError]:
    """Run a study in which a message is replaced. Args: lie: one of LIES, or "former"."""
    ends = told(link)
    if lie != "former":
        return replaced(house, link, LIES[lie])
    before = Scene(house, study_of("tables", *NODES[:2], name=f"former {link}"))
    assert isinstance(before.run(), Report)
    messages = [(each.sender, each.receiver, each.names[0]) for each in house.network.said]
    former = house.network.said[messages.index(ends)].data
    house.mend()
    return replaced(house, link, lambda _: [former])


def replaced(house: House, link: str, do: Lie) -> tuple[Scene, Report | UmpcError]:
    """Run a study with another message in place of one, and check what is on disk then."""
    scene = Scene(house, study_of("tables", *NODES[:2], name=link))
    house.network.at(*told(link), do)
    result = scene.run()
    scene.check_said()
    return scene, result


def is_named(scene: Scene, result: Report | UmpcError, outcome: str) -> None:
    kind, _, culprit = outcome.partition(" ")
    assert isinstance(result, CLASSES[kind]), repr(result)
    if culprit:
        assert isinstance(result, UmpcError) and result.culprit == culprit
    if kind not in ("well", "spoiled"):
        assert isinstance(scene.run_again(), Report)


@pytest.mark.parametrize(("link", "lie", "outcome"), cases("twice", "flipped"))
def test_a_liar_is_named_and_nothing_is_charged_for_it(house, link, lie, outcome):
    is_named(*lied(house, link, lie), outcome)


@pytest.mark.parametrize(("link", "lie", "outcome"), cases("garbage", "former"))
def test_so_it_is_with_bytes_that_are_no_message_and_messages_of_another_study(
    house, link, lie, outcome
):
    is_named(*lied(house, link, lie), outcome)


@pytest.mark.parametrize("line", MESSAGES, ids=str)
def test_a_lie_in_any_study_ends_it_with_one_of_both_ends_named(request, line):
    lie = ("garbage", "missing", "twice")[MESSAGES.index(line) % 3]
    house = house_for(request, line.kind)
    scene = Scene(house, study_of(line.kind, *NODES[:2], name=f"{line} {lie}"))
    do = LIES.get(lie, lambda said: [])
    house.network.at(line.sender, line.receiver, line.name, do, count=line.number)
    result = scene.run()
    scene.check_said()
    if isinstance(result, UmpcError):
        assert result.culprit in (line.sender, line.receiver), repr(result)
        assert isinstance(scene.run_again(), Report)


# --- the net has no holes: a check that is taken out is missed by a dialogue


def other_signature(said: Said) -> list[bytes]:
    """The openings with another signature of the members."""
    first, *others = said.message.begin.signatures
    said.message.begin.signatures[:] = [others[0], *others]
    assert first != others[0]
    return [said.other(said.message)]


def unsigned(said: Said) -> list[bytes]:
    """A node's answer whose signature has one bit flipped."""
    answer = getattr(said.message, said.names[0])
    answer = answer.member if said.names == ("accepted",) else answer
    answer.signature = bytes([answer.signature[0] ^ 1]) + answer.signature[1:]
    return [said.other(said.message)]


def takes_all(honest: Any, *given: Any) -> None:
    """A coordinator that does not look at what nodes prepared or signed."""


async def keeps_the_other_way(
    honest: Any, link: Any, error: Any, *, keep: bool, **how: Any
) -> None:
    await honest(link, error, keep=not keep, **how)


HOLES: dict[str, tuple[Callable[[], Any], str, Lie, str]] = {
    "a member is signed": (
        partial(without, "a member is signed"),
        "coordinator > south: agree",
        LIES["flipped"],
        "broke coordinator",
    ),
    "all signed the members": (
        partial(without, "all signed the members"),
        "coordinator > south: begin",
        other_signature,
        "broke coordinator",
    ),
    "an opening fits at a node": (
        partial(without, "an opening fits"),
        "coordinator > south: begin",
        LIES["flipped"],
        "broke coordinator",
    ),
    "an opening fits at the coordinator": (
        partial(without, "an opening fits"),
        "north > coordinator: opened",
        LIES["flipped"],
        "broke north",
    ),
    "all signed the attempt": (
        partial(without, "all signed the attempt"),
        "coordinator > south: evaluate",
        LIES["flipped"],
        "broke coordinator",
    ),
    "north signed its member": (
        partial(without, "a member is signed"),
        "north > coordinator: accepted",
        unsigned,
        "broke north",
    ),
    "north signed all members": (
        partial(without, "all signed the members"),
        "north > coordinator: opened",
        unsigned,
        "broke north",
    ),
    "north signed the attempt": (
        partial(without, "all signed the attempt"),
        "north > coordinator: prepared",
        unsigned,
        "broke north",
    ),
    "the same attempt is prepared": (
        partial(lying, "coordinator", check_prepared=takes_all),
        "north > coordinator: prepared",
        LIES["flipped"],
        "broke north",
    ),
    "what is held is dropped": (
        partial(lying, "coordinator", abort=keeps_the_other_way),
        "north > coordinator: ready",
        LIES["garbage"],
        "lost north",
    ),
}
"""Each check that is taken out, or rule that is broken, and the lie that a dialogue then misses."""


@pytest.mark.parametrize("hole", HOLES)
def test_a_dialogue_fails_where_a_check_is_taken_out(house, hole):
    broken, link, lie, outcome = HOLES[hole]
    is_named(*replaced(house, link, lie), outcome)
    house.mend()
    with pytest.raises(AssertionError), broken():
        is_named(*replaced(house, link, lie), outcome)
