"""All that the nodes of an attempt sign, and what follows from it: joint seed and identity.

| | all members listed | members in a hash tree (`members_checked`) |
|---|---|---|
| the members' statement | covers each member | covers the root over the members, and all counts |
| the joint seed | hash of all openings | hash of the root over the openings |
| the attempt's id | covers each member, and the seed | covers the statement, and the seed |

In a tree the same facts are covered, and a node that has the roots only gets the same values. A
member's certificate and signature are in none of them: they prove who stated the rest, and another
signature of the same statement changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from umpc.crypto.hash_tree import HashTree
from umpc.crypto.prg import digest
from umpc.study.document import Study
from umpc.study.remembered import Remembered
from umpc.study.sizes import ClassCounts, Member


@dataclass(frozen=True)
class MembersRoot:
    """All members in short. counts: each node's records, of the first class and all others."""

    root: bytes
    counts: tuple[ClassCounts, ...] = field(repr=False)

    @classmethod
    def of(cls, study: Study, members: Sequence[Member]) -> MembersRoot:
        """Those of members that are all known."""
        return cls(members_tree(study, members).root, tuple(member.classes for member in members))

    def outlines(self, study: Study) -> tuple[Member, ...]:
        """The members with name and counts only: commitment, key and certificate are empty."""
        return tuple(
            Member(node.name, first + others, b"", b"", first)
            for node, (first, others) in zip(study.nodes, self.counts, strict=True)
        )


@dataclass(frozen=True)
class AgreedInShort:
    """All that a node which has the roots only knows of an attempt's members and openings."""

    members: MembersRoot
    openings: bytes


def member_statement(study_hash: bytes, member: Member) -> bytes:
    """The bytes that a node signs as its member: all but certificate and signature."""
    records = member.records.to_bytes(8, "little")
    first_class = member.first_class.to_bytes(8, "little")
    name = member.name.encode()
    return digest(
        b"umpc member 1",
        study_hash,
        name,
        records,
        first_class,
        member.commitment,
        member.public_key,
    )


def members_tree(study: Study, members: Sequence[Member]) -> HashTree:
    """The hash tree over the members' statements, which the members of one process make once."""

    def tree() -> HashTree:
        return HashTree([member_statement(study.hash, member) for member in members])

    return _trees.of((members,), tree, study.hash) if isinstance(members, tuple) else tree()


def openings_tree(openings: Sequence[bytes]) -> HashTree:
    """The hash tree over all openings."""
    if not isinstance(openings, tuple):
        return HashTree(openings)
    return _trees.of((openings,), lambda: HashTree(openings))


def members_statement(study: Study, members: Sequence[Member] | MembersRoot) -> bytes:
    """The bytes that every node signs when it agrees to the members."""
    if isinstance(members, MembersRoot):
        counts = [number.to_bytes(8, "little") for each in members.counts for number in each]
        return digest(b"umpc members 2", study.hash, members.root, *counts)

    def statement() -> bytes:
        if study.members_checked:
            return members_statement(study, MembersRoot.of(study, members))
        each = (member_statement(study.hash, member) for member in members)
        return digest(b"umpc members 1", study.hash, *each)

    stays = isinstance(members, tuple)
    return _statements.of((members,), statement, study.hash) if stays else statement()


def attempt_statement(attempt: bytes) -> bytes:
    """The bytes that every node signs when it has prepared an attempt. Args: attempt: its id."""
    return digest(b"umpc prepared 1", attempt)


def joint_seed(study: Study, openings: Sequence[bytes] | AgreedInShort) -> bytes:
    """The seed that all nodes made together: nobody chooses it while one of them is honest."""
    if isinstance(openings, AgreedInShort):
        return digest(b"umpc joint seed 2", openings.openings)
    if study.members_checked:
        return digest(b"umpc joint seed 2", openings_tree(openings).root)
    return digest(b"umpc joint seed 1", *openings)


def attempt_id(
    study: Study, members: Sequence[Member], openings: Sequence[bytes] | AgreedInShort
) -> bytes:
    """The identity of an attempt, 32 bytes."""
    seed = joint_seed(study, openings)
    if study.members_checked:
        known = openings.members if isinstance(openings, AgreedInShort) else members
        return digest(b"umpc attempt 2", study.hash, members_statement(study, known), seed)
    return digest(b"umpc attempt 1", study.hash, *(_encode(m) for m in members), seed)


def _encode(member: Member) -> bytes:
    records = member.records.to_bytes(8, "little")
    first_class = member.first_class.to_bytes(8, "little")
    return digest(member.name.encode(), records, first_class, member.commitment, member.public_key)


_trees: Remembered[HashTree] = Remembered()
_statements: Remembered[bytes] = Remembered()
