"""A node's side of `ghazi-shuffle`: one message, made for two receivers.

attempt = side.begin(openings)     prepare: all nodes' records, and so how much noise
side.own_steps()                   evaluate: the message, and its pad
delivery = side.release()          release: what the ledger keeps
frames_to(place, node, study, delivery)     and what either shuffler gets of it, now and again
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from umpc.crypto.signing import Credentials
from umpc.errors import LocalProtocolError
from umpc.protocols.base.node import NodeSide
from umpc.protocols.base.seed_agreement import Entropy
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.ustat.clear import Columns
from umpc_papers.ghazi_shuffle.messages import Sealed, ShuffleMessages, shuffle_messages


class ShuffleNode(NodeSide):
    """One node, one study, one attempt. Args: as in SeedAgreement."""

    def __init__(
        self, own: Credentials, study: Study, columns: Columns, records: int, entropy: Entropy
    ):
        super().__init__(own, study, columns, records, entropy)
        self._messages: ShuffleMessages | None = None
        self._sealed: Sealed | None = None
        self._is_released = False

    def begin(self, openings: Sequence[bytes]) -> Attempt:
        """Raises: also TooFewRecords, RangeError for the numbers of records."""
        attempt = self._begin(openings)
        names = [member.name for member in attempt.members]
        self._messages = shuffle_messages(self.study, attempt.counts)
        self._messages.check_sizes(names, attempt.counts)
        self._attempt = attempt
        return attempt

    def own_steps(self) -> Iterator[None]:
        """The message and its pad, at one step."""
        if self._messages is None or self._sealed is not None:
            raise LocalProtocolError("records are randomised once, after the attempt has begun")
        self._sealed = self._messages.seal(self.columns, self._random_bits)
        yield

    def release(self) -> m.Delivery:
        """All that leaves the node, once."""
        if self._sealed is None or self._is_released:
            raise LocalProtocolError(
                "the message is released once, after the records were randomised"
            )
        self._is_released = True
        attempt = self.attempt
        return m.Delivery(
            attempt.id,
            attempt.members,
            attempt.openings,
            self._sealed.masked,
            self._sealed.seed,
            self.signatures,
        )


def frames_to(place: int, node: int, study: Study, delivery: m.Delivery) -> Iterator[Frame]:
    """The frames that shuffler `place` gets from node number `node`, the same at every call."""
    messages = shuffle_messages(study, [member.classes for member in delivery.members])
    records = delivery.members[node].records
    return messages.frames(place, node, records, Sealed(delivery.masked, delivery.seed))
