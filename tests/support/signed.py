"""Signatures of nodes as honest nodes make them, under the authority of simulations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from umpc.simulation import AUTHORITY
from umpc.study import messages as m
from umpc.study.attempt import Attempt, attempt_statement, members_statement, sign_member
from umpc.study.document import Study
from umpc.study.sizes import Member


def signed(study: Study, member: Member, **changes) -> Member:
    """A member that its node signs. Args: changes: what the node states otherwise."""
    changed = replace(member, **changes)
    return sign_member(study.hash, changed, AUTHORITY.credentials(changed.name))


def signatures_of(statement: bytes, members: Sequence[Member]) -> list[bytes]:
    """Every node's signature of one statement."""
    return [AUTHORITY.credentials(member.name).sign(statement) for member in members]


def signed_members(study: Study, members: Sequence[Member]) -> list[bytes]:
    """Every node's signature of all members."""
    return signatures_of(members_statement(study, members), members)


def opened(study: Study, members: Sequence[Member], openings: Sequence[bytes]) -> list[m.Opened]:
    """Every node's answer to everybody's members."""
    signatures = signed_members(study, members)
    return [m.Opened(*each) for each in zip(openings, signatures, strict=True)]


def prepared(attempt: Attempt) -> list[m.Prepared]:
    """Every node's word that it has prepared an attempt."""
    signatures = signatures_of(attempt_statement(attempt.id), attempt.members)
    return [m.Prepared(attempt.id, 0, signature=each) for each in signatures]
