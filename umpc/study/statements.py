"""All that the nodes of an attempt sign, and what follows from it: joint seed and identity.

The members' statement covers each member, the joint seed is the hash of all openings, and the
attempt's id covers each member and the seed. A member's certificate and signature are in none of
them: they prove who stated the rest, and another signature of the same statement changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.crypto.prg import digest
from umpc.study.document import Study
from umpc.study.sizes import Member


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


def members_statement(study: Study, members: Sequence[Member]) -> bytes:
    """The bytes that every node signs when it agrees to the members."""
    each = (member_statement(study.hash, member) for member in members)
    return digest(b"umpc members 1", study.hash, *each)


def attempt_statement(attempt: bytes) -> bytes:
    """The bytes that every node signs when it has prepared an attempt. Args: attempt: its id."""
    return digest(b"umpc prepared 1", attempt)


def joint_seed(openings: Sequence[bytes]) -> bytes:
    """The seed that all nodes made together: nobody chooses it while one of them is honest."""
    return digest(b"umpc joint seed 1", *openings)


def attempt_id(study: Study, members: Sequence[Member], openings: Sequence[bytes]) -> bytes:
    """The identity of an attempt, 32 bytes."""
    seed = joint_seed(openings)
    return digest(b"umpc attempt 1", study.hash, *(_encode(m) for m in members), seed)


def _encode(member: Member) -> bytes:
    records = member.records.to_bytes(8, "little")
    first_class = member.first_class.to_bytes(8, "little")
    return digest(member.name.encode(), records, first_class, member.commitment, member.public_key)
