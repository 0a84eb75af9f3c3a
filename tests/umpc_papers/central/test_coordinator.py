"""umpc_papers.central.coordinator: malformed messages name their node, replays repeat."""

from __future__ import annotations

import pytest

from tests.support.central import COUNTS, MECHANISMS, central_study, central_tables
from tests.support.protocols import coordinator_of
from tests.support.released import check_replay, released_by
from umpc.errors import RangeError, TooFewRecords
from umpc.study.cost import Measured

by_noise = pytest.mark.parametrize("noise", MECHANISMS)


def released(study, counts=COUNTS):
    """A session before its last step, and what the nodes released."""
    return released_by(study, central_tables(counts), counts)[:2]


@by_noise
def test_stored_messages_give_the_same_number_bit_for_bit(noise):
    study = central_study(noise)
    coordinator, answers = released(study)
    report = coordinator.finish(answers, Measured(1, [20]))
    check_replay(report, coordinator_of(study), answers)


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
    assert "Released(attempt=" in shown
    assert answers[0].share.hex() not in shown and repr(answers[0].share) not in shown
