"""Noise from independent coins: the noise that a committee can compute under shares.

A geometric of ratio q = exp(-log_ratio) has independent binary digits. Digit i is 1 with odds
q^{2^i}, that is with probability p_i = 1/(1 + exp(2^i log_ratio)), because P(X = Σ 2^i b_i) is
proportional to Π q^{2^i b_i}. The difference of two geometrics is discrete Laplace
(`calibration.py`), so no sign and no doubled zero need care. A committee flips coin i by comparing
PRECISION bits that no member knows with the public threshold p_i·2^PRECISION, in a time that
depends on nothing secret (`umpc/mpc`).

Finite bits cost a distance from the exact law, stated in `distance`: thresholds are rounded down,
by less than 2^-bits a coin, and digits from B on are left out. The chance that they are not all 0
is below q^{2^B}.

Paper: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, section 4 (geometric noise from biased coins
under shares); Fu & Wang 2024, arXiv 2409.10667 (its cost).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import arb, ctx

from umpc.dp.binomial import binomial_std, least_coins
from umpc.dp.calibration import LN2_ABOVE, NORMAL_SHAPE, DiscreteLaplace
from umpc.dp.checks import ball
from umpc.errors import InvalidEpsilon, LocalProtocolError

PRECISION = 64
"""Bits of a coin's random number and of its threshold.

Digits are drawn up to the B for which q^{2^B} is at most 2^-PRECISION.
"""

MOST_DIGITS = 62
"""More digits than a sum of 64 bits holds."""

MOST_COINS = 1 << 17
"""Most fair coins of one sum's binomial noise."""

MOST_WORKING_BITS = 1 << 14
"""Working precision at which a threshold gives up."""


@dataclass(frozen=True)
class CommitteeLaplace:
    """Discrete Laplace noise for a sum of this sensitivity, drawn by a committee coin by coin.

    Args:
        epsilon: > 0, exact.
        sensitivity: s >= 0, in units of the sum; 0 says that the sum is public: no noise.
        bits: bits of a coin's random number; the tail that is left out is at most 2^-bits.

    Raises:
        InvalidEpsilon: the noise would not fit 62 bits.
        LocalProtocolError: epsilon or the sensitivity is out of range.
    """

    epsilon: Fraction
    sensitivity: int
    bits: int = PRECISION

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.sensitivity < 0:
            raise LocalProtocolError(
                "expected epsilon > 0 and a sensitivity of 0 or more, "
                f"got {self.epsilon}, {self.sensitivity}"
            )
        if self.digits > MOST_DIGITS:
            raise InvalidEpsilon(
                f"the noise for epsilon {self.epsilon} and a sensitivity of {self.sensitivity} "
                f"needs {self.digits} bits, at most {MOST_DIGITS} are possible; "
                "ask for a larger epsilon or coarser resolutions"
            )

    @property
    def log_ratio(self) -> Fraction:
        """-log q = epsilon / sensitivity, per unit of the sum. Sensitivity 0 has none."""
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
        """⌊p_i · 2^bits⌋ of each coin, in the order of `weights`.

        They are exact numbers, so all processes get the same.
        """
        ratios = (self.log_ratio * (1 << digit) for digit in range(self.digits))
        return tuple(threshold_of(ratio, self.bits) for ratio in ratios) * 2

    @property
    def weights(self) -> tuple[int, ...]:
        """Each coin's weight: the first geometric's digits, then the second's, negative."""
        digits = tuple(1 << digit for digit in range(self.digits))
        return digits + tuple(-weight for weight in digits)

    @property
    def offset(self) -> int:
        """0: nothing is subtracted from the coins' sum, as the two geometrics' means cancel."""
        return 0

    @property
    def distance(self) -> Fraction:
        """A bound of the total variation distance from the exact law: two geometrics of B coins."""
        return Fraction(2 * (self.digits + 1), 1 << self.bits) if self.sensitivity else Fraction(0)

    @property
    def delta(self) -> Fraction:
        """The delta that the distance costs, at most 1."""
        return min(Fraction(1), cost_of_distance(self.epsilon, self.distance))

    @property
    def std(self) -> float:
        """Standard deviation of the noise, in units of the sum."""
        return DiscreteLaplace(self.log_ratio).std if self.sensitivity else 0.0

    @property
    def variance(self) -> float:
        """Variance of the noise, in squared units of the sum."""
        return self.std * self.std

    def tail_bound(self) -> int:
        """An integer that the noise never exceeds in magnitude."""
        return (1 << self.digits) - 1


@dataclass(frozen=True)
class CommitteeBinomial:
    """Noise from fair coins, (ε, δ)-DP: the sum of n coins, less n/2.

    A fair coin's threshold is exact, so nothing is added to δ. The number of coins grows with the
    square of the sensitivity; `binomial.py` finds the least.

    Paper: Dwork et al. 2006 (`binomial.py`).

    Raises:
        InvalidEpsilon: more than MOST_COINS are needed.
    """

    epsilon: Fraction
    delta: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        # A mechanism that is (ε, δ)-DP for a shift s has a variance n/4 of at least about (s/2ε)²,
        # so many cases are refused before any search.
        too_many = self.sensitivity**2 > MOST_COINS * self.epsilon**2
        if too_many or self.count > MOST_COINS:
            raise InvalidEpsilon(
                f"binomial noise for epsilon {self.epsilon} and a sensitivity of "
                f"{self.sensitivity} needs more than {MOST_COINS} coins; "
                'ask for a larger epsilon or fewer edges, or take noise = "in_mpc"'
            )

    @cached_property
    def count(self) -> int:
        """n, the number of coins."""
        return least_coins(self.epsilon, self.delta, self.sensitivity) if self.sensitivity else 0

    @property
    def thresholds(self) -> tuple[int, ...]:
        """2^PRECISION/2 for each coin."""
        return (1 << (PRECISION - 1),) * self.count

    @property
    def weights(self) -> tuple[int, ...]:
        """1 for each coin."""
        return (1,) * self.count

    @property
    def offset(self) -> int:
        """n/2, which is subtracted from the coins' sum."""
        return self.count // 2

    @property
    def std(self) -> float:
        """Standard deviation of the noise, in units of the sum."""
        return binomial_std(self.count)

    @property
    def shape(self) -> float:
        """That of Skellam's law, whose tails of this variance are heavier: `NORMAL_SHAPE`."""
        return NORMAL_SHAPE

    @property
    def variance(self) -> float:
        """Variance of the noise, in squared units of the sum."""
        return self.count / 4

    def tail_bound(self) -> int:
        """An integer that the noise never exceeds in magnitude."""
        return self.count - self.offset


def cost_of_distance(epsilon: Fraction, distance: Fraction) -> Fraction:
    """δ = (1 + e^ε)·d, rounded up, for laws at a distance d from laws that are ε-close.

    P(S) ≤ P*(S) + d ≤ e^ε·Q*(S) + d ≤ e^ε·(Q(S) + d) + d.
    """
    growth = Fraction(math.exp(min(epsilon, Fraction(700)))) * (1 + Fraction(1, 1 << 40))
    return (1 + growth) * distance


def threshold_of(exponent: Fraction, precision: int) -> int:
    """⌊2^precision / (1 + e^exponent)⌋.

    The number before the floor is transcendental, so a sharp enough ball decides.
    """
    bits = 256
    while bits <= MOST_WORKING_BITS:
        with ctx.workprec(bits):
            scaled = arb((1, precision)) / (1 + ball(exponent).exp())
            exact = scaled.floor().unique_fmpz()
            if exact is not None:
                return int(exact)
        bits *= 2
    raise LocalProtocolError(
        f"no sharp enclosure of a coin's threshold came in {MOST_WORKING_BITS} bits of precision"
    )
