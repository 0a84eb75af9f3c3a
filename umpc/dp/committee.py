"""Discrete Laplace noise from independent coins: what a committee can compute under shares.

A geometric of ratio q = exp(-log_ratio) has independent binary digits: digit i is 1 with odds q^{2^i}, that is with
probability p_i = 1/(1 + exp(2^i log_ratio)), because P(X = Σ 2^i b_i) is proportional to Π q^{2^i b_i}. The difference
of two geometrics is discrete Laplace (`laplace.py`), with no sign and no doubled zero to take care of. A committee
flips coin i by comparing PRECISION bits that none of it knows with the public threshold p_i·2^PRECISION, in time
that depends on nothing (`mpc/noise.py`).

Finite bits cost a distance from the exact law, stated in `distance`: thresholds are rounded down, by less than
2^-bits a coin, and digits from B on are left out, whose chance of not being all 0 is below q^{2^B}.

Paper: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, section 4 (geometric noise from biased coins under shares);
Fu & Wang 2024, arXiv 2409.10667 (its cost).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import arb, ctx

from umpc.dp.balls import ball
from umpc.dp.binomial import binomial_std, least_coins
from umpc.dp.calibration import LN2_ABOVE
from umpc.dp.laplace import DiscreteLaplace
from umpc.errors import InvalidEpsilon, LocalProtocolError

PRECISION = 64
"""Bits of a coin's random number and of its threshold. Digits are drawn up to the B for which q^{2^B} is at most
2^-PRECISION."""
MOST_DIGITS = 62
"""More digits than a sum of 64 bits holds."""
MOST_COINS = 1 << 17
"""Fair coins of one sum's binomial noise."""
MOST_WORKING_BITS = 1 << 14


@dataclass(frozen=True)
class CommitteeLaplace:
    """Discrete Laplace noise for a sum of this sensitivity, drawn by a committee coin by coin.

    Args:
        epsilon: > 0, exact. sensitivity: s >= 0, in units of the sum; 0 says that the sum is public: no noise.
        bits: of a coin's random number, and of the tail that is left out.

    Raises: InvalidEpsilon where the noise would not fit 62 bits.
    """

    epsilon: Fraction
    sensitivity: int
    bits: int = PRECISION

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.sensitivity < 0:
            raise LocalProtocolError(
                f"expected epsilon > 0 and a sensitivity, got {self.epsilon}, {self.sensitivity}"
            )
        if self.digits > MOST_DIGITS:
            raise InvalidEpsilon(
                f"the noise for epsilon {self.epsilon} and a sensitivity of {self.sensitivity} needs {self.digits} "
                f"bits, at most {MOST_DIGITS} are possible; ask for a larger epsilon or coarser resolutions"
            )

    @property
    def log_ratio(self) -> Fraction:
        return self.epsilon / self.sensitivity

    @cached_property
    def digits(self) -> int:
        """B, the least with 2^B · log_ratio >= bits · ln 2."""
        if not self.sensitivity:
            return 0
        needed = self.bits * LN2_ABOVE / self.log_ratio
        return max(0, math.ceil(needed) - 1).bit_length()

    @cached_property
    def thresholds(self) -> tuple[int, ...]:
        """⌊p_i · 2^bits⌋ of each coin, as `weights`: the same at every process, for they are exact numbers."""
        return (
            tuple(
                _threshold(self.log_ratio * (1 << digit), self.bits) for digit in range(self.digits)
            )
            * 2
        )

    @property
    def weights(self) -> tuple[int, ...]:
        """What each coin counts for: the first geometric's digits, then the second's, negative."""
        digits = tuple(1 << digit for digit in range(self.digits))
        return digits + tuple(-weight for weight in digits)

    @property
    def offset(self) -> int:
        """What is taken off the coins' sum: the two geometrics cancel each other's mean."""
        return 0

    @property
    def distance(self) -> Fraction:
        """A bound of the total variation distance from the exact law: of two geometrics of B coins each."""
        return Fraction(2 * (self.digits + 1), 1 << self.bits) if self.sensitivity else Fraction(0)

    @property
    def delta(self) -> Fraction:
        """What the distance costs, but at most 1."""
        return min(Fraction(1), cost_of_distance(self.epsilon, self.distance))

    @property
    def std(self) -> float:
        """Standard deviation of the noise, in units of the sum."""
        return DiscreteLaplace(self.log_ratio).std if self.sensitivity else 0.0

    @property
    def variance(self) -> float:
        return self.std * self.std

    def tail_bound(self) -> int:
        """An integer that the noise never exceeds in magnitude."""
        return (1 << self.digits) - 1


@dataclass(frozen=True)
class CommitteeBinomial:
    """Noise of fair coins, (ε, δ)-DP: the sum of n of them, less n/2 (Dwork et al. 2006, section 3).

    A fair coin's threshold is exact, so nothing is added to δ. The number of coins grows with the square of the
    sensitivity; `binomial.py` finds the least.

    Raises: InvalidEpsilon where it needs more than MOST_COINS.
    """

    epsilon: Fraction
    delta: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        # Var(n/4) of a mechanism that is (ε, δ)-DP for a shift s is at least about (s/2ε)²: refused before any search.
        if self.sensitivity**2 > MOST_COINS * self.epsilon**2 or self.count > MOST_COINS:
            raise InvalidEpsilon(
                f"binomial noise for epsilon {self.epsilon} and a sensitivity of {self.sensitivity} needs more than "
                f'{MOST_COINS} coins; ask for a larger epsilon or fewer edges, or take noise = "in_mpc"'
            )

    @cached_property
    def count(self) -> int:
        return least_coins(self.epsilon, self.delta, self.sensitivity) if self.sensitivity else 0

    @property
    def thresholds(self) -> tuple[int, ...]:
        return (1 << (PRECISION - 1),) * self.count

    @property
    def weights(self) -> tuple[int, ...]:
        return (1,) * self.count

    @property
    def offset(self) -> int:
        return self.count // 2

    @property
    def std(self) -> float:
        """Standard deviation of the noise, in units of the sum."""
        return binomial_std(self.count)

    @property
    def variance(self) -> float:
        return self.count / 4

    def tail_bound(self) -> int:
        """An integer that the noise never exceeds in magnitude."""
        return self.count - self.offset


def cost_of_distance(epsilon: Fraction, distance: Fraction) -> Fraction:
    """δ = (1 + e^ε)·d, rounded up, of laws at distance d from ε-close ones.

    P(S) ≤ P*(S) + d ≤ e^ε·Q*(S) + d ≤ e^ε·(Q(S) + d) + d.
    """
    growth = Fraction(math.exp(min(epsilon, 700))) * (1 + Fraction(1, 1 << 40))
    return (1 + growth) * distance


def _threshold(exponent: Fraction, precision: int) -> int:
    """⌊2^precision / (1 + e^exponent)⌋: transcendental before the floor, so a sharp enough ball decides."""
    bits = 256
    while bits <= MOST_WORKING_BITS:
        with ctx.workprec(bits):
            scaled = arb((1, precision)) / (1 + ball(exponent).exp())
            if (exact := scaled.floor().unique_fmpz()) is not None:
                return int(exact)
        bits *= 2
    raise LocalProtocolError(
        f"no sharp enclosure of a coin's threshold came in {MOST_WORKING_BITS} bits of precision"
    )
