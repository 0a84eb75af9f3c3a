"""One attempt at a study: its members, their joint seed, and the identity of both.

Commit and reveal (docs/protocol.md, step agree): every node commits to 32 random bytes, sees
everybody's commitment, opens its own, and checks all openings. The joint seed is the hash of all
openings, so it is uniform as long as one node is honest, and nobody chooses it. The attempt's
identity covers study, commitments, record counts, keys and seed; peers and dealer refuse anything
of another attempt (`statements.py`).
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import replace

from umpc.crypto.prg import SEED_BYTES, digest
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.study.document import Study
from umpc.study.sizes import Member, Sizes
from umpc.study.statements import attempt_id, joint_seed


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
        """Each node's records: of the first class, and all others."""
        return [member.classes for member in self.members]

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
