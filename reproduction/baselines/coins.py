"""Exact coins from random bits: Bernoulli of a fraction, of exp(-fraction), and discrete Laplace.

Integers suffice here; no enclosure is needed. A coin of odds exp(-g) is decided by a random number
of coins with rational odds (von Neumann), because

    exp(-g) = sum over odd k of g^{k-1}/(k-1)! (1 - g/k).

Paper: Canonne, Kamath, Steinke 2020, algorithms 1 (`bernoulli_exp`) and 2
(`sample_discrete_laplace`). There is one departure. After `MOST_TRIES` turns, a loop refuses the
source of randomness instead of running for ever. A working source gets there with probability below
2^-1000, which is the distance between these laws and the stated ones.

Timing: the running time depends on the value, so no protocol draws noise with them. `umpc.dp` has
draws of fixed work (docs/privacy.md, timing).
"""

from __future__ import annotations

from fractions import Fraction

from umpc.dp.random_bits import RandomBits
from umpc.errors import LocalProtocolError

MOST_TRIES = 1024
"""Turns of a loop that a working source does not get to.

`uniform_below` repeats with chance < 1/2, the k-th turn of `bernoulli_exp` with at most 1/k, and a
geometric with 1/e. A discrete Laplace is accepted with probability at least (1 - 1/e)/2 = 0.31 and
is given ten times as many turns.
"""


def uniform_below(count: int, bits: RandomBits) -> int:
    """A uniform integer in 0 .. count-1, by rejection."""
    width = (count - 1).bit_length()
    if not width:
        return 0
    for _ in range(MOST_TRIES):
        drawn = bits(width)
        if 0 <= drawn < count:
            return drawn
    raise _broken()


def bernoulli(numerator: int, denominator: int, bits: RandomBits) -> bool:
    """True with probability numerator/denominator."""
    return uniform_below(denominator, bits) < numerator


def bernoulli_exp(numerator: int, denominator: int, bits: RandomBits) -> bool:
    """True with probability exp(-numerator/denominator); numerator >= 0, denominator > 0."""
    whole, rest = divmod(numerator, denominator)
    # Algorithm 1, second case: one coin of exp(-1) for each whole unit.
    for _ in range(whole):
        if not _bernoulli_exp_below_one(1, 1, bits):
            return False
    return _bernoulli_exp_below_one(rest, denominator, bits)


def _bernoulli_exp_below_one(numerator: int, denominator: int, bits: RandomBits) -> bool:
    """Algorithm 1, first case: coins of odds g/k until one fails; true if k is odd then."""
    for k in range(1, MOST_TRIES):
        if not bernoulli(numerator, denominator * k, bits):
            return k % 2 == 1
    raise _broken()


def sample_discrete_laplace(log_ratio: Fraction, bits: RandomBits) -> int:
    """One exact draw of P(x) proportional to exp(-log_ratio |x|), made at one place.

    Args:
        log_ratio: > 0, exact.
        bits: the only source of randomness.

    Raises:
        LocalProtocolError: log_ratio is not above 0, or the source of randomness is broken.
    """
    if log_ratio <= 0:
        raise LocalProtocolError(f"expected a log_ratio above 0, got {log_ratio}")
    for _ in range(10 * MOST_TRIES):
        # Algorithm 2: a remainder u of odds exp(-u/denominator).
        below = uniform_below(log_ratio.denominator, bits)
        if not bernoulli_exp(below, log_ratio.denominator, bits):
            continue
        # A geometric quotient v; x = u + denominator v, in steps of the numerator.
        magnitude = (below + log_ratio.denominator * _geometric(bits)) // log_ratio.numerator
        # A random sign; minus zero is drawn again.
        negative = bits(1)
        if magnitude or not negative:
            return -magnitude if negative else magnitude
    raise _broken()


def _geometric(bits: RandomBits) -> int:
    """One draw of P(k) = (1 - 1/e) e^-k."""
    for k in range(MOST_TRIES):
        if not _bernoulli_exp_below_one(1, 1, bits):
            return k
    raise _broken()


def _broken() -> LocalProtocolError:
    return LocalProtocolError(
        f"expected a noise draw to be decided within {MOST_TRIES} tries, but it was not; "
        "a working source of randomness never does that: check the source, then start again"
    )
