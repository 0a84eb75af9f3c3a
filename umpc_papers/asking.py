"""The messages of a protocol whose nodes answer one question after their first message.

A node's first message leaves at *release*, after the charge. The coordinator makes one question
from all first messages. Each node answers it once, and the charge has paid for the answer too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from umpc.dp.random_bits import RandomBits
from umpc.errors import EncodingError, LocalProtocolError
from umpc.protocols.base.one_message import MessageEstimate, OneMessage
from umpc.study.making_report import Limits
from umpc.study.sizes import ClassCounts
from umpc.ustat.clear import Columns


class AskingMessages(OneMessage):
    """A first message, a question, and an answer; `randomise` and `check` are of the first one.

    `message_bytes` is the size of both messages of a node together.
    """

    # --- the node ------------------------------------------------------------------------------

    @abstractmethod
    def answer(
        self, columns: Columns, counts: ClassCounts, first: bytes, question: bytes, bits: RandomBits
    ) -> bytes:
        """The second message, about the same records in the same order.

        Raises: EncodingError for a bad question.
        """

    @abstractmethod
    def asked_records(self, first: bytes, records: int) -> NDArray[np.bool_]:
        """The records that the question is for: (records,). Args: first: the first message."""

    # --- the coordinator -----------------------------------------------------------------------

    @property
    @abstractmethod
    def question_bytes(self) -> int:
        """The size of the question."""

    @abstractmethod
    def question(self, firsts: Sequence[bytes], counts: Sequence[ClassCounts]) -> bytes:
        """The question that follows from all first messages, and from nothing else."""

    def check_answer(self, first: bytes, answer: bytes, counts: ClassCounts) -> None:
        """Whether an answer goes with the node's first message: its size is all that is said here.

        Raises: EncodingError where it does not.
        """
        due = self.message_bytes(counts) - len(first)
        if len(answer) != due:
            raise EncodingError(f"an answer of {due} bytes was due, {len(answer)} came")

    @abstractmethod
    def estimate(
        self,
        firsts: Sequence[bytes],
        question: bytes,
        answers: Sequence[bytes],
        counts: Sequence[ClassCounts],
    ) -> MessageEstimate:
        """The estimate from all first messages, the question, and all answers."""

    def aggregate(
        self, messages: Sequence[bytes], counts: Sequence[ClassCounts]
    ) -> MessageEstimate:
        """First messages alone give no estimate. Raises: LocalProtocolError."""
        raise LocalProtocolError("an estimate follows from both messages of every node")

    def check_records(self, counts: Sequence[ClassCounts]) -> None:
        """Raises: TooFewRecords, before anything is charged."""
        return None

    def possible_after(
        self, firsts: Sequence[bytes], question: bytes, counts: Sequence[ClassCounts]
    ) -> tuple[float, float]:
        """The range of `possible`, once the question is known."""
        return self.possible(counts)

    def limits_after(
        self,
        firsts: Sequence[bytes],
        question: bytes,
        answers: Sequence[bytes],
        counts: Sequence[ClassCounts],
    ) -> Limits | None:
        """The limits, with what all messages and the question say of them."""
        return self.limits()
