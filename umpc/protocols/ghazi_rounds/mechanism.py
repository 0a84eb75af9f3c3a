"""The interactive variant: after a first look at the records, the others are asked for one number.

Paper: Ghazi et al. 2024 (arXiv 2406.16305) has a three-round protocol with error O(max |A|^2/(epsilon^2 n)) for large
n, so without gamma_2(A). Its text was not at hand; this one is built on the same idea, and its error is derived here.

Records are divided at random into three groups. With m the mean vector of all records and G the form of `ghazi_ldp`:

1. Groups 1 and 2 send their bit of a vector: unbiased means m1 = m + e1, m2 = m + e2, independent noise.
2. The coordinator publishes q_c = v_c' G (m1 + m2) for each cell. Its largest size B is public too.
3. Group 3 answers: a record turns q of its cell into ±1 with mean q/B and tells it through randomised response of gain
   g.

The estimate is s - m1' G m2, where s = (B/g) mean of what was told has mean m3' G (m1 + m2). All that is linear in e1
and e2 cancels: the error is 2 e3' G m + e3' G (e1 + e2) - e1' G e2 + noise of s, unbiased, and

    MSE = [B^2/g^2 - mean q^2]/n3 + sampling of group 3 + k^2 rank(G)/(n1 n2) + ...,       k = rho^2/d.

For large n, B is near 2 max |A m| <= 2 max |A|, and k, that is gamma_2, is left in terms of 1/n^2 only. Messages 1 and
3 are two waits, not three: groups 1 and 2 do not wait for each other.

A record is in one group, drawn from the public seed before anything is randomised, so it answers once: in message 1 or
in message 2, whatever the question is. Epsilon is that of one bit, also towards who chooses the question.

Groups are drawn record by record from the public seed. Given their sizes, every division is as likely as any other,
so the estimate is unbiased for pairs across nodes and within, whatever the nodes' sizes.

Reveals: one bit of each record, epsilon-DP, as long as a node answers one question and no second one.
LocalCost: two messages and an answer of 8 t bytes for each node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, sqrt

import numpy as np

from umpc.crypto.packing import check_counts, pack, packed_bytes, split_seed, unpack
from umpc.dp.exact_sampling import SEED_BYTES, ShakeStream, draw_seed, respond
from umpc.dp.random_bits import RandomBits
from umpc.errors import EncodingError, TooFewRecords
from umpc.protocols.local.estimate import LocalCost, LocalEstimate
from umpc.protocols.local.ghazi_ldp import GhaziLdp
from umpc.protocols.local.sphere import bernoulli, collect, tell_side
from umpc.ustat.clear import Columns

GROUPS = 3
QUESTION_BITS = 24
"""A question's numbers are multiples of its largest one's power of two, so many bits below."""


@dataclass(frozen=True)
class GhaziRounds:
    """`first`, `question`, `second` and `aggregate`, in this order. vectors: epsilon, cells, factors and randomiser."""

    vectors: GhaziLdp

    # --- the node ---------------------------------------------------------------------------------------------

    def first(self, columns: Columns, bits: RandomBits) -> bytes:
        """Message 1: a public seed, one bit of each record in groups 1 and 2. The node keeps it for message 2."""
        public, stream = draw_seed(bits), ShakeStream(draw_seed(bits), "ghazi-rounds first")
        cell = self.vectors.cells.draw(columns, stream)
        chosen = cell[groups(public, len(cell)) < 2]
        return public + pack(
            tell_side(self.vectors.factors.vectors, chosen, public, self.vectors.threshold, stream),
            1,
        )

    def second(self, columns: Columns, first: bytes, question: bytes, bits: RandomBits) -> bytes:
        """Message 2: one bit of each record in group 3.

        Args: first: this node's own message 1. question: the coordinator's. Raises: EncodingError for a malformed one.
        """
        public, _ = split_seed(first)
        stream = ShakeStream(draw_seed(bits), "ghazi-rounds second")
        cell = self.vectors.cells.draw(columns, stream)
        chosen = cell[groups(public, len(cell)) == 2]
        share = self._decode_question(question)
        negative = bernoulli((1 - share / max(np.abs(share).max(), 1e-300)) / 2, stream, chosen)
        return pack(respond(negative, 2, self.vectors.threshold, stream), 1)

    # --- the coordinator --------------------------------------------------------------------------------------

    def question(self, messages: Sequence[bytes], counts: Sequence[int]) -> bytes:
        """q: (t,) float64, little-endian, rounded, so that the same messages give the same bytes on other machines too.

        Raises: EncodingError; TooFewRecords where a group is empty.
        """
        one, two = self._means(messages, counts)
        share = self.vectors.factors.vectors @ self.vectors.factors.form @ (one + two)
        step = 2.0 ** (np.frexp(np.abs(share).max())[1] - QUESTION_BITS)
        return (
            (np.rint(share / step) * step + 0.0).astype("<f8").tobytes()
        )  # + 0.0: no negative zero

    def check_first(self, first: bytes, count: int) -> None:
        """Raises: EncodingError for a message 1 that does not decode, of a node with so many records."""
        public, body = split_seed(first)
        unpack(body, count - asked(public, count), 1)

    def check_second(self, first: bytes, second: bytes, count: int) -> None:
        """Raises: EncodingError for a message 2 that does not go with the node's message 1."""
        unpack(second, asked(split_seed(first)[0], count), 1)

    def aggregate(
        self,
        firsts: Sequence[bytes],
        question: bytes,
        seconds: Sequence[bytes],
        counts: Sequence[int],
    ) -> LocalEstimate:
        """The estimate from all messages. question: the bytes that were sent."""
        one, two = self._means(firsts, counts)
        bound, told, heard = float(np.abs(self._decode_question(question)).max()), 0.0, 0
        for first, second, count in zip(firsts, seconds, counts, strict=True):
            mine = asked(split_seed(first)[0], count)
            told += float(np.sum(1.0 - 2.0 * unpack(second, mine, 1)))
            heard += mine
        if not heard:
            raise TooFewRecords("no record fell into the third group; take more records")
        factors, n = self.vectors.factors, sum(counts)
        answer, k = (
            bound / self.vectors.truth * told / heard,
            self.vectors.scale**2 / factors.dimension,
        )
        rank = float(np.sum(factors.form**2))
        variance = (bound / self.vectors.truth) ** 2 / heard + k * k * rank * (GROUPS / n) ** 2
        return LocalEstimate(answer - float(one @ factors.form @ two), sqrt(variance), n)

    def _means(
        self, messages: Sequence[bytes], counts: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Unbiased mean vectors of groups 1 and 2."""
        check_counts(messages, counts, least=GROUPS)
        totals, sizes = np.zeros((2, self.vectors.factors.dimension)), np.zeros(2)
        for message, count in zip(messages, counts, strict=True):
            public, body = split_seed(message)
            group = groups(public, count)
            group = group[group < 2]
            member = group == np.arange(2)[:, None]
            signs = (1.0 - 2.0 * unpack(body, len(group), 1)) * member
            totals += collect(public, signs, self.vectors.factors.form)[0]
            sizes += member.sum(axis=1)
        if not sizes.all():
            raise TooFewRecords("no record fell into one of the first groups; take more records")
        return tuple(self.vectors.scale * totals / sizes[:, None])

    def _decode_question(self, question: bytes) -> np.ndarray:
        if len(question) != 8 * self.vectors.cells.size:
            raise EncodingError(
                f"{self.vectors.cells.size} cells take {8 * self.vectors.cells.size} bytes, got {len(question)}"
            )
        share = np.frombuffer(question, dtype="<f8").astype(np.float64)
        if not np.all(np.isfinite(share)):
            raise EncodingError("a number of the question is not finite")
        return share

    # --- theory -----------------------------------------------------------------------------------------------

    def predicted_mse(self, columns: Columns, exact: float | None = None) -> float:
        """Mean squared error on these records, with this projection. exact: the statistic; None: no error of cells."""
        variance = self._variance(*self.vectors.cells.laws(columns))
        return (
            variance if exact is None else variance + (self.vectors.expected(columns) - exact) ** 2
        )

    def _variance(self, rows: np.ndarray, weights: np.ndarray) -> float:
        factors, n = self.vectors.factors, float(weights.sum())
        k, g = self.vectors.scale**2 / factors.dimension, factors.form
        size, means = n / GROUPS, rows @ self.vectors.factors.vectors
        mean = weights @ means / n
        rank = np.sum(g * g)
        noise = k * 2 / size * np.sum((self.vectors.factors.vectors @ g) ** 2, axis=1)
        largest = expected_square_of_largest(
            2 * self.vectors.factors.vectors @ g @ mean, np.sqrt(noise)
        )
        asked = 2 * means @ g @ mean
        square, middle = weights @ (asked**2 + rows @ noise) / n, weights @ asked / n
        sampling = (1 - 1 / GROUPS) * (square - middle**2) / size
        told = (largest / self.vectors.truth**2 - square) / size
        return float(told + sampling + k * k * rank / size**2)

    def message_bytes(self, records: int) -> int:
        """Of a node with so many records, both messages, at most."""
        return SEED_BYTES + packed_bytes(records, 1) + 1

    def cost(self, records_per_node: Sequence[int]) -> LocalCost:
        one = self.vectors.cost(records_per_node)
        back = 8 * self.vectors.cells.size * len(records_per_node)
        return LocalCost(
            one.message_bytes, 2, one.node_operations, one.coordinator_operations, back
        )


def groups(public: bytes, count: int) -> np.ndarray:
    """(count,) int64: the group of each of a node's records, 0, 1 or 2."""
    return ShakeStream(public, "ghazi-rounds groups").below(GROUPS, count).astype(np.int64)


def asked(public: bytes, count: int) -> int:
    """How many of a node's records the question is for."""
    return int(np.sum(groups(public, count) == 2))


def expected_square_of_largest(means: np.ndarray, deviations: np.ndarray) -> float:
    """E max_c (means_c + deviations_c Z_c)^2 for independent standard normals Z, which the entries of q nearly are."""
    top = float(np.max(np.abs(means) + 8 * deviations))
    points = (np.arange(2000) + 0.5) * top / 2000
    cdf = np.vectorize(erf, otypes=[float])
    spread = np.maximum(deviations, 1e-12) * sqrt(2)
    inside = np.ones_like(points)
    for mean, width in zip(means, spread, strict=True):
        inside *= (cdf((points - mean) / width) + cdf((points + mean) / width)) / 2
    return float(np.sum(2 * points * (1 - inside)) * top / 2000)
