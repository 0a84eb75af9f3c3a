"""Signed members: each process checks what every node said about itself, and who agreed on it.

A node signs three statements with the key of its certificate (docs/protocol.md, steps of a study):

| statement | made in | ends |
|---|---|---|
| its own member | propose | members that somebody invented, and changed keys and counts |
| all members | agree | two nodes that are told different members, before anybody sees material |
| the attempt | prepare | an attempt that not all nodes have prepared, before anybody uses data |

The *relay* is the process from which a member or a signature came. An honest relay has checked it,
so a statement that its signature does not fit is the relay's fault.

*Statements.* All that the nodes of an attempt sign, and what follows from it: joint seed and
identity.

The members' statement covers each member, the joint seed is the hash of all openings, and the
attempt's id covers each member and the seed. A member's certificate and signature are in none of
them: they prove who stated the rest, and another signature of the same statement changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from umpc.crypto.prg import digest
from umpc.crypto.signing import Credentials, Verify, as_of_now, is_signature
from umpc.errors import CertificateError, RemoteProtocolError
from umpc.study.document import Study
from umpc.study.sizes import Member

ROLE = "node"


def sign_member(study_hash: bytes, member: Member, own: Credentials) -> Member:
    """The member with the node's certificate and signature."""
    signature = own.sign(member_statement(study_hash, member))
    return replace(member, certificate=own.certificate, signature=signature)


def check_member(
    study_hash: bytes, member: Member, verify: Verify, relay: str | None, step: str
) -> bytes:
    """Check that the node that a member names has signed it.

    Args: relay: the process from which it came.

    Returns: the node's public key.
    Raises: CertificateError, RemoteProtocolError.
    """
    try:
        holder = verify(member.certificate)
    except CertificateError as error:
        raise CertificateError(
            f"the certificate in the member {member.name!r} does not count: {error.message}",
            culprit=error.culprit or relay,
            step=step,
        ) from error
    if (holder.name, holder.role) != (member.name, ROLE):
        raise RemoteProtocolError(
            f"the member {member.name!r} came with the certificate of the {holder.role} "
            f"{holder.name!r}, so {_sender(relay)} made it up; nothing was computed, and the study "
            f"ends",
            culprit=relay,
            step=step,
        )
    if not is_signature(holder.key, member_statement(study_hash, member), member.signature):
        raise RemoteProtocolError(
            f"the signature of {member.name} does not fit its member (name, records, commitment, "
            f"key), so {_sender(relay)} changed the member; nothing was computed, and the study "
            f"ends",
            culprit=relay,
            step=step,
        )
    return holder.key


def check_members(
    study: Study, members: Sequence[Member], verify: Verify, relay: str | None, step: str
) -> tuple[bytes, ...]:
    """Check all members of a study. Returns: the nodes' public keys. Raises: as `check_member`."""
    names = [node.name for node in study.nodes]
    if [member.name for member in members] != names:
        raise RemoteProtocolError(
            f"{_sender(relay)} named other nodes than the study's; the study ends",
            culprit=relay,
            step=step,
        )

    now = as_of_now(verify)
    return tuple(check_member(study.hash, each, now, relay, step) for each in members)


def check_signatures(
    what: str,
    statement: bytes,
    members: Sequence[Member],
    keys: Sequence[bytes],
    signatures: Sequence[bytes],
    relay: str | None,
    step: str,
) -> None:
    """Check that all nodes signed one statement.

    Args: what: the statement in words. members, keys, signatures: in the study's order.

    Raises: RemoteProtocolError naming the relay.
    """
    for number, (member, key) in enumerate(zip(members, keys, strict=True)):
        signature = signatures[number] if len(signatures) == len(keys) else b""
        if not is_signature(key, statement, signature):
            told = f", or told {member.name} something else" if relay != member.name else ""
            raise RemoteProtocolError(
                f"{member.name} has not signed {what}: {_sender(relay)} sent another signature"
                f"{told}; nothing was computed from data, and the study ends",
                culprit=relay,
                step=step,
            )


def check_agreed(
    study: Study,
    members: Sequence[Member],
    signatures: Sequence[bytes],
    verify: Verify,
    relay: str | None,
) -> None:
    """Check, at a dealer or shuffler, that all nodes are who they say and agreed to these members.

    Raises: RemoteProtocolError naming the relay; CertificateError.
    """
    keys = check_members(study, members, verify, relay, "prepare")
    statement = members_statement(study, members)
    check_signatures("these members", statement, members, keys, signatures, relay, "prepare")


def _sender(relay: str | None) -> str:
    return relay or "its sender"


# --- statements -----------------------------------------------------------------------------------


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
