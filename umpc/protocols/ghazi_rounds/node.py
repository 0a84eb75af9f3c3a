"""A node's side of a protocol that asks: one message, and later the answer to one question.

    side.release()            release: the first message, charged
    side.answer(question)     ask: the second message

A study's answer is stored before it leaves, with its question's digest. Asked again, the node
repeats it. To another question, or where the run ended before there was an answer, it has none: the
same records would answer twice.
"""

from __future__ import annotations

from umpc.crypto.signing import Credentials
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.protocols.base.asking import AskingMessages
from umpc.protocols.base.one_message_node import OneMessageNode
from umpc.protocols.base.seed_agreement import Entropy
from umpc.study.document import Study
from umpc.ustat.clear import Columns


class RoundsNode(OneMessageNode):
    """One node, one study, one attempt. Args: as of OneMessageNode."""

    _messages: AskingMessages

    def __init__(
        self,
        own: Credentials,
        study: Study,
        columns: Columns,
        records: int,
        entropy: Entropy,
        messages: AskingMessages,
    ):
        super().__init__(own, study, columns, records, entropy, messages)
        self._answered = False

    def recall(self, share: bytes, rest: bytes) -> None:
        """The first message as it left, from the same records. Only the answer is still due."""
        if self._message is not None:
            raise LocalProtocolError("a side that made its own message recalls none")
        self._message = share
        self._is_released = True

    def answer(self, question: bytes) -> bytes:
        """The second message, once. Raises: RemoteProtocolError for a malformed question."""
        if self._message is None or not self._is_released or self._answered:
            raise LocalProtocolError("one question is answered, after the release")
        self._answered = True
        counts = self._member.classes
        try:
            return self._messages.answer(
                self.columns, counts, self._message, question, self._random_bits
            )
        except EncodingError as error:
            raise RemoteProtocolError(
                f"the coordinator asked a malformed question: {error.message}; nothing was "
                f"answered, run the study again",
                culprit=self.study.coordinator,
                step="ask",
            ) from error
