"""umpc.study.statements: what nodes sign, and that a root stands for the same facts as the list."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.studies import KENDALL, make_members, make_study
from umpc.crypto.hash_tree import HashTree
from umpc.study.attempt import Attempt
from umpc.study.statements import (
    AgreedInShort,
    MembersRoot,
    attempt_id,
    joint_seed,
    members_statement,
    openings_tree,
)

LISTED = make_study(KENDALL, 5, noise="distributed")
TREE = make_study(KENDALL, 5, noise="distributed", members_checked=2)
MEMBERS, OPENINGS = make_members(TREE, [4, 5, 6, 3, 9], "statements", [1, 0, 3, 0, 9])
CHANGES = {
    "records": 10,
    "first_class": 2,
    "commitment": b"c" * 32,
    "public_key": b"k" * 32,
}


def in_short() -> AgreedInShort:
    return AgreedInShort(MembersRoot.of(TREE, MEMBERS), openings_tree(OPENINGS).root)


def test_who_has_the_roots_gets_the_same_statement_seed_and_attempt():
    short = in_short()
    assert members_statement(TREE, short.members) == members_statement(TREE, MEMBERS)
    assert joint_seed(TREE, short) == joint_seed(TREE, OPENINGS)
    outlines = short.members.outlines(TREE)
    whole, known = Attempt(TREE, MEMBERS, OPENINGS), Attempt(TREE, outlines, short)
    assert (whole.id, whole.seed, whole.counts) == (known.id, known.seed, known.counts)
    assert [m.name for m in outlines] == [m.name for m in MEMBERS]
    assert not any(m.commitment or m.public_key or m.certificate for m in outlines)


@pytest.mark.parametrize("study", [LISTED, TREE], ids=["listed", "in a tree"])
@pytest.mark.parametrize("key", CHANGES)
def test_every_fact_of_every_member_is_signed_and_part_of_the_attempt(study, key):
    was = members_statement(study, MEMBERS), attempt_id(study, MEMBERS, OPENINGS)
    for place, member in enumerate(MEMBERS):
        if getattr(member, key) == CHANGES[key]:
            continue
        changed = [*MEMBERS]
        changed[place] = replace(member, **{key: CHANGES[key]})
        assert members_statement(study, changed) != was[0]
        assert attempt_id(study, changed, OPENINGS) != was[1]


@pytest.mark.parametrize("study", [LISTED, TREE], ids=["listed", "in a tree"])
def test_every_opening_makes_the_seed_and_the_attempt(study):
    for place in range(5):
        openings = [*OPENINGS]
        openings[place] = bytes(32)
        assert joint_seed(study, openings) != joint_seed(study, OPENINGS)
        assert attempt_id(study, MEMBERS, openings) != attempt_id(study, MEMBERS, OPENINGS)


def test_certificates_and_signatures_are_part_of_neither():
    for study in (LISTED, TREE):
        other = [replace(m, certificate=b"other", signature=bytes(64)) for m in MEMBERS]
        assert members_statement(study, other) == members_statement(study, MEMBERS)
        assert attempt_id(study, other, OPENINGS) == attempt_id(study, MEMBERS, OPENINGS)


def test_counts_are_signed_beside_the_root():
    """A node without the list takes E from the counts, so they are bound to what all signed."""
    root = MembersRoot.of(TREE, MEMBERS)
    other = replace(root, counts=(root.counts[1], root.counts[0], *root.counts[2:]))
    assert members_statement(TREE, other) != members_statement(TREE, root)


def test_a_list_that_changes_is_never_remembered():
    openings = [*OPENINGS]
    before = joint_seed(TREE, openings)
    openings[0] = bytes(32)
    assert joint_seed(TREE, openings) != before
    assert openings_tree(tuple(OPENINGS)) is not openings_tree(tuple(openings))
    assert openings_tree(openings).root == HashTree(openings).root


def test_a_study_in_a_tree_and_one_with_lists_share_nothing():
    assert TREE.hash != LISTED.hash
    assert members_statement(TREE, MEMBERS) != members_statement(LISTED, MEMBERS)
