"""umpc.protocols.base.coordinator: a run goes on at once where all nodes have prepared it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.protocols import coordinator_of
from tests.support.signed import opened, prepared
from tests.support.studies import make_members, make_study
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.study import messages as m
from umpc.study.attempt import Attempt

STUDY = make_study(nodes=3)
MEMBERS, OPENINGS = make_members(STUDY, [40, 50, 60], "resume", None)
ATTEMPT = Attempt(STUDY, MEMBERS, OPENINGS)


def answers() -> list[m.Accepted]:
    waiting = zip(opened(STUDY, MEMBERS, OPENINGS), prepared(ATTEMPT), strict=True)
    rows = zip(MEMBERS, waiting, strict=True)
    return [m.Accepted(STUDY.hash, member, m.WaitingAttempt(*each)) for member, each in rows]


def changed(node: int, **changes) -> list[m.Accepted]:
    """All answers, where one node's has changed."""
    found = answers()
    found[node] = replace(found[node], **changes)
    return found


def waiting(**changes) -> m.WaitingAttempt:
    """Change the attempt that waits at the second node."""
    known = answers()[1].waiting
    assert known is not None
    parts = {"opened": known.opened, "prepared": known.prepared}
    return m.WaitingAttempt(
        **{name: replace(part, **changes.get(name, {})) for name, part in parts.items()}
    )


def test_where_every_node_has_the_attempt_the_order_to_evaluate_comes_next():
    side, found = coordinator_of(STUDY), answers()
    ahead = [each.waiting.prepared for each in found if each.waiting is not None]
    assert side.resume(found) == ahead
    assert side.attempt.id == ATTEMPT.id
    assert side.evaluate().signatures == tuple(each.signature for each in ahead)


@pytest.mark.parametrize(
    "found",
    [
        changed(1, waiting=None),
        changed(1, waiting=waiting(prepared={"attempt": bytes(32)})),
        [m.Held(bytes(32), 40), *answers()[1:]],
    ],
    ids=["one node has none", "one node has another", "one node holds a share"],
)
def test_else_all_nodes_agree_again(found):
    side = coordinator_of(STUDY)
    assert side.resume(found) is None
    with pytest.raises(LocalProtocolError):
        side.evaluate()


def test_members_of_another_preparation_are_agreed_on_again():
    other = make_members(STUDY, [40, 50, 60], "another", None)[0]
    known = opened(STUDY, MEMBERS, OPENINGS)[1]
    later = m.WaitingAttempt(known, prepared(ATTEMPT)[1])
    with pytest.raises(RemoteProtocolError) as caught:
        coordinator_of(STUDY).resume(changed(1, member=other[1], waiting=later))
    assert caught.value.culprit == MEMBERS[1].name, "its opening is that of another commitment"


@pytest.mark.parametrize(
    "change",
    [
        {"opened": {"opening": bytes(32)}},
        {"opened": {"signature": bytes(64)}},
        {"prepared": {"signature": bytes(64)}},
    ],
    ids=["opening", "signature of the members", "signature of the attempt"],
)
def test_a_node_whose_word_does_not_fit_is_named(change):
    with pytest.raises(RemoteProtocolError) as caught:
        coordinator_of(STUDY).resume(changed(1, waiting=waiting(**change)))
    assert caught.value.culprit == MEMBERS[1].name
