"""umpc.coordinator.links: with whom a study goes on after a failure, and when it ends."""

from __future__ import annotations

import pytest

from tests.support.studies import STUDY, make_study
from umpc.coordinator.links import Losses
from umpc.errors import (
    AlreadyReleased,
    CertificateError,
    PeerLost,
    PeerUnavailable,
    PolicyRefused,
    PreparationLost,
    RemoteProtocolError,
    StepTimeout,
)
from umpc.study import messages as m

WHOLE = make_study(nodes=5, may_miss=2, required=("node-0",))
ID = bytes(32)
ACCEPTED = m.Accepted(ID, None)


def gone(name: str, kind=PeerLost):
    return kind(f"{name} went away", culprit=name, step="evaluate")


def answers(losses: Losses, **given):
    names = [node.name.replace("-", "_") for node in losses.study.nodes]
    return [given.get(name, ACCEPTED) for name in names]


def test_one_node_after_the_other_is_left_out_and_the_third_ends_the_study():
    losses = Losses(WHOLE)
    losses.hear(answers(losses))
    assert losses.after(gone("node-3")).names_missing == ("node-3",)
    assert losses.after(gone("node-1", PeerUnavailable)).names_missing == ("node-1", "node-3")
    error = gone("node-2", StepTimeout)
    with pytest.raises(StepTimeout, match="without at most 2 of its nodes") as caught:
        losses.after(error)
    assert caught.value is error and error.culprit == "node-2"


@pytest.mark.parametrize(
    "error",
    [
        gone("dealer"),
        gone("coordinator", StepTimeout),
        PolicyRefused("no", culprit="node-2"),
        RemoteProtocolError("wrong", culprit="node-2"),
        CertificateError("expired", culprit="node-2"),
        PeerLost("somebody went away"),
    ],
    ids=lambda error: f"{type(error).__name__} {error.culprit}",
)
def test_other_failures_and_other_processes_are_no_losses(error):
    with pytest.raises(type(error)) as caught:
        Losses(WHOLE).after(error)
    assert caught.value is error


def test_a_required_node_and_a_study_that_needs_all_end_with_the_loss():
    with pytest.raises(PeerLost, match=r"needs node-0 \(required\)"):
        Losses(WHOLE).after(gone("node-0"))
    with pytest.raises(PeerLost, match=r"went away$"):
        Losses(STUDY).after(gone(STUDY.nodes[0].name))


def test_nobody_is_left_out_once_a_release_was_asked_for():
    losses = Losses(WHOLE)
    losses.is_settled = True
    with pytest.raises(PeerLost, match=r"went away$"):
        losses.after(gone("node-3"))


def test_a_result_that_is_stored_for_other_survivors_is_asked_for_with_these():
    losses = Losses(WHOLE)
    released = m.Released(ID, b"", 3, missing=("node-4",))
    with pytest.raises(AlreadyReleased, match="released without node-4, and is proposed with all"):
        losses.hear(answers(losses, node_1=released, node_2=m.Held(ID, 3, missing=("node-4",))))
    assert losses.after(AlreadyReleased("…")).names_missing == ("node-4",)
    losses.hear([released] * 4)
    with pytest.raises(PeerLost):
        losses.after(gone("node-1"))


def test_a_node_that_invents_a_released_set_does_not_turn_the_study_twice():
    for invented in (("node-0",), ("node-9",), ("node-1", "node-2", "node-3")):
        losses = Losses(WHOLE)
        error = AlreadyReleased("…")
        with pytest.raises(AlreadyReleased):
            losses.hear(answers(losses, node_1=m.Released(ID, b"", 3, missing=invented)))
        with pytest.raises(AlreadyReleased, match="does not go on"):
            losses.after(error)
    losses = Losses(WHOLE)
    for missing in (("node-4",), ("node-3",)):
        with pytest.raises(AlreadyReleased):
            losses.hear(answers(losses, node_1=m.Released(ID, b"", 3, missing=missing)))
        if missing == ("node-4",):
            losses.after(AlreadyReleased("…"))
    with pytest.raises(AlreadyReleased):
        losses.after(AlreadyReleased("…"))


def test_shares_that_a_lost_node_may_have_charged_for_wait_for_it():
    losses = Losses(WHOLE)
    losses.after(gone("node-3", PeerUnavailable))
    held = answers(losses, node_1=m.Held(ID, 3))
    with pytest.raises(PeerLost, match="together with node-3, which may have charged") as caught:
        losses.hear(held)
    with pytest.raises(PeerLost):
        losses.after(caught.value)
    known = Losses(WHOLE)
    known.is_uncharged = True  # all had answered that they charged nothing, and then one died
    known.after(gone("node-3"))
    known.hear(held)


def test_a_lost_preparation_is_one_more_try_with_everybody_for_each_node_that_may_have_one():
    losses = Losses(STUDY)
    for each in STUDY.nodes:
        assert losses.after(PreparationLost("started again", culprit=each.name)) == STUDY
    with pytest.raises(PreparationLost):
        losses.after(PreparationLost("started again", culprit="node-0"))


def test_a_certificate_that_counts_no_more_is_one_more_try_where_it_came_from_a_preparation():
    revoked = CertificateError("revoked", culprit="node-1")
    prepared = m.Accepted(ID, None, m.WaitingAttempt(None, None))
    losses = Losses(WHOLE)
    losses.hear(answers(losses, node_1=prepared))
    assert losses.after(revoked) == WHOLE
    for heard in (False, True):
        if heard:
            losses.hear(answers(losses))
        with pytest.raises(CertificateError):
            losses.after(revoked)
    losses.hear(answers(losses, node_1=prepared))
    losses.is_settled = True
    with pytest.raises(CertificateError):
        losses.after(revoked)
