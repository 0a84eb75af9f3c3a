"""Noise of each pair's value, added inside the pair's own circuit.

Paper: Bell, Bellet, Gascón & Kulkarni 2020, section 5 and appendix C.2: a pair of records computes
f(x, y) + η, and only that leaves the pair. Random numbers of `bits` bits come from both sides,
r = r_garbler ⊕ r_evaluator. So neither side knows one as long as the other's is uniform; the XOR is
free. A number decides a coin: [r < threshold], one AND a bit.

| noise | value of a pair, in units |
|---|---|
| `AddedCoins` | f + Σ weight_j · [r_j < threshold_j], each coin with a number of its own |
| `Shift` | low + (f − low + Σ [r < threshold_j] mod modulus): randomised response |

`Shift` takes all its steps from one random number. Each law is written three times: as gates
(`circuit`); on clear values (`apply`), for pairs inside a node and as the oracle of the gates; and
as probabilities, by the protocol that asks for it.

Reveals: garbler and evaluator see what they see of any circuit (`garbling.py`); whoever gets both
their shares sees the noisy value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from umpc.mpc.arrays import IntArray, WordArray
from umpc.mpc.garbled.bit_sum_gates import BitSumGates
from umpc.mpc.garbled.bit_sums import BitSum, constant_sum, weighted
from umpc.mpc.garbled.circuits import FALSE, TRUE, CircuitBuilder, WireLiteral
from umpc.mpc.garbled.kernel_to_circuit import PairNoise


@dataclass(frozen=True)
class AddedCoins:
    """A weighted sum of independent coins. thresholds: of each coin, out of 2^bits."""

    bits: int
    thresholds: tuple[int, ...]
    weights: tuple[int, ...]

    @property
    def numbers(self) -> int:
        """One random number for each coin."""
        return len(self.thresholds)

    def circuit(
        self, number: BitSum, random: Sequence[Sequence[WireLiteral]], gates: BitSumGates
    ) -> BitSum:
        """The noisy number, as in `PairNoise`."""
        coins = zip(random, self.thresholds, self.weights, strict=True)
        return number.plus(
            weighted((below(bits, limit, gates.gates), weight) for bits, limit, weight in coins)
        )

    def apply(self, values: IntArray, random: WordArray) -> IntArray:
        """The noisy values, as in `PairNoise`."""
        coins = random < np.array(self.thresholds, dtype=np.uint64).reshape(-1, 1)
        noise: IntArray = np.array(self.weights, dtype=np.int64) @ coins.astype(np.int64)
        return values + noise


@dataclass(frozen=True)
class Shift:
    """A random shift of the value, modulo the number of values.

    low: the least value. modulus: the number of values. thresholds: of each step of the shift.
    """

    bits: int
    low: int
    modulus: int
    thresholds: tuple[int, ...]

    @property
    def numbers(self) -> int:
        """One random number for all steps."""
        return 1

    def circuit(
        self, number: BitSum, random: Sequence[Sequence[WireLiteral]], gates: BitSumGates
    ) -> BitSum:
        """The noisy number, as in `PairNoise`."""
        steps = weighted((below(random[0], limit, gates.gates), 1) for limit in self.thresholds)
        shifted = number.plus(constant_sum(-self.low)).plus(steps)
        is_inside = gates.less_than_zero(shifted.plus(constant_sum(-self.modulus)))
        return shifted.plus(weighted([(is_inside ^ 1, -self.modulus)], self.low))

    def apply(self, values: IntArray, random: WordArray) -> IntArray:
        """The noisy values, as in `PairNoise`."""
        below_threshold = random < np.array(self.thresholds, dtype=np.uint64).reshape(-1, 1)
        steps: IntArray = below_threshold.sum(axis=0)
        return (values - self.low + steps) % self.modulus + self.low


def below(bits: Sequence[WireLiteral], limit: int, gates: CircuitBuilder) -> WireLiteral:
    """[Σ 2^i · bits[i] < limit], limit public: the highest bit that differs decides."""
    if limit >> len(bits):
        return TRUE
    less = FALSE
    for i, bit in enumerate(bits):
        if limit >> i & 1:
            less = gates.disjunction(bit ^ 1, less)
        else:
            less = gates.conjunction(bit ^ 1, less)
    return less


def apply_all(
    values: Sequence[IntArray], noises: Sequence[PairNoise], words: WordArray
) -> list[IntArray]:
    """Clear values with their noise. words: (all numbers, n) uint64, uniform."""
    results = []
    start = 0
    for clear, noise in zip(values, noises, strict=True):
        random = words[start : start + noise.numbers] >> np.uint64(64 - noise.bits)
        results.append(noise.apply(clear, random))
        start += noise.numbers
    return results


def words_of(noises: Sequence[PairNoise]) -> int:
    """The number of random words of a pair."""
    return sum(noise.numbers for noise in noises)
