"""The coordinator's side of `gopa`: malformed messages name their node, and replays repeat."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.gopa import gopa_study, protocol_of, tables_of
from tests.support.protocols import coordinator_of
from tests.support.released import released_by
from umpc.errors import AlreadyReleased, RemoteProtocolError, TooFewRecords
from umpc.protocols.base.one_message_coordinator import OneMessageCoordinator, cost_of_messages
from umpc.study import messages as m
from umpc.study.measured import Measured

STUDY = gopa_study(3)
COUNTS = (5, 0, 7)


def released(counts=COUNTS) -> tuple[OneMessageCoordinator, list[m.Released]]:
    """A session before its last step, and what the nodes released."""
    return released_by(STUDY, tables_of(counts), counts)[:2]


@pytest.mark.parametrize("how", ["short", "long", "empty", "large"])
@pytest.mark.parametrize("again", [False, True], ids=["first", "replayed"])
def test_a_malformed_message_names_its_node(how, again):
    coordinator, answers = released()
    share = answers[2].share
    assert protocol_of(STUDY).bound((0, 7)) < (1 << 8 * len(share) - 1) - 1, "every number fits"
    bad = {
        "short": share[:-1],
        "long": share + b"\0",
        "empty": b"",
        "large": b"\xff" * (len(share) - 1) + b"\x7f",
    }[how]
    coordinator = coordinator_of(STUDY) if again else coordinator
    with pytest.raises(RemoteProtocolError, match="node-2 released a malformed message") as caught:
        (coordinator.replay if again else coordinator.finish)(
            [*answers[:2], replace(answers[2], share=bad)], Measured()
        )
    assert (caught.value.culprit, caught.value.step) == ("node-2", "release")


def test_stored_messages_give_the_same_estimate_again():
    coordinator, answers = released()
    report = coordinator.finish(answers, Measured(1, [20]))
    again = coordinator_of(STUDY)
    assert again.agree(answers) is None and again.ask(answers) is None
    replayed = again.replay(answers, Measured(replayed=True))
    for key in ("estimate", "noise_std", "low", "high", "epsilon", "delta", "records"):
        assert getattr(replayed, key) == getattr(report, key), key


def test_messages_of_mixed_attempts_are_refused_for_what_they_share_does_not_cancel():
    coordinator, answers = released()
    with pytest.raises(
        AlreadyReleased, match="node-1 released the study 'study' in another attempt"
    ):
        coordinator.finish(
            [answers[0], replace(answers[1], attempt=bytes(32)), answers[2]], Measured()
        )


def test_no_records_are_refused_before_any_opening():
    with pytest.raises(TooFewRecords):
        released((0, 0, 0))


def test_the_cost_is_every_nodes_number():
    of = protocol_of(STUDY)
    cost = cost_of_messages(of, [(0, 5), (0, 0), (0, 10**9)])
    assert (
        cost.revealed == tuple(of.message_bytes((0, n)) for n in (5, 0, 10**9)) and cost.rounds == 1
    )
    assert cost.revealed[0] < cost.revealed[2] <= cost.revealed[0] + 4 and cost.bytes_offline == 0
