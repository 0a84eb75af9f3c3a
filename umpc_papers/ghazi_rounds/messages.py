"""The two messages of a node in `ghazi-rounds`, and the question between them.

A record is in one of three public groups. Groups 1 and 2 are in the first message, group 3 in the
second: each record answers once, so both messages together cost what one does.

Both messages together have `message_bytes`, whatever the groups' sizes: the second is filled up by
a byte 0 where they happen to pack tighter. The number of bytes therefore follows from the number of
records, before there is a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.ring import packed_size
from umpc.dp.random_bits import RandomBits
from umpc.errors import EncodingError, TooFewRecords
from umpc.study.making_report import Limits
from umpc.study.sizes import ClassCounts
from umpc.ustat.clear import Columns
from umpc_papers.asking import AskingMessages
from umpc_papers.exact_sampling import split_seed
from umpc_papers.ghazi_rounds.mechanism import ASKED, GhaziRounds, asked, groups
from umpc_papers.local.estimate import LocalEstimate

LEAST_RECORDS = 50
"""The fewest records of all nodes: a group is then empty, which would waste what was charged,
with odds below 2^-27."""


@dataclass(frozen=True)
class RoundsMessages(AskingMessages):
    """A kernel of pairs: a message, a question, and an answer."""

    protocol: GhaziRounds

    # --- the node ------------------------------------------------------------------------------

    def randomise(self, columns: Columns, counts: ClassCounts, bits: RandomBits) -> bytes:
        """The first message. Args: columns: field → (records,) int64."""
        return self.protocol.first(columns, bits)

    def answer(
        self, columns: Columns, counts: ClassCounts, first: bytes, question: bytes, bits: RandomBits
    ) -> bytes:
        second = self.protocol.second(columns, first, question, bits)
        return second.ljust(self.message_bytes(counts) - len(first), b"\0")

    def asked_records(self, first: bytes, records: int) -> NDArray[np.bool_]:
        return np.equal(groups(split_seed(first)[0], records), ASKED)

    # --- the coordinator -----------------------------------------------------------------------

    def question(self, firsts: Sequence[bytes], counts: Sequence[ClassCounts]) -> bytes:
        return self.protocol.question(firsts, _totals(counts))

    def estimate(
        self,
        firsts: Sequence[bytes],
        question: bytes,
        answers: Sequence[bytes],
        counts: Sequence[ClassCounts],
    ) -> LocalEstimate:
        seconds = [self._unfilled(*each) for each in zip(firsts, answers, counts, strict=True)]
        return self.protocol.aggregate(firsts, question, seconds, _totals(counts))

    def check(self, message: bytes, counts: ClassCounts) -> None:
        self.protocol.check_first(message, sum(counts))

    def check_answer(self, first: bytes, answer: bytes, counts: ClassCounts) -> None:
        """Raises: EncodingError where an answer does not go with the node's first message."""
        super().check_answer(first, answer, counts)
        second = self._unfilled(first, answer, counts)
        if any(answer[len(second) :]):
            raise EncodingError("what fills up the answer is not zero")
        self.protocol.check_second(first, second, sum(counts))

    def _unfilled(self, first: bytes, answer: bytes, counts: ClassCounts) -> bytes:
        return answer[: packed_size(asked(split_seed(first)[0], sum(counts)), 1)]

    def check_records(self, counts: Sequence[ClassCounts]) -> None:
        total = sum(_totals(counts))
        if total < LEAST_RECORDS:
            raise TooFewRecords(
                f'"ghazi-rounds" divides all records into three groups, none of which may be '
                f"empty, so it takes at least {LEAST_RECORDS} records in all, and there are "
                f'{total}; take "ghazi-ldp"'
            )

    # --- cost and theory -----------------------------------------------------------------------

    def message_bytes(self, counts: ClassCounts) -> int:
        """The size of both messages together."""
        return self.protocol.message_bytes(sum(counts))

    @property
    def question_bytes(self) -> int:
        return 8 * self.protocol.vectors.cells.size

    def predicted_std(self, columns: Columns, first: int) -> float:
        """The standard deviation from the randomisation and from the division into groups."""
        return sqrt(self.protocol.predicted_mse(columns))

    def quantised(self, columns: Columns, first: int) -> float:
        return self.protocol.vectors.cells.quantised(columns)

    def limits(self) -> Limits | None:
        return self.protocol.vectors.cells.limits()


def _totals(counts: Sequence[ClassCounts]) -> list[int]:
    return [sum(both) for both in counts]
