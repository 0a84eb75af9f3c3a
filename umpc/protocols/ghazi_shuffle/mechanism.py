"""Any pair kernel from noisy sums of vectors, added up by split and mix: the error of a trusted curator, nearly.

Paper: Sinh & Ramon 2025, section 5 (GhaziSM): the sums of `ghazi_ldp` in the shuffle model, after Balle, Bell, Gascón,
Nissim 2020. With S = sum over records of an integer vector p_i, a form F and a term of single records,

    n(n-1) U = S' F S - sum_i p_i' F p_i;      (S + Z)' F (S + Z) - s^2 tr F - ...      is unbiased for it

with independent noise Z of variance s^2 in each coordinate. Two kinds of vectors:
- `histogram`: p = e_cell, F = A, the single records' term is the diagonal of A times S.
- `factors`: p = 2^f V_cell rounded, F = G 2^-2f (`factors`). Their term is known if the diagonal of A is constant, else
  it is one more coordinate.

*Noise.* Replacing a record changes S by at most L in the sum of absolute values (2 for the histogram), so discrete
Laplace noise P(z) ~ exp(-epsilon |z|/L) on each coordinate makes S epsilon-DP: the exponents add up. The public code of
Sinh & Ramon has epsilon on every coordinate, and a scale 140 times too small. Each record adds Polya(1/h) - Polya(1/h)
of it, so any h records have all of it and n of them n/h times the variance; a node draws the sum for its records.

*Guarantee.* (epsilon, delta), delta = (1 + e^epsilon) 2^-kappa, against a coordinator that sees shuffled messages and
holds all but h records. The vector's d coordinates are mixed one by one, each at distance 2^-kappa/d of ideal.

*Variance*, with l = 2 F S - (the single records' coefficients), s^2 and k4 the variance and the fourth cumulant of Z:
s^2 |l|^2 + 2 s^4 |F|^2 + k4 sum_c F_cc^2, over (n(n-1))^2. Which vectors are better depends on the kernel: to first
order 8 |A S|^2 against 2 L^2 |F S|^2, with L up to 2 r sqrt(d). For Kendall's the histogram is, by a fifth of the
error; for smooth kernels, such as a sum, factors are.

LocalCost: two rounds; d r w bits a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, expm1, log2, sqrt

import numpy as np

from umpc.crypto.packing import check_counts, pack, packed_bytes, unpack
from umpc.dp.calibration import DistributedLaplace
from umpc.dp.exact_sampling import ShakeStream, draw_seed
from umpc.dp.polya import sample_polya
from umpc.dp.random_bits import RandomBits
from umpc.errors import RangeError, StudyError
from umpc.protocols.ghazi_shuffle.mixing import KAPPA, delta_of_mixing
from umpc.protocols.ghazi_shuffle.split_mix import add_up, mix, shares_needed, split
from umpc.protocols.local.bell_ldp import response_variance
from umpc.protocols.local.estimate import LocalCost, LocalEstimate
from umpc.protocols.local.factors import factor
from umpc.protocols.local.quantisation import Quantiser
from umpc.ustat.clear import Columns

FRACTION_BITS = 16
"""Of the coordinates of factors."""


@dataclass(frozen=True)
class Embedding:
    """vectors: (t, d) int64, of each cell. form: (d, d). single: (d,), coefficients of S in the single records' term.
    constant: what each record adds to that term besides."""

    vectors: np.ndarray
    form: np.ndarray
    single: np.ndarray
    constant: float

    @cached_property
    def sensitivity(self) -> int:
        """L: most by which two cells' vectors differ, in the sum of absolute values."""
        return max(int(np.abs(self.vectors - row).sum(axis=1).max()) for row in self.vectors)


@dataclass(frozen=True)
class GhaziShuffle:
    """epsilon: > 0, exact. cells: the kernel and its bins. records: n, of all nodes. honest: h of them, at least.

    kappa: the statistical security. vectors: histogram or factors.

    Raises: StudyError, InvalidEpsilon for parameters out of range; TooFewRecords for h below 19; RangeError where the
    sum does not fit 64 bits.
    """

    epsilon: Fraction
    cells: Quantiser
    records: int
    honest: int
    kappa: int = KAPPA
    vectors: str = "histogram"

    def __post_init__(self) -> None:
        if self.vectors not in ("histogram", "factors") or self.kappa < 1:
            raise StudyError("vectors is histogram or factors, kappa at least 1")
        object.__setattr__(self, "epsilon", self.noise.epsilon)
        _ = self.shares

    @cached_property
    def embedding(self) -> Embedding:
        matrix = self.cells.matrix
        diagonal = matrix.diagonal()
        if self.vectors == "histogram":
            return Embedding(np.eye(len(matrix), dtype=np.int64), matrix, diagonal, 0.0)
        exact, unit = factor(matrix), 1 << FRACTION_BITS
        rounded = np.rint(exact.vectors * unit).astype(np.int64)
        form = exact.form / unit**2
        if np.ptp(diagonal) == 0:
            return Embedding(rounded, form, np.zeros(len(form)), float(diagonal[0]))
        own = np.rint(diagonal * unit).astype(np.int64)[:, None]
        single = np.append(np.zeros(len(form)), 1 / unit)
        return Embedding(np.concatenate([rounded, own], axis=1), np.pad(form, (0, 1)), single, 0.0)

    @property
    def dimension(self) -> int:
        """d."""
        return self.embedding.vectors.shape[1]

    @cached_property
    def noise(self) -> DistributedLaplace:
        """Of each coordinate; its n shares are the records'."""
        return DistributedLaplace(
            self.epsilon, self.embedding.sensitivity, self.records, self.honest
        )

    @cached_property
    def width(self) -> int:
        """w: the sum and the noise, but for odds of 2^-64 in all, fit w bits with a sign."""
        largest = self.records * int(np.abs(self.embedding.vectors).max())
        width = (largest + self.noise.tail_bound(64 + self.dimension.bit_length())).bit_length() + 1
        if width > 64:
            raise RangeError(
                f"the sums need {width} bits, 64 are possible; take a larger epsilon or fewer records"
            )
        return width

    @cached_property
    def shares(self) -> int:
        """r."""
        return shares_needed(self.honest, self.width, self.kappa + ceil(log2(self.dimension)))

    @property
    def delta(self) -> Fraction:
        """(1 + e^epsilon) 2^-kappa, rounded up."""
        return delta_of_mixing(self.epsilon, self.kappa)

    # --- the node ---------------------------------------------------------------------------------------------

    def randomise(self, columns: Columns, bits: RandomBits) -> bytes:
        """What a node sends to the shufflers: r shares of each record's vector, coordinate by coordinate."""
        return pack(self.split_records(columns, bits).reshape(-1), self.width)

    def split_records(self, columns: Columns, bits: RandomBits) -> np.ndarray:
        """(d, records r) uint64 below 2^w: the same, unpacked."""
        stream = ShakeStream(draw_seed(bits), "ghazi-shuffle")
        vectors = self.embedding.vectors[self.cells.draw(columns, stream)].T.astype(np.int64)
        count = vectors.shape[1]
        if count:
            vectors[:, 0] += self._draw_noise(count, bits)
        mask = np.uint64((1 << self.width) - 1)
        return split(vectors.astype(np.uint64) & mask, self.shares, self.width, stream)

    def _draw_noise(self, count: int, bits: RandomBits) -> np.ndarray:
        """(d,) int64: what `count` records add together."""
        shape, ratio = Fraction(count, self.honest), self.noise.log_ratio
        return np.array(
            [
                sample_polya(shape, ratio, bits) - sample_polya(shape, ratio, bits)
                for _ in range(self.dimension)
            ]
        )

    # --- the shufflers ----------------------------------------------------------------------------------------

    def shuffle(self, messages: Sequence[bytes], counts: Sequence[int], bits: RandomBits) -> bytes:
        """All nodes' messages as one heap for each coordinate. Raises: EncodingError for one that does not decode."""
        check_counts(messages, counts)
        heaps = [
            self._decode(message, count) for message, count in zip(messages, counts, strict=True)
        ]
        mixed = mix(np.concatenate(heaps, axis=1), ShakeStream(draw_seed(bits), "shuffle"))
        return pack(mixed.reshape(-1), self.width)

    def _decode(self, message: bytes, count: int) -> np.ndarray:
        return unpack(message, self.dimension * count * self.shares, self.width).reshape(
            self.dimension, -1
        )

    # --- the coordinator --------------------------------------------------------------------------------------

    def aggregate(self, mixed: bytes) -> LocalEstimate:
        """The estimate from the shuffled messages of all n records. Raises: EncodingError."""
        return self.estimate(self._decode(mixed, self.records))

    def estimate(self, heap: np.ndarray) -> LocalEstimate:
        """The same of (d, n r) uint64 below 2^w."""
        total = add_up(heap, self.width).astype(np.float64)
        embedding, n = self.embedding, self.records
        value = total @ embedding.form @ total - self.noise.variance * float(
            np.trace(embedding.form)
        )
        value -= embedding.single @ total + n * embedding.constant
        return LocalEstimate(float(value) / (n * (n - 1)), sqrt(self._variance(total)), n)

    # --- theory -----------------------------------------------------------------------------------------------

    def predicted_mse(self, columns: Columns, exact: float | None = None) -> float:
        """Mean squared error on these records. exact: the statistic; None leaves out the error of cells."""
        rows, weights = self.cells.laws(columns)
        variance = self._variance(weights @ rows @ self.embedding.vectors)
        variance += response_variance(self.cells.matrix, rows, weights, 1.0)
        return (
            variance if exact is None else variance + (self.cells.quantised(columns) - exact) ** 2
        )

    def _variance(self, total: np.ndarray) -> float:
        form, n, square = self.embedding.form, self.records, self.noise.variance
        linear = 2 * form @ total - self.embedding.single
        variance = square * linear @ linear + 2 * square**2 * np.sum(form**2)
        variance += self._fourth_cumulant() * np.sum(form.diagonal() ** 2)
        return float(variance) / (n * (n - 1)) ** 2

    def _fourth_cumulant(self) -> float:
        """Of the noise: n/h times 2 q (1 + 4 q + q^2)/(1 - q)^4, twice a geometric's."""
        ratio = float(min(self.noise.log_ratio, Fraction(700)))
        q = exp(-ratio)
        return self.records / self.honest * 2 * q * (1 + 4 * q + q * q) / expm1(-ratio) ** 4

    def message_bytes(self, records: int) -> int:
        """Of a node with so many records, and in all from the shufflers for n."""
        return packed_bytes(self.dimension * records * self.shares, self.width)

    def cost(self, records_per_node: Sequence[int]) -> LocalCost:
        """Bytes to the shufflers and from them."""
        sent = sum(map(self.message_bytes, records_per_node)) + self.message_bytes(self.records)
        numbers = self.dimension * self.records * self.shares
        return LocalCost(sent, 2, numbers, numbers + self.dimension**2)
