"""The papers' one-message protocols as a study has them: what a node sends, and what the coordinator makes of it.

A message is bytes of a length that follows from how many records the node has of each class, in an order of records
that only the node knows. `dp.local` holds the protocols themselves and knows no study; here they meet.

| `protocol` | a node's message | of |
|---|---|---|
| `bell-ldp`, `ghazi-ldp` | all its records' answers | a symmetric kernel on cells |
| `ghazi-rounds` | those of two thirds of its records; after a question, of the others (`tworounds`) | the same |
| `bell-auc` | the answers of its first class, then of its second class | scores, with a public label |
| `gopa` | the sum of a kernel over its records, under noise (`gopa`) | a kernel of one record |
| `central` | all its records as they are (`curator.py`) | any symmetric kernel |

Privacy: every record's part is epsilon-DP by itself, whoever colludes; but `gopa` needs h honest nodes, of `central`
only what the curator releases is private, and the messages of `ghazi-shuffle` go to two shufflers: `shuffling`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from umpc.crypto.prg import Stream
from umpc.errors import LocalProtocolError, RangeError, TooFewRecords
from umpc.protocols.central.messages import OfCurator
from umpc.protocols.ghazi_rounds.mechanism import GhaziRounds
from umpc.protocols.ghazi_rounds.messages import OfRounds
from umpc.protocols.ghazi_shuffle.mechanism import GhaziShuffle
from umpc.protocols.ghazi_shuffle.messages import OfShufflers, honest_records
from umpc.protocols.ghazi_shuffle.split_mix import LEAST_USERS
from umpc.protocols.gopa.messages import OfGopa, gopa_of
from umpc.protocols.gopa.settings import GOPA
from umpc.protocols.local.bell_auc import BellAuc
from umpc.protocols.local.bell_ldp import BellLdp
from umpc.protocols.local.estimate import LocalEstimate
from umpc.protocols.local.ghazi_ldp import GhaziLdp
from umpc.protocols.local.quantisation import Bins, Points, Quantiser
from umpc.protocols.local.settings import auc_field
from umpc.study.document import Study
from umpc.study.frames import MAX_PAYLOAD
from umpc.study.parts import FieldBins
from umpc.ustat.clear import Columns

Counts = tuple[int, int]
"""A node's records of the first class, and all others; without classes all are others."""
RandomBits = Callable[[int], int]


@dataclass(frozen=True)
class OfCells:
    """A kernel of pairs: one message of all records."""

    protocol: BellLdp | GhaziLdp

    def randomise(self, columns: Columns, counts: Counts, bits: RandomBits) -> bytes:
        """A node's message. Args: columns: field → (records,) int64, the first class first."""
        return self.protocol.randomise(columns, bits)

    def message_bytes(self, counts: Counts) -> int:
        return self.protocol.message_bytes(sum(counts))

    def check(self, message: bytes, counts: Counts) -> None:
        """Raises: EncodingError where a message does not decode."""
        self.protocol.check(message, sum(counts))

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[Counts]) -> LocalEstimate:
        return self.protocol.aggregate(messages, [sum(both) for both in counts])

    def predicted_std(self, columns: Columns, first: int) -> float:
        """Of the randomisation, over records of which `first` are of the first class."""
        return self.protocol.predicted_mse(columns) ** 0.5

    def quantised(self, columns: Columns, first: int) -> float:
        """The statistic of the records' cells: what the estimate is near to."""
        return self.protocol.cells.quantised(columns)


@dataclass(frozen=True)
class OfClasses:
    """An AUC: a message of the first class, the positives, and one of the second."""

    protocol: BellAuc

    def randomise(self, columns: Columns, counts: Counts, bits: RandomBits) -> bytes:
        return b"".join(
            self.protocol.randomise(part, bits) for part in _classes(columns, counts[0])
        )

    def message_bytes(self, counts: Counts) -> int:
        return sum(map(self.protocol.message_bytes, counts))

    def check(self, message: bytes, counts: Counts) -> None:
        for part, count in zip(self._split(message, counts), counts, strict=True):
            self.protocol.check(part, count)

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[Counts]) -> LocalEstimate:
        parts = [self._split(message, both) for message, both in zip(messages, counts, strict=True)]
        positives, negatives = (([p[k] for p in parts], [c[k] for c in counts]) for k in (0, 1))
        return self.protocol.aggregate(negatives, positives)

    def predicted_std(self, columns: Columns, first: int) -> float:
        positives, negatives = _classes(columns, first)
        return self.protocol.predicted_mse(negatives, positives) ** 0.5

    def quantised(self, columns: Columns, first: int) -> float:
        """The AUC of the scores' bins, ties counted half."""
        size = 1 << self.protocol.levels
        above, below = (
            np.bincount(self.protocol.leaves(part), minlength=size).astype(float)
            for part in _classes(columns, first)
        )
        return float(above @ (np.cumsum(below) - below / 2)) / float(above.sum() * below.sum())

    def _split(self, message: bytes, counts: Counts) -> tuple[bytes, bytes]:
        cut = self.protocol.message_bytes(counts[0])
        return message[:cut], message[cut:]


OneMessage = OfCells | OfClasses | OfRounds | OfGopa | OfCurator


def one_message_of(study: Study, counts: Sequence[Counts] = ()) -> OneMessage | OfShufflers:
    """The protocol of a checked study. counts: of every node, for a shuffled one.

    Raises: InvalidEpsilon where epsilon is too small to say anything; TooFewRecords where they are too few to shuffle.
    """
    if study.shuffled:
        return _of_shufflers(study, [sum(both) for both in counts])
    if study.protocol == GOPA:
        return gopa_of(study)
    if study.central:
        return OfCurator(study)
    epsilon = study.exact_epsilon
    if study.protocol == "bell-auc":
        return OfClasses(BellAuc(epsilon, study.schema[auc_field(study)], study.levels))
    if study.asks:
        return OfRounds(GhaziRounds(GhaziLdp(epsilon, _cells(study))))
    return OfCells(
        {"bell-ldp": BellLdp, "ghazi-ldp": GhaziLdp}[study.protocol](epsilon, _cells(study))
    )


def _of_shufflers(study: Study, records: Sequence[int]) -> OfShufflers:
    """A set-up for the histogram of cells: noise of the records of h nodes suffices."""
    if len(records) != len(study.nodes):
        raise LocalProtocolError(
            f"{study.protocol} takes the records of {len(study.nodes)} nodes, got {len(records)}"
        )
    honest = honest_records(records, study.max_colluding)
    if honest < LEAST_USERS:
        raise TooFewRecords(
            f"without the {study.max_colluding} node(s) with most records {honest} records are left, and shuffling "
            f"hides nothing provably among fewer than {LEAST_USERS}; lower max_colluding, or take larger nodes"
        )
    return OfShufflers(GhaziShuffle(study.exact_epsilon, _cells(study), sum(records), honest))


def _cells(study: Study) -> Quantiser:
    return Quantiser(study.parsed_kernels[0], tuple(_axis(study, bins) for bins in study.bins))


def _axis(study: Study, bins: FieldBins) -> Bins | Points:
    field, cuts = study.schema[bins.field], bins.units(study.schema[bins.field])
    if study.rounding == "simple" or field.categories:
        return Bins.equal(field, bins.count) if bins.count else Bins(field, cuts)
    if bins.count:
        return Points.equal(field, bins.count)
    return Points(field, (field.lower_units, *cuts, field.upper_units))


def _classes(columns: Columns, first: int) -> tuple[Columns, Columns]:
    """The records of the first class, and all others."""
    ranges = slice(first), slice(first, None)
    return tuple({name: column[of] for name, column in columns.items()} for of in ranges)


def check_size(protocol: OneMessage, name: str, counts: Counts) -> None:
    """Raises: RangeError where a node's message would be larger than what one node may release."""
    size = protocol.message_bytes(counts)
    less = "coarser resolutions" if isinstance(protocol, OfCurator) else "fewer bins"
    if size > MAX_PAYLOAD:
        raise RangeError(
            f"the message of {name} would have {size:,} bytes for its {sum(counts):,} records, at most 1 MiB "
            f"({MAX_PAYLOAD:,} bytes) are possible; take {less}, or split its table over several nodes",
            culprit=name,
        )


def uniform_std(study: Study, counts: Sequence[Counts]) -> float:
    """The standard deviation of an estimate's randomisation, if the records were uniform between their bounds.

    It depends on the data, which nobody has before the study; for other data it is of that order.
    """
    columns = uniform_columns(study, sum(map(sum, counts)), Stream(bytes(32)))
    return one_message_of(study, counts).predicted_std(columns, sum(first for first, _ in counts))


def uniform_columns(study: Study, records: int, stream: Stream) -> dict[str, np.ndarray]:
    """Made-up records of the study's fields, uniform between their bounds."""
    columns = {}
    for field in study.schema:
        values = (stream.words(records) >> np.uint64(1)).astype(np.int64)
        columns[field.name] = field.lower_units + values % (
            field.upper_units - field.lower_units + 1
        )
    return columns
