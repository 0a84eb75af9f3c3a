"""umpc.study.member_tree: what a coordinator shows out of a tree, lie by lie."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.signed import signed, signed_members
from tests.support.studies import KENDALL, make_members, make_study
from umpc.crypto.signing import MemoryAuthority
from umpc.errors import CertificateError, RemoteProtocolError
from umpc.simulation import AUTHORITY
from umpc.study.member_tree import ShownMember, check_shown, show
from umpc.study.members import sign_member
from umpc.study.sizes import Member
from umpc.study.statements import (
    AgreedInShort,
    MembersRoot,
    attempt_statement,
    member_statement,
    openings_tree,
)

STUDY = make_study(KENDALL, 7, noise="distributed", members_checked=2)
COUNTS = [4, 5, 6, 7, 8, 9, 10]
MEMBERS, OPENINGS = make_members(STUDY, COUNTS, "shown")
SIGNATURES = signed_members(STUDY, MEMBERS)
AGREED = AgreedInShort(MembersRoot.of(STUDY, MEMBERS), openings_tree(OPENINGS).root)
OTHER, OTHER_OPENINGS = make_members(STUDY, COUNTS, "an earlier run")
OTHER_SIGNATURES = signed_members(STUDY, OTHER)
PLACES = (1, 4, 6)
STRANGERS = MemoryAuthority("strangers")


def shown(place: int = 4) -> ShownMember:
    return show(STUDY, MEMBERS, OPENINGS, SIGNATURES, [place])[0]


def check(*found: ShownMember, places: tuple[int, ...] = (4,)) -> tuple[bytes, ...]:
    return check_shown(STUDY, AGREED, places, found, AUTHORITY.verify)


def test_members_that_are_shown_honestly_are_taken_with_their_keys():
    found = show(STUDY, MEMBERS, OPENINGS, SIGNATURES, PLACES)
    keys = check(*found, places=PLACES)
    assert keys == tuple(AUTHORITY.verify(MEMBERS[place].certificate).key for place in PLACES)
    assert [each.member for each in found] == [MEMBERS[place] for place in PLACES]


def _made_up(member: Member) -> Member:
    return sign_member(STUDY.hash, member, STRANGERS.credentials(member.name))


EARLIER = show(STUDY, OTHER, OTHER_OPENINGS, OTHER_SIGNATURES, [4])[0]
LIES = {
    "another node's member": lambda: shown(5),
    "a member of an earlier run": lambda: EARLIER,
    "an earlier member under the path of this one": lambda: replace(shown(), member=OTHER[4]),
    "another key": lambda: replace(shown(), member=signed(STUDY, MEMBERS[4], public_key=b"k" * 32)),
    "another commitment": lambda: replace(
        shown(), member=signed(STUDY, MEMBERS[4], commitment=b"c" * 32)
    ),
    "other records": lambda: replace(shown(), member=signed(STUDY, MEMBERS[4], records=9)),
    "another class": lambda: replace(shown(), member=signed(STUDY, MEMBERS[4], first_class=1)),
    "no path": lambda: replace(shown(), path=b""),
    "another path": lambda: replace(shown(), path=shown(5).path),
    "another opening": lambda: replace(shown(), opening=OTHER_OPENINGS[4]),
    "another opening's path": lambda: replace(shown(), opening_path=shown(5).opening_path),
    "the opening of another node with its path": lambda: replace(
        shown(), opening=OPENINGS[5], opening_path=shown(5).opening_path
    ),
    "no signature of the member": lambda: replace(
        shown(), member=replace(MEMBERS[4], signature=bytes(64))
    ),
    "a signature of other members": lambda: replace(shown(), signature=OTHER_SIGNATURES[4]),
    "another node's signature": lambda: replace(shown(), signature=SIGNATURES[5]),
    "a signature of the attempt": lambda: replace(
        shown(), signature=AUTHORITY.credentials(MEMBERS[4].name).sign(attempt_statement(bytes(32)))
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_names_the_coordinator(lie):
    check(shown())
    with pytest.raises(RemoteProtocolError) as refused:
        check(LIES[lie]())
    assert refused.value.culprit == STUDY.coordinator and refused.value.step == "prepare"


def test_a_member_that_strangers_certified_is_refused_even_in_the_tree():
    """The coordinator put a member of its own into the tree, with everything that follows."""
    members = [*MEMBERS]
    members[4] = _made_up(MEMBERS[4])
    agreed = replace(AGREED, members=MembersRoot.of(STUDY, members))
    found = show(STUDY, members, OPENINGS, SIGNATURES, [4])
    with pytest.raises(CertificateError) as refused:
        check_shown(STUDY, agreed, (4,), found, AUTHORITY.verify)
    assert refused.value.culprit == STUDY.coordinator


def test_an_opening_in_the_tree_that_does_not_fit_its_commitment_is_refused():
    """The coordinator chose an opening after it saw the others: the seed would be its choice."""
    openings = [*OPENINGS]
    openings[4] = bytes(32)
    agreed = replace(AGREED, openings=openings_tree(openings).root)
    found = show(STUDY, MEMBERS, openings, SIGNATURES, [4])
    with pytest.raises(RemoteProtocolError, match="does not fit its commitment") as refused:
        check_shown(STUDY, agreed, (4,), found, AUTHORITY.verify)
    assert refused.value.culprit == STUDY.coordinator


def test_counts_other_than_those_in_the_tree_are_refused():
    counts = [*AGREED.members.counts]
    counts[4] = (0, 99)
    agreed = replace(AGREED, members=replace(AGREED.members, counts=tuple(counts)))
    with pytest.raises(RemoteProtocolError, match="number of records") as refused:
        check_shown(STUDY, agreed, (4,), [shown()], AUTHORITY.verify)
    assert refused.value.culprit == STUDY.coordinator


def test_fewer_or_more_members_than_were_asked_for_are_refused():
    for found in ((), (shown(), shown())):
        with pytest.raises(RemoteProtocolError, match="where 1 were asked for"):
            check(*found)


def test_members_in_another_order_are_refused():
    found = show(STUDY, MEMBERS, OPENINGS, SIGNATURES, PLACES)
    with pytest.raises(RemoteProtocolError):
        check(*found[::-1], places=PLACES)


def test_a_shown_member_prints_no_bytes():
    text = repr(shown())
    assert "opening=" not in text and "signature=" not in text and "path=" not in text
    assert member_statement(STUDY.hash, MEMBERS[4]).hex() not in text
