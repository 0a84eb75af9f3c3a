"""The former draw of the Polya law, by inversion: exact, and its time tells the value.

`python -m bench.timing` shows how well a clock guesses it. `umpc.dp.polya` replaced it, and its
tests compare the laws.

    P(X = k) = C(k+r-1, k) (1-q)^r q^k,   k = 0, 1, 2, ...,   q = exp(-log_ratio)

`invert_polya` inverts the distribution function F(k) = P(X <= k) = I_{1-q}(r, k+1). The answer is
the k with F(k-1) <= U < F(k). U is a real number whose bits are drawn as they are needed. F(k) is a
ball that certainly holds the true value (python-flint), computed more sharply until U lies outside
it. So no rounding reaches the answer: the law is P(X = k) above, not a law near it. Only integers,
fractions and balls are used, no float.

Paper: Goryczka, Xiong 2015 (TDSC), and Balle, Bell, Gascón, Nissim 2020 (CCS), give noise as a sum
of Polya variables; neither paper says how to draw one exactly. Canonne, Kamath, Steinke 2020
(NeurIPS) draw r = 1 exactly by rejection. For r < 1 rejection needs (1-q)^{-(1-r)} trials, 65,000
at scale 65,536. Hence inversion here.

Why a comparison ends. For rational r and log_ratio, q is transcendental (Lindemann). Therefore
F(k) = (1-q)^r times a polynomial in q is never a fraction, so never an end of U's interval, however
U's bits fall. The only stream without an answer is all ones, U = 1; `MOST_BITS` ends it.

F(k) is remembered for every k that was met: at the scales of small studies nearly every draw meets
the same few.

Timing: the running time depends on the value, and on the values drawn before.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial

from flint import arb, ctx

from umpc.dp.events import ball
from umpc.dp.polya import LEAST_LOG_RATIO
from umpc.dp.random_bits import LazyUniform, RandomBits
from umpc.errors import LocalProtocolError

ONE = Fraction(1)

PRECISION = 64
"""Working precision of the first enclosure of F(k), in bits. It decides almost every comparison."""

MOST_PRECISION = 1 << 14
"""Working precision at which a draw gives up: `flint` would have to be at fault."""

LAWS = 16
"""How many laws are remembered."""

VALUES = 1024
"""How many enclosures of each law are remembered."""

MOST_BITS = 1024 + 256
"""Bits of U that a working source does not get to.

A draw is undecided after m bits only if some F(k) lies inside U's interval. For shape <= 1,
1-F(k) <= q^{k+1}, so every k >= m ln2/log_ratio has its F(k) in the top interval, and at most
m/log_ratio + 1 of the 2^m intervals hold any F(k). With m = 1280 and log_ratio >= 2^-256 the
chance is below 2^-1000, while the all-ones stream of a dead source is refused instead of doubling k
for ever.
"""


def invert_polya(shape: Fraction, log_ratio: Fraction, bits: RandomBits) -> int:
    """One exact draw of Polya(shape, exp(-log_ratio)).

    A shape above 1 is drawn as a sum of geometrics and one Polya of the remaining shape, which has
    the same law (shapes add). `flint` encloses F sharply for r < 1, and r = 1 has a closed form.

    Args:
        shape: r > 0; 1/h for one of h nodes, 1 for the geometric law.
        log_ratio: -log q >= 2^-256, exact; epsilon/s for noise in units of which s is the
            sensitivity. At 1e9 the answer is 0 after one comparison, at 1e-9 it is near 1e9 after
            about sixty.
        bits: the only source of randomness.

    Returns:
        X >= 0, in the units of 1/log_ratio. Secret.

    Raises:
        LocalProtocolError: a parameter is out of range, or the source of randomness is broken.
    """
    if shape <= 0 or log_ratio < LEAST_LOG_RATIO:
        raise LocalProtocolError(
            f"expected a Polya law of shape > 0 and log_ratio >= 2^-256, got {shape} and "
            f"{log_ratio}; check epsilon, the sensitivity and the number of honest nodes"
        )
    geometrics, rest = divmod(Fraction(shape), 1)
    total = sum(_invert(ONE, log_ratio, bits) for _ in range(geometrics))
    return total + (_invert(rest, log_ratio, bits) if rest else 0)


def distribution(shape: Fraction, log_ratio: Fraction, k: int, precision: int) -> arb:
    """F(k) = P(X <= k) = I_{1-q}(shape, k+1) as a ball that certainly holds it; 0 < shape <= 1.

    The ball is right for every `precision`. A precision that is too low makes it wide, or not
    finite, never wrong. (`flint.ctx` belongs to the whole process: another thread can change how
    wide a ball is, and no more.)

    For log_ratio > 1 it is computed as 1 - I_q(k+1, shape), which is the same number. The series of
    `beta_lower` then runs in the small q, where its transformed series in 1-q is not finite for any
    k > 100.
    """
    with ctx.workprec(precision):
        if shape == 1:
            return -ball(-log_ratio * (k + 1)).expm1()
        r = _ball_with_radius(shape, precision)
        if log_ratio > 1:
            return 1 - ball(-log_ratio).exp().beta_lower(k + 1, r, regularized=True)
        return (-ball(-log_ratio).expm1()).beta_lower(r, k + 1, regularized=True)


def _invert(shape: Fraction, log_ratio: Fraction, bits: RandomBits) -> int:
    """The k with F(k-1) <= U < F(k): double k until F(k) passes U, then halve the bracket."""
    u = LazyUniform(bits, MOST_BITS)
    law = _remembered(shape, log_ratio)
    below = -1  # F(below) <= U
    k = 0
    while not _is_below(u, law, k):
        below, k = k, 2 * k + 1
    while k - below > 1:
        middle = (below + k) // 2
        if _is_below(u, law, middle):
            k = middle
        else:
            below = middle
    return k


@lru_cache(maxsize=LAWS)
def _remembered(shape: Fraction, log_ratio: Fraction) -> Callable[[int, int], arb]:
    """`distribution` of this law, by k and precision.

    A ball does not depend on U, so no draw depends on another.
    """
    return lru_cache(maxsize=VALUES)(partial(distribution, shape, log_ratio))


def _is_below(u: LazyUniform, law: Callable[[int, int], arb], k: int) -> bool:
    """Whether U < F(k): sharpen F(k) while that helps, and draw more bits of U when it does not."""
    precision = PRECISION
    while precision <= MOST_PRECISION:
        number = law(k, precision)
        if u.certainly_below(number):
            return True
        if u.certainly_not_below(number):
            return False
        if u.resolved_by(number):
            u.extend()
        else:
            precision *= 2
    raise LocalProtocolError(
        "expected a sharp enclosure of a Polya distribution function, none came in "
        f"{MOST_PRECISION} bits of precision; report it, and the version of python-flint"
    )


def _ball_with_radius(number: Fraction, precision: int) -> arb:
    """A ball around a fraction, never of radius 0.

    A shape that is a binary fraction would become an exact ball. For an exact shape and k > 2^60
    the `beta_lower` of python-flint 0.9.0 (FLINT 3.6.0) returns a ball that no precision narrows:
    [+/- 0.88] for shape 1/2 at k = 1e19 = 1/log_ratio, at 64 and at 8192 bits alike. With a radius
    it narrows as it should.
    """
    return ball(number) + arb(0, arb((1, -precision)))
