"""umpc.study.attempt: what nodes sign covers each fact of each node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.studies import KENDALL, make_members, make_study
from umpc.study.attempt import attempt_id, joint_seed, members_statement

STUDY = make_study(KENDALL, 5, noise="distributed")
MEMBERS, OPENINGS = make_members(STUDY, [4, 5, 6, 3, 9], "statements", [1, 0, 3, 0, 9])
CHANGES = {
    "records": 10,
    "first_class": 2,
    "commitment": b"c" * 32,
    "public_key": b"k" * 32,
}


@pytest.mark.parametrize("key", CHANGES)
def test_every_fact_of_every_member_is_signed_and_part_of_the_attempt(key):
    was = members_statement(STUDY, MEMBERS), attempt_id(STUDY, MEMBERS, OPENINGS)
    for place, member in enumerate(MEMBERS):
        if getattr(member, key) == CHANGES[key]:
            continue
        changed = [*MEMBERS]
        changed[place] = replace(member, **{key: CHANGES[key]})
        assert members_statement(STUDY, changed) != was[0]
        assert attempt_id(STUDY, changed, OPENINGS) != was[1]


def test_every_opening_makes_the_seed_and_the_attempt():
    for place in range(5):
        openings = [*OPENINGS]
        openings[place] = bytes(32)
        assert joint_seed(openings) != joint_seed(OPENINGS)
        assert attempt_id(STUDY, MEMBERS, openings) != attempt_id(STUDY, MEMBERS, OPENINGS)


def test_certificates_and_signatures_are_part_of_neither():
    other = [replace(m, certificate=b"other", signature=bytes(64)) for m in MEMBERS]
    assert members_statement(STUDY, other) == members_statement(STUDY, MEMBERS)
    assert attempt_id(STUDY, other, OPENINGS) == attempt_id(STUDY, MEMBERS, OPENINGS)
