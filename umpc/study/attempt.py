"""One attempt at a study: its members, their joint seed, and the identity of both.

Commit and reveal (docs/protocol.md, step agree): every node commits to 32 random bytes, sees
everybody's commitment, opens its own, and checks all openings. The joint seed is the hash of all
openings, so one attempt's seed is uniform if one node is honest. Who sees all openings can end the
attempt and have another seed drawn; the noise covers every E. The attempt's identity covers study,
commitments, record counts, keys and seed; peers and dealer refuse anything of another attempt.

*Survivors.* Survivors: a study over the nodes that are left, after others were lost before its
release.

    whole.without("c")  ─►  the same document with `nodes` = all but c, `missing` = c

Everything that follows from the nodes (E, n, the noise, the zero shares, a graph between nodes)
follows from the survivors, because they are the study's nodes. The hash of the survivors' study
differs from the whole study's. So the joint seed, the attempt's id and every signature of the
members are bound to one set of survivors, and all survivors sign it. A node charges under the hash
of the whole study, whoever survives, and it charges once.

The number of nodes that may collude is capped at all survivors but one: then every survivor is
still protected against as many of the others as the whole study says, or against all of them.

Signed members: each process checks what every node said about itself, and who agreed on it.

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

import hmac
from collections.abc import Collection, Sequence
from dataclasses import replace

import msgspec

from umpc.crypto.prg import SEED_BYTES, digest
from umpc.crypto.signing import Credentials, Verify, as_of_now, is_signature
from umpc.errors import CertificateError, LocalProtocolError, RemoteProtocolError, StudyError
from umpc.study.document import Study
from umpc.study.parts import Missing
from umpc.study.sizes import Member, Sizes, counted_once

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
) -> tuple[bytes, ...]:
    """Check, at a dealer or shuffler, that all nodes are who they say and agreed to these members.

    Returns: the nodes' public keys.
    Raises: RemoteProtocolError naming the relay; CertificateError.
    """
    keys = check_members(study, members, verify, relay, "prepare")
    statement = members_statement(study, members)
    check_signatures("these members", statement, members, keys, signatures, relay, "prepare")
    return keys


def _sender(relay: str | None) -> str:
    return relay or "its sender"


# --- statements -----------------------------------------------------------------------------------


def member_statement(study_hash: bytes, member: Member) -> bytes:
    """The bytes that a node signs as its member: all but certificate and signature."""
    return digest(b"umpc member 1", study_hash, *_facts(member))


def _facts(member: Member) -> tuple[bytes, ...]:
    counts = (count.to_bytes(8, "little") for count in (member.records, member.first_class))
    return member.name.encode(), *counts, member.commitment, member.public_key


def members_statement(study: Study, members: Sequence[Member]) -> bytes:
    """The bytes that every node signs when it agrees to the members."""
    each = (member_statement(study.hash, member) for member in members)
    return digest(b"umpc members 1", study.hash, *each)


def attempt_statement(attempt: bytes) -> bytes:
    """The bytes that every node signs when it has prepared an attempt. Args: attempt: its id."""
    return digest(b"umpc prepared 1", attempt)


def joint_seed(openings: Sequence[bytes]) -> bytes:
    """The seed that all nodes made together, uniform in one attempt if one of them is honest."""
    return digest(b"umpc joint seed 1", *openings)


def attempt_id(study: Study, members: Sequence[Member], openings: Sequence[bytes]) -> bytes:
    """The identity of an attempt, 32 bytes."""
    return identity_of(study.hash, [facts_digest(each) for each in members], joint_seed(openings))


def facts_digest(member: Member) -> bytes:
    """All that a member says, in 32 bytes. Its commitment hides the rest from others."""
    return digest(*_facts(member))


def identity_of(study_hash: bytes, members: Sequence[bytes], seed: bytes) -> bytes:
    """The identity of an attempt. Args: members: `facts_digest` of each. seed: the joint seed."""
    return digest(b"umpc attempt 1", study_hash, *members, seed)


# --- the agreement --------------------------------------------------------------------------------


class Attempt:
    """The agreed facts of one attempt.

    Args:
        members, openings: in the study's order.

    Raises: RemoteProtocolError naming the node whose opening does not fit its commitment.
    """

    def __init__(self, study: Study, members: Sequence[Member], openings: Sequence[bytes]):
        names = [node.name for node in study.nodes]
        if [member.name for member in members] != names or len(openings) != len(names):
            raise LocalProtocolError(
                f"the agreement names {[m.name for m in members]}, the study {names}"
            )
        check_openings(study, members, openings)
        self.study = study
        self.members = tuple(members)
        self.openings = tuple(openings)
        self.seed = joint_seed(openings)
        self.id = attempt_id(study, members, openings)
        self.sizes = Sizes.of(study, members)

    @property
    def counts(self) -> list[tuple[int, int]]:
        """Each node's records: of the first class, and all others. Shared ones are there once."""
        return [member.classes for member in counted_once(self.study, self.members)]

    @property
    def size(self) -> int:
        """The number of edges, or of records if there are more: brief work grows with it."""
        return max(self.sizes.edges, self.sizes.records)

    def with_study(self, study: Study) -> Attempt:
        """The attempt of another study over the same records, for estimates."""
        rows = zip(self.members, self.openings, strict=True)
        members = [replace(m, commitment=commit(study.hash, m.name, o)) for m, o in rows]
        return Attempt(study, members, self.openings)


def check_openings(
    study: Study, members: Sequence[Member], openings: Sequence[bytes], relay: str | None = None
) -> None:
    """Check that every opening fits its commitment.

    Args: relay: the process that passed the openings on and ought to have checked them.

    Raises: RemoteProtocolError naming the relay, or without one the node.
    """
    if len(members) != len(openings):
        raise RemoteProtocolError(
            f"{len(openings)} openings came for {len(members)} members; nothing was computed",
            culprit=relay,
            step="agree",
        )
    for member, opening in zip(members, openings, strict=True):
        expected = commit(study.hash, member.name, opening)
        if len(opening) != SEED_BYTES or not hmac.compare_digest(expected, member.commitment):
            passed = f", as {relay} passed it on," if relay else ""
            raise RemoteProtocolError(
                f"the seed opening of {member.name}{passed} does not fit its commitment; nothing "
                f"was computed, run again",
                culprit=relay or member.name,
                step="agree",
            )


def commit(study_hash: bytes, node: str, opening: bytes) -> bytes:
    """The commitment of a node to its part of the joint seed."""
    return digest(b"umpc commitment 1", study_hash, node.encode(), opening)


# --- survivors ------------------------------------------------------------------------------------

FEWEST = 2
"""Fewest nodes with which a study that lost others may end: a node alone would be isolated."""


def without(study: Study, names: Collection[str]) -> Study:
    """The study over all its nodes but these.

    Raises: StudyError where the study does not go on without them.
    """
    whole = study.whole
    check_losses(whole, names)
    if not names:
        return whole
    places = tuple(place for place, node in enumerate(whole.nodes) if node.name in names)
    survivors = tuple(node for node in whole.nodes if node.name not in names)
    gone = tuple(whole.nodes[place] for place in places)
    missing = Missing(places, gone, whole.max_colluding, whole.datasets)
    datasets = whole.datasets
    if not isinstance(datasets, msgspec.UnsetType):
        left = tuple(name for place, name in enumerate(datasets) if place not in places)
        datasets = left if any(left) else msgspec.UNSET
    return msgspec.structs.replace(
        whole,
        nodes=survivors,
        max_colluding=min(whole.max_colluding, len(survivors) - 1),
        datasets=datasets,
        missing=missing,
    )


def check_losses(whole: Study, names: Collection[str]) -> None:
    """Raises: StudyError where the whole study does not end without these nodes."""
    lost = ", ".join(sorted(names))
    unknown = set(names) - {node.name for node in whole.nodes}
    if unknown:
        raise StudyError(f"{', '.join(sorted(unknown))} cannot be missing: it is no node of it")
    if len(names) > whole.most_missing:
        raise StudyError(
            f"the study {whole.name!r} ends without at most {whole.most_missing} of its nodes "
            f"(may_miss), and {len(names)} are missing: {lost}; start them, and run it again"
        )
    needed = sorted(set(names) & set(whole.names_required))
    if needed:
        raise StudyError(
            f"the study {whole.name!r} needs {', '.join(needed)} (required), which is missing; "
            f"start it, and run the study again"
        )


def check_missing(study: Study) -> None:
    """The rules of may_miss, required and missing. Raises: StudyError."""
    if isinstance(study.may_miss, msgspec.UnsetType):
        if study.names_required or study.names_missing:
            raise StudyError("required goes with may_miss; write both, or leave required out")
        return
    whole = study.whole
    most = len(whole.nodes) - FEWEST
    if not 1 <= study.most_missing <= most:
        raise StudyError(
            f"may_miss is a whole number from 1 to {max(most, 0)} for {len(whole.nodes)} nodes, "
            f"since at least {FEWEST} must be left; got {study.most_missing}"
        )
    names = [node.name for node in whole.nodes]
    _check_required(study, names)
    if not study.names_missing:
        return
    is_whole = len(set(names)) == len(names) and 0 <= whole.max_colluding < len(names)
    if not is_whole or without(study, study.names_missing) != study:
        raise StudyError("the survivors do not follow from the study and its missing nodes")


def _check_required(study: Study, names: list[str]) -> None:
    required = study.names_required
    unknown = sorted(set(required) - set(names))
    if unknown or len(set(required)) != len(required):
        raise StudyError(
            f"required names nodes of the study, each once; got {', '.join(required)}. Correct it"
        )
    if len(names) - len(required) < study.most_missing:
        raise StudyError(
            f"may_miss = {study.most_missing} with {len(required)} of {len(names)} nodes required: "
            f"too few are left that may be missing; lower may_miss, or require fewer"
        )


def describe_losses(study: Study) -> str:
    """The nodes that the study may miss, in words; empty where it needs all."""
    if not study.most_missing:
        return ""
    needed = study.names_required
    spared = f", not {' or '.join(needed)}" if needed else ""
    return (
        f"up to {study.most_missing} of {len(study.whole.nodes)} nodes may be lost before the "
        f"release{spared}; the estimate is then of the records of the others"
    )


def fewest_survivors(study: Study) -> Study | None:
    """The study with as few nodes as it may have; None where no further node may be lost.

    The last nodes that are not required are left out. The rules of protocols, and the noise, depend
    on how many nodes there are, and not on which.
    """
    whole = study.whole
    optional = [node.name for node in whole.nodes if node.name not in whole.names_required]
    if len(study.names_missing) >= study.most_missing:
        return None
    return without(whole, optional[-study.most_missing :])
