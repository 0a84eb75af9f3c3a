"""A node's side of a protocol that asks: one message, and later the answer to one question.

    side.release()            release: the first message, charged
    side.answer(question)     ask: the second message

A study's answer is stored before it leaves, with its question's digest. Asked again, the node
repeats it, and has none to another question: the same records would answer twice. Until there is
an answer, the ledger keeps the values of the records that the question is for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.ring import pack, packed_size, unpack
from umpc.crypto.signing import Credentials
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.protocols.base.one_message import OneMessageNode
from umpc.protocols.base.seed_agreement import Entropy
from umpc.study.document import Study
from umpc.ustat.clear import Columns
from umpc.ustat.schema import FieldSchema
from umpc_papers.asking import AskingMessages

COUNT_BYTES = 8
"""Bytes of each number of records that a node keeps for its answer."""


class RoundsNode(OneMessageNode):
    """One node, one study, one attempt. Args: as in OneMessageNode."""

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
        self._counts = self._member.classes

    @property
    def rest(self) -> bytes:
        """The numbers of records, and the values of those that the question is for."""
        if self._message is None or self._answered:
            raise LocalProtocolError("records are kept after the message, and before the answer")
        asked = self._asked(self._message, self.records)
        counts = b"".join(count.to_bytes(COUNT_BYTES, "little") for count in self._counts)
        return counts + b"".join(
            pack(self.columns[each.name][asked] - each.lower_units, _width(each))
            for each in self._schemas
        )

    def recall(self, share: bytes, rest: bytes) -> None:
        """The first message as it left. Only the answer is still due.

        Records that the question is not for have their lower bounds here; nothing uses them.
        """
        if self._message is not None:
            raise LocalProtocolError("a side that made its own message recalls none")
        counts = [int.from_bytes(rest[at : at + COUNT_BYTES], "little") for at in (0, COUNT_BYTES)]
        self._counts = (counts[0], counts[1])
        asked = self._asked(share, sum(counts))
        number, place = int(asked.sum()), 2 * COUNT_BYTES
        columns = {}
        for each in self._schemas:
            end = place + packed_size(number, _width(each))
            column = np.full(sum(counts), each.lower_units)
            column[asked] += unpack(rest[place:end], number, _width(each)).astype(np.int64)
            columns[each.name], place = column, end
        self.columns = columns
        self._message = share
        self._is_released = True

    def _asked(self, message: bytes, records: int) -> NDArray[np.bool_]:
        return self._messages.asked_records(message, records)

    @property
    def _schemas(self) -> list[FieldSchema]:
        return [field.schema() for field in self.study.fields]

    def answer(self, question: bytes) -> bytes:
        """The second message, once. Raises: RemoteProtocolError for a malformed question."""
        if self._message is None or not self._is_released or self._answered:
            raise LocalProtocolError("one question is answered, after the release")
        self._answered = True
        try:
            return self._messages.answer(
                self.columns, self._counts, self._message, question, self._random_bits
            )
        except EncodingError as error:
            raise RemoteProtocolError(
                f"the coordinator asked a malformed question: {error.message}; nothing was "
                f"answered, run the study again",
                culprit=self.study.coordinator,
                step="ask",
            ) from error


def _width(field: FieldSchema) -> int:
    """Bits of a value in steps above its lower bound."""
    return max(1, (field.upper_units - field.lower_units).bit_length())
