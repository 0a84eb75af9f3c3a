"""The discrete Laplace law and one node's share of it.

    P(x) = (1-q)/(1+q) q^|x|,   x any integer,   q = exp(-log_ratio)

It is the law of the difference of two geometrics of ratio q. A geometric is the sum of h
Polya(1/h, q), for any h. So each of h nodes adds `sample_share`, no node knows the sum, and the sum
is exactly discrete Laplace. The shares of more nodes add independent noise: the guarantee stays,
and the variance grows.

Paper: Ghosh, Roughgarden, Sundararajan 2009 (the law, as the geometric mechanism); Goryczka, Xiong
2015 and Balle, Bell, Gascón, Nissim 2020 (its division among nodes).

`sample_share` uses integers and fractions only. `DiscreteLaplace` describes the law in floats for
tests and reports, correct to about 1e-13 relative. No float of it reaches a noise value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from umpc.dp.polya import LEAST_LOG_RATIO, sample_polyas
from umpc.dp.random_bits import RandomBits
from umpc.errors import LocalProtocolError


def sample_share(honest: int, log_ratio: Fraction, bits: RandomBits) -> int:
    """One node's share of discrete Laplace noise: Polya(1/h) - Polya(1/h), drawn in that order.

    Args:
        honest: h >= 1, such that any h shares sum to an exact draw of
            `DiscreteLaplace(log_ratio)`.
        log_ratio: epsilon / sensitivity >= 2^-256, per unit of the sum.
        bits: the node's source of randomness.

    Returns:
        The share, in units of the sum. Secret: it leaves the node only inside a masked sum.

    Raises:
        LocalProtocolError: a parameter is out of range, or the source of randomness is broken.
    """
    if honest < 1:
        raise LocalProtocolError(
            f"expected noise shared among at least 1 honest node, got {honest}"
        )
    up, down = sample_polyas(Fraction(1, honest), log_ratio, 2, bits)
    return up - down


@dataclass(frozen=True)
class DiscreteLaplace:
    """The law P(x) proportional to exp(-log_ratio |x|) on the integers.

    Args:
        log_ratio: epsilon / sensitivity >= 2^-256, per unit of x.

    Raises:
        LocalProtocolError: log_ratio is out of range.
    """

    log_ratio: Fraction

    def __post_init__(self) -> None:
        if self.log_ratio < LEAST_LOG_RATIO:
            raise LocalProtocolError(
                f"expected a log_ratio of at least 2^-256, got {self.log_ratio}"
            )

    def pmf(self, x: int) -> float:
        """P(X = x) = tanh(log_ratio/2) q^|x|."""
        return math.tanh(self._exponent(Fraction(1, 2))) * self._power(abs(x))

    def cdf(self, x: int) -> float:
        """P(X <= x): q^{-x}/(1+q) below 0, and 1 - q^{x+1}/(1+q) from 0 on."""
        if x < 0:
            return self._power(-x) / (1 + self._power(1))
        return 1 - self._power(x + 1) / (1 + self._power(1))

    @property
    def std(self) -> float:
        """Standard deviation sqrt(2q)/(1-q), in units of x; near sqrt(2)/log_ratio if small."""
        return math.sqrt(2) * self._power(Fraction(1, 2)) / -math.expm1(-self._exponent(1))

    @property
    def variance(self) -> float:
        """2q/(1-q)^2, in squared units of x, without cancellation. Underflows to 0 above 745."""
        return self.std * self.std

    def _power(self, times: int | Fraction) -> float:
        """q^times."""
        return math.exp(-self._exponent(times))

    def _exponent(self, times: int | Fraction) -> float:
        """log_ratio * times, from exact numbers.

        It is cut where exp(-.) is 0 anyway and a float could overflow.
        """
        return float(min(self.log_ratio * times, Fraction(10_000)))
