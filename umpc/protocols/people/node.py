"""An aggregator's side: a node of the grid whose table is its share of the people's histogram.

*Reveals*: nothing beside the grid. The share is uniform to everybody who lacks the other one, and
leaves under a mask.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.crypto.signing import Credentials
from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import Words
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.grid.node import GridNode
from umpc.protocols.people.checked_node import CheckedTable
from umpc.protocols.people.terms import SHARE, TAGS, check_signed, counted_of, messages_of
from umpc.study.document import Study
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
