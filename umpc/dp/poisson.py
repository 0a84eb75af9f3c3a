"""An exact draw of the Poisson law of any rational mean, up to 2^128.

    p(k) = e^-mean mean^k / k!,   k = 0, 1, 2, ...

Rejection from a discrete Laplace around the mode m = floor(mean), of scale
s = floor(sqrt(mean)) + 1: propose y with odds exp(-|y|/s), and accept with probability

    exp(log p(m+y)/p(m) + |y|/s - C),     C >= max over y of the first two terms.

The proposal is exact (`coins`). The acceptance compares a lazily drawn uniform with a certified
ball around that probability until they are apart. So the law is p, not a law near it. C may be any
constant that is large enough: `_hat` computes the maximum in balls and takes the upper end. The
maximum is found, not guessed. The terms are concave in y on each side, with increments
log(mean/(m+i)) + 1/s to the right and log((m-i+1)/mean) + 1/s to the left. So the maximum is where
the increment changes sign, at j = floor(mean e^{1/s}) - m and at j = m + 1 - ceil(mean e^{-1/s})
steps from m. The chance of acceptance stays away from 0 at every mean, so the time of a draw does
not grow with the mean.

Inversion, as in `polya`, would be exact too. But flint's incomplete gamma function is slow at a
large mean, and an inversion asks for many of its values. log k! (Stirling's series with its
remainder) is fast at any k.

The odds of acceptance are remembered for every y that was met: at small means nearly all proposals
are the same few.

Timing: the running time depends on the value, and on the values drawn before. Draw before the run,
as for `polya`.

Paper: Devroye 1986, Non-uniform random variate generation, section X.3 (rejection for the Poisson
law).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from math import floor, isqrt

from flint import arb, ctx

from umpc.dp.balls import ball
from umpc.dp.coins import sample_discrete_laplace
from umpc.dp.random_bits import LazyUniform, RandomBits
from umpc.errors import LocalProtocolError

MOST_MEAN = 1 << 128
"""Noise has to fit 64 bits, so its variance has to fit 128."""

MOST_BITS = 1024
"""Bits of a uniform that a working source does not get to: all would agree with a fixed number."""

MOST_TRIES = 2048
"""Proposals that a working source does not get to: each is accepted with probability above 0.3
(`tests/dp/test_poisson.py`)."""

LAWS = 16
"""How many means are remembered."""

VALUES = 1024
"""How many odds of each mean are remembered."""

MOST_PRECISION = 1 << 14
"""Working precision at which a draw gives up: `flint` would have to be at fault."""


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
    mode, scale = _centre(mean)
    for _ in range(MOST_TRIES):
        y = sample_discrete_laplace(Fraction(1, scale), bits)
        if mode + y >= 0 and _accepts(mean, y, bits):
            return mode + y
    raise LocalProtocolError(
        f"expected a Poisson draw within {MOST_TRIES} proposals, none was accepted; "
        "a working source of randomness never does that: check the source, then start again"
    )


def _centre(mean: Fraction) -> tuple[int, int]:
    """The mode and the scale of the proposal, both integers."""
    return floor(mean), isqrt(floor(mean)) + 1


def _accepts(mean: Fraction, y: int, bits: RandomBits) -> bool:
    """A coin with the odds of acceptance: more bits of U or a sharper ball until they are apart."""
    u = LazyUniform(bits, MOST_BITS)
    remembered = _remembered(mean)
    precision = 64
    while precision <= MOST_PRECISION:
        odds = remembered(y, precision)
        if u.certainly_below(odds):
            return True
        if u.certainly_not_below(odds):
            return False
        if u.resolved_by(odds):
            u.extend()
        else:
            precision *= 2
    raise LocalProtocolError(
        f"expected a sharp enclosure of Poisson probabilities of mean {mean}, none came in "
        f"{MOST_PRECISION} bits; report it, and the version of python-flint"
    )


@lru_cache(maxsize=LAWS)
def _remembered(mean: Fraction) -> Callable[[int, int], arb]:
    """`acceptance` at this mean, by y and precision.

    A ball does not depend on U, so no draw depends on another.
    """
    return lru_cache(maxsize=VALUES)(partial(acceptance, mean))


def acceptance(mean: Fraction, y: int, precision: int) -> arb:
    """exp(log p(m+y)/p(m) + |y|/s - C), as a ball of about `precision` bits behind the point.

    log k! is near k log k, so the precision is increased by the bits that k log k has before the
    point.
    """
    working = precision + 2 * floor(mean).bit_length() + 16
    with ctx.workprec(working):
        return (_exponent(mean, y, working) - _hat(mean)).exp()


def _exponent(mean: Fraction, y: int, working: int) -> arb:
    """log p(m+y)/p(m) + |y|/s."""
    mode, scale = _centre(mean)
    log_mean, log_factorial = _constants(mean, working)
    return y * log_mean + log_factorial - arb(mode + y + 1).lgamma() + arb(abs(y)) / scale


@lru_cache(maxsize=64)
def _constants(mean: Fraction, working: int) -> tuple[arb, arb]:
    """log mean and log m!, which every proposal needs."""
    with ctx.workprec(working):
        return ball(mean).log(), arb(floor(mean) + 1).lgamma()


@lru_cache(maxsize=64)
def _hat(mean: Fraction) -> arb:
    """C: an exact number, certainly not below the maximum over y of `_exponent`."""
    mode, scale = _centre(mean)
    working = 64 + 4 * mode.bit_length() + 16
    with ctx.workprec(working):
        tilt = (arb(1) / scale).exp()
        right = _integer((ball(mean) * tilt).floor()) - mode
        left = mode + 1 - _integer((ball(mean) / tilt).ceil())
        highest = max((_exponent(mean, y, working).upper() for y in (right, -left)), default=arb(0))
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
