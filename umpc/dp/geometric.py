"""Exact draws of the geometric and the discrete Laplace law in a fixed number of coins.

    P(X = k) = (1-q) q^k,   k = 0, 1, 2, ...,   q = exp(-log_ratio)

The binary digits of X are independent: digit i is 1 with odds q^{2^i}/(1 + q^{2^i}), because
q^k is the product of q^{2^i} over the digits that are 1. X is at least 2^J with odds q^{2^J}, and
the digits below J do not depend on that. So a draw tosses J + 1 coins, whatever X is. J is so large
that q^{2^J} < 2^-96. If this last coin shows heads, it is tossed again and again to count how often
2^J is to be added: the law stays exact. The difference of two draws is discrete Laplace.

Paper: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006 (the digits of a geometric variable are
independent coins); Ghosh, Roughgarden, Sundararajan 2009 (the discrete Laplace law).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np
from flint import arb, ctx

from umpc.dp.checks import ball
from umpc.dp.fixed_coins import TAIL_BITS, CoinRow, Flags
from umpc.dp.random_bits import RandomBits
from umpc.errors import LocalProtocolError

LAWS = 64
"""How many laws are remembered: thresholds that follow from log_ratio, never from a draw."""

ROWS = 1 << 10
"""The most variables whose coins are held in memory at once."""

MOST_HEADS = 1024
"""Heads of a coin of odds below 2^-96 that a working source does not get to."""

GROUP = 32
"""Digits that are added up in one 64-bit word."""


class GeometricLaw:
    """The law, and its digits' coins. `geometric_law` keeps it.

    Args:
        log_ratio: -log q > 0, exact.
    """

    def __init__(self, log_ratio: Fraction):
        self._log_ratio = log_ratio
        self.digits = digits_needed(log_ratio)
        self._coins = CoinRow(self._odds)

    def draw(self, count: int, bits: RandomBits) -> list[int]:
        """Independent draws. Secret. Cost: count (digits + 1) coins."""
        coins = self._coins.toss(count, bits)
        drawn = integers_of(coins[:, : self.digits])
        for row in np.flatnonzero(coins[:, self.digits]):
            drawn[row] += self._heads(bits) << self.digits
        return drawn

    def draw_sum(self, count: int, bits: RandomBits) -> int:
        """The sum of so many independent draws. Secret."""
        total = 0
        for start in range(0, count, ROWS):
            coins = self._coins.toss(min(ROWS, count - start), bits)
            total += totals_of(coins[None, :, : self.digits])[0]
            for _ in np.flatnonzero(coins[:, self.digits]):
                total += self._heads(bits) << self.digits
        return total

    def _odds(self, precision: int) -> list[arb]:
        """The odds of each digit, and of X >= 2^J."""
        with ctx.workprec(precision):
            last = ball(-self._log_ratio * (1 << self.digits)).exp()
        return [*digit_odds(self._log_ratio, self.digits, precision), last]

    def _heads(self, bits: RandomBits) -> int:
        """How often 2^J is to be added, once the last coin has shown heads."""
        for heads in range(1, MOST_HEADS):
            if not self._coins.again(self.digits, bits):
                return heads
        raise LocalProtocolError(
            f"expected fewer than {MOST_HEADS} rare coins to show heads, but all did; a working "
            "source of randomness never does that: check the source, then start again"
        )


@lru_cache(maxsize=LAWS)
def geometric_law(log_ratio: Fraction) -> GeometricLaw:
    """The law, remembered by its public parameter."""
    return GeometricLaw(log_ratio)


def digits_needed(log_ratio: Fraction) -> int:
    """J >= 0 with q^{2^J} < 2^-96, at most one more than the least."""
    # 2^J log_ratio >= 7/10 TAIL_BITS > TAIL_BITS ln 2
    least = ceil(Fraction(7, 10) * TAIL_BITS / log_ratio)
    return (least - 1).bit_length()


def digit_odds(log_ratio: Fraction, digits: int, precision: int) -> list[arb]:
    """The odds q^{2^i}/(1 + q^{2^i}) of the binary digits i < `digits`."""
    with ctx.workprec(precision):
        exponent = ball(-log_ratio)
        powers = [(exponent * (1 << i)).exp() for i in range(digits)]
        return [power / (1 + power) for power in powers]


def integers_of(digits: Flags) -> list[int]:
    """The integer of each row of binary digits, the lowest digit first."""
    packed = np.packbits(digits, axis=1, bitorder="little")
    width, raw = packed.shape[1], packed.tobytes()
    if not width:
        return [0] * len(packed)
    return [int.from_bytes(raw[at : at + width], "little") for at in range(0, len(raw), width)]


def totals_of(digits: Flags) -> list[int]:
    """The sums over axis 1 of (draws, summands, digits): work that follows from the shape alone."""
    draws, _, size = digits.shape
    counts = np.zeros((draws, -(-size // GROUP) * GROUP), dtype=np.uint64)
    counts[:, :size] = digits.sum(axis=1, dtype=np.uint64)
    weights = np.uint64(1) << np.arange(GROUP, dtype=np.uint64)
    words = (counts.reshape(draws, -1, GROUP) * weights).sum(axis=2, dtype=np.uint64)
    return [sum(word << GROUP * place for place, word in enumerate(row)) for row in words.tolist()]


def discrete_laplaces(log_ratio: Fraction, count: int, bits: RandomBits) -> list[int]:
    """`count` exact draws of P(x) proportional to exp(-log_ratio |x|), made at one place.

    Args:
        log_ratio: > 0, exact.
        bits: the only source of randomness.

    Raises:
        LocalProtocolError: log_ratio is not above 0, or the source of randomness is broken.
    """
    if log_ratio <= 0:
        raise LocalProtocolError(f"expected a log_ratio above 0, got {log_ratio}")
    drawn = geometric_law(Fraction(log_ratio)).draw(2 * count, bits)
    return [up - down for up, down in zip(drawn[:count], drawn[count:], strict=True)]
