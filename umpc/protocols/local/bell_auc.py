"""The AUC from hierarchical histograms: a tree of counts, followed only where it matters.

A score is one of d = 2^alpha values. Level l of the tree counts the records of each class by the first l bits of their
score, estimated with the Hadamard frequency oracle. For a node p with children p0 < p1, pairs of a positive in p1 and a
negative in p0 are in order: their number is h+_{p1} h-_{p0}, and the rest are inside p0 and p1. A node with few records
is *discarded*: its pairs count half (variant `half`) or nothing (variant `zero`).

Paper: Bell et al. 2020, section 4, theorem 3 and appendix B. v = C n alpha is the variance of a count,
h~ = max(h^, sqrt(a v)/2), and a node is followed if h~+ h~- >= tau = a sqrt(v+ v-). Departures:
- C is that of the true variance of the counts (`hadamard`).
- Two equal scores count `ties`, 1/2 as in the library's `auc`; the paper's recursion ends with 0 there.
- Levels are shared out evenly within each node, from a random start, so every record has each level with odds 1/alpha
  and counts are alpha times what a level's records say: unbiased, whatever a node's number of records.

`split`: *users*, a record tells one bit about one level; *budget*, one bit about each level with epsilon/alpha. Then
the levels are independent (condition 4 of theorem 3).

Classes are public: a node sends one message for its negatives and one for its positives. Reveals: bits that are
epsilon-DP for each record. LocalCost: one round; 1 or alpha bits a record and a seed of 32 bytes a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt

import numpy as np

from umpc.crypto.packing import check_counts, pack, packed_bytes, split_seed, unpack
from umpc.dp.checks import check_epsilon
from umpc.dp.exact_sampling import ShakeStream, draw_seed, truth_threshold
from umpc.dp.random_bits import RandomBits
from umpc.errors import OutOfBounds, StudyError
from umpc.protocols.local.auc_theory import best_constant
from umpc.protocols.local.auc_tree import Prediction, Tree, exact_levels
from umpc.protocols.local.estimate import LocalCost, LocalEstimate
from umpc.protocols.local.hadamard import tally, tell, transform
from umpc.ustat.clear import Columns
from umpc.ustat.schema import FieldSchema

MOST_LEVELS = 20
"""The coordinator transforms whole levels: 2^20 numbers, a few tens of milliseconds."""

Received = tuple[Sequence[bytes], Sequence[int]]
"""One class: every node's message, and how many records of the class it has."""


@dataclass(frozen=True)
class BellAuc:
    """epsilon: > 0, exact; of each record. field: the score. levels: alpha, 1 .. 20.

    constant: a > 1; None takes the one that makes theorem 3's bound least. ties: what a pair of equal scores counts.
    """

    epsilon: Fraction
    field: FieldSchema
    levels: int
    split: str = "users"
    variant: str = "half"
    constant: float | None = None
    ties: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if not 1 <= self.levels <= MOST_LEVELS:
            raise StudyError(f"the tree has 1 to {MOST_LEVELS} levels, got {self.levels}")
        if self.split not in ("users", "budget") or self.variant not in ("half", "zero"):
            raise StudyError("split is users or budget, variant is half or zero")
        if self.constant is not None and not self.constant > 1:
            raise StudyError(f"the constant a must be above 1, got {self.constant}")
        _ = self.threshold

    @cached_property
    def threshold(self) -> int:
        """A record's bit is the truth with threshold/2^64, else a fair coin."""
        return truth_threshold(self.epsilon / (self.levels if self.split == "budget" else 1), 2)

    @property
    def truth(self) -> float:
        """g, the gain of a bit."""
        return self.threshold / 2.0**64

    @property
    def variance_per_record(self) -> float:
        """v/n = C alpha: of a count, per record of its class."""
        return (self.levels if self.split == "users" else 1) / self.truth**2

    # --- the node ---------------------------------------------------------------------------------------------

    def leaves(self, columns: Columns) -> np.ndarray:
        """(records,) int64: which of 2^alpha bins of equal width each score lies in."""
        column, field = columns[self.field.name], self.field
        if len(column) and (column.min() < field.lower_units or column.max() > field.upper_units):
            raise OutOfBounds(
                f"a value of the field {field.name!r} lies outside its bounds; widen them or clip the data"
            )
        width = -(-(field.upper_units - field.lower_units + 1) >> self.levels)
        return (column - field.lower_units) // max(width, 1)

    def randomise(self, columns: Columns, bits: RandomBits) -> bytes:
        """What a node sends for its records of one class: a public seed, then their bits."""
        leaf, public = self.leaves(columns), draw_seed(bits)
        told, stream = [], ShakeStream(draw_seed(bits), "bell-auc private")
        for records, level, index in self._questions(public, len(leaf)):
            told.append(
                (
                    records,
                    tell(index, leaf[records] >> (self.levels - level), self.threshold, stream),
                )
            )
        if self.split == "budget":
            return public + pack(np.concatenate([answer for _, answer in told]), 1)
        answers = np.zeros(len(leaf), dtype=np.int64)
        for records, answer in told:
            answers[records] = answer
        return public + pack(answers, 1)

    def _questions(self, public: bytes, count: int) -> list[tuple[np.ndarray, int, np.ndarray]]:
        """Per level, who is asked and which index: (records, level, indices), from public randomness alone."""
        stream, everybody = ShakeStream(public, "bell-auc public"), np.arange(count)
        if self.split == "budget":
            asked = [everybody] * self.levels
        else:
            order = np.argsort(stream.words(count), kind="stable")
            start = int(stream.below(self.levels, 1)[0])
            asked = [
                order[(start + level) % self.levels :: self.levels] for level in range(self.levels)
            ]
        return [
            (records, level, stream.words(len(records)) >> np.uint64(64 - level))
            for level, records in enumerate(asked, 1)
        ]

    # --- the coordinator --------------------------------------------------------------------------------------

    def aggregate(self, negatives: Received, positives: Received) -> LocalEstimate:
        """The AUC: the share of pairs in which the positive has the larger score, ties counted half.

        Raises: EncodingError for a message that does not decode.
        """
        sizes = check_counts(*negatives, least=1), check_counts(*positives, least=1)
        tree = self._tree(sizes, self._levels(negatives), self._levels(positives))
        variance = Prediction(tree, self.truth, self.split == "users").plug_in_variance()
        return LocalEstimate(tree.value() / (sizes[0] * sizes[1]), sqrt(variance), sum(sizes))

    def check(self, message: bytes, count: int) -> None:
        """Raises: EncodingError for a message that does not decode, of a node with so many records of a class."""
        self._decode(message, count)

    def _decode(self, message: bytes, count: int) -> tuple[bytes, np.ndarray]:
        public, body = split_seed(message)
        return public, unpack(
            body, count * (self.levels if self.split == "budget" else 1), 1
        ).astype(np.int64)

    def _levels(self, received: Received) -> list[np.ndarray]:
        """Estimated counts, level 0 (known) to alpha, of one class."""
        tallies = [np.zeros(1 << level) for level in range(self.levels + 1)]
        for message, count in zip(*received, strict=True):
            public, answers = self._decode(message, count)
            for records, level, index in self._questions(public, count):
                mine = (
                    answers[(level - 1) * count : level * count]
                    if self.split == "budget"
                    else answers[records]
                )
                tallies[level] += tally(index, mine, 1 << level)
        return self.counts(tallies, sum(received[1]))

    def counts(self, tallies: Sequence[np.ndarray], records: int) -> list[np.ndarray]:
        """Estimated counts of a class by level, from the sums of its records' signs by index.

        Args: tallies: of level 0 (not looked at) to alpha, (2^l,) each.
        """
        scale = (self.levels if self.split == "users" else 1) / self.truth
        return [np.array([float(records)]), *(scale * transform(sums) for sums in tallies[1:])]

    def value(self, negatives: list[np.ndarray], positives: list[np.ndarray]) -> float:
        """The AUC that the walk makes of counts by level, level 0 to alpha: estimated, or exact ones."""
        sizes = round(float(negatives[0][0])), round(float(positives[0][0]))
        return self._tree(sizes, negatives, positives).value() / (sizes[0] * sizes[1])

    def _tree(
        self, sizes: tuple[int, int], negatives: list[np.ndarray], positives: list[np.ndarray]
    ) -> Tree:
        minus, plus = (self.variance_per_record * size for size in sizes)
        return Tree(
            negatives,
            positives,
            minus,
            plus,
            self.best_constant(*sizes),
            self.variant == "half",
            self.ties,
        )

    def best_constant(self, negatives: int, positives: int) -> float:
        """a: the given one, or the one that makes theorem 3's bound least."""
        if self.constant is not None:
            return self.constant
        return best_constant(negatives, positives, self.variance_per_record, self.variant)

    # --- theory -----------------------------------------------------------------------------------------------

    def predicted_mse(
        self, negatives: Columns, positives: Columns, exact: float | None = None
    ) -> float:
        """Of the AUC of these records, if nodes are followed as their true counts say.

        Exact for given followed nodes and independent levels; see `auc_tree.Prediction`.

        exact: the AUC without quantisation; None takes that of the 2^alpha bins, which leaves that error out.
        """
        leaves = [self.leaves(columns) for columns in (negatives, positives)]
        sizes = len(leaves[0]), len(leaves[1])
        levels = [exact_levels(leaf, self.levels) for leaf in leaves]
        return Prediction(self._tree(sizes, *levels), self.truth, self.split == "users").mse(exact)

    def message_bytes(self, records: int) -> int:
        """Of a node with so many records of a class."""
        return 32 + packed_bytes(records * (self.levels if self.split == "budget" else 1), 1)

    def cost(self, records_per_message: Sequence[int]) -> LocalCost:
        """Args: how many records each message is about; two messages a node."""
        asked = sum(records_per_message) * (self.levels if self.split == "budget" else 1)
        work = sum(level << level for level in range(1, self.levels + 1))
        return LocalCost(
            sum(map(self.message_bytes, records_per_message)), 1, 3 * asked, asked + 2 * work
        )
