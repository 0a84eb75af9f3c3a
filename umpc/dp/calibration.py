"""The amount of noise: from epsilon, sensitivity and honest nodes to each node's share.

The guarantee. Two tables are neighbours if one record is replaced by another (replace-one). The
number of records is the same in both, so it may be public, and so may the set E of edges. The sum
over E is an integer f. Neighbours differ in it by at most the sensitivity s = (most edges at one
record) x (range of the kernel), all in units of 2^-scale. With X discrete Laplace of ratio
q = exp(-epsilon/s), for any value y

    P(f + X = y) / P(f' + X = y) = q^{|y-f| - |y-f'|} <= q^{-|f-f'|} <= q^{-s} = e^epsilon,

which is pure epsilon-DP. X exists only as a sum of shares. Each of n nodes adds
Polya(1/h, q) - Polya(1/h, q), and the shares of any h nodes sum to one X. Suppose that at least h
nodes keep their share to themselves. Then, whatever the other n - h nodes learn, subtract or leave
out, their view is f + X plus numbers independent of f: still epsilon-DP. The price is that with all
n present the variance is n/h times that of X. Papers that take h = n promise epsilon only if no
nodes collude (`reproduction/baselines/collusion.py` computes the epsilon that is left otherwise).

Paper: Dwork, McSherry, Nissim, Smith 2006 (the mechanism); Goryczka, Xiong 2015 (fewer honest nodes
than nodes); Balle, Bell, Gascón, Nissim 2020 (the shares). The tail bound is derived at
`tail_bound`.

*Laplace.* The discrete Laplace law and one node's share of it.

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
from functools import lru_cache

from umpc.dp.events import check_epsilon, check_nodes, check_sensitivity, check_tail
from umpc.dp.polya import LEAST_LOG_RATIO, sample_polyas
from umpc.dp.random_bits import RandomBits
from umpc.errors import InvalidEpsilon, LocalProtocolError

LN2_ABOVE = Fraction(693_147_180_559_945_310, 10**18)
"""A fraction above ln 2 = 0.693147180559945309417..., by less than 1e-18."""

NORMAL_SHAPE = float(1 << 40)
"""The shape of a law of noise that is Skellam, which is the limit for large shapes, or lighter.

`DistributedLaplace.shape` says what a shape is. No interval changes beyond this one.
"""

SPLITS = range(1, 11)
"""The j tried in `tail_bound`, theta = (1 - 2^-j) log_ratio."""


@dataclass(frozen=True)
class DistributedLaplace:
    """Noise that n nodes add together, epsilon-DP as long as any h of them are honest.

    Args:
        epsilon: > 0, exact (a Fraction; an int is converted); the budget of this one release.
        sensitivity: s >= 0, most by which replacing one record changes the sum, in units of the
            sum. 0 says that no record can change the sum: it is public already, and the noise is 0.
        nodes: n, how many nodes add a share.
        honest: h, how many of them at least are assumed honest, 1 <= h <= n.

    Raises:
        InvalidEpsilon: epsilon is not an exact positive number, or too small to be drawn.
        StudyError: sensitivity, nodes or honest is not an integer in its range.
    """

    epsilon: Fraction
    sensitivity: int
    nodes: int
    honest: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        check_sensitivity(self.sensitivity)
        check_nodes(self.nodes, self.honest)
        if self.sensitivity and self.log_ratio < LEAST_LOG_RATIO:
            raise InvalidEpsilon(
                f"epsilon must be at least sensitivity x 2^-256, but {self.epsilon} came "
                f"for a sensitivity of {self.sensitivity}; ask for a larger epsilon"
            )

    @property
    def log_ratio(self) -> Fraction:
        """-log q = epsilon / sensitivity, per unit of the sum. Sensitivity 0 has none."""
        if not self.sensitivity:
            raise LocalProtocolError("a sum of sensitivity 0 has no noise, hence no log_ratio")
        # Dwork et al. 2006, theorem 1: q^{-s} = e^epsilon
        return self.epsilon / self.sensitivity

    @property
    def shape(self) -> float:
        """The number of discrete Laplace laws that the sum of all n shares is made of: n/h."""
        # shapes add: n shares of Polya(1/h) have the shape n/h
        return self.nodes / self.honest

    @property
    def variance(self) -> float:
        """Variance of the sum of all n shares, in squared units: n/h times discrete Laplace's."""
        return self.std * self.std

    @property
    def std(self) -> float:
        """Standard deviation of the sum of all n shares, in units of the sum."""
        if not self.sensitivity:
            return 0.0
        # independent shares: their variances add
        return math.sqrt(self.shape) * DiscreteLaplace(self.log_ratio).std

    def draw(self, bits: RandomBits) -> int:
        """One node's share of the noise, in units of the sum. Secret.

        The work follows from the law, not from the value (see `polya`).

        Args:
            bits: the node's source of randomness.
        """
        # spec/noise.py, `own_share`
        return sample_share(self.honest, self.log_ratio, bits) if self.sensitivity else 0

    def draws(self, count: int, bits: RandomBits) -> list[int]:
        """One node's shares of the noise of `count` sums, drawn together. Each is as of `draw`."""
        # spec/counts.py, `own_shares`
        return sample_shares(self.honest, self.log_ratio, count, bits)

    def tail_bound(self, log2_probability: int = 64) -> int:
        """An integer T with P(|sum of all n shares| > T) <= 2^-log2_probability.

        A study uses T to check that a sum fits its ring.

        Derivation. The sum is A - B, both Polya(r, q) with r = n/h (shapes add), so by symmetry
        P(|A-B| > T) = 2 P(A-B > T) <= 2 P(A >= T+1). Write L = log_ratio, c = 2^-j. Markov's
        inequality is applied to exp(theta A) with theta = (1-c) L. Here
        E exp(theta A) = ((1-q)/(1-q^c))^r <= c^-r, because 1 - q^c is concave in c and therefore at
        least c (1-q). So

            2 P(A >= T+1) <= 2 c^-r exp(-(1-c) L (T+1)) <= 2^-b
            if   T+1 >= (b + 1 + j r) ln2 / ((1-c) L).

        This is true for every j, so the smallest over `SPLITS` is taken. Only fractions are used;
        ln 2 and the result are rounded up. For b = 64, T is 13 % above the least such T if r <= 2,
        25 % for r = 16, and a factor 2 for r = 256.

        T bounds shares drawn as the protocol says. A node that deviates can add any number.

        Args:
            log2_probability: b >= 1, minus the binary logarithm of the probability.

        Raises:
            LocalProtocolError: log2_probability is below 1.
        """
        check_tail(log2_probability)
        if not self.sensitivity:
            return 0
        shape = Fraction(self.nodes, self.honest)
        # T + 1 >= (b + 1 + j r) ln 2 / ((1 - c) L)
        return math.ceil(_least_exponent(shape, log2_probability) / self.log_ratio) - 1


@lru_cache(maxsize=64)
def _least_exponent(shape: Fraction, log2_probability: int) -> Fraction:
    """Return L·(T + 1) of `tail_bound`'s derivation: the smallest over `SPLITS`, rounded up."""
    # every j proves a bound, so the least of them is one
    least = min((log2_probability + 1 + j * shape) / (1 - Fraction(1, 1 << j)) for j in SPLITS)
    return least * LN2_ABOVE


# --- laplace --------------------------------------------------------------------------------------


def sample_share(honest: int, log_ratio: Fraction, bits: RandomBits) -> int:
    """One node's share of discrete Laplace noise: that of `sample_shares` for one sum."""
    return sample_shares(honest, log_ratio, 1, bits)[0]


def sample_shares(honest: int, log_ratio: Fraction, count: int, bits: RandomBits) -> list[int]:
    """One node's shares of discrete Laplace noise of `count` sums: Polya(1/h) - Polya(1/h).

    All first terms are drawn before all second ones.

    Args:
        honest: h >= 1, such that any h shares sum to an exact draw of
            `DiscreteLaplace(log_ratio)`.
        log_ratio: epsilon / sensitivity >= 2^-256, per unit of the sum.
        bits: the node's source of randomness.

    Returns:
        The shares, in units of each sum. Secret: they leave the node only inside masked sums.

    Raises:
        LocalProtocolError: a parameter is out of range, or the source of randomness is broken.
    """
    if honest < 1:
        raise LocalProtocolError(
            f"expected noise shared among at least 1 honest node, got {honest}"
        )
    # Goryczka & Xiong 2015; Balle et al. 2020: Polya(1/h) - Polya(1/h)
    drawn = sample_polyas(Fraction(1, honest), log_ratio, 2 * count, bits)
    return [up - down for up, down in zip(drawn[:count], drawn[count:], strict=True)]


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
        # (1-q)/(1+q) = tanh(log_ratio/2)
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
