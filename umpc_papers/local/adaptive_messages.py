"""The two messages of a node in `bell-ldp` with `bins_epsilon_share`, and the question between.

The first message spends the share of epsilon on cut points (`bin_search.py`). The question is the
cut points. The second message spends the rest: it is the usual message of `bell-ldp`, with bins
between these cut points. It is private for every question, so a coordinator that invents cut points
gains no more than that rest. The coordinator averages the kernel over a bin with the masses that
the first answers have there as λ (equation 15): theorem 2 takes any λ, and its bias is small where
the records' density is smooth against λ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from umpc.dp.random_bits import RandomBits
from umpc.errors import EncodingError, TooFewRecords
from umpc.protocols.base.one_message import MessageEstimate
from umpc.study.making_report import Limits
from umpc.study.sizes import ClassCounts
from umpc.ustat.clear import Columns
from umpc_papers.asking import AskingMessages
from umpc_papers.exact_sampling import SEED_BYTES, ShakeStream
from umpc_papers.local.bin_search import BinSearch, Masses, SearchedField
from umpc_papers.local.messages import CellClassMessages, CellMessages

LEAST_RECORDS = 100
"""The fewest records of all nodes: with fewer, the cut points are those of noise alone."""
CUT_BYTES = 8
"""A cut point in a question: steps of the resolution above the lower bound, little-endian."""

Cuts = Sequence[tuple[int, ...]]
"""The cut points of each searched field, in steps of its resolution above its lower bound."""
Answers = CellMessages | CellClassMessages


@dataclass(frozen=True)
class AdaptiveMessages(AskingMessages):
    """Cut points from a first answer of every record, and the estimate from a second one.

    Args:
        search: the first round.
        answers: the messages of the second round, for the cut points of the searched fields and,
            where they are known, the masses of their leaves.
        rest: the epsilon of the second round.
    """

    search: BinSearch
    answers: Callable[[Cuts, Masses | None], Answers]
    rest: Fraction
    _made: dict[bytes, Answers] = field(default_factory=dict, compare=False, repr=False)

    # --- the node ------------------------------------------------------------------------------

    def randomise(self, columns: Columns, counts: ClassCounts, bits: RandomBits) -> bytes:
        return self.search.randomise(columns, bits)

    def answer(
        self, columns: Columns, counts: ClassCounts, first: bytes, question: bytes, bits: RandomBits
    ) -> bytes:
        return self.second(question).randomise(columns, counts, bits)

    def asked_records(self, first: bytes, records: int) -> NDArray[np.bool_]:
        """All of them."""
        return np.ones(records, dtype=np.bool_)

    # --- the coordinator -----------------------------------------------------------------------

    def question(self, firsts: Sequence[bytes], counts: Sequence[ClassCounts]) -> bytes:
        return encode_cuts(self.search.cuts(self._masses(firsts, counts)))

    def estimate(
        self,
        firsts: Sequence[bytes],
        question: bytes,
        answers: Sequence[bytes],
        counts: Sequence[ClassCounts],
    ) -> MessageEstimate:
        return self._weighted(firsts, question, counts).aggregate(answers, counts)

    def _masses(self, firsts: Sequence[bytes], counts: Sequence[ClassCounts]) -> Masses:
        totals = _totals(counts)
        return self.search.masses(self.search.shares(firsts, totals), sum(totals))

    def _weighted(
        self, firsts: Sequence[bytes], question: bytes, counts: Sequence[ClassCounts]
    ) -> Answers:
        """The second round, whose average kernel has the masses of the first one as λ."""
        if question not in self._made:
            self._made[question] = self.second(question, self._masses(firsts, counts))
        return self._made[question]

    def check(self, message: bytes, counts: ClassCounts) -> None:
        self.search.check(message, sum(counts))

    def check_answer(self, first: bytes, answer: bytes, counts: ClassCounts) -> None:
        super().check_answer(first, answer, counts)
        self._any.check(answer, counts)

    def check_records(self, counts: Sequence[ClassCounts]) -> None:
        total = sum(_totals(counts))
        if total < LEAST_RECORDS:
            raise TooFewRecords(
                f"bins_epsilon_share finds cut points from noisy answers, which takes at least "
                f"{LEAST_RECORDS} records in all, and there are {total}; leave it out"
            )

    def possible_after(
        self, firsts: Sequence[bytes], question: bytes, counts: Sequence[ClassCounts]
    ) -> tuple[float, float]:
        return self._weighted(firsts, question, counts).possible(counts)

    def limits(self) -> Limits | None:
        return self._any.limits()

    def limits_after(
        self,
        firsts: Sequence[bytes],
        question: bytes,
        answers: Sequence[bytes],
        counts: Sequence[ClassCounts],
    ) -> Limits | None:
        """The limits, with the cut points that were found and the parts of epsilon."""
        limits = self._weighted(firsts, question, counts).limits_by(answers, counts)
        if limits is None:
            return None
        return Limits(limits.covers, f"{self._found(question)}; {limits.note}")

    def _found(self, question: bytes) -> str:
        cuts = self._decode(question)
        fields = zip(self.search.fields, cuts, strict=True)
        places = [f"{searched.field.name} at {_in_units(searched, at)}" for searched, at in fields]
        first, whole = self.search.epsilon, self.search.epsilon + self.rest
        return (
            f"a first answer with epsilon {first} of {whole} put the cut points of "
            f"{' and of '.join(places)}"
        )

    # --- the second round ----------------------------------------------------------------------

    def second(self, question: bytes, masses: Masses | None = None) -> Answers:
        """The messages of the second round; a node needs no masses.

        Args: masses: of the leaves, by field; λ of the average kernel.

        Raises: EncodingError for a malformed question.
        """
        return self.answers(self._decode(question), masses)

    def _decode(self, question: bytes) -> list[tuple[int, ...]]:
        """Raises: EncodingError unless these are cut points that ascend between the bounds."""
        if len(question) != self.question_bytes:
            raise EncodingError(
                f"the cut points take {self.question_bytes} bytes, got {len(question)}"
            )
        numbers = np.frombuffer(question, dtype="<i8").tolist()
        cuts = []
        for searched in self.search.fields:
            own, numbers = numbers[: searched.bins - 1], numbers[searched.bins - 1 :]
            ends = [0, *own, searched.values]
            if any(low >= high for low, high in pairwise(ends)):
                raise EncodingError(
                    f"the cut points of {searched.field.name!r} do not ascend between its bounds"
                )
            cuts.append(tuple(own))
        return cuts

    @cached_property
    def _any(self) -> Answers:
        """The second round with some cut points, for what does not depend on them."""
        return self.second(encode_cuts([_equal(searched) for searched in self.search.fields]))

    # --- cost and theory -----------------------------------------------------------------------

    def message_bytes(self, counts: ClassCounts) -> int:
        return self.search.message_bytes(sum(counts)) + self._any.message_bytes(counts)

    @property
    def question_bytes(self) -> int:
        return CUT_BYTES * sum(searched.bins - 1 for searched in self.search.fields)

    def predicted_std(self, columns: Columns, first: int) -> float:
        return self.without_noise(columns).predicted_std(columns, first)

    def quantised(self, columns: Columns, first: int) -> float:
        """The statistic of the cells between the cut points that no noise has moved."""
        return self.without_noise(columns).quantised(columns, first)

    def without_noise(self, columns: Columns) -> Answers:
        """The second round with the cut points at the records' own quantiles."""
        return self._at(self.search.masses(self.search.exact_shares(columns)))

    def tried(self, columns: Columns, number: int) -> Answers:
        """The second round with the cut points that a trial's noisy answers give.

        Args: number: of the trial; its noise is drawn from a fixed seed, for planners only.
        """
        stream = ShakeStream(number.to_bytes(SEED_BYTES, "little"), "trial of a bin search")
        count = len(columns[self.search.fields[0].field.name])
        message = self.search.randomise(
            columns, lambda bits: int.from_bytes(stream.bytes(bits // 8), "little")
        )
        return self._at(self._masses([message], [(0, count)]))

    def _at(self, masses: Masses) -> Answers:
        return self.second(encode_cuts(self.search.cuts(masses)), masses)


def encode_cuts(cuts: Cuts) -> bytes:
    """The question: all cut points, one field after the other."""
    numbers = [number for each in cuts for number in each]
    return bytes(np.array(numbers, dtype="<i8").tobytes())


def _equal(searched: SearchedField) -> tuple[int, ...]:
    return tuple(number * searched.values // searched.bins for number in range(1, searched.bins))


def _in_units(searched: SearchedField, cuts: tuple[int, ...]) -> str:
    units = searched.field
    return ", ".join(f"{float((units.lower_units + cut) * units.resolution):g}" for cut in cuts)


def _totals(counts: Sequence[ClassCounts]) -> list[int]:
    return [sum(both) for both in counts]
