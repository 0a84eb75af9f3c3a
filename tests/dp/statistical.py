"""What the tests of samplers share: α and N, a seeded stream, and the chi-square test.

A sampler is right if its draws pass `chi_square` against probabilities computed elsewhere (scipy, closed
forms), and the test is worth something if draws of a wrong scale, times 0.7 and 1.3, fail it. Both use the
same N and the same α. Streams are seeded, so a result never changes; a failing test prints its seed.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from scipy import stats

ALPHA = 1e-6
"""Chance that one test of a right sampler fails, had its seed been chosen at random."""

N = 5_000
"""Draws per test. Few, for speed, but enough: the power checks, with the same N, reject a wrong scale."""

N_MOSTLY_ZERO = 40_000
"""Draws per test of a law whose mass is mostly at 0 (shape 1/16), which tells less per draw."""

BINS = 30
"""Bins of about equal probability; fewer where single values are heavier."""

WRONG_SCALES = (Fraction(7, 10), Fraction(13, 10))


class SeededBits:
    """A `RandomBits`: SHAKE-256 of seed and counter. Same seed, same bits; printed when a test fails."""

    def __init__(self, seed: str):
        self.seed = seed
        self._block = 0
        self._pool = b""

    def __call__(self, count: int) -> int:
        size = -(-count // 8)
        while len(self._pool) < size:
            self._pool += hashlib.shake_256(f"{self.seed}/{self._block}".encode()).digest(4096)
            self._block += 1
        taken, self._pool = self._pool[:size], self._pool[size:]
        return int.from_bytes(taken, "big") >> (8 * size - count)

    def __repr__(self) -> str:
        return f"SeededBits({self.seed!r})"


def fixed_bits(*words: int) -> Callable[[int], int]:
    """A `RandomBits` that returns these 64-bit words, then fails: a draw that asks for more is a failure."""
    remaining = list(words)

    def bits(count: int) -> int:
        assert count == 64
        return remaining.pop(0)

    return bits


def quantile_edges(cdf: Callable[[int], float], low: int, high: int, count: int) -> list[int]:
    """Integers that cut the law into at most `BINS` bins (.., e_1], (e_1, e_2], ..., (e_m, ..)."""
    levels = [(i + 1) / BINS for i in range(BINS - 1)]
    edges = {low + bisect_left(range(low, high), level, key=cdf) for level in levels}
    return [e for e in sorted(edges) if 1 - cdf(e) > 5 / count]


def chi_square(draws: Sequence[int], cdf: Callable[[int], float], low: int, high: int) -> float:
    """The p-value of `draws` under the law with this distribution function, nearly all of it in low..high."""
    edges = quantile_edges(cdf, low, high, len(draws))
    cumulative = np.array([0.0, *(cdf(e) for e in edges), 1.0])
    expected = np.diff(cumulative) * len(draws)
    assert len(expected) > 1 and expected.min() >= 5, "the test has no power: bins are empty"
    bins = np.searchsorted(np.array(edges), np.array(draws), side="left")
    seen = np.bincount(bins, minlength=len(expected))
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1))


def accept(draws: Sequence[int], cdf: Callable[[int], float], low: int, high: int, bits: SeededBits) -> None:
    """Fail, and name the seed, if the draws are not from the law."""
    p = chi_square(draws, cdf, low, high)
    assert p > ALPHA, f"not the law: p = {p:.2e} with N = {len(draws)} and {bits!r}"


def reject(draws: Sequence[int], cdf: Callable[[int], float], low: int, high: int, bits: SeededBits) -> None:
    """Fail, and name the seed, if the test would let these wrong draws pass."""
    p = chi_square(draws, cdf, low, high)
    assert p < ALPHA, f"no power: a wrong scale passes with p = {p:.2e}, N = {len(draws)} and {bits!r}"
