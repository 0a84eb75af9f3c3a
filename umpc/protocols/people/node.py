"""An aggregator's side: a node of the grid whose table is its share of the people's histogram.

*Reveals*: nothing beside the grid. The share is uniform to everybody who lacks the other one, and
leaves under a mask. Where aggregators may lie, `checked.py` has the exchanges and the algebra.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from umpc.crypto import field
from umpc.crypto.prg import SEED_BYTES
from umpc.crypto.prime_field import PRIME
from umpc.crypto.signing import Credentials
from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import Words
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.node import GridNode, NodeTable
from umpc.protocols.grid.verified import bytes_of
from umpc.protocols.people.checked import (
    ASKS,
    EXCHANGES,
    SALT_BYTES,
    CheckedTotal,
    challenge,
    commitment_of,
    commitment_statement,
    pads,
)
from umpc.protocols.people.terms import SHARE, TAGS, check_signed, counted_of, messages_of
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.study.settings import HONEST
from umpc.ustat.clear import Columns


class PeopleNode(GridNode):
    """One aggregator, one study, one attempt.

    Args: columns: `SHARE` → (cells,) int64, the bits of words modulo 2^64. Where aggregators may
    lie these are elements of F, and there is `TAGS` beside them. records: the people that it adds
    up. The others as in SeedAgreement.

    Raises: StudyError where the study is not closed yet.
    """

    def __init__(
        self, own: Credentials, study: Study, columns: Columns, records: int, entropy: Entropy
    ):
        due = counted_of(study).n, (messages_of(study).cells,)
        if (records, columns[SHARE].shape) != due:
            raise LocalProtocolError(
                f"a share of {due[1][0]} cells and {due[0]} people was expected, got "
                f"{columns[SHARE].size} cells and {records} people"
            )
        super().__init__(own, study, columns, records, entropy)

    def check_agreed(self, signatures: Sequence[bytes]) -> None:
        super().check_agreed(signatures)
        # masks and noise are for these people: both signed them
        check_signed(self.study, self.members, self._keys)

    def receive_seed(self, node_seed: bytes) -> None:
        super().receive_seed(node_seed)
        if self.study.adversary != HONEST:
            own = self.grid_attempt, self.index, node_seed, self._own, self._keys
            tags = self.columns[TAGS].view(np.uint64)
            self._table = CheckedTable(*own, tags, self._entropy)

    def _tabulated(self) -> Words:
        return self.columns[SHARE].view(np.uint64)


# --- where aggregators may lie --------------------------------------------------------------------


class CheckedTable(NodeTable):
    """An aggregator's part of one attempt.

    Args: as of `NodeTable`; tags: m_u, (cells,) elements of F. entropy: of a salt.
    """

    exchanges = answers = EXCHANGES
    asks = ASKS

    def __init__(
        self,
        attempt: GridAttempt,
        node: int,
        seed: bytes,
        own: Credentials,
        keys: Sequence[bytes],
        tags: Words,
        entropy: Entropy,
    ):
        super().__init__(attempt, node, seed, own, keys)
        self._said = CheckedTotal(attempt, keys)
        self._entropy = entropy
        self._tags = tags
        self._opening = b""

    def masked(self) -> Iterator[Frame]:
        """The frames of the next exchange."""
        said = self._said
        if not self._is_masked:
            yield from super().masked()
            return
        due = said.due(self.node)
        if due is said.statements[self.node]:
            said.total = self._statement
            due.data = super().sign()
        else:
            self._opening = self._entropy(SALT_BYTES) + bytes_of(self._checked())
            commitment = commitment_of(said.total, said.told, self.node, self._opening)
            due.data = commitment + self._own.sign(commitment_statement(commitment))
        yield from due.frames()

    def _checked(self) -> Words:
        """z_u: (2,)."""
        said, attempt = self._said, self.attempt.id
        total = self._total
        if total is None or not said.answer.is_complete or self._opening:
            raise LocalProtocolError("the check is made once, after the dealer's answer")
        # spec/people_verified.py, `checked`
        chi = challenge(attempt, said.told[:SEED_BYTES], len(total))
        words = PRIME.checked(np.frombuffer(said.told[SEED_BYTES:], dtype="<u8").astype(np.uint64))
        own, times = pads(attempt, self._seed)
        if self.node == 0:
            own, times = field.add(own, words[:2]), field.add(times, words[2])
        of_total = field.inner_fk(total.astype(np.uint64, copy=False), chi)
        return field.subtract(
            field.add(field.inner_fk(self._tags, chi), own), field.scale(times, of_total)
        )

    def take(self, frame: Frame) -> bool:
        if self._came < self.attempt.layout.frames:
            return super().take(frame)
        self._said.due(1 - self.node).take(frame, self.attempt.study.coordinator)
        return True

    def hear(self, frame: Frame, dealer: bytes) -> bool:
        return self._said.hear(frame, dealer, self._own.verify)

    def sign(self) -> bytes:
        """Salt and z_u, once the other one has committed. It opens the survey's check.

        Raises: RemoteProtocolError naming the coordinator.
        """
        said, relay = self._said, self.attempt.study.coordinator
        said.check_statements(relay)
        said.check_commitments(relay)
        return self._opening

    def confirm(self, signatures: Sequence[bytes]) -> None:
        """Check what both opened. Then make the node's shares. Raises: FailedCheck."""
        self._said.check(signatures)
        if self._total is None:
            raise LocalProtocolError("shares are made once, from the total")
        self.make_shares(self._total)
