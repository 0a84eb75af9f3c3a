"""The messages of the local protocols: what a node sends, and what the coordinator makes of it.

Every record's part of a message is ε-DP by itself, whoever colludes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from umpc.dp.random_bits import RandomBits
from umpc.protocols.base.bins import limits_of_bins
from umpc.protocols.base.one_message import OneMessage
from umpc.study.making_report import Limits
from umpc.study.sizes import ClassCounts
from umpc.ustat.clear import Columns
from umpc_papers.local.bell_auc import BellAuc
from umpc_papers.local.bell_ldp import BellLdp
from umpc_papers.local.bell_ldp_classes import BellLdpClasses, Received
from umpc_papers.local.estimate import LocalEstimate
from umpc_papers.local.ghazi_ldp import GhaziLdp
from umpc_papers.local.local_mean import LocalMean


@dataclass(frozen=True)
class _OfRecords(OneMessage):
    """The answers of all records in one message, whatever their class."""

    protocol: BellLdp | GhaziLdp | LocalMean

    def randomise(self, columns: Columns, counts: ClassCounts, bits: RandomBits) -> bytes:
        return self.protocol.randomise(columns, bits)

    def message_bytes(self, counts: ClassCounts) -> int:
        return self.protocol.message_bytes(sum(counts))

    def check(self, message: bytes, counts: ClassCounts) -> None:
        self.protocol.check(message, sum(counts))

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[ClassCounts]) -> LocalEstimate:
        return self.protocol.aggregate(messages, [sum(both) for both in counts])


@dataclass(frozen=True)
class CellMessages(_OfRecords):
    """A kernel of pairs: one message of all records' answers."""

    protocol: BellLdp | GhaziLdp

    def possible(self, counts: Sequence[ClassCounts]) -> tuple[float, float]:
        return self.protocol.possible(sum(map(sum, counts)))

    def predicted_std(self, columns: Columns, first: int) -> float:
        return sqrt(self.protocol.predicted_mse(columns))

    def limits(self) -> Limits | None:
        return self.protocol.cells.limits()

    def limits_by(self, messages: Sequence[bytes], counts: Sequence[ClassCounts]) -> Limits | None:
        limits = self.limits()
        if limits is None or not self.protocol.cells.has_spread:
            return limits
        if not isinstance(self.protocol, BellLdp):
            return limits
        most = self.protocol.error_of_bins(messages, [sum(both) for both in counts])
        said = f"by the answers themselves it is about {most:.2g} at most"
        return Limits(limits.covers, f"{limits.note}; {said}")

    def quantised(self, columns: Columns, first: int) -> float:
        return self.protocol.cells.quantised(columns)


@dataclass(frozen=True)
class _OfClasses(OneMessage):
    """The answers of the first class, and then those of the second, in one message."""

    protocol: BellAuc | BellLdpClasses

    def randomise(self, columns: Columns, counts: ClassCounts, bits: RandomBits) -> bytes:
        parts = by_classes(columns, counts[0])
        return b"".join(self.protocol.randomise(part, bits) for part in parts)

    def message_bytes(self, counts: ClassCounts) -> int:
        return sum(map(self.protocol.message_bytes, counts))

    def check(self, message: bytes, counts: ClassCounts) -> None:
        for part, count in zip(self._split(message, counts), counts, strict=True):
            self.protocol.check(part, count)

    def _of_both(
        self, messages: Sequence[bytes], counts: Sequence[ClassCounts]
    ) -> tuple[Received, Received]:
        """The parts of all messages: of the first class, and of the second."""
        parts = [self._split(message, both) for message, both in zip(messages, counts, strict=True)]
        first = [part[0] for part in parts], [both[0] for both in counts]
        second = [part[1] for part in parts], [both[1] for both in counts]
        return first, second

    def _split(self, message: bytes, counts: ClassCounts) -> tuple[bytes, bytes]:
        cut = self.protocol.message_bytes(counts[0])
        return message[:cut], message[cut:]


@dataclass(frozen=True)
class CellClassMessages(_OfClasses):
    """A kernel of two public classes, from the cells of both classes' records."""

    protocol: BellLdpClasses

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[ClassCounts]) -> LocalEstimate:
        return self.protocol.aggregate_classes(*self._of_both(messages, counts))

    def possible(self, counts: Sequence[ClassCounts]) -> tuple[float, float]:
        first, second = (sum(both[place] for both in counts) for place in (0, 1))
        return self.protocol.possible_of_classes(first, second)

    def predicted_std(self, columns: Columns, first: int) -> float:
        return sqrt(self.protocol.predicted_mse_of_classes(*by_classes(columns, first)))

    def limits(self) -> Limits | None:
        return self.protocol.cells.limits()

    def quantised(self, columns: Columns, first: int) -> float:
        return self.protocol.cells.quantised_classes(*by_classes(columns, first))


@dataclass(frozen=True)
class ClassMessages(_OfClasses):
    """An AUC from trees of counts: the first class is the positives."""

    protocol: BellAuc

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[ClassCounts]) -> LocalEstimate:
        positives, negatives = self._of_both(messages, counts)
        return self.protocol.aggregate(negatives, positives)

    def predicted_std(self, columns: Columns, first: int) -> float:
        positives, negatives = by_classes(columns, first)
        return sqrt(self.protocol.predicted_mse(negatives, positives))

    def limits(self) -> Limits | None:
        return limits_of_bins([(self.protocol.field, 1 << self.protocol.levels)])

    def limits_by(self, messages: Sequence[bytes], counts: Sequence[ClassCounts]) -> Limits | None:
        limits = self.limits()
        positives, negatives = self._of_both(messages, counts)
        groups = self.protocol.discarded(negatives, positives)
        if not groups:
            return limits
        covers = limits.covers if limits else "the value on all pairs of the two classes"
        counted = "half" if self.protocol.variant == "half" else "nothing"
        said = (
            f"{groups} group(s) of neighbouring scores with too few records for their noise: pairs "
            f"inside them count {counted}, and the interval has no part for this error; more "
            f"records, a larger epsilon or fewer levels make it smaller"
        )
        return Limits(covers, f"{limits.note}; {said}" if limits else said)

    def quantised(self, columns: Columns, first: int) -> float:
        """The AUC of the scores' bins, where ties count half."""
        size = 1 << self.protocol.levels
        above, below = (
            np.bincount(self.protocol.leaves(part), minlength=size).astype(float)
            for part in by_classes(columns, first)
        )
        pairs = float(above.sum() * below.sum())
        return float(above @ (np.cumsum(below) - below / 2)) / pairs


@dataclass(frozen=True)
class MeanMessages(_OfRecords):
    """A mean over single records: one message of all records' points."""

    protocol: LocalMean
    smaller_by = "fewer records"

    def possible(self, counts: Sequence[ClassCounts]) -> tuple[float, float]:
        return self.protocol.possible()

    def predicted_std(self, columns: Columns, first: int) -> float:
        return sqrt(self.protocol.predicted_variance(columns))

    def quantised(self, columns: Columns, first: int) -> float:
        """The mean itself: rounding to points is unbiased."""
        return self.protocol.mean(columns)


def by_classes(columns: Columns, first: int) -> tuple[Columns, Columns]:
    """The records of the first class, and all others."""
    return (
        {name: column[:first] for name, column in columns.items()},
        {name: column[first:] for name, column in columns.items()},
    )
