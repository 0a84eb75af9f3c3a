"""The steps by which a node joins an attempt: commit, hear everybody, open, check all.

member = side.accept()                signed by this node
opening = side.agree(members)         all members are signed by their nodes
signature = side.sign_members()       this node agrees to these members, and to no others
side.check_agreed(signatures)         all nodes have agreed to the same members
side.begin(openings)
signature = side.sign_attempt()       this node has prepared this attempt
side.check_prepared(signatures)       all nodes have; only now data may be used
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from umpc.crypto.prg import SEED_BYTES
from umpc.crypto.signing import Credentials
from umpc.crypto.zero_shares import KeyAgreement
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.study.attempt import (
    check_members,
    check_openings,
    check_signatures,
    commit,
    members_statement,
    sign_member,
)
from umpc.study.document import Study
from umpc.study.sizes import Member
from umpc.ustat.clear import Columns

Entropy = Callable[[int], bytes]
"""Number of bytes → uniform bytes."""


class SeedAgreement:
    """The beginning of every node's part.

    Args:
        own: the node's name, what it signs with, and how it checks others.
        columns: field → (records,) int64 in steps of the resolution.
        records: how many records the columns have.
        entropy: the node's randomness, for its opening, its key and its noise.
    """

    def __init__(
        self, own: Credentials, study: Study, columns: Columns, records: int, entropy: Entropy
    ):
        self.study = study
        self.signatures: tuple[bytes, ...] = ()
        """Every node's signature of all members, once they are checked."""
        self._own = own
        self.records = records
        self.columns, first_class = by_class(study, columns)
        self.index = study.index_of(own.name)
        self._entropy = entropy
        # spec/joint_seed.py: this node's part of the joint seed
        self.opening = entropy(SEED_BYTES)
        # Bonawitz et al. 2017: a fresh key for this attempt's masks
        self._key = KeyAgreement(entropy(SEED_BYTES))
        # commit before anybody's opening is known
        commitment = commit(study.hash, own.name, self.opening)
        member = Member(own.name, records, commitment, self._key.public_key, first_class)
        # spec/joint_seed.py, `member_statement`
        self._member = sign_member(study.hash, member, own)
        self._members: tuple[Member, ...] | None = None
        self._keys: tuple[bytes, ...] = ()

    def __repr__(self) -> str:
        study = self.study.hash.hex()[:8]
        return f"{type(self).__name__}({self._member.name}, study {study}, <redacted>)"

    def accept(self) -> Member:
        """The node's entry among the members, with which it accepts the study."""
        return self._member

    @property
    def members(self) -> tuple[Member, ...]:
        """All members, after `agree`."""
        if self._members is None:
            raise LocalProtocolError("the members have not agreed")
        return self._members

    def agree(self, members: Sequence[Member]) -> bytes:
        """Take everybody's commitment and give one's own opening.

        A node does so once, and only if its own entry is intact and all others are signed.

        Raises: RemoteProtocolError where the coordinator changed the members; CertificateError.
        """
        if self._members is not None:
            raise LocalProtocolError("the members were agreed on before")
        names = [node.name for node in self.study.nodes]
        # the coordinator relays: own entry must be intact
        if [member.name for member in members] != names or members[self.index] != self._member:
            raise RemoteProtocolError(
                "the coordinator passed on other nodes than the study's, or another entry than "
                "this node's own",
                culprit=self.study.coordinator,
                step="agree",
            )
        relay = self.study.coordinator
        # every entry is signed by its node
        self._keys = check_members(self.study, members, self._own.verify, relay, "agree")
        self._members = tuple(members)
        # open only now: no other node can choose its part any more
        return self.opening

    def check_members_now(self) -> None:
        """Check the members once more, with the dates and the list of revoked certificates of now.

        Prepared work may wait for a day, and no handshake looks at certificates again.

        Raises: CertificateError naming the node whose certificate counts no more.
        """
        check_members(self.study, self.members, self._own.verify, None, "prepare")

    def sign_members(self) -> bytes:
        """The node's signature of all members, after `agree`."""
        if self._members is None:
            raise LocalProtocolError("members are signed after they were agreed on")
        # spec/joint_seed.py, `members_statement`
        return self._own.sign(members_statement(self.study, self._members))

    def check_agreed(self, signatures: Sequence[bytes]) -> None:
        """Check that all nodes signed the same members.

        Raises: RemoteProtocolError where the coordinator told two nodes different members.
        """
        if self._members is None:
            raise LocalProtocolError("signatures of the members come after agree")
        # all nodes must have seen the same commitments
        statement = members_statement(self.study, self._members)
        self._check_signatures("these members", statement, signatures, "prepare")
        self.signatures = tuple(signatures)

    def _check_signatures(
        self, what: str, statement: bytes, signatures: Sequence[bytes], step: str
    ) -> None:
        members = self._members or ()
        relay = self.study.coordinator
        check_signatures(what, statement, members, self._keys, signatures, relay, step)

    def _agreed(self, openings: Sequence[bytes]) -> tuple[Member, ...]:
        """The members, if all openings fit. Raises: RemoteProtocolError."""
        if self._members is None:
            raise LocalProtocolError("begin comes once, after agree")
        # an opening that the coordinator changed would steer E
        if len(openings) != len(self._members) or openings[self.index] != self.opening:
            raise RemoteProtocolError(
                "the coordinator changed this node's opening, or left out others",
                culprit=self.study.coordinator,
                step="prepare",
            )
        # every opening fits its commitment
        check_openings(self.study, self._members, openings, self.study.coordinator)
        return self._members

    def _random_bits(self, count: int) -> int:
        drawn = int.from_bytes(self._entropy((count + 7) // 8), "little")
        # whole bytes are drawn, and the bits beyond `count` dropped
        return drawn >> (-count % 8)


def by_class(study: Study, columns: Columns) -> tuple[Columns, int]:
    """The columns with the records of the first class first, and how many records these are.

    Without public labels nothing moves, and the number is 0.
    """
    if not study.two_sample:
        return columns, 0
    label = columns[study.label]
    # stable: the order inside a class stays the table's
    order = np.argsort(label, kind="stable")
    ordered: Mapping[str, np.ndarray] = {name: column[order] for name, column in columns.items()}
    return ordered, int((label == 0).sum())
