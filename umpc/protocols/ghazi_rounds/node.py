"""A node's part of `ghazi-rounds`: a one-message protocol whose nodes then answer one question.

    session.release()                               release: the first message, charged
    session.answer(question)                        ask: the second message, about the records left out of the first

A study's answer is stored before it leaves, with its question's digest. Asked again, the node repeats it; to another
question, or where the run ended before there was an answer, it has none: the same records would answer twice.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from umpc.crypto.prg import digest
from umpc.errors import AlreadyReleased, EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.node.budget.ledger import StoredAnswer
from umpc.protocols.base.one_message_node import OneMessageSession
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.ghazi_rounds.messages import OfRounds
from umpc.study.document import Study


class TwoRoundsSession(OneMessageSession):
    """One node, one study, one attempt."""

    _protocol: OfRounds

    def __init__(
        self,
        name: str,
        study: Study,
        columns: Mapping[str, np.ndarray],
        records: int,
        entropy: Entropy,
    ):
        super().__init__(name, study, columns, records, entropy)
        self._answered = False

    def answer(self, question: bytes) -> bytes:
        """The second message, once. Raises: RemoteProtocolError where the question is malformed."""
        if not self._released or self._answered:
            raise LocalProtocolError("one question is answered, after the release")
        self._answered = True
        try:
            counts = self._member.classes
            return self._protocol.answer(
                self.columns, counts, self._message, question, self._random_bits
            )
        except EncodingError as error:
            raise RemoteProtocolError(
                f"the coordinator asked a malformed question: {error.message}; the study is charged and incomplete, "
                f"give it a new name to run it anew",
                culprit=self.study.coordinator,
                step="ask",
            ) from error


def question_digest(study: Study, attempt: bytes, question: bytes) -> bytes:
    """32 bytes that stand for a question of this attempt."""
    return digest(b"umpc question 1", study.hash, attempt, question)


def stored_answer(stored: StoredAnswer | None, asked: bytes, study: Study, node: str) -> bytes:
    """What was answered, to the same question. asked: its digest. Raises: AlreadyReleased."""
    if stored is not None and stored.question == asked:
        return stored.answer
    why = (
        "it never answered, for that run ended before"
        if stored is None
        else "it answered another question then"
    )
    raise AlreadyReleased(
        f"{node} released the study {study.name!r} before, and {why}: the study is charged and incomplete; give it a "
        f"new name to run it anew",
        culprit=node,
        step="ask",
    )
