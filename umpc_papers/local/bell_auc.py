"""The locally private AUC from hierarchical histograms, that is from a tree of counts.

A score is one of d = 2^alpha values. Level l of the tree counts the records of each class by the
first l bits of their score. The coordinator estimates these counts with the Hadamard frequency
oracle. For a node p with children p0 < p1, a positive in p1 and a negative in p0 are in order.
Such pairs number h+_{p1} h-_{p0}. The other pairs of p lie inside p0 and inside p1. A node with
few records is *discarded*: its pairs count half (variant `half`) or nothing (variant `zero`). The
report's note has the number of such nodes, because no interval covers this error.

Paper: Bell et al. 2020, section 4, theorem 3 and appendix B. The variance of a count is
v = C n alpha. The estimate of a count is bounded from below, h~ = max(h^, sqrt(a v)/2), and the
walk follows a node if h~+ h~- >= tau = a sqrt(v+ v-). Departures:

- C is that of the true variance of the counts (`hadamard`).
- Two equal scores count `ties`, which is 1/2 as in the library's `auc`. The paper's recursion ends
  with 0 there.
- Each node shares out the levels evenly among its records, from a random start. Every record has
  each level with probability 1/alpha, and a count is alpha times the sum over a level's records.
  The counts are therefore unbiased for every number of records of a node.

`split` says how a record spends its epsilon. With *users* a record sends one bit about one level.
With *budget* it sends one bit about each level, with epsilon/alpha each. Then the levels are
independent (condition 4 of theorem 3). With a delta > 0 the alpha bits are composed exactly, which
gives each of them more (second row of table 1, `answers.py`).

Classes are public: a node sends one message for its negatives and one for its positives.

Reveals: bits that are epsilon-DP for each record.
Cost: one round; 1 or alpha bits for each record and a seed of 32 bytes for each message.

*Answers.* Exact composition: the ε of each of several answers of a record that cost (ε, δ).

Paper: Kairouz, Oh & Viswanath 2015, section 3; the second row of table 1 of Bell et al. 2020. No
k mechanisms that are ε0-DP are less private than k answers by randomised response. With
p = 1/(1 + e^-ε0) and q = 1 − p they are (ε, δ)-DP for exactly

    δ = Σ_j C(k, j) max(0, p^j q^(k-j) − e^ε p^(k-j) q^j).

The paper's ε0 = ε/(√k (1 + √(2 ln(1/δ)))) is a bound of it. For at most 20 answers that bound is no
better than ε/k where δ is below e^-10 or so; the exact sum is never worse, and mostly better.

*Theory.* Bounds on the mean squared error of the locally private AUC: as printed and as proved.

Paper: Bell et al. 2020, appendix B.1. With v = C n alpha for each class, m the smaller class and
s = sqrt(a), theorem 3 bounds the mean squared error by

    MSE(pairs in order) <= C n- n+ alpha^2 ( 2 n + (4a + 1) m + c sqrt(2 n C alpha)/(s - 1) ),

where c = 21. The variant that counts discarded nodes as zero has, in place of the last bracket,

    2 n + (8a + 2) m + sqrt(2 C alpha n)/(s - 1).

*The constant 21 is wrong.* For a true count h and a discarded node, the proof takes
E(h^2, discarded) <= 4 v, from a probability of at most v/(h - sqrt v)^2. But a node is discarded
below h^ < c = 2 sqrt(a v). The probability is therefore at most v/(v + (h - c)^2) (Cantelli), and
h^2 times it is at most c^2 + v = (4a + 1) v. A two-point law reaches this value at h = c + v/c.
For a = 1 it is 5 v. The proof's 4 + 1 becomes 4a + 2, and 21 = 4·5 + 1 becomes
4 (4a + 2) + 1 = 16a + 9. The error does not touch the zero variant.

Here C is that of the counts' true variance. `hadamard` explains the difference from lemma 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import comb, sqrt

import numpy as np
from flint import arb, ctx

from umpc.crypto.ring import pack, packed_size, unpack
from umpc.dp.events import PRECISION, above, ball, check_epsilon
from umpc.dp.random_bits import RandomBits
from umpc.errors import OutOfBounds, StudyError
from umpc.mpc.arrays import Floats, Integers, Words
from umpc.ustat.clear import Columns
from umpc.ustat.schema import FieldSchema
from umpc_papers.exact_sampling import (
    SEED_BYTES,
    ShakeStream,
    draw_seed,
    split_seed,
    truth_threshold,
)
from umpc_papers.local.auc_tree import Prediction, Tree, exact_levels
from umpc_papers.local.estimate import LocalCost, LocalEstimate, check_counts
from umpc_papers.local.hadamard import tally, tell, transform

MOST_LEVELS = 20
"""The coordinator transforms whole levels: 2^20 numbers take a few tens of milliseconds."""

Received = tuple[Sequence[bytes], Sequence[int]]
"""One class: every node's message, and the node's number of records of the class."""

Question = tuple[Integers, int, Words]
"""One level's question: (records that are asked, the level, (records,) index of each record)."""


@dataclass(frozen=True)
class BellAuc:
    """The AUC of one score field, epsilon-DP for each record in the local model.

    Args:
        epsilon: > 0, exact; for each record.
        field: the score.
        levels: alpha, 1 to `MOST_LEVELS`.
        split: `users` or `budget`, see above.
        variant: `half` or `zero`, the value of a discarded node's pairs.
        constant: a > 1; None takes the value that minimises theorem 3's bound.
        ties: the value of a pair of equal scores.
        delta: exact; with `budget`, the delta of all levels together, or 0 for basic composition.

    Raises:
        InvalidEpsilon: epsilon is not exact, or so small that no record would tell the truth.
        StudyError: another parameter is out of its range.
    """

    epsilon: Fraction
    field: FieldSchema
    levels: int
    split: str = "users"
    variant: str = "half"
    constant: float | None = None
    ties: float = 0.5
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if not 1 <= self.levels <= MOST_LEVELS:
            raise StudyError(
                f"the tree must have 1 to {MOST_LEVELS} levels, but {self.levels} came"
            )
        if self.split not in ("users", "budget"):
            raise StudyError(f"split must be users or budget, but {self.split!r} came")
        if self.variant not in ("half", "zero"):
            raise StudyError(f"variant must be half or zero, but {self.variant!r} came")
        if self.constant is not None and not self.constant > 1:
            raise StudyError(f"the constant a must be above 1, but {self.constant} came")
        _ = self.threshold

    @property
    def answers_per_record(self) -> int:
        """Bits that a record sends: 1 with the `users` split, alpha with `budget`."""
        return self.levels if self.split == "budget" else 1

    @cached_property
    def threshold(self) -> int:
        """A record's bit is the truth with probability threshold/2^64, else a fair coin."""
        return truth_threshold(self.epsilon_of_answer, 2)

    @cached_property
    def epsilon_of_answer(self) -> Fraction:
        """The epsilon of one bit, so that all bits of a record cost (epsilon, delta)."""
        return epsilon_of_answers(self.epsilon, self.delta, self.answers_per_record)

    @property
    def truth(self) -> float:
        """g, the gain of a bit."""
        return self.threshold / 2.0**64

    @property
    def records_per_answer(self) -> int:
        """Records of a class for each answer at a level: alpha with `users`, 1 with `budget`."""
        return self.levels if self.split == "users" else 1

    @property
    def variance_per_record(self) -> float:
        """v/n = C alpha: the variance of a count for each record of its class."""
        return self.records_per_answer / self.truth**2

    # --- the node ------------------------------------------------------------------------------

    def leaves(self, columns: Columns) -> Integers:
        """Each record's leaf: the number of its score's bin among 2^alpha bins of equal width.

        Returns: (records,) int64 in 0 .. 2^alpha - 1.

        Raises:
            OutOfBounds: a score lies outside the field's bounds.
        """
        field = self.field
        column = columns[field.name]
        if len(column) and (column.min() < field.lower_units or column.max() > field.upper_units):
            raise OutOfBounds(
                f"a value of the field {field.name!r} lies outside its bounds; "
                "widen the bounds or clip the data"
            )
        width = -(-(field.upper_units - field.lower_units + 1) >> self.levels)
        return (column - field.lower_units) // max(width, 1)

    def randomise(self, columns: Columns, bits: RandomBits) -> bytes:
        """A node's message for its records of one class: a public seed, then their bits."""
        leaf = self.leaves(columns)
        public = draw_seed(bits)
        stream = ShakeStream(draw_seed(bits), "bell-auc private")
        told: list[tuple[Integers, Integers]] = []
        for records, level, index in self.questions(public, len(leaf)):
            # Level l counts by the first l bits of the score.
            prefix = leaf[records] >> (self.levels - level)
            told.append((records, tell(index, prefix, self.threshold, stream)))
        if self.split == "budget":
            return public + pack(np.concatenate([answer for _, answer in told]), 1)
        answers = np.zeros(len(leaf), dtype=np.int64)
        for records, answer in told:
            answers[records] = answer
        return public + pack(answers, 1)

    def questions(self, public: bytes, count: int) -> list[Question]:
        """Which records are asked about each level, and with which index.

        The result depends on the public seed and on the number of records, and on no data.

        Returns: for each level 1 .. alpha, (records, level, indices below 2^level).
        """
        stream = ShakeStream(public, "bell-auc public")
        everybody = np.arange(count)
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

    # --- the coordinator -----------------------------------------------------------------------

    def aggregate(self, negatives: Received, positives: Received) -> LocalEstimate:
        """The AUC: the share of pairs in which the positive has the larger score.

        A pair of equal scores counts `ties`.

        Raises:
            EncodingError: a message does not decode.
        """
        sizes = check_counts(*negatives, least=1), check_counts(*positives, least=1)
        tree = self.tree(sizes, self.counts_from(negatives), self.counts_from(positives))
        variance = self._prediction(tree).plug_in_variance()
        return LocalEstimate(tree.value() / (sizes[0] * sizes[1]), sqrt(variance), sum(sizes))

    def discarded(self, negatives: Received, positives: Received) -> int:
        """The number of discarded nodes on the walk that `aggregate` takes.

        Raises:
            EncodingError: a message does not decode.
        """
        sizes = sum(negatives[1]), sum(positives[1])
        tree = self.tree(sizes, self.counts_from(negatives), self.counts_from(positives))
        return sum(len(step.discarded) for step in tree.steps())

    def check(self, message: bytes, count: int) -> None:
        """Decode the message of a node with `count` records of a class, and drop the result.

        Raises:
            EncodingError: the message does not decode.
        """
        self._decode(message, count)

    def _decode(self, message: bytes, count: int) -> tuple[bytes, Integers]:
        """The public seed, and the answers as 0 or 1."""
        public, body = split_seed(message)
        answers = unpack(body, count * self.answers_per_record, 1)
        return public, answers.astype(np.int64)

    def counts_from(self, received: Received) -> list[Floats]:
        """Estimated counts of one class, level 0 (known) to alpha."""
        tallies = [np.zeros(1 << level) for level in range(self.levels + 1)]
        for message, count in zip(*received, strict=True):
            public, answers = self._decode(message, count)
            for records, level, index in self.questions(public, count):
                if self.split == "budget":
                    mine = answers[(level - 1) * count : level * count]
                else:
                    mine = answers[records]
                tallies[level] += tally(index, mine, 1 << level)
        return self.counts(tallies, sum(received[1]))

    def counts(self, tallies: Sequence[Floats], records: int) -> list[Floats]:
        """Estimated counts of a class by level, from its records' signs summed by index.

        Args:
            tallies: for levels 0 to alpha, (2^l,) float64 each; level 0 is not read.
            records: number of records of the class.
        """
        scale = self.records_per_answer / self.truth
        return [np.array([float(records)]), *(scale * transform(sums) for sums in tallies[1:])]

    def value(self, negatives: list[Floats], positives: list[Floats]) -> float:
        """The AUC that the walk computes from estimated or exact counts, level 0 to alpha."""
        sizes = round(float(negatives[0][0])), round(float(positives[0][0]))
        return self.tree(sizes, negatives, positives).value() / (sizes[0] * sizes[1])

    def tree(
        self, sizes: tuple[int, int], negatives: list[Floats], positives: list[Floats]
    ) -> Tree:
        """The tree of these counts, with this protocol's rule for followed nodes.

        Args:
            sizes: numbers of negatives and of positives.
        """
        minus, plus = (self.variance_per_record * size for size in sizes)
        constant = self.best_constant(*sizes)
        return Tree(negatives, positives, minus, plus, constant, self.variant == "half", self.ties)

    def best_constant(self, negatives: int, positives: int) -> float:
        """a: the given constant, or the one that minimises theorem 3's bound."""
        if self.constant is not None:
            return self.constant
        return best_constant(negatives, positives, self.variance_per_record, self.variant)

    # --- theory --------------------------------------------------------------------------------

    def predicted_mse(
        self, negatives: Columns, positives: Columns, exact: float | None = None
    ) -> float:
        """Mean squared error of the AUC of these records.

        The prediction assumes that the walk follows the nodes that the true counts select. It is
        exact for given followed nodes and independent levels; see `auc_tree.Prediction`.

        Args:
            exact: the AUC without quantisation; None takes the AUC of the 2^alpha bins, which
                leaves the error of quantisation out.
        """
        leaves = [self.leaves(columns) for columns in (negatives, positives)]
        sizes = len(leaves[0]), len(leaves[1])
        levels = [exact_levels(leaf, self.levels) for leaf in leaves]
        return self._prediction(self.tree(sizes, *levels)).mse(exact)

    def _prediction(self, tree: Tree) -> Prediction:
        return Prediction(tree, self.truth, self.split == "users")

    def message_bytes(self, records: int) -> int:
        """Bytes of the message of a node with this many records of a class."""
        return SEED_BYTES + packed_size(records * self.answers_per_record, 1)

    def cost(self, records_per_message: Sequence[int]) -> LocalCost:
        """Cost of a run.

        Args:
            records_per_message: the number of records behind each message; a node sends two.
        """
        asked = sum(records_per_message) * self.answers_per_record
        work = sum(level << level for level in range(1, self.levels + 1))
        return LocalCost(
            message_bytes=sum(map(self.message_bytes, records_per_message)),
            rounds=1,
            node_operations=3 * asked,
            coordinator_operations=asked + 2 * work,
        )


# --- answers --------------------------------------------------------------------------------------


STEPS = 20
"""ε0 is a multiple of ε/k·2^-STEPS."""


@lru_cache(maxsize=64)
def epsilon_of_answers(epsilon: Fraction, delta: Fraction, answers: int) -> Fraction:
    """The largest ε0 at which so many answers of a record cost at most (ε, δ).

    Args:
        epsilon: ε > 0, exact.
        delta: exact; 0 gives ε divided by the number of answers.
        answers: k.
    """
    if not delta or answers < 2:
        return epsilon / answers
    unit = epsilon / answers / (1 << STEPS)
    # Bisection between basic composition's ε/k and ε.
    fits = 1 << STEPS
    too_much = answers << STEPS
    while too_much - fits > 1:
        middle = (fits + too_much) // 2
        if delta_of_answers(unit * middle, answers, epsilon) <= delta:
            fits = middle
        else:
            too_much = middle
    return unit * fits


def delta_of_answers(each: Fraction, answers: int, epsilon: Fraction) -> Fraction:
    """The δ of k answers by randomised response, each ε0-DP, at ε; rounded up.

    Args: each: ε0, exact. answers: k. epsilon: ε, exact.
    """
    with ctx.workprec(PRECISION):
        p = 1 / (1 + ball(-each).exp())
        q = 1 / (1 + ball(each).exp())
        growth = ball(epsilon).exp()
        total = arb(0)
        for truths in range(answers + 1):
            lies = answers - truths
            # The term is positive where its loss (2j − k)·ε0 exceeds ε.
            if (truths - lies) * each > epsilon:
                term = p**truths * q**lies - growth * p**lies * q**truths
                total += comb(answers, truths) * term
        return max(Fraction(0), above(total, grid=None))


# --- theory ---------------------------------------------------------------------------------------


PRINTED_FACTOR = 21.0
"""The constant c of theorem 3 as the paper prints it."""


def best_constant(
    negatives: int, positives: int, variance_per_record: float, variant: str
) -> float:
    """The a > 1 that minimises the printed bound.

    With s = sqrt(a) it solves s (s-1)^2 = 21 sqrt(2 n C alpha)/(8 m), or for the zero variant
    s (s-1)^2 = sqrt(2 n C alpha)/(16 m). The paper approximates the root by 1 + sqrt(right side).
    This function finds it by bisection.
    """
    right = _right_side(negatives, positives, variance_per_record, variant)
    low = 1.0
    high = 2.0 + right
    for _ in range(80):
        middle = (low + high) / 2
        if middle * (middle - 1) ** 2 < right:
            low = middle
        else:
            high = middle
    return high**2


def _right_side(negatives: int, positives: int, variance_per_record: float, variant: str) -> float:
    """The right side of the equation for s = sqrt(a)."""
    root = sqrt(2 * (negatives + positives) * variance_per_record) / min(negatives, positives)
    return root * (PRINTED_FACTOR / 8 if variant == "half" else 1 / 16)
