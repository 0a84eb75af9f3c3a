"""A node's part of a shuffled study, without network, disk or clock: as `onemessage`, for two receivers.

attempt = session.begin(openings)               prepare: how many records all nodes have, so how much noise
session.randomise()                             evaluate: the message, and its pad
delivery = session.release()                    release: what the ledger keeps
frames_to(place, node, study, delivery)                  and what either shuffler gets of it, now and again
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from umpc.errors import LocalProtocolError
from umpc.mpc.attempt import Attempt
from umpc.protocols.base.seed_agreement import Entropy, SeedAgreement
from umpc.protocols.ghazi_shuffle.messages import OfShufflers, Sealed
from umpc.protocols.local.messages import one_message_of
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.frames import Frame


class ShuffledSession(SeedAgreement):
    """One node, one study, one attempt."""

    def __init__(
        self,
        name: str,
        study: Study,
        columns: Mapping[str, np.ndarray],
        records: int,
        entropy: Entropy,
    ):
        super().__init__(name, study, columns, records, entropy)
        self._protocol: OfShufflers | None = None
        self._sealed: Sealed | None = None
        self._openings: tuple[bytes, ...] = ()
        self._released = False

    def begin(self, openings: Sequence[bytes]) -> Attempt:
        """Check everybody's opening. Raises: also TooFewRecords, RangeError for the numbers of records."""
        attempt = self._attempt_of(openings)
        counts = [member.classes for member in attempt.members]
        self._protocol = one_message_of(self.study, counts)
        self._protocol.check_sizes([member.name for member in attempt.members], counts)
        self._attempt, self._openings = attempt, tuple(openings)
        return attempt

    def randomise(self) -> None:
        """Make the message and its pad, once."""
        if self._protocol is None or self._sealed is not None:
            raise LocalProtocolError("records are randomised once, after the attempt has begun")
        self._sealed = self._protocol.seal(self.columns, self._random_bits)

    def release(self) -> m.Delivery:
        """All that leaves the node, once."""
        if self._sealed is None or self._released:
            raise LocalProtocolError(
                "the message is released once, after the records were randomised"
            )
        self._released = True
        return m.Delivery(
            self.attempt.id,
            self.attempt.members,
            self._openings,
            self._sealed.masked,
            self._sealed.seed,
        )


def frames_to(place: int, node: int, study: Study, delivery: m.Delivery) -> Iterator[Frame]:
    """What shuffler `place` gets from node number `node`: the same whenever it is asked for."""
    protocol = one_message_of(study, [member.classes for member in delivery.members])
    records = delivery.members[node].records
    return protocol.frames(place, node, records, Sealed(delivery.masked, delivery.seed))
