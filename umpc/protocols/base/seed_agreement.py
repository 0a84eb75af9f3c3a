"""How a node joins an attempt: it commits to its part of the joint seed, hears everybody, opens, and checks all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from umpc.crypto.prg import SEED_BYTES
from umpc.crypto.zero_shares import KeyAgreement
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.mpc.attempt import Attempt, commit
from umpc.protocols.u_mpc.noise_binding import attempt_of
from umpc.study.document import Study
from umpc.study.sizes import Member

Entropy = Callable[[int], bytes]
"""Number of bytes → uniform bytes."""


class SeedAgreement:
    """What sessions of all protocols begin with.

    Args:
        columns: field → (records,) int64 in steps of the resolution.
        records: how many records the columns have.
        entropy: the node's randomness: opening, key, noise.
    """

    def __init__(
        self,
        name: str,
        study: Study,
        columns: Mapping[str, np.ndarray],
        records: int,
        entropy: Entropy,
    ):
        self.study, self.records = study, records
        self.columns, first_class = by_class(study, columns)
        self.index = study.index_of(name)
        self._entropy = entropy
        self._opening = entropy(SEED_BYTES)
        self._key = KeyAgreement(entropy(SEED_BYTES))
        commitment = commit(study.hash, name, self._opening)
        self._member = Member(name, records, commitment, self._key.public_key, first_class)
        self._members: tuple[Member, ...] | None = None
        self._attempt: Attempt | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._member.name}, study {self.study.hash.hex()[:8]}, <redacted>)"

    def accept(self) -> Member:
        """What the node says of itself when it accepts the study."""
        return self._member

    def agree(self, members: Sequence[Member]) -> bytes:
        """Take everybody's commitment, give one's own opening: only once, and only if one's own entry is intact."""
        if self._members is not None:
            raise LocalProtocolError("the members were agreed on before")
        names = [node.name for node in self.study.nodes]
        if [member.name for member in members] != names or members[self.index] != self._member:
            raise RemoteProtocolError(
                "the coordinator passed on other nodes than the study's, or another entry than this node's own",
                culprit=self.study.coordinator,
                step="agree",
            )
        self._members = tuple(members)
        return self._opening

    def _attempt_of(self, openings: Sequence[bytes]) -> Attempt:
        """The attempt, once. Raises: RemoteProtocolError where an opening does not fit."""
        if self._members is None or self._attempt is not None:
            raise LocalProtocolError("begin comes once, after agree")
        if len(openings) != len(self._members) or openings[self.index] != self._opening:
            raise RemoteProtocolError(
                "the coordinator changed this node's opening, or left out others",
                culprit=self.study.coordinator,
                step="prepare",
            )
        return attempt_of(self.study, self._members, openings)

    @property
    def attempt(self) -> Attempt:
        if self._attempt is None:
            raise LocalProtocolError("the attempt has not begun")
        return self._attempt

    def _random_bits(self, count: int) -> int:
        return int.from_bytes(self._entropy((count + 7) // 8), "little") >> (-count % 8)


def by_class(
    study: Study, columns: Mapping[str, np.ndarray]
) -> tuple[Mapping[str, np.ndarray], int]:
    """The columns with records of the first class first, where the study has public labels; and how many these are."""
    if not study.two_sample:
        return columns, 0
    label = columns[study.label]
    order = np.argsort(label, kind="stable")
    return {name: column[order] for name, column in columns.items()}, int((label == 0).sum())
