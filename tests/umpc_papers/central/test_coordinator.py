"""umpc_papers.central.coordinator: malformed messages name their node, replays repeat."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.central import COUNTS, MECHANISMS, central_study, central_tables
from tests.support.protocols import coordinator_of
from tests.support.released import released_by
from umpc.errors import AlreadyReleased, RangeError, RemoteProtocolError, TooFewRecords
from umpc.study.measured import Measured

by_noise = pytest.mark.parametrize("noise", MECHANISMS)


def released(study, counts=COUNTS):
    """A session before its last step, and what the nodes released."""
    return released_by(study, central_tables(counts), counts)[:2]


@by_noise
def test_stored_messages_give_the_same_number_bit_for_bit(noise):
    study = central_study(noise)
    coordinator, answers = released(study)
    report = coordinator.finish(answers, Measured(1, [20]))
    again = coordinator_of(study)
    assert again.agree(answers) is None
    replayed = again.replay(answers, Measured(replayed=True))
    for key in (
        "estimate",
        "noise_std",
        "low",
        "high",
        "sampling_std_bound",
        "edges",
        "sets",
        "max_degree",
        "epsilon",
    ):
        assert getattr(replayed, key) == getattr(report, key), key
    assert replayed.replayed and (replayed.rounds_predicted, replayed.joint_seed) == (0, "")


def spoiled(share: bytes, how: str) -> bytes:
    """9 records take 32 bytes, 18 bits of x in three bytes, and 18 bits of y."""
    return {
        "short": share[:-1],
        "long": share + b"\0",
        "empty": b"",
        "padding": share[:-1] + bytes([share[-1] | 0x80]),
        "beyond": share[:32] + b"\xff" + share[33:],
    }[how]


@pytest.mark.parametrize("how", ["short", "long", "empty", "padding", "beyond"])
@pytest.mark.parametrize("again", [False, True], ids=["first", "replayed"])
def test_a_malformed_message_names_its_node(how, again):
    """Values 0 to 2 leave one of two bits' values out."""
    study = central_study(x=("0", "3"), y=("0", "3"))
    if how == "beyond":
        study = central_study(kernels="abs(a.x - b.x)", x=("0", "4"))
    coordinator, answers = released(study)
    coordinator = coordinator_of(study) if again else coordinator
    answers[1] = replace(answers[1], share=spoiled(answers[1].share, how))
    with pytest.raises(RemoteProtocolError, match="node-1 released a malformed message") as caught:
        (coordinator.replay if again else coordinator.finish)(answers, Measured())
    assert (caught.value.culprit, caught.value.step) == ("node-1", "release")


def test_messages_of_mixed_attempts_are_refused():
    coordinator, answers = released(central_study("hajek"))
    with pytest.raises(AlreadyReleased, match="in another attempt"):
        coordinator.finish([answers[0], replace(answers[1], attempt=bytes(32))], Measured())


def test_too_few_records_are_refused_before_any_opening():
    with pytest.raises(TooFewRecords, match=r"hajek_split.*at least 8 records, 7 came"):
        released(central_study("hajek_split"), (4, 3))


def test_too_many_sets_are_refused_before_any_opening():
    """46,400 records have 1,076,456,800 pairs."""
    with pytest.raises(RangeError, match="averages 1,076,456,800 sets, at most 1,073,741,824"):
        released(central_study("hajek"), (23_200, 23_200))


def test_nobody_sees_a_record_in_a_repr():
    coordinator, answers = released(central_study())
    shown = repr((coordinator, answers, answers[0]))
    assert (
        "redacted" in shown
        and answers[0].share.hex() not in shown
        and repr(answers[0].share) not in shown
    )
