"""A node's part of a one-message protocol, without network, disk or clock.

    member = session.accept()                       propose: records, commitment, key
    opening = session.agree(members)                agree: joint seed
    attempt = session.begin(openings)               prepare: nothing is dealt, no peers
    session.randomise()                             evaluate: the node's own records, in the node
    session.release()                               release: the message

The records are randomised once. A second message about the same records would be a second epsilon: it is the ledger
that pays, and the stored message that is sent again (`run.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from umpc.errors import LocalProtocolError
from umpc.mpc.attempt import Attempt
from umpc.protocols.base.seed_agreement import Entropy, SeedAgreement
from umpc.protocols.local.messages import check_size, one_message_of
from umpc.study.document import Study


class OneMessageSession(SeedAgreement):
    """One node, one study, one attempt. Raises: RangeError where its message would be too large to be released."""

    def __init__(
        self,
        name: str,
        study: Study,
        columns: Mapping[str, np.ndarray],
        records: int,
        entropy: Entropy,
    ):
        super().__init__(name, study, columns, records, entropy)
        self._protocol = one_message_of(study)
        check_size(self._protocol, name, self._member.classes)
        self._message: bytes | None = None
        self._released = False

    def begin(self, openings: Sequence[bytes]) -> Attempt:
        """Check everybody's opening. Raises: RemoteProtocolError where one does not fit."""
        self._attempt = self._attempt_of(openings)
        return self._attempt

    def randomise(self) -> None:
        """Make the message, once."""
        if self._attempt is None or self._message is not None:
            raise LocalProtocolError("records are randomised once, after the attempt has begun")
        self._message = self._protocol.randomise(
            self.columns, self._member.classes, self._random_bits
        )

    def release(self) -> bytes:
        """The message, once."""
        if self._message is None or self._released:
            raise LocalProtocolError(
                "the message is released once, after the records were randomised"
            )
        self._released = True
        return self._message
