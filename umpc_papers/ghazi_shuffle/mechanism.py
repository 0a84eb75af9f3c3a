"""Any pair kernel from noisy sums of vectors, added up by split and mix.

The error is close to that of a trusted curator.

Paper: Sinh & Ramon 2025, section 5 (GhaziSM): the sums of `ghazi_ldp` in the shuffle model, after
Balle, Bell, Gascón, Nissim 2020. Let S be the sum over records of an integer vector p_i. Let F be
a form and `single` a term of single records. Then n(n-1) U = S' F S - sum_i p_i' F p_i. With
independent noise Z of variance s^2 in each coordinate,

    (S + Z)' F (S + Z) - s^2 tr F - (the term of single records)

is unbiased for it. There are two kinds of vectors:

- `histogram`: p = e_cell and F = A. The term of single records is the diagonal of A times S.
- `factors`: p = 2^f V_cell rounded, and F = G 2^-2f (`factors`). The term of single records is
  known if the diagonal of A is constant; else it is one more coordinate.

*Noise.* Replacing a record changes S by at most L in the sum of absolute values (2 for the
histogram). Discrete Laplace noise P(z) ~ exp(-epsilon |z|/L) on each coordinate therefore makes S
epsilon-DP, because the exponents add up. The public code of Sinh & Ramon spends epsilon on every
coordinate, and has a scale that is 140 times too small. Each record adds Polya(1/h) - Polya(1/h).
Any h records together add the whole noise, and n records add n/h times its variance. A node draws
the sum for its records.

*Guarantee.* (epsilon, delta) with delta = (1 + e^epsilon) 2^-kappa, against a coordinator that sees
shuffled messages and holds all but h records. The vector's d coordinates are mixed one by one, each
at distance 2^-kappa/d from ideal mixing.

*Variance.* Let l = 2 F S - (the single records' coefficients), and let s^2 and k4 be the variance
and the fourth cumulant of Z. The variance of U is

    [ s^2 |l|^2 + 2 s^4 |F|^2 + k4 sum_c F_cc^2 ] / (n(n-1))^2.

The kernel decides which vectors are better. To first order it is 8 |A S|^2 against 2 L^2 |F S|^2,
with L up to 2 r sqrt(d). For Kendall's kernel the histogram's error is smaller by a fifth. For
smooth kernels, such as a sum, factors are better.

Cost: two rounds; d r w bits for each record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, expm1, log2, sqrt

import numpy as np

from umpc.crypto.ring import pack, packed_size, unpack
from umpc.dp.calibration import DistributedLaplace
from umpc.dp.polya import sample_polyas
from umpc.dp.random_bits import RandomBits
from umpc.errors import RangeError, StudyError
from umpc.mpc.arrays import Floats, Integers, Words
from umpc.ustat.clear import Columns
from umpc_papers.exact_sampling import ShakeStream, draw_seed
from umpc_papers.ghazi_shuffle.mixing import KAPPA, delta_of_mixing
from umpc_papers.ghazi_shuffle.split_mix import add_up, mix, shares_needed, split
from umpc_papers.local.bell_ldp import response_variance
from umpc_papers.local.estimate import LocalCost, LocalEstimate, check_counts
from umpc_papers.local.factors import factor
from umpc_papers.local.noise_estimate import reported
from umpc_papers.local.quantisation import Quantiser
from umpc_papers.local.rounding_noise import of_pairs

FRACTION_BITS = 16
"""Fractional bits of the coordinates of factors."""
NOISE_FAILURE_BITS = 64
"""All coordinates fit w bits except with probability 2^-64 together."""


@dataclass(frozen=True)
class Embedding:
    """Each cell's integer vector, and the quadratic form that turns their sum into the statistic.

    Args:
        vectors: (t, d) int64, one row for each cell.
        form: F, (d, d) float64.
        single: (d,) float64, the coefficients of S in the single records' term.
        constant: a further summand of that term for each record.
    """

    vectors: Integers
    form: Floats
    single: Floats
    constant: float

    @cached_property
    def sensitivity(self) -> int:
        """L: the largest sum of absolute differences between two cells' vectors."""
        return max(int(np.abs(self.vectors - row).sum(axis=1).max()) for row in self.vectors)


@dataclass(frozen=True)
class GhaziShuffle:
    """A pair kernel from shuffled sums, (epsilon, delta)-DP.

    Args:
        epsilon: > 0, exact.
        cells: the kernel and its bins.
        records: n, the records of all nodes.
        honest: h, the least number of honest records.
        kappa: statistical security in bits.
        vectors: `histogram` or `factors`.

    Raises:
        StudyError, InvalidEpsilon: a parameter is out of its range.
        TooFewRecords: h is below 19.
        RangeError: the sum does not fit 64 bits.
    """

    epsilon: Fraction
    cells: Quantiser
    records: int
    honest: int
    kappa: int = KAPPA
    vectors: str = "histogram"

    def __post_init__(self) -> None:
        if self.vectors not in ("histogram", "factors"):
            raise StudyError(f"vectors must be histogram or factors, but {self.vectors!r} came")
        if self.kappa < 1:
            raise StudyError(f"kappa must be at least 1, but {self.kappa} came")
        object.__setattr__(self, "epsilon", self.noise.epsilon)
        _ = self.shares

    @cached_property
    def embedding(self) -> Embedding:
        """The vectors, their form, and the single records' term."""
        matrix = self.cells.matrix
        diagonal = matrix.diagonal()
        if self.vectors == "histogram":
            return Embedding(np.eye(len(matrix), dtype=np.int64), matrix, diagonal, 0.0)
        exact = factor(matrix)
        unit = 1 << FRACTION_BITS
        rounded = np.rint(exact.vectors * unit).astype(np.int64)
        form = exact.form / unit**2
        if np.ptp(diagonal) == 0:
            return Embedding(rounded, form, np.zeros(len(form)), float(diagonal[0]))
        # The diagonal is one more coordinate, with no part in the form.
        own = np.rint(diagonal * unit).astype(np.int64)[:, None]
        single = np.append(np.zeros(len(form)), 1 / unit)
        return Embedding(np.concatenate([rounded, own], axis=1), np.pad(form, (0, 1)), single, 0.0)

    @property
    def dimension(self) -> int:
        """d."""
        return len(self.embedding.form)

    @cached_property
    def noise(self) -> DistributedLaplace:
        """The noise of each coordinate; its n shares belong to the records."""
        return DistributedLaplace(
            self.epsilon, self.embedding.sensitivity, self.records, self.honest
        )

    @cached_property
    def tail(self) -> int:
        """A bound of each coordinate's noise; all keep it except with probability 2^-64."""
        return self.noise.tail_bound(NOISE_FAILURE_BITS + self.dimension.bit_length())

    @cached_property
    def width(self) -> int:
        """w: the sum and the noise fit w bits with a sign, except with probability 2^-64 in all.

        Raises:
            RangeError: w exceeds 64.
        """
        largest = self.records * int(np.abs(self.embedding.vectors).max())
        width = (largest + self.tail).bit_length() + 1
        if width > 64:
            raise RangeError(
                f"the sums need {width} bits, 64 are possible; "
                "take a larger epsilon or fewer records"
            )
        return width

    @cached_property
    def shares(self) -> int:
        """r, for a distance of 2^-kappa/d in each coordinate."""
        return shares_needed(self.honest, self.width, self.kappa + ceil(log2(self.dimension)))

    @property
    def delta(self) -> Fraction:
        """(1 + e^epsilon) 2^-kappa, rounded up."""
        return delta_of_mixing(self.epsilon, self.kappa)

    # --- the node ------------------------------------------------------------------------------

    def randomise(self, columns: Columns, bits: RandomBits) -> bytes:
        """A node's message to the shufflers.

        It holds r shares of each record's vector, coordinate by coordinate.
        """
        return pack(self.split_records(columns, bits).reshape(-1), self.width)

    def split_records(self, columns: Columns, bits: RandomBits) -> Words:
        """The numbers in a node's message, unpacked: (d, records r) uint64 below 2^w."""
        stream = ShakeStream(draw_seed(bits), "ghazi-shuffle")
        vectors = self.embedding.vectors[self.cells.draw(columns, stream)].T.astype(np.int64)
        count = vectors.shape[1]
        if count:
            # The first record carries the noise of all of the node's records.
            vectors[:, 0] += self.draw_noise(count, bits)
        mask = np.uint64((1 << self.width) - 1)
        return split(vectors.astype(np.uint64) & mask, self.shares, self.width, stream)

    def draw_noise(self, count: int, bits: RandomBits) -> Integers:
        """The noise that `count` records add together: (d,) int64."""
        shape = Fraction(count, self.honest)
        drawn = sample_polyas(shape, self.noise.log_ratio, 2 * self.dimension, bits)
        up, down = drawn[: self.dimension], drawn[self.dimension :]
        return np.array([more - less for more, less in zip(up, down, strict=True)])

    # --- the shufflers -------------------------------------------------------------------------

    def shuffle(self, messages: Sequence[bytes], counts: Sequence[int], bits: RandomBits) -> bytes:
        """All nodes' messages as one heap for each coordinate, in a random order.

        Raises:
            EncodingError: a message does not decode.
        """
        check_counts(messages, counts)
        heaps = [
            self.decode(message, count) for message, count in zip(messages, counts, strict=True)
        ]
        mixed = mix(np.concatenate(heaps, axis=1), ShakeStream(draw_seed(bits), "shuffle"))
        return pack(mixed.reshape(-1), self.width)

    def decode(self, message: bytes, count: int) -> Words:
        """The shares of `count` records: (d, count r) uint64. Raises: EncodingError."""
        numbers: Words = unpack(message, self.dimension * count * self.shares, self.width)
        return numbers.reshape(self.dimension, -1)

    # --- the coordinator -----------------------------------------------------------------------

    def aggregate(self, mixed: bytes) -> LocalEstimate:
        """The estimate from the shuffled messages of all n records.

        Raises:
            EncodingError: the messages do not decode.
        """
        return self.estimate(self.decode(mixed, self.records))

    def estimate(self, heap: Words) -> LocalEstimate:
        """The estimate from the unpacked heap: (d, n r) uint64 below 2^w."""
        total = add_up(heap, self.width).astype(np.float64)
        embedding = self.embedding
        n = self.records
        # (S + Z)' F (S + Z) - s^2 tr F, less the single records' term.
        noise = self.noise.variance * float(np.trace(embedding.form))
        value = total @ embedding.form @ total - noise
        value -= embedding.single @ total + n * embedding.constant
        return LocalEstimate(float(value) / (n * (n - 1)), sqrt(self._reported_variance(total)), n)

    def is_possible(self, heap: Words) -> bool:
        """Whether n records and their noise can give these sums, except with probability 2^-64.

        Args: heap: as for `estimate`.
        """
        total = add_up(heap, self.width)
        vectors = self.embedding.vectors
        low = self.records * vectors.min(axis=0) - self.tail
        high = self.records * vectors.max(axis=0) + self.tail
        return bool(np.all((low <= total) & (total <= high)))

    def _reported_variance(self, total: Floats) -> float:
        """The variance of noise and rounding by the noisy sum S + Z, and its own error more.

        |l|^2 is too large by 4 s^2 |F|^2, and grows by 4 F l with S (`noise_estimate.reported`).
        """
        form, n = self.embedding.form, self.records
        square = self.noise.variance
        linear = 2 * form @ total - self.embedding.single
        pairs = n * (n - 1)
        second = 2 * square**2 * float(np.sum(form**2)) / pairs**2
        unbiased = self.variance_of(total) - 2 * second
        std = 4 * square**1.5 * float(np.linalg.norm(form @ linear)) / pairs**2
        # The mean of the kernel over all records, by the other record's cell.
        means = self.embedding.vectors @ linear / (2 * n)
        shares = total / n if self.vectors == "histogram" else None
        return reported(unbiased, second, std) + of_pairs(self.cells, means, n, shares)

    # --- theory --------------------------------------------------------------------------------

    def predicted_mse(self, columns: Columns, exact: float | None = None) -> float:
        """Mean squared error on these records.

        Args:
            exact: the statistic without quantisation; None leaves the error of quantisation out.
        """
        rows, weights = self.cells.laws(columns)
        variance = self.variance_of(weights @ rows @ self.embedding.vectors)
        variance += response_variance(self.cells.matrix, rows, weights, 1.0)
        if exact is None:
            return variance
        return variance + (self.cells.quantised(columns) - exact) ** 2

    def variance_of(self, total: Floats) -> float:
        """The variance of U for this sum S; the formula stands in the module's docstring."""
        form = self.embedding.form
        n = self.records
        square = self.noise.variance
        linear = 2 * form @ total - self.embedding.single
        variance = square * linear @ linear + 2 * square**2 * np.sum(form**2)
        variance += self._fourth_cumulant() * np.sum(form.diagonal() ** 2)
        return float(variance) / (n * (n - 1)) ** 2

    def _fourth_cumulant(self) -> float:
        """k4 of the noise: n/h times 2 q (1 + 4 q + q^2)/(1 - q)^4, twice a geometric law's."""
        ratio = float(min(self.noise.log_ratio, Fraction(700)))
        q = exp(-ratio)
        return self.records / self.honest * 2 * q * (1 + 4 * q + q * q) / expm1(-ratio) ** 4

    def message_bytes(self, records: int) -> int:
        """Bytes of the message of a node with this many records.

        For n records it is the total that the shufflers send.
        """
        return packed_size(self.dimension * records * self.shares, self.width)

    def cost(self, records_per_node: Sequence[int]) -> LocalCost:
        """Cost of a run with these numbers of records; bytes to the shufflers and from them."""
        to_shufflers = sum(map(self.message_bytes, records_per_node))
        numbers = self.dimension * self.records * self.shares
        return LocalCost(
            message_bytes=to_shufflers + self.message_bytes(self.records),
            rounds=2,
            node_operations=numbers,
            coordinator_operations=numbers + self.dimension**2,
        )
