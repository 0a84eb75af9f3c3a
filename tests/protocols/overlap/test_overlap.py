"""A comparison of people: the exact number, its noise, what leaves a site, and what liars gain."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from fractions import Fraction
from itertools import count
from math import exp

import pytest

from tests.support.overlap import LOUD, overlap_study, people
from tests.support.studies import Entropy
from umpc.crypto.rounds import Message
from umpc.errors import RangeError, RemoteProtocolError, StudyError
from umpc.mpc.transfers.channel_set_up import multiple
from umpc.protocols.overlap import messages, settings
from umpc.protocols.overlap.messages import LEFT_BYTES, SharedPeople, cut
from umpc.protocols.overlap.node import OverlapNode, hashed
from umpc.protocols.overlap.settings import DELTA, draw_hidden, most_hidden, noise_of
from umpc.protocols.registry import decode_study, protocol_of
from umpc.simulation import Simulated, simulate
from umpc.testing import lying

FIRST = 0


def compared(first, second, epsilon: str = LOUD, entropy=os.urandom) -> Simulated:
    return simulate(overlap_study(epsilon), [people(first), people(second)], entropy)


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        (range(20), range(15, 40), 5),
        (range(3), range(3), 3),
        (range(4), range(10, 11), 0),
        (range(1), range(50), 1),
    ],
)
def test_without_noise_the_number_is_exact(first, second, shared):
    report = compared(first, second).report
    assert report.estimate == shared and report.note == ""
    assert report.bytes_online == report.bytes_online_predicted
    assert report.rounds == report.rounds_predicted == 2


def test_a_list_of_many_frames_is_compared_as_one(limit):
    limit(messages, FRAME_BYTES=7 * 32)
    report = compared(range(20), range(15, 40)).report
    assert report.estimate == 5 and report.bytes_online == report.bytes_online_predicted


def test_the_number_lies_in_its_interval_as_often_as_it_should():
    """95 % of runs: of 60, fewer than 51 come with a probability below 2^-10."""
    inside = 0
    for seed in range(60):
        report = compared(range(40), range(30, 60), "4", Entropy(str(seed))).report
        inside += report.low <= 10 <= report.high
    assert inside >= 51


def test_the_study_travels_and_says_what_it_promises():
    study = overlap_study("0.5")
    assert decode_study(study.encode()) == study
    promise = str(protocol_of(study).promise_of(study))
    assert "the noisy number of people who are at both sites" in promise
    assert study.delta == DELTA and "once for each site" in promise


# --- the law of a site's noise --------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1000000000", "10", "1", "0.1", "0.001"])
def test_the_ends_of_the_hidden_noise_have_less_than_delta(epsilon):
    study = overlap_study(epsilon)
    most = most_hidden(study)
    log_ratio = float(noise_of(study).log_ratio)
    total = 1 + 2 * sum(exp(-log_ratio * each) for each in range(1, min(most, 40_000) + 1))
    assert exp(-log_ratio * most) / total <= float(Fraction(DELTA))


def test_the_hidden_noise_stays_between_its_ends(limit):
    limit(settings, LOG_OF_DELTA=Fraction(1, 2))
    study, bits = overlap_study("0.25"), secrets.randbits
    assert {draw_hidden(study, bits) for _ in range(400)} == {-2, -1, 0, 1, 2}


# --- views ----------------------------------------------------------------------------------------


def test_both_released_lists_share_the_number_with_both_sites_noise_and_one_alone_shares_none():
    """A coordinator and a site that pool what they see take off the site's noise, and no other."""
    done = compared(range(30), range(20, 60), "0.1", Entropy("5"))
    first, second = done.nodes
    assert done.report.estimate == 10 + first.noise + second.noise
    assert 0 not in (first.noise, second.noise)
    lists = [set(cut(share, LEFT_BYTES)) for share in done.transcript.shares]
    hidden = 2 * most_hidden(done.attempt.study)
    assert len(lists[0] & lists[1]) == 10 + first.noise + second.noise + hidden
    # round 1 and a list have no value in common: nothing is compared before the release
    sent = {point[:LEFT_BYTES] for own in point_lists(done) for point in own}
    assert not sent & (lists[0] | lists[1])


def test_all_messages_have_one_size_whatever_the_values_are():
    views = []
    for first in (range(20), range(100, 120), range(110, 130)):
        done = compared(first, range(100, 130), "1")
        frames = [
            (sender, receiver, frame.key, frame.count, frame.width, len(frame.payload))
            for sender, receiver, frame in done.transcript.online
        ]
        views.append((frames, [len(share) for share in done.transcript.shares]))
    assert views[0] == views[1] == views[2]
    assert {sender for sender, *_ in views[0][0]} == {"first", "second"}


def test_points_are_in_the_order_of_bytes_and_fresh_in_each_attempt():
    seen: set[bytes] = set()
    for _ in range(2):
        done = compared(range(20), range(20), "10")
        released = [cut(share, LEFT_BYTES) for share in done.transcript.shares]
        for points in (*point_lists(done), *released):
            assert points == sorted(points)
        for points in point_lists(done):
            assert seen.isdisjoint(points)
            seen.update(points)


def point_lists(done: Simulated) -> Iterator[list[bytes]]:
    for _, _, frame in done.transcript.online:
        yield cut(frame.payload, 32)


# --- liars ----------------------------------------------------------------------------------------


def test_a_site_with_a_phone_book_counts_exactly_how_many_of_it_are_at_the_other_site():
    """A claim of docs/overlap.md: without dummies no noise is in the number."""
    study = overlap_study("0.5")
    found = []
    for book in (range(0, 10), range(10, 20)):
        with lying("node", own_texts=without_dummies):
            done = simulate(study, [people(book), people(range(15, 40))], Entropy("3"))
        # the report is all that the liar needs
        found.append(round(done.report.estimate + 2 * most_hidden(study), 6))
    assert found == [0, 5], "the liar counts exactly"
    assert done.nodes[1 - FIRST].noise != 0


def without_dummies(honest, node: OverlapNode) -> list[bytes]:
    """The texts of a first site that lies: more names in place of all dummies."""
    texts = honest(node)
    if node.index != FIRST:
        return texts
    return [b"a name %d" % n if b"dummy" in text else text for n, text in enumerate(texts)]


def test_a_liar_together_with_the_coordinator_learns_who_of_a_list_is_at_the_other_site():
    """A claim of docs/overlap.md: it takes another power for each text."""
    study = overlap_study("10")
    powers = [number.to_bytes(32, "little") for number in range(2, 8)]
    asked = [hashed(b"person" + study.hash + b"p%d" % number) for number in range(6)]
    calls = count()

    def framed(honest, points: bytes) -> list[Message]:
        if next(calls) != FIRST:
            return honest(points)
        own = [multiple(power, point, "", "") for power, point in zip(powers, asked, strict=True)]
        return honest(b"".join(own) + points[len(asked) * 32 :])

    with lying("node", framed=framed):
        done = simulate(study, [people(range(90, 96)), people((2, 5, 30))], Entropy("3"))
    _, theirs = point_lists(done)
    seen = set(cut(done.transcript.shares[1], LEFT_BYTES))
    there = [
        number
        for number, power in enumerate(powers)
        if any(multiple(power, point, "", "")[:LEFT_BYTES] in seen for point in theirs)
    ]
    assert there == [2, 5]


def test_a_lying_site_alone_learns_who_a_point_of_the_other_site_is():
    """A claim of docs/overlap.md: entry k of a book has k powers, and one point is released."""
    study, book, there = overlap_study("0.5"), range(6), (2, 5, 30)
    powers = [number.to_bytes(32, "little") for number in range(2, 2 + len(book))]
    asked = [hashed(b"person" + study.hash + b"p%d" % number) for number in book]
    calls = count()

    def framed(honest, points: bytes) -> list[Message]:
        if next(calls) != FIRST:
            return honest(points)
        own = [
            multiple(power, point, "", "")
            for number, point in enumerate(asked)
            for power in powers[: number + 1]
        ]
        return honest(b"".join(own) + points[len(own) * 32 :])

    with lying("node", framed=framed):
        done = simulate(study, [people(range(90, 96)), people(there)], Entropy("3"))
    _, received = point_lists(done)
    counts = done.attempt.counts
    told = []
    for point in received:
        released = b"".join(multiple(power, point, "", "")[:LEFT_BYTES] for power in powers)
        released = released.ljust(len(done.transcript.shares[0]), b"\0")
        mean = SharedPeople(study).aggregate([released, done.transcript.shares[1]], counts)
        # the number is public, and no noise is in it
        told.append(round(mean.value * sum(map(sum, counts)) + 2 * most_hidden(study)))
    assert sorted(filter(None, told)) == [3, 6], "each point tells its person's place in the book"


def test_a_person_who_is_sent_many_times_counts_once():
    """A claim of docs/overlap.md: a site gains nothing by sending one person again and again."""

    def many(honest, node: OverlapNode) -> list[bytes]:
        texts = honest(node)
        if node.index != FIRST:
            return texts
        return [texts[0]] * node.records + texts[node.records :]

    with lying("node", own_texts=many):
        report = compared(range(10), range(10)).report
    assert report.estimate == 1


@pytest.mark.parametrize(
    "wrong", [bytes(32), b"\1" + bytes(31), b"\xff" * 32], ids=["order 4", "zero", "no point"]
)
def test_bytes_that_are_no_point_of_the_group_are_refused(wrong):
    """A point of small order would tell whether it comes back."""

    def framed(honest, points: bytes) -> list[Message]:
        return honest(wrong + points[len(wrong) :])

    expected = pytest.raises(RemoteProtocolError, match="of prime order was due")
    with lying("node", framed=framed), expected:
        compared(range(3), range(3))


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ({"nodes": [{"name": "a", "address": "a:1"}]}, "name two nodes"),
        ({"person": None}, "go together"),
        ({"max_colluding": 0}, "leave max_colluding out"),
        ({"records_per_person": 2}, "and records_per_person = 1"),
        ({"where": "at_both_sites = 1"}, "leave it out of `where`"),
        ({"statistic": "mean", "columns": ["x"]}, "leave columns, statistic out"),
        ({"adversary": "lying_nodes"}, "makes no promise if nodes lie"),
        ({"fields": [{"name": "x", "lower": 0, "upper": 1, "whole": True}]}, "must occur"),
    ],
)
def test_a_study_that_cannot_be_compared_is_refused(entries, told):
    with pytest.raises(StudyError, match=told):
        overlap_study(**entries)


@pytest.mark.parametrize(("epsilon", "people_at_first"), [(LOUD, 174_760), ("0.0001", 10)])
def test_a_list_that_is_too_long_to_be_released_is_refused_before_any_point(
    epsilon, people_at_first
):
    with pytest.raises(RangeError, match="take a larger epsilon"):
        compared(range(people_at_first), range(3), epsilon)
