"""A mean over single records in the local model: each record sends a point of its kernel's range.

Paper: Bellet 2021 (slides), averaging queries in the local model: each value with Laplace noise, a
variance of 2/(n epsilon^2) for values in [0, 1]. Departure: a record answers in a few bits, with a
variance of at most 0.7 times that up to epsilon = 60. With two points it is the one-bit answer of
Duchi, Jordan, Wainwright 2018 for one number, made of Warner's randomised response (1965).

A kernel's value w = 0 .. s, in units above its least one, is rounded at random to one of k points
at equal distances, and randomised response over k answers follows. Let d = k - 1, and let the truth
be told with probability g:

    J = floor(w d/s), plus 1 with probability (w d mod s)/s          rounding, unbiased for w d/s
    Y = J with probability g, else uniform on 0 .. d                 the answer
    v = (s/d) (Y - (1-g) d/2)/g                                      unbiased for w

*Variance*, given the records. Let p = w d/s and j = floor(p). Then E J^2 = p (2j+1) - j (j+1), and

    Var v = (s/(d g))^2 [ g E J^2 + (1-g) d (2d+1)/6 - (g p + (1-g) d/2)^2 ].

It depends on w. The estimate reports the most over all w, which is known before the run: it is
the variance itself where the kernel has two values. k follows from epsilon: it makes that variance
least. At epsilon = 1 there are two points, and a record sends one bit.

Reveals: to the coordinator, the point that each record sends. It is epsilon-DP for each record,
whoever colludes.
Cost: one round; log2 k bits for each record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, floor, inf, nextafter, sqrt

import numpy as np

from umpc.crypto.ring import pack, packed_size, unpack
from umpc.dp.events import check_epsilon
from umpc.dp.random_bits import RandomBits
from umpc.errors import EncodingError, StudyError
from umpc.mpc.arrays import Floats, Integers
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc_papers.exact_sampling import ShakeStream, draw_seed, respond, truth_threshold
from umpc_papers.local.estimate import LocalEstimate, check_counts

MOST_POINTS = 32
"""The most points of an answer, which then takes five bits."""
WORD = 1 << 63
"""The bound of int64: a value times the number of points stays below it."""


@dataclass(frozen=True)
class LocalMean:
    """A mean of one kernel over single records, epsilon-DP for each record in the local model.

    Args:
        epsilon: > 0, exact; for each record.
        kernel: a function of one record.

    Raises:
        InvalidEpsilon: epsilon is not exact, or so small that no record would tell the truth.
        StudyError: the kernel is constant.
    """

    epsilon: Fraction
    kernel: Kernel

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if not self.kernel.interval.width:
            raise StudyError(
                "the kernel is the same for all records, so there is nothing to estimate; "
                "correct it"
            )
        _ = self.answer

    @cached_property
    def low(self) -> int:
        """The least value of the kernel, in units."""
        return floor(self.kernel.interval.low / self.kernel.unit)

    @cached_property
    def span(self) -> int:
        """s: the largest value in units, above the least one."""
        return ceil(self.kernel.interval.high / self.kernel.unit) - self.low

    @cached_property
    def answer(self) -> PointAnswer:
        """The points and the chance of a record's answer."""
        return best_answer(self.epsilon, self.span)

    # --- the node ------------------------------------------------------------------------------

    def randomise(self, columns: Columns, bits: RandomBits) -> bytes:
        """A node's message: one point for each of its records.

        Args: columns: field -> (records,) int64, in steps of the field's resolution.
        """
        stream = ShakeStream(draw_seed(bits), "local-mean")
        above = self.kernel.evaluate([columns]) - self.low
        return pack(self.answer.tell(above, stream), self.answer.width)

    # --- the coordinator -----------------------------------------------------------------------

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[int]) -> LocalEstimate:
        """The mean over all records, and the most that its standard deviation can be.

        Raises:
            EncodingError: a message does not decode.
        """
        n = check_counts(messages, counts, least=1)
        pairs = zip(messages, counts, strict=True)
        total = sum(int(self._decode(message, count).sum()) for message, count in pairs)
        return LocalEstimate(float(self.value(Fraction(total, n))), self.most_std(n), n)

    def check(self, message: bytes, count: int) -> None:
        """Decode the message of a node with `count` records, and drop the result.

        Raises:
            EncodingError: the message does not decode.
        """
        self._decode(message, count)

    def _decode(self, message: bytes, count: int) -> Integers:
        """The points that were sent: (count,) int64."""
        points = unpack(message, count, self.answer.width)
        if np.any(points > self.answer.last):
            raise EncodingError(
                f"an answer in the message is not below {self.answer.points}; the node must send "
                f"the numbers of its records' points"
            )
        return points.astype(np.int64)

    def value(self, mean: Fraction) -> Fraction:
        """The estimate, in the kernel's own values, from the mean of all points that were sent."""
        return (self.low + self.answer.value(mean)) * self.kernel.unit

    def possible(self) -> tuple[float, float]:
        """The least and the largest estimate that any answers give."""
        ends = self.value(Fraction(0)), self.value(Fraction(self.answer.last))
        # outwards, as the value is rounded to a float too
        return nextafter(float(ends[0]), -inf), nextafter(float(ends[1]), inf)

    def most_std(self, n: int) -> float:
        """The largest standard deviation of the estimate over any n records."""
        return float(self.kernel.unit) * sqrt(self.answer.most_variance / n)

    # --- theory --------------------------------------------------------------------------------

    def predicted_variance(self, columns: Columns) -> float:
        """The variance of the estimate given these records, which is its mean squared error."""
        above = self.kernel.evaluate([columns]) - self.low
        each = self.answer.variances(above)
        return float(each.mean()) / len(above) * float(self.kernel.unit) ** 2

    def mean(self, columns: Columns) -> float:
        """The mean itself, which the estimate is unbiased for."""
        return float(np.mean(self.kernel.evaluate([columns]) * float(self.kernel.unit)))

    def message_bytes(self, records: int) -> int:
        """Bytes of the message of a node with this many records."""
        return packed_size(records, self.answer.width)


@dataclass(frozen=True)
class PointAnswer:
    """The answer of a record whose value is 0 .. span; the names are those of the docstring above.

    Args:
        points: k, the number of possible answers; at most span + 1.
        span: s.
        threshold: the truth is told with probability threshold/2^64.
    """

    points: int
    span: int
    threshold: int

    @property
    def last(self) -> int:
        """d, the number of the last point."""
        return self.points - 1

    @property
    def width(self) -> int:
        """Bits of an answer."""
        return self.last.bit_length()

    @cached_property
    def truth(self) -> Fraction:
        """g."""
        return Fraction(self.threshold, 1 << 64)

    def tell(self, above: Integers, stream: ShakeStream) -> Integers:
        """The answers of records with these values.

        Args: above: w, (records,) int64 in 0 .. span.
        Returns: (records,) int64 in 0 .. d.
        """
        scaled = above * self.last
        # The rounding is exact: a uniform integer below s is under the remainder.
        drawn = stream.below(self.span, len(above))
        point = scaled // self.span + (drawn < (scaled % self.span).astype(np.uint64))
        return respond(point, self.points, self.threshold, stream)

    def value(self, mean: Fraction) -> Fraction:
        """w, from the mean of Y."""
        lies = (1 - self.truth) * Fraction(self.last, 2)
        return Fraction(self.span, self.last) * (mean - lies) / self.truth

    def variance(self, above: int) -> Fraction:
        """Var v of a record with this value w, exactly."""
        d, g = self.last, self.truth
        p = Fraction(above * d, self.span)
        j = min(floor(p), d - 1)
        square = g * (p * (2 * j + 1) - j * (j + 1)) + (1 - g) * Fraction(d * (2 * d + 1), 6)
        mean = g * p + (1 - g) * Fraction(d, 2)
        return (square - mean**2) * (Fraction(self.span, d) / g) ** 2

    def variances(self, above: Integers) -> Floats:
        """Var v of each record, to the accuracy of floats: (records,) float64."""
        d, g = self.last, float(self.truth)
        p = above * (d / self.span)
        j = np.minimum(np.floor(p), d - 1)
        square = g * (p * (2 * j + 1) - j * (j + 1)) + (1 - g) * d * (2 * d + 1) / 6
        mean = g * p + (1 - g) * d / 2
        return np.asarray((square - mean**2) * (self.span / (d * g)) ** 2, dtype=np.float64)

    @cached_property
    def most_variance(self) -> Fraction:
        """The largest Var v over all w = 0 .. s, exactly."""
        return max(self.variance(above) for above in self._candidates())

    def _candidates(self) -> Iterator[int]:
        """Values of which one has the largest variance.

        Between two points Var v is a concave parabola in w, so its largest value over integers is
        beside its top, or at an end.
        """
        g, d = self.truth, self.last
        for j in range(d):
            first = -(-j * self.span // d)
            last = (j + 1) * self.span // d
            top = floor((2 * j + 1 - (1 - g) * d) / (2 * g) * self.span / d)
            for near in (top, top + 1):
                yield min(max(near, first), last)


@lru_cache(maxsize=64)
def best_answer(epsilon: Fraction, span: int) -> PointAnswer:
    """The answer whose largest variance is least; of equal ones, that of the fewest points.

    Numbers of points are powers of two and, where values are few, one point for each. All processes
    choose by exact fractions, so they agree.
    """
    numbers = {2}
    numbers |= {1 << bits for bits in range(2, 64) if 1 << bits <= min(MOST_POINTS, span + 1)}
    if span < MOST_POINTS:
        numbers.add(span + 1)
    fitting = [points for points in sorted(numbers) if points == 2 or span * points < WORD]
    answers = [PointAnswer(points, span, truth_threshold(epsilon, points)) for points in fitting]
    return min(answers, key=lambda answer: answer.most_variance)
