"""The interactive variant of Ghazi's protocol: two groups answer first, the third one a question.

Paper: Ghazi et al. 2024 (arXiv 2406.16305) has a three-round protocol with error
O(max |A|^2/(epsilon^2 n)) for large n, that is without gamma_2(A). Its text was not at hand. This
protocol rests on the same idea, and its error is derived here.

Records are divided at random into three groups. Let m be the mean vector of all records and G the
form of `ghazi_ldp`.

1. Groups 1 and 2 send their bit of a vector. The coordinator computes unbiased means m1 = m + e1
   and m2 = m + e2 with independent noise.
2. The coordinator publishes q_c = v_c' G (m1 + m2) for each cell c. The largest magnitude B of
   these numbers is therefore public too.
3. Group 3 answers. A record turns the q of its cell into ±1 with mean q/B, and sends it through
   randomised response of gain g.

The estimate is s - m1' G m2. Here s = (B/g) times the mean of the answers, and its mean is
m3' G (m1 + m2). All terms that are linear in e1 and e2 cancel. The error is
2 e3' G m + e3' G (e1 + e2) - e1' G e2 + noise of s. It is unbiased, and with k = rho^2/d

    MSE = [B^2/g^2 - mean q^2]/n3 + sampling of group 3 + k^2 rank(G)/(n1 n2) + ...

For large n, B is near 2 max |A m| <= 2 max |A|. Then k, and with it gamma_2, remains in terms of
1/n^2 only. A node waits twice for its messages 1 and 3, not three times, because groups 1 and 2 do
not wait for each other.

A record is in one group, which is drawn from the public seed before anything is randomised. So a
record answers once, in message 1 or in message 2, whatever the question is. Epsilon is that of one
bit, also towards the party that chooses the question.

Groups are drawn record by record from the public seed. Given their sizes, every division is
equally likely. The estimate is therefore unbiased for pairs across nodes and within a node,
whatever the nodes' sizes.

Reveals: one bit of each record, epsilon-DP, as long as a node answers one question and no second
one.
Cost: two messages, and an answer of 8 t bytes to each node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, sqrt

import numpy as np

from umpc.crypto.ring import pack, packed_size, unpack
from umpc.dp.random_bits import RandomBits
from umpc.errors import EncodingError, TooFewRecords
from umpc.mpc.arrays import Floats, Integers
from umpc.ustat.clear import Columns
from umpc_papers.exact_sampling import SEED_BYTES, ShakeStream, draw_seed, respond, split_seed
from umpc_papers.local.estimate import LocalCost, LocalEstimate, check_counts
from umpc_papers.local.ghazi_ldp import GhaziLdp
from umpc_papers.local.sphere import bernoulli, collect, tell_side

GROUPS = 3
"""The number of groups."""
ASKED = 2
"""The number of the group that answers the question; groups 0 and 1 send vectors."""
QUESTION_BITS = 24
"""A question's numbers are multiples of 2^-24 of the power of two above its largest one."""
LEAST_BOUND = 1e-300
"""A question of zeros alone is divided by this number in place of its largest magnitude."""
CDF_POINTS = 2000
"""Points at which `expected_square_of_largest` adds up its integrand."""


@dataclass(frozen=True)
class GhaziRounds:
    """The interactive protocol: `first`, `question`, `second` and `aggregate`, in this order.

    Args:
        vectors: the one-round protocol, which holds epsilon, cells, factors and randomiser.
    """

    vectors: GhaziLdp

    # --- the node ------------------------------------------------------------------------------

    def first(self, columns: Columns, bits: RandomBits) -> bytes:
        """Message 1: a public seed, and one bit of each record in groups 1 and 2.

        The node keeps this message for message 2.
        """
        public = draw_seed(bits)
        stream = ShakeStream(draw_seed(bits), "ghazi-rounds first")
        cell = self.vectors.cells.draw(columns, stream)
        chosen = cell[groups(public, len(cell)) < ASKED]
        vectors = self.vectors.factors.vectors
        told = tell_side(vectors, chosen, public, self.vectors.threshold, stream)
        return public + pack(told, 1)

    def second(self, columns: Columns, first: bytes, question: bytes, bits: RandomBits) -> bytes:
        """Message 2: one bit of each record in group 3.

        Args:
            first: this node's own message 1.
            question: the coordinator's question.

        Raises:
            EncodingError: the question does not decode.
        """
        public, _ = split_seed(first)
        stream = ShakeStream(draw_seed(bits), "ghazi-rounds second")
        cell = self.vectors.cells.draw(columns, stream)
        chosen = cell[groups(public, len(cell)) == ASKED]
        q = self._decode_question(question)
        largest = max(np.abs(q).max(), LEAST_BOUND)
        # Step 3: -1 with probability (1 - q/B)/2, so that the mean is q/B.
        negative = bernoulli((1 - q / largest) / 2, stream, chosen)
        # Step 3: randomised response of gain g.
        return pack(respond(negative, 2, self.vectors.threshold, stream), 1)

    # --- the coordinator -----------------------------------------------------------------------

    def question(self, messages: Sequence[bytes], counts: Sequence[int]) -> bytes:
        """The question q: (t,) float64, little-endian.

        The numbers are rounded, so that equal messages give equal bytes on all machines.

        Raises:
            EncodingError: a message does not decode.
            TooFewRecords: group 1 or group 2 is empty.
        """
        one, two = self._means(messages, counts)
        # Step 2: q_c = v_c' G (m1 + m2).
        q = self.vectors.factors.vectors @ self.vectors.factors.form @ (one + two)
        step = 2.0 ** (np.frexp(np.abs(q).max())[1] - QUESTION_BITS)
        rounded = np.rint(q / step) * step + 0.0  # adding 0.0 turns a negative zero into a zero
        return bytes(rounded.astype("<f8").tobytes())

    def check_first(self, first: bytes, count: int) -> None:
        """Decode message 1 of a node with `count` records, and drop the result.

        Raises:
            EncodingError: the message does not decode.
        """
        public, body = split_seed(first)
        unpack(body, count - asked(public, count), 1)

    def check_second(self, first: bytes, second: bytes, count: int) -> None:
        """Decode message 2 of a node with `count` records, and drop the result.

        Raises:
            EncodingError: the message does not fit the node's message 1.
        """
        unpack(second, asked(split_seed(first)[0], count), 1)

    def aggregate(
        self,
        firsts: Sequence[bytes],
        question: bytes,
        seconds: Sequence[bytes],
        counts: Sequence[int],
    ) -> LocalEstimate:
        """The estimate from all messages.

        Args:
            firsts: every node's message 1.
            question: the bytes that were sent.
            seconds: every node's message 2.
            counts: every node's number of records.

        Raises:
            EncodingError: a message does not decode.
            TooFewRecords: a group is empty.
        """
        one, two = self._means(firsts, counts)
        bound = float(np.abs(self._decode_question(question)).max())
        told = 0.0
        heard = 0
        for first, second, count in zip(firsts, seconds, counts, strict=True):
            mine = asked(split_seed(first)[0], count)
            told += float(np.sum(1.0 - 2.0 * unpack(second, mine, 1)))
            heard += mine
        if not heard:
            raise TooFewRecords("no record is in the third group; take more records")
        factors = self.vectors.factors
        n = sum(counts)
        # s = (B/g) times the mean of the answers.
        answer = bound / self.vectors.truth * told / heard
        k = self.vectors.scale**2 / factors.dimension
        rank = float(np.sum(factors.form**2))
        variance = (bound / self.vectors.truth) ** 2 / heard + k * k * rank * (GROUPS / n) ** 2
        value = answer - float(one @ factors.form @ two)
        return LocalEstimate(value, sqrt(variance), n)

    def _means(self, messages: Sequence[bytes], counts: Sequence[int]) -> tuple[Floats, Floats]:
        """m1 and m2, the unbiased mean vectors of groups 1 and 2: (d,) float64 each."""
        check_counts(messages, counts, least=GROUPS)
        totals = np.zeros((2, self.vectors.factors.dimension))
        sizes = np.zeros(2)
        for message, count in zip(messages, counts, strict=True):
            public, body = split_seed(message)
            group = groups(public, count)
            group = group[group < ASKED]
            member = group == np.arange(2)[:, None]
            signs = (1.0 - 2.0 * unpack(body, len(group), 1)) * member
            totals += collect(public, signs, self.vectors.factors.form)[0]
            sizes += member.sum(axis=1)
        if not sizes.all():
            raise TooFewRecords("no record is in one of the first two groups; take more records")
        one, two = self.vectors.scale * totals / sizes[:, None]
        return one, two

    def _decode_question(self, question: bytes) -> Floats:
        """The numbers of a question: (t,) float64. Raises: EncodingError."""
        cells = self.vectors.cells.size
        if len(question) != 8 * cells:
            raise EncodingError(
                f"the numbers of {cells} cells take {8 * cells} bytes, got {len(question)}"
            )
        q = np.frombuffer(question, dtype="<f8").astype(np.float64)
        if not np.all(np.isfinite(q)):
            raise EncodingError("a number of the question is not finite")
        return q

    # --- theory --------------------------------------------------------------------------------

    def predicted_mse(self, columns: Columns, exact: float | None = None) -> float:
        """Mean squared error on these records, with this projection.

        Args:
            exact: the statistic without quantisation; None leaves the error of quantisation out.
        """
        variance = self.variance(*self.vectors.cells.laws(columns))
        if exact is None:
            return variance
        return variance + (self.vectors.expected(columns) - exact) ** 2

    def variance(self, rows: Floats, weights: Floats | Integers) -> float:
        """The variance given the records, by the formula in the module's docstring.

        Args:
            rows: (m, t) float64, the law of a record's cell.
            weights: (m,), the number of records with each law.
        """
        vectors = self.vectors.factors.vectors
        form = self.vectors.factors.form
        n = float(weights.sum())
        k = self.vectors.scale**2 / self.vectors.factors.dimension
        size = n / GROUPS
        means = rows @ vectors
        mean = weights @ means / n
        rank = np.sum(form * form)
        # The noise of each cell's q, and the mean of B^2.
        noise = k * 2 / size * np.sum((vectors @ form) ** 2, axis=1)
        largest = expected_square_of_largest(2 * vectors @ form @ mean, np.sqrt(noise))
        # The mean of q, and of its square, over records.
        expected = 2 * means @ form @ mean
        square = weights @ (expected**2 + rows @ noise) / n
        middle = weights @ expected / n
        # The three terms of the error, in the order of the module's docstring.
        told = (largest / self.vectors.truth**2 - square) / size
        sampling = (1 - 1 / GROUPS) * (square - middle**2) / size
        return float(told + sampling + k * k * rank / size**2)

    def message_bytes(self, records: int) -> int:
        """Upper bound on the bytes of both messages of a node with this many records."""
        return SEED_BYTES + packed_size(records, 1) + 1

    def cost(self, records_per_node: Sequence[int]) -> LocalCost:
        """Cost of a run with these numbers of records."""
        one = self.vectors.cost(records_per_node)
        return LocalCost(
            message_bytes=one.message_bytes,
            rounds=2,
            node_operations=one.node_operations,
            coordinator_operations=one.coordinator_operations,
        )


def groups(public: bytes, count: int) -> Integers:
    """The group of each of a node's records: (count,) int64, 0, 1 or 2."""
    return ShakeStream(public, "ghazi-rounds groups").below(GROUPS, count).astype(np.int64)


def asked(public: bytes, count: int) -> int:
    """The number of a node's records that the question is for."""
    return int(np.sum(groups(public, count) == ASKED))


def expected_square_of_largest(means: Floats, deviations: Floats) -> float:
    """E max_c (means_c + deviations_c Z_c)^2 for independent standard normals Z.

    The entries of q have nearly this law. The function integrates P(max^2 > x^2) numerically.
    """
    top = float(np.max(np.abs(means) + 8 * deviations))
    points = (np.arange(CDF_POINTS) + 0.5) * top / CDF_POINTS
    cdf = np.vectorize(erf, otypes=[float])
    spread = np.maximum(deviations, 1e-12) * sqrt(2)
    inside = np.ones_like(points)
    for mean, width in zip(means, spread, strict=True):
        inside *= (cdf((points - mean) / width) + cdf((points + mean) / width)) / 2
    return float(np.sum(2 * points * (1 - inside)) * top / CDF_POINTS)
