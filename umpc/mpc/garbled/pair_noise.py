"""Noise of each pair's value, added inside the pair's own circuit: `protocol = "bell-2pc"`.

Bell, Bellet, Gascón & Kulkarni 2020, section 5 and appendix C.2: a pair of records computes f(x, y) + η, and only that
leaves the pair. Random numbers of `bits` bits come from both sides, r = r_garbler ⊕ r_evaluator, so neither side knows
one as long as the other's is uniform; the XOR is free. A number decides a coin: [r < threshold], one AND a bit.

| noise | value of a pair, in units |
|---|---|
| `AddedCoins` | f + Σ weight_j · [r_j < threshold_j], each coin with a number of its own |
| `Shift` | low + (f − low + Σ [r < threshold_j] mod modulus), all from one number: randomised response |

The same law is here three times: as gates (`circuit`), on clear values (`apply`: for pairs inside a node, and the
oracle of the first), and as probabilities in `dp/pairs.py`. Sees: garbler and evaluator what they see of any circuit,
`garbling.py`; whoever gets both their shares the noisy value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from umpc.mpc.garbled.bit_sums import Number, constant_number, weighted
from umpc.mpc.garbled.circuits import FALSE, TRUE, CircuitBuilder, InputBit, Literal

NOBODYS = 2
"""The record of an input bit that belongs to no record: it is of a random number."""


class Lowering(Protocol):
    """What a noise needs of the circuit's maker."""

    gates: CircuitBuilder

    def less_than_zero(self, of: Number) -> Literal: ...


class PairNoise(Protocol):
    """bits: of a random number. numbers: how many a pair needs."""

    bits: int

    @property
    def numbers(self) -> int: ...

    def circuit(
        self, of: Number, random: Sequence[Sequence[Literal]], lowering: Lowering
    ) -> Number:
        """The noisy number. of: in units. random: of each random number its bits, lowest first."""
        ...

    def apply(self, values: np.ndarray, random: np.ndarray) -> np.ndarray:
        """The noisy values: (n,) int64. values: (n,) int64 in units. random: (numbers, n) uint64."""
        ...


@dataclass(frozen=True)
class AddedCoins:
    """thresholds: of each coin, out of 2^bits."""

    bits: int
    thresholds: tuple[int, ...]
    weights: tuple[int, ...]

    @property
    def numbers(self) -> int:
        return len(self.thresholds)

    def circuit(
        self, of: Number, random: Sequence[Sequence[Literal]], lowering: Lowering
    ) -> Number:
        coins = zip(random, self.thresholds, self.weights, strict=True)
        return of.plus(
            weighted((below(bits, limit, lowering.gates), weight) for bits, limit, weight in coins)
        )

    def apply(self, values: np.ndarray, random: np.ndarray) -> np.ndarray:
        coins = random < np.array(self.thresholds, dtype=np.uint64).reshape(-1, 1)
        return values + np.array(self.weights, dtype=np.int64) @ coins.astype(np.int64)


@dataclass(frozen=True)
class Shift:
    """low: the least value. modulus: how many values there are. thresholds: of each step of the shift."""

    bits: int
    low: int
    modulus: int
    thresholds: tuple[int, ...]

    @property
    def numbers(self) -> int:
        return 1

    def circuit(
        self, of: Number, random: Sequence[Sequence[Literal]], lowering: Lowering
    ) -> Number:
        steps = weighted((below(random[0], limit, lowering.gates), 1) for limit in self.thresholds)
        shifted = of.plus(constant_number(-self.low)).plus(steps)
        is_inside = lowering.less_than_zero(shifted.plus(constant_number(-self.modulus)))
        return shifted.plus(weighted([(is_inside ^ 1, -self.modulus)], self.low))

    def apply(self, values: np.ndarray, random: np.ndarray) -> np.ndarray:
        steps = (random < np.array(self.thresholds, dtype=np.uint64).reshape(-1, 1)).sum(axis=0)
        return (values - self.low + steps) % self.modulus + self.low


def below(bits: Sequence[Literal], limit: int, gates: CircuitBuilder) -> Literal:
    """[Σ 2^i · bits[i] < limit], limit public: the highest bit that differs decides."""
    if limit >> len(bits):
        return TRUE
    less = FALSE
    for i, bit in enumerate(bits):
        less = (
            gates.disjunction(bit ^ 1, less) if limit >> i & 1 else gates.conjunction(bit ^ 1, less)
        )
    return less


def noisy(
    numbers: Sequence[Number], noises: Sequence[PairNoise], lowering: Lowering
) -> list[Number]:
    """The circuit's numbers, each with its noise, from input bits of their own."""
    out = []
    for place, (number, noise) in enumerate(zip(numbers, noises, strict=True)):
        random = [
            [
                lowering.gates.input(InputBit(NOBODYS, f"{place:02}.{draw:06}", bit))
                for bit in range(noise.bits)
            ]
            for draw in range(noise.numbers)
        ]
        out.append(noise.circuit(number, random, lowering))
    return out


def apply_all(
    values: Sequence[np.ndarray], noises: Sequence[PairNoise], words: np.ndarray
) -> list[np.ndarray]:
    """Clear values with their noise. words: (all numbers, n) uint64, uniform."""
    out, start = [], 0
    for of, noise in zip(values, noises, strict=True):
        random = words[start : start + noise.numbers] >> np.uint64(64 - noise.bits)
        out.append(noise.apply(of, random))
        start += noise.numbers
    return out


def words_of(noises: Sequence[PairNoise]) -> int:
    """Random words of a pair."""
    return sum(noise.numbers for noise in noises)
