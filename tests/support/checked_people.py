"""One attempt over people where aggregators may lie, between whose real sides a test stands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.people import people_study
from tests.support.protocols import coordinator_of
from tests.support.studies import LOUD, Entropy, random_tables
from tests.support.verified import Change, VerifiedRun, unchanged
from umpc.crypto import field
from umpc.protocols.people.in_memory import made_up_alpha, shared_out
from umpc.protocols.people.terms import SHARE, TAGS
from umpc.protocols.registry import protocol_of
from umpc.simulation import AUTHORITY
from umpc.study.settings import LYING_NODES

N = 9
STUDY = people_study(epsilon=LOUD, adversary=LYING_NODES)
TABLE = random_tables([N], "people")[0]


class PeopleRun(VerifiedRun):
    """Coordinator, both aggregators, and the dealer behind its server's door.

    Args: lie: changes the second aggregator's share of h, and that of α·h, before anything.
    """

    def __init__(self, label: str, lie: Callable[[np.ndarray, np.ndarray], None] | None = None):
        self.entropy = Entropy(label)
        owns = [AUTHORITY.credentials(node.name) for node in STUDY.nodes]
        self.study, shares, n = shared_out(STUDY, [TABLE], owns, self.entropy)
        if lie is not None:
            own = {name: each.copy() for name, each in shares[1].items()}
            lie(own[SHARE].view(np.uint64), own[TAGS].view(np.uint64))
            shares[1] = own
        self.coordinator = coordinator_of(self.study)
        protocol = protocol_of(self.study)
        self.nodes = [
            protocol.node(own, self.study, share, n, self.entropy)
            for own, share in zip(owns, shares, strict=True)
        ]

    def prepare(self) -> PeopleRun:
        super().prepare()
        self.dealing.alpha = made_up_alpha(self.study)
        return self

    def up_to_total(self, change: Change = unchanged) -> PeopleRun:
        """Exchanges 1 and 2, before the dealer is asked. Args: change: of the masked tables."""
        self.prepare().count().up(change).down().up()
        return self

    def committed(self, change: Change = unchanged) -> PeopleRun:
        """Everything before a check is opened. Args: as of `up_to_total`."""
        self.up_to_total(change).ask().down().up().down()
        return self

    @property
    def twice_the_sum(self) -> int:
        """The sum of both shares, without noise."""
        return self.attempt.ring.decode(sum(table.shares[0] for table in self.tables))


def moved(words: np.ndarray, cell: int, by: int) -> None:
    """Add to one element of F."""
    words[cell] = (int(words[cell]) + by) % field.P
