"""`ghazi-rounds` as a study has it: a node's two messages, and the question between them.

A record is in one of three public groups. Groups 1 and 2 are in the first message, group 3 in the second: each record
answers once, so both messages together cost what one does.

Both together have `message_bytes`, whatever the groups' sizes: the second is filled up by a byte 0 where they happen to
pack tighter. So the number of bytes follows from the number of records, before there is a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from umpc.crypto.packing import packed_bytes, split_seed
from umpc.errors import EncodingError, TooFewRecords
from umpc.protocols.ghazi_rounds.mechanism import GhaziRounds, asked
from umpc.protocols.local.estimate import LocalEstimate
from umpc.ustat.clear import Columns

Counts = tuple[int, int]
"""As in `onemessage`; here without classes."""
RandomBits = Callable[[int], int]

LEAST_RECORDS = 50
"""Of all nodes together: then a group is empty, which would waste what was charged, with odds below 2^-27."""


@dataclass(frozen=True)
class OfRounds:
    """A kernel of pairs: a message, a question, and an answer."""

    protocol: GhaziRounds

    # --- the node ---------------------------------------------------------------------------------------------

    def randomise(self, columns: Columns, counts: Counts, bits: RandomBits) -> bytes:
        """The first message. Args: columns: field → (records,) int64."""
        return self.protocol.first(columns, bits)

    def answer(
        self, columns: Columns, counts: Counts, first: bytes, question: bytes, bits: RandomBits
    ) -> bytes:
        """The second message, of the same records in the same order. Raises: EncodingError for a bad question."""
        second = self.protocol.second(columns, first, question, bits)
        return second.ljust(self.message_bytes(counts) - len(first), b"\0")

    # --- the coordinator --------------------------------------------------------------------------------------

    def question(self, firsts: Sequence[bytes], counts: Sequence[Counts]) -> bytes:
        """What follows from all first messages, and from nothing else."""
        return self.protocol.question(firsts, _totals(counts))

    def aggregate(
        self,
        firsts: Sequence[bytes],
        question: bytes,
        answers: Sequence[bytes],
        counts: Sequence[Counts],
    ) -> LocalEstimate:
        seconds = [self._unfilled(*each) for each in zip(firsts, answers, counts, strict=True)]
        return self.protocol.aggregate(firsts, question, seconds, _totals(counts))

    def check(self, first: bytes, counts: Counts) -> None:
        """Raises: EncodingError where a first message does not decode."""
        self.protocol.check_first(first, sum(counts))

    def check_answer(self, first: bytes, answer: bytes, counts: Counts) -> None:
        """Raises: EncodingError where an answer does not go with the node's first message."""
        due = self.message_bytes(counts) - len(first)
        if len(answer) != due:
            raise EncodingError(f"an answer of {due} bytes was due, {len(answer)} came")
        second = self._unfilled(first, answer, counts)
        if any(answer[len(second) :]):
            raise EncodingError("what fills up the answer is not zero")
        self.protocol.check_second(first, second, sum(counts))

    def _unfilled(self, first: bytes, answer: bytes, counts: Counts) -> bytes:
        return answer[: packed_bytes(asked(split_seed(first)[0], sum(counts)), 1)]

    # --- cost and theory --------------------------------------------------------------------------------------

    def message_bytes(self, counts: Counts) -> int:
        """Of both messages together."""
        return self.protocol.message_bytes(sum(counts))

    @property
    def question_bytes(self) -> int:
        return 8 * self.protocol.vectors.cells.size

    def predicted_std(self, columns: Columns, first: int) -> float:
        """Of the randomisation and of the division into groups."""
        return self.protocol.predicted_mse(columns) ** 0.5

    def quantised(self, columns: Columns, first: int) -> float:
        """The statistic of the records' cells: what the estimate is near to."""
        return self.protocol.vectors.cells.quantised(columns)


def _totals(counts: Sequence[Counts]) -> list[int]:
    return [sum(both) for both in counts]


def check_records(counts: Sequence[Counts]) -> None:
    """Raises: TooFewRecords, before anything is charged."""
    if (total := sum(_totals(counts))) < LEAST_RECORDS:
        raise TooFewRecords(
            f'"ghazi-rounds" divides all records into three groups, none of which may be empty, so it takes at least '
            f'{LEAST_RECORDS} records in all, and there are {total}; take "ghazi-ldp"'
        )
