"""One bit of a message of a verified grid is flipped, between whole processes: who is named.

Nothing is charged, and the study runs again. Without the check that refuses the lie, the liar is
not named in that way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tests.dialogues.house import NODES, House
from tests.dialogues.network import Said
from tests.dialogues.talk import Scene, study_of
from tests.dialogues.test_lies import flipped, told
from umpc.errors import RemoteProtocolError, UmpcError
from umpc.study.report import Report
from umpc.testing import CHECKS, without

TABLE, STATEMENT, PROOF = "a table is signed", "a statement is signed", "a proof is as signed"
ANSWER = "the dealer signed its answer"
LIES = {
    "north > coordinator: histogram": TABLE,
    "north > coordinator: list": TABLE,
    "north > coordinator: opening": TABLE,
    "north > coordinator: inverses": STATEMENT,
    "north > coordinator: proof": STATEMENT,
    "north > coordinator: statement": STATEMENT,
    "north > coordinator: total_signed": PROOF,
    "coordinator > south: list": TABLE,
    "coordinator > south: opening": TABLE,
    "coordinator > south: inverses": PROOF,
    "coordinator > south: proof": PROOF,
    "coordinator > south: total_confirmed": PROOF,
    "coordinator > dealer: asks": STATEMENT,
    "dealer > coordinator: answer": ANSWER,
    "dealer > south: answer": ANSWER,
}
"""A message whose sender lies, and the check that refuses it."""


def lie_of(link: str) -> Callable[[Said], Iterable[bytes]]:
    """Flip a bit of what the message says; of a question, one of a statement."""

    def question(said: Said) -> list[bytes]:
        first, *others = said.message.statements
        said.message.statements[:] = [first[:-1] + bytes([first[-1] ^ 1]), *others]
        return [said.other(said.message)]

    return question if link.endswith("asks") else lambda said: [flipped(said)]


def lied(house: House, link: str) -> tuple[Scene, Report | UmpcError]:
    """A study of three nodes in which one message is another one."""
    scene = Scene(house, study_of("verified grid", *NODES[:3], name=link))
    house.network.at(*told(link), lie_of(link))
    result = scene.run()
    scene.check_said()
    return scene, result


def is_named(result: Report | UmpcError, link: str) -> bool:
    """Whether a study ended with the words of the check and the name of the liar."""
    words, (sender, _, _) = CHECKS[LIES[link]][0], told(link)
    is_refused = isinstance(result, RemoteProtocolError) and words in result.message
    return is_refused and result.culprit == sender


@pytest.mark.parametrize("link", LIES)
def test_a_liar_is_named_and_nothing_is_charged_for_it(house, link):
    scene, result = lied(house, link)
    assert is_named(result, link), repr(result)
    assert isinstance(scene.run_again(), Report)


@pytest.mark.parametrize("link", LIES)
def test_power_without_its_check_the_lie_is_not_refused_so(house, link):
    # evidence that proves nothing would end some of them, and name nobody
    with without(LIES[link]), without("the evidence proves the lie"):
        _, result = lied(house, link)
    assert not is_named(result, link)
