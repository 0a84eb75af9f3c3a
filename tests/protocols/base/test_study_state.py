"""umpc.protocols.base.coordinator: what becomes of a study that nodes know already.

Every combination of answers of three nodes, with two attempts: shares of two attempts are never
asked for, and nothing that somebody may have charged for is dropped.
"""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.protocols import coordinator_of
from tests.support.studies import make_members, make_study
from umpc.errors import AlreadyReleased, LocalProtocolError
from umpc.protocols.base.coordinator import StudyState
from umpc.study import messages as m

STUDY = make_study(nodes=3)
MEMBERS = make_members(STUDY, [4, 5, 6], "standing", None)[0]
A, B = bytes([1]) * 32, bytes([2]) * 32
NODES = range(3)
KINDS = ("accepted", "held A", "held B", "released A", "released B")


def answer(kind: str, node: int) -> m.Accepted | m.Held | m.Released:
    attempt = A if kind.endswith("A") else B
    match kind.split()[0]:
        case "accepted":
            return m.Accepted(STUDY.hash, MEMBERS[node])
        case "held":
            return m.Held(attempt, MEMBERS[node].records)
        case _:
            return m.Released(attempt, b"", MEMBERS[node].records)


def expected(kinds: tuple[str, ...]) -> StudyState | None:
    """The state by the words of docs/protocol.md; None for a refusal."""
    released = {kind for kind in kinds if kind.startswith("released")}
    finished = {kind[-1] for kind in kinds if kind != "accepted"}
    if all(kind.startswith("released") for kind in kinds):
        return StudyState.REPLAY
    if "accepted" not in kinds and len(finished) == 1:
        return StudyState.FINISH
    if released:
        return None
    return StudyState.DROP if finished else StudyState.ANEW


@pytest.mark.parametrize("kinds", list(product(KINDS, repeat=3)), ids=", ".join)
def test_every_combination_of_answers(kinds):
    side = coordinator_of(STUDY)
    answers = [answer(kind, node) for node, kind in zip(NODES, kinds, strict=True)]
    due = expected(kinds)
    if due is None:
        with pytest.raises(AlreadyReleased, match="not by all nodes") as caught:
            side.state(answers)
        released = [node for node in NODES if kinds[node].startswith("released")]
        assert caught.value.culprit not in [f"node-{node}" for node in released]
        for node in released:
            assert f"node-{node}" in caught.value.message
        return
    assert side.state(answers) is due
    if due is StudyState.DROP:
        with pytest.raises(LocalProtocolError, match="dropped before"):
            side.agree(answers)
    else:
        assert (side.agree(answers) is None) == (due is not StudyState.ANEW)


def test_the_node_that_lost_its_part_is_named():
    side = coordinator_of(STUDY)
    answers = [answer("released A", 0), answer("held A", 1), answer("accepted", 2)]
    with pytest.raises(AlreadyReleased, match="node-2 no longer has its part") as caught:
        side.state(answers)
    assert caught.value.culprit == "node-2" and "charged at node-0" in caught.value.message
