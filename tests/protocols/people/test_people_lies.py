"""Aggregators and a coordinator that lie about people's table are caught before any share is made.

With the check taken out, each lie goes into the shares.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

from tests.support.checked_people import PeopleRun, moved
from tests.support.verified import DEALER, unchanged
from umpc.crypto import field
from umpc.errors import FailedCheck, LocalProtocolError, RemoteProtocolError
from umpc.protocols.people.checked import challenge
from umpc.study.messages import Frame
from umpc.testing import without

CHECK = "the total is that of the people"
COMMITTED = "both open what they committed to"


def added(h, tags):
    moved(h, 7, 1)


def heavy(h, tags):
    moved(h, 7, 1 << 40)


def left_out(h, tags):
    moved(h, 3, -1)


def rotated(h, tags):
    moved(h, 3, -1)
    moved(h, 4, 1)


def tag_alone(h, tags):
    moved(tags, 2, 1)


def guessed(h, tags):
    moved(h, 7, 1)
    moved(tags, 7, 12345)


LIES = (added, heavy, left_out, rotated, guessed)


def shifted(place: int, frame: Frame) -> Frame:
    """The coordinator adds a vector to what the honest aggregator sent."""
    if place or frame.step != "histogram":
        return frame
    words = np.frombuffer(frame.payload, dtype="<u8").astype(np.uint64)
    moved(words, 5, 1)
    return replace(frame, payload=words.astype("<u8").tobytes())


HONEST = PeopleRun("honest").committed()
OPENED = HONEST.signatures
TWICE = [HONEST.verdicts(OPENED), HONEST.twice_the_sum][1]


def no_share(run: PeopleRun) -> bool:
    for table in run.tables:
        with pytest.raises(LocalProtocolError, match="there are no shares"):
            _ = table.shares
    return True


def test_honest_aggregators_pass_and_the_coordinator_says_so():
    run = PeopleRun("another").committed()
    openings = run.signatures
    run.adding.check_signed(openings)
    assert run.verdicts(openings) == [None, None]
    assert run.twice_the_sum == TWICE


@pytest.mark.parametrize("lie", [*LIES, tag_alone], ids=lambda each: each.__name__)
def test_an_aggregator_that_changes_its_share_is_caught(lie):
    run = PeopleRun("lie", lie).committed()
    openings = run.signatures
    with pytest.raises(FailedCheck, match="people must come again") as told:
        run.adding.check_signed(openings)
    assert told.value.culprit is None
    assert [type(each) for each in run.verdicts(openings)] == [FailedCheck] * 2
    assert no_share(run)


def test_a_coordinator_that_shifts_the_total_is_caught():
    run = PeopleRun("shift").committed(shifted)
    assert [type(each) for each in run.verdicts()] == [FailedCheck] * 2
    assert no_share(run)


@pytest.mark.parametrize("lie", [*LIES, None], ids=lambda each: each.__name__ if each else "shift")
def test_power_without_the_check_each_lie_is_in_the_shares(lie):
    run = PeopleRun("lie", lie).committed(unchanged if lie else shifted)
    with without(CHECK):
        assert run.verdicts() == [None, None]
    assert run.twice_the_sum != TWICE


def test_two_totals_get_no_answer_and_name_the_coordinator():
    run = PeopleRun("two totals").prepare().count().up()

    def told(place, frame):
        other = shifted(0, replace(frame, step="histogram"))
        return replace(other, step="total") if place else frame

    run.down(told)
    frames = [next(table.masked()) for table in run.tables]
    total = next(iter(run.adding.total()))
    digests = [sha256(told(place, total).payload).digest() for place in (0, 1)]
    questions = [digest + frame.payload for digest, frame in zip(digests, frames, strict=True)]
    with pytest.raises(RemoteProtocolError, match="of two totals") as found:
        run.ask(questions)
    assert found.value.culprit == run.study.coordinator


def test_the_dealer_answers_an_attempt_once():
    run = PeopleRun("twice").up_to_total().ask()
    with pytest.raises(RemoteProtocolError, match="was answered before"):
        run.ask()


def test_a_dealer_that_has_forgotten_alpha_gives_no_answer():
    run = PeopleRun("forgotten").up_to_total()
    run.dealing.alpha = None
    with pytest.raises(RemoteProtocolError, match="has no keys of the study any more"):
        run.ask()


def test_an_answer_that_the_dealer_has_not_signed_is_refused():
    run = PeopleRun("answer").up_to_total()
    (frame,) = run.answer()
    changed = replace(frame, payload=bytes([frame.payload[0] ^ 1]) + frame.payload[1:])
    for hearing in (*run.tables, run.adding):
        with pytest.raises(RemoteProtocolError, match="is not the one that it signed"):
            hearing.hear(changed, DEALER.certificate)


# --- rushing --------------------------------------------------------------------------------------


def forged(run: PeopleRun, openings: list[bytes]) -> bytes:
    """The last one to speak opens −z of the other one."""
    z = np.frombuffer(openings[0][48:], dtype="<u8").astype(np.uint64)
    return openings[1][:48] + field.negate(z).astype("<u8").tobytes()


def test_an_opening_that_follows_the_other_one_is_caught_by_the_commitment():
    run = PeopleRun("rush", heavy).committed()
    openings = run.signatures
    openings[1] = forged(run, openings)
    found = run.verdicts(openings)
    assert [type(each) for each in found] == [FailedCheck] * 2
    assert "what was committed to" in str(found[0])
    assert no_share(run)


def test_power_without_commitments_the_last_one_to_speak_passes():
    run = PeopleRun("rush", heavy).committed()
    openings = run.signatures
    openings[1] = forged(run, openings)
    with without(COMMITTED):
        assert run.verdicts(openings) == [None, None]
    assert run.twice_the_sum != TWICE


def test_an_opening_of_another_attempt_is_caught():
    run = PeopleRun("replay").committed()
    openings = [run.signatures[0], OPENED[1]]
    assert [type(each) for each in run.verdicts(openings)] == [FailedCheck] * 2


def test_a_commitment_that_the_coordinator_made_opens_nothing():
    run = PeopleRun("made").up_to_total().ask().down().up()

    def change(place, frame):
        return replace(frame, payload=bytes(32) + frame.payload[32:])

    run.down(change)
    for table in run.tables:
        with pytest.raises(RemoteProtocolError, match="nothing was opened") as told:
            table.sign()
        assert told.value.culprit == run.study.coordinator


# --- a failed check -------------------------------------------------------------------------------


def test_a_failed_check_shows_alpha_and_a_second_one_would_then_pass():
    """So an aggregator opens no check of a survey after one that has not passed."""
    run = PeopleRun("first", added).up_to_total()
    (frame,) = run.answer()
    for hearing in (*run.tables, run.adding):
        hearing.hear(frame, DEALER.certificate)
    run.down().up().down()
    zs = [np.frombuffer(each[48:], dtype="<u8").astype(np.uint64) for each in run.signatures]
    # Σ z = −α·⟨χ, e⟩, and the liar knows e
    chi = challenge(run.attempt.id, frame.payload[:32], run.attempt.grid.cells)[7]
    alpha, rest = field.times(field.negate(field.add(*zs)), field.inverse_k(chi)).tolist()
    assert rest == 0

    def with_alpha(h, tags):
        moved(h, 7, 1)
        moved(tags, 7, alpha)

    again = PeopleRun("second", with_alpha).committed()
    assert again.verdicts() == [None, None]
    assert again.twice_the_sum != TWICE
