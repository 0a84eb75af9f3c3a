"""An exact draw of the Poisson law of any rational mean, up to 2^128, in a fixed number of steps.

    p(k) = e^-mean mean^k / k!,   k = 0, 1, 2, ...

Up to the mean 256 a draw is one look-up in the whole table of the law (`poisson_table`). Above, it
is made of trials: a discrete Laplace y around the mode m = floor(mean), of scale
s = floor(sqrt(mean)) + 1, is accepted with probability

    exp(log p(m+y)/p(m) + |y|/s - C),     C >= max over y of the first two terms.

The proposal is exact (`geometric`). The acceptance compares a uniform with a certified ball around
that probability. So the law is p, not a law near it. C may be any constant that is large enough:
`_hat` computes the maximum in balls and takes the upper end. The maximum is found, not guessed. The
terms are concave in y on each side, with increments log(mean/(m+i)) + 1/s to the right and
log((m-i+1)/mean) + 1/s to the left. So the maximum is where the increment changes sign, at
j = floor(mean e^{1/s}) - m and at j = m + 1 - ceil(mean e^{-1/s}) steps from m.

*Work.* Every draw makes all trials of `trials.py`, whichever is accepted first. Each trial computes
log p by Stirling's series with a fixed number of terms, at a precision that follows from the mean.
Its remainder is in the ball. flint's own log k! would take different steps for different k.

Paper: Devroye 1986, Non-uniform random variate generation, section X.3 (rejection for the Poisson
law).

*Poisson table.* The Poisson law of a small mean as a table, for draws by one look-up of fixed work.

    P(X > k) = sum over i > k of e^-mean mean^i / i!

All terms are positive, so their balls keep their relative precision, also far in the tail. Past
twice the mean a term is less than half of the one before, so what follows the last term summed is
less than that term.

Exact draws of the geometric and the discrete Laplace law in a fixed number of coins.

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

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil, floor, isqrt

import numpy as np
from flint import arb, ctx

from umpc.dp.events import ball, ball_at
from umpc.dp.random_bits import (
    OFTEN,
    PRECISION,
    TAIL_BITS,
    CoinRow,
    Flags,
    RandomBits,
    SurvivalTable,
    first_accepted,
)
from umpc.errors import LocalProtocolError

ROWS = 1 << 10
"""The most variables whose coins are held in memory at once."""

MOST_HEADS = 1024
"""Heads of a coin of odds below 2^-96 that a working source does not get to."""

GROUP = 32
"""Digits that are added up in one 64-bit word."""
LAWS = 64
"""How many means are remembered: tables and constants, which do not depend on a draw."""


class GeometricLaw:
    """The law, and its digits' coins. `geometric_law` keeps it.

    Args:
        log_ratio: -log q > 0, exact.
    """

    def __init__(self, log_ratio: Fraction):
        self._log_ratio = log_ratio
        self.digits = digits_needed(log_ratio)
        self._coins = CoinRow(self.odds)

    def draw(self, count: int, bits: RandomBits) -> list[int]:
        """Independent draws. Secret. Cost: count (digits + 1) coins."""
        # Dwork et al. 2006, section 4: the digits are independent (spec/noise.py, `geometric`)
        coins = self._coins.toss(count, bits)
        drawn = integers_of(coins[:, : self.digits])
        # X >= 2^J, with odds below 2^-96
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

    def odds(self, precision: int) -> list[arb]:
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
        # digit i is 1 with odds q^{2^i} to 1
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
    # Ghosh et al. 2009: the difference of two geometrics
    return [up - down for up, down in zip(drawn[:count], drawn[count:], strict=True)]


# --- Poisson numbers ------------------------------------------------------------------------------


MOST_MEAN = 1 << 128
"""Noise has to fit 64 bits, so its variance has to fit 128."""

MOST_TABLE = 256
"""Means up to here are drawn from a table, of at most 450 entries."""


GUARD = 160
"""Bits behind the point of an acceptance probability: more than the uniform's 128."""

STIRLING = (
    (1, 12),
    (-1, 360),
    (1, 1260),
    (-1, 1680),
    (1, 1188),
    (-691, 360_360),
    (1, 156),
    (-3617, 122_400),
    (43_867, 244_188),
    (-174_611, 125_400),
)
"""B_2n / (2n (2n-1)) for n = 1 .. 10; at most nine of them are used."""


def sample_poisson(mean: Fraction, bits: RandomBits) -> int:
    """One exact draw of Poisson(mean).

    Args:
        mean: exact, 0 <= mean <= 2^128.
        bits: the only source of randomness.

    Raises:
        LocalProtocolError: the mean is out of range, or the source of randomness is broken.
    """
    if not 0 <= mean <= MOST_MEAN:
        raise LocalProtocolError(f"expected a Poisson law of mean 0 .. 2^128, got {mean}")
    if not mean:
        return 0
    if mean <= MOST_TABLE:
        # a small mean: one look-up in the whole law
        return int(table_of(Fraction(mean)).draw(1, bits)[0])
    law = _large(Fraction(mean))
    # Devroye 1986, section X.3: rejection from a discrete Laplace
    return law.mode + first_accepted(law.propose, law.odds, law.sharper_odds, OFTEN, 1, bits)[0]


@lru_cache(maxsize=LAWS)
def table_of(mean: Fraction) -> PoissonTable:
    return poisson_table(partial(ball_at, mean))


class LargePoisson:
    """The trials of one mean above `MOST_TABLE`; `_large` keeps it.

    Args:
        mean: exact.
    """

    def __init__(self, mean: Fraction):
        self._mean = mean
        self.mode, self._scale = _centre(mean)
        self._precision = GUARD + 2 * floor(mean).bit_length()
        with ctx.workprec(self._precision):
            self._log_mean = ball(mean).log()
            self._series = _series(self.mode.bit_length() - 1)
            self._constant = self._log_factorial(arb(self.mode + 1)) - _hat(mean)

    def propose(self, count: int, bits: RandomBits) -> list[int]:
        """Steps y from the mode."""
        return discrete_laplaces(Fraction(1, self._scale), count, bits)

    def odds(self, y: int) -> arb:
        """The acceptance probability of y, in the same steps for every y; 0 below k = 0."""
        with ctx.workprec(self._precision):
            # log p(m+y)/p(m) + |y|/s - C
            exponent = y * self._log_mean + arb(abs(y)) / self._scale + self._constant
            exponent -= self._log_factorial(arb(max(self.mode + y + 1, 1)))
            return exponent.exp() * int(self.mode + y >= 0)

    def sharper_odds(self, y: int, precision: int) -> arb:
        """The odds of `y` at any precision."""
        return acceptance(self._mean, y, precision)

    def _log_factorial(self, z: arb) -> arb:
        """log (z-1)! less log sqrt(2 pi), z >= 1, by Stirling's series with its remainder."""
        inverse = 1 / z
        square = inverse * inverse
        series = arb(0)
        for term in self._series:
            # Horner, in as many steps for every k
            series = series * square + term
        return (z - arb((1, -1))) * z.log() - z + inverse * series


@lru_cache(maxsize=LAWS)
def _large(mean: Fraction) -> LargePoisson:
    return LargePoisson(mean)


def _series(log2_mean: int) -> list[arb]:
    """The terms of Stirling's series that a mean of so many bits needs, the last one first.

    The series errs by less than the first term left out, for every z > 0, and a ball around 0
    stands for that. Near the mean it is below 2^-150. Far from the mean, where z is small, the ball
    is wide, and the odds that it is a factor of are smaller still.
    """
    # (2 needed + 1) log2_mean > 150, as far as there are terms
    needed = min(len(STIRLING) - 1, 75 // log2_mean + 1)
    terms = [arb(numerator) / denominator for numerator, denominator in STIRLING[: needed + 1]]
    terms[-1] *= arb(0, 1)
    return terms[::-1]


def _centre(mean: Fraction) -> tuple[int, int]:
    """The mode and the scale of the proposal, both integers."""
    return floor(mean), isqrt(floor(mean)) + 1


def acceptance(mean: Fraction, y: int, precision: int) -> arb:
    """exp(log p(m+y)/p(m) + |y|/s - C), as a ball of about `precision` bits behind the point.

    log k! is near k log k, so the precision is increased by the bits that k log k has before the
    point.
    """
    working = precision + 2 * floor(mean).bit_length() + 16
    with ctx.workprec(working):
        return (_exponent(mean, y) - _hat(mean)).exp()


def _exponent(mean: Fraction, y: int) -> arb:
    """log p(m+y)/p(m) + |y|/s at the working precision."""
    mode, scale = _centre(mean)
    log_factorials = arb(mode + 1).lgamma() - arb(mode + y + 1).lgamma()
    return y * ball(mean).log() + log_factorials + arb(abs(y)) / scale


@lru_cache(maxsize=LAWS)
def _hat(mean: Fraction) -> arb:
    """C: an exact number, certainly not below the maximum over y of `_exponent`."""
    mode, scale = _centre(mean)
    working = 64 + 4 * mode.bit_length() + 16
    with ctx.workprec(working):
        tilt = (arb(1) / scale).exp()
        # the increment log(mean/(m+i)) + 1/s changes its sign here
        right = _integer((ball(mean) * tilt).floor()) - mode
        # and here to the left of the mode
        left = mode + 1 - _integer((ball(mean) / tilt).ceil())
        highest = max((_exponent(mean, y).upper() for y in (right, -left)), default=arb(0))
        return highest.max(arb(0)).upper()


def _integer(number: arb) -> int:
    """The one integer in a ball.

    mean e^{1/s} is transcendental, so some precision decides its floor.
    """
    value = number.unique_fmpz()
    if value is None:
        raise LocalProtocolError(
            "expected an enclosure of one integer; report it, and the version of python-flint"
        )
    return int(value)


# --- poisson table --------------------------------------------------------------------------------

MOST_ABOVE = 128
"""P(X > 2 mean + 128) is below 2^-96 for every mean (Chernoff: at the mean 0 it is least so)."""

MARGIN = 64
"""Bits by which the last term summed is below the smallest answer's own precision."""


class PoissonTable(SurvivalTable):
    """Poisson(mean) by look-up. Args: as `poisson_table`; first, last: the table's ends."""

    def __init__(self, mean: Callable[[int], arb], first: int, last: int):
        super().__init__(lambda a, b, precision: survival(mean, a, b, precision), first, last)
        self.first = first
        self.last = last


def poisson_table(mean: Callable[[int], arb]) -> PoissonTable:
    """The table from the 2^-96 quantile to the 1 - 2^-96 quantile.

    Args:
        mean: the mean's ball at a given working precision; below a few hundred.
    """
    rare = arb((1, -TAIL_BITS))
    with ctx.workprec(PRECISION):
        ceiling = _ceiling(mean(PRECISION))
        above = survival(mean, 0, 2 * ceiling + MOST_ABOVE, PRECISION)
        first = sum(bool(1 - p < rare) for p in above[:ceiling])
        last = next(k for k, p in enumerate(above) if bool(p < rare))
    return PoissonTable(mean, max(0, first - 1), last)


def survival(mean: Callable[[int], arb], first: int, last: int, precision: int) -> list[arb]:
    """P(X > k) for k = first .. last, as balls."""
    working = precision + MARGIN
    with ctx.workprec(working):
        rate = mean(working)
        term = (-rate).exp() * rate ** (first + 1) / arb(first + 2).gamma()
        terms = [term]
        for i in range(first + 2, last + 2):
            term = term * rate / i
            terms.append(term)
        # Terms fall by half from twice the mean on; go on until they are far below the last answer.
        enough = term.upper() * arb((1, -working))
        i = last + 1
        # A ball that touches 0 cannot be told from 0, and is far below every threshold.
        while i < 2 * _ceiling(rate) or (bool(term > 0) and not bool(term <= enough)):
            i += 1
            term = term * rate / i
            terms.append(term)
        # A ball from 0 to the last term stands for all that follow it.
        suffix = term * arb(arb((1, -1)), arb((1, -1)))
        answers = []
        for term in reversed(terms):
            suffix += term
            answers.append(suffix)
        return answers[::-1][: last - first + 1]


def _ceiling(number: arb) -> int:
    """An integer above the number, by at most 1."""
    return int(number.upper().floor().unique_fmpz() or 0) + 1
