"""The node's side of a protocol in which it sends one message.

The records are randomised once. A second message about the same records would be a second ε: the
ledger pays for the first, and the stored message is sent again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from umpc.crypto.signing import Credentials
from umpc.errors import LocalProtocolError
from umpc.protocols.base.node import NodeSide
from umpc.protocols.base.one_message import OneMessage, check_size
from umpc.protocols.base.seed_agreement import Entropy
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.ustat.clear import Columns


class OneMessageNode(NodeSide):
    """One node, one study, one attempt.

    Args: messages: the protocol's messages; the others as in SeedAgreement.

    Raises: RangeError where the message would be too large to be released.
    """

    def __init__(
        self,
        own: Credentials,
        study: Study,
        columns: Columns,
        records: int,
        entropy: Entropy,
        messages: OneMessage,
    ):
        super().__init__(own, study, columns, records, entropy)
        self._messages = messages
        check_size(messages, own.name, self._member.classes)
        self._message: bytes | None = None
        self._is_released = False

    def begin(self, openings: Sequence[bytes]) -> Attempt:
        self._attempt = self._begin(openings)
        return self._attempt

    @property
    def delta(self) -> Fraction:
        return self.study.exact_delta

    def own_steps(self) -> Iterator[None]:
        """The message, at one step."""
        if self._attempt is None or self._message is not None:
            raise LocalProtocolError("records are randomised once, after the attempt has begun")
        self._message = self._make_message()
        yield

    def _make_message(self) -> bytes:
        return self._messages.randomise(self.columns, self._member.classes, self._random_bits)

    def release(self) -> m.Released:
        """The message, once."""
        if self._message is None or self._is_released:
            raise LocalProtocolError(
                "the message is released once, after the records were randomised"
            )
        self._is_released = True
        return self._released(self._message)
