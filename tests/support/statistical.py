"""Shared by the tests of samplers: α and N, a seeded stream, and the chi-square test.

A sampler is right if its draws pass `chi_square` against probabilities computed elsewhere (scipy,
closed forms). The test is worth something if the draws fail against the law of a wrong scale, times
0.7 and 1.3. Both checks use the same draws and the same α. Streams are seeded, so a result never
changes, and a failing test prints its seed.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from scipy import stats

ALPHA = 1e-6
"""The chance that one test of a right sampler fails, over random seeds."""

N = 5_000
"""Draws per test: few, for speed, but enough for the power checks to reject a wrong scale."""

N_TRIALS = 2_000
"""Draws per test of a sampler that makes all its trials in every draw: 1 to 3 ms each."""

N_MOSTLY_ZERO = 40_000
"""Draws per test of a law with most mass at 0 (shape 1/16), where a draw tells less."""

BINS = 30
"""The number of bins of about equal probability; there are fewer where single values are heavier.
"""

WRONG_SCALES = (Fraction(7, 10), Fraction(13, 10))


class SeededBits:
    """A `RandomBits` from SHAKE-256 of seed and counter: equal seeds give equal bits.

    A failing test prints it.
    """

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
    """Return a `RandomBits` of these 64-bit words, which fails when a draw asks for more."""
    remaining = list(words)

    def bits(count: int) -> int:
        assert count == 64
        return remaining.pop(0)

    return bits


def quantile_edges(cdf: Callable[[int], float], low: int, high: int, count: int) -> list[int]:
    """Return integers that cut the law into at most `BINS` bins (.., e_1], (e_1, e_2], ..., (e_m,
    ..).
    """
    levels = [(i + 1) / BINS for i in range(BINS - 1)]
    edges = {low + bisect_left(range(low, high), level, key=cdf) for level in levels}
    return [e for e in sorted(edges) if 1 - cdf(e) > 5 / count]


def chi_square(draws: Sequence[int], cdf: Callable[[int], float], low: int, high: int) -> float:
    """Return the p-value of `draws` under the law, whose mass is nearly all in low..high."""
    edges = quantile_edges(cdf, low, high, len(draws))
    cumulative = np.array([0.0, *(cdf(e) for e in edges), 1.0])
    expected = np.diff(cumulative) * len(draws)
    assert len(expected) > 1 and expected.min() >= 5, "the test has no power: bins are empty"
    bins = np.searchsorted(np.array(edges), np.array(draws), side="left")
    seen = np.bincount(bins, minlength=len(expected))
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1))


def accept(
    draws: Sequence[int], cdf: Callable[[int], float], low: int, high: int, bits: SeededBits
) -> None:
    """Fail, and name the seed, if the draws are not from the law."""
    p = chi_square(draws, cdf, low, high)
    assert p > ALPHA, f"not the law: p = {p:.2e} with N = {len(draws)} and {bits!r}"


def reject(
    draws: Sequence[int], cdf: Callable[[int], float], low: int, high: int, bits: SeededBits
) -> None:
    """Fail, and name the seed, if the test lets these wrong draws pass."""
    p = chi_square(draws, cdf, low, high)
    assert p < ALPHA, (
        f"no power: a wrong scale passes with p = {p:.2e}, N = {len(draws)} and {bits!r}"
    )


# --- for fast samplers: many draws, and Kolmogorov-Smirnov too

N_MANY = 100_000
"""Draws per test of a sampler that takes 0.1 ms or less; the same draws show the power."""

LawOf = Callable[[float], Callable[[np.ndarray], np.ndarray]]
"""A scale, relative to the right one → the law's distribution function, on arrays."""


def kolmogorov_smirnov(draws: Sequence[int], cdf: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return a p-value; for a discrete law it is an upper bound.

    A right sampler then fails even less often.
    """
    values, counts = np.unique(np.array(draws, dtype=np.float64), return_counts=True)
    empirical = np.cumsum(counts) / len(draws)
    return float(stats.kstwo.sf(np.abs(empirical - cdf(values)).max(), len(draws)))


def accept_only(draws: Sequence[int], law: LawOf, low: int, high: int, bits: SeededBits) -> None:
    """Check that both tests accept the draws, and reject them for the scales × 0.7 and × 1.3."""
    for scale in (1.0, *map(float, WRONG_SCALES)):
        cdf = law(scale)
        chi = chi_square(draws, lambda x, cdf=cdf: float(cdf(np.array([float(x)]))[0]), low, high)
        ks = kolmogorov_smirnov(draws, cdf)
        right = min(chi, ks) > ALPHA if scale == 1.0 else max(chi, ks) < ALPHA
        assert right, (
            f"scale x {scale}: chi-square p = {chi:.2e}, KS p = {ks:.2e}, "
            f"N = {len(draws)}, {bits!r}"
        )


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """Return the least delta for which p is within (epsilon, delta) of q.

    That is the sum of max(0, p − e^epsilon q).
    """
    return float(np.maximum(p - np.exp(epsilon) * q, 0).sum())


def shift_delta(pmf: np.ndarray, shift: int, epsilon: float) -> float:
    """Return `hockey_stick` of a law on consecutive integers and its shift, the worse way round."""
    here, there = np.pad(pmf, (0, shift)), np.pad(pmf, (shift, 0))
    return max(hockey_stick(here, there, epsilon), hockey_stick(there, here, epsilon))
