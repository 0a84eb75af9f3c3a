"""The epsilon that remains if fewer nodes keep their noise to themselves than were assumed honest.

Noise was made for h honest nodes: each share is Polya(1/h, q) - Polya(1/h, q), q = exp(-epsilon/s).
If only g < h nodes stay honest, the others subtract their shares. The remaining noise is the
generalised discrete Laplace law of shape b = g/h < 1,

    P(x) = (1-q)^{2b} q^|x| (b)_|x|/|x|! 2F1(b, b+|x|; 1+|x|; q^2),   (b)_x = b (b+1) ... (b+x-1),

the convolution of two Polya laws. For b < 1 it is peaked at 0 (log-convex on each side, as each
Polya is), so

    max over x of log P(x)/P(x+d) = log P(0)/P(d),   increasing in d, and at d = s
    epsilon' = epsilon + log [ 2F1(b, b; 1; q^2) / 2F1(b, b+s; 1+s; q^2) ]
                       + log [ s! Gamma(b) / Gamma(b+s) ].

This is still pure DP, but with an epsilon that depends on the sensitivity in units, and a finer
scale increases it. At b = 1/2, epsilon = 1 becomes 1.68 for s = 1, 3.44 for s = 65,536 and 4.47 for
s = 10^15. For growing s, epsilon' tends to a limit for b > 1/2 (1.61 at b = 3/4), grows with
log log s at b = 1/2 and with (1-2b) log s below: the law of the continuous limit has no finite
density at 0 from b = 1/2 down. With b >= 1, epsilon holds as promised.

Paper: Balle, Bell, Gascón, Nissim 2020 (the shares); the closed form is C. Harrison's, Distributed
noise addition and infinite divisibility, 2024, and arXiv 2504.05202.
`tests/reproduction/baselines/test_collusion.py` compares it with the convolution.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx

from umpc.dp.events import above, ball, check_epsilon, check_sensitivity, is_integer
from umpc.errors import LocalProtocolError, StudyError

MOST_PRECISION = 1 << 12
"""Working precision at which the search gives up: `flint` would have to be at fault."""


def remaining_epsilon(
    epsilon: Fraction, sensitivity: int, honest: int, honest_now: int
) -> Fraction:
    """The epsilon left by distributed discrete Laplace noise, rounded up (by less than 2^-30).

    Args:
        epsilon: > 0, exact; the promise with `honest` nodes.
        sensitivity: s >= 0 in units of the sum. 0 has no noise and needs none.
        honest: h, the number of honest nodes that the noise was made for.
        honest_now: g >= 1, the number of nodes that are honest. With none there is no noise.

    Returns:
        epsilon itself if honest_now >= honest, more otherwise.

    Raises:
        InvalidEpsilon: epsilon is not an exact number above 0.
        StudyError: sensitivity or a number of nodes is not an integer in its range.
    """
    epsilon = check_epsilon(epsilon)
    s = check_sensitivity(sensitivity)
    if not (is_integer(honest) and is_integer(honest_now) and honest >= 1 and honest_now >= 1):
        raise StudyError(
            "noise needs at least 1 honest node, assumed and left, "
            f"but {honest!r} and {honest_now!r} came; with no honest node left nothing is private"
        )
    if not s:
        return Fraction(0)
    if honest_now >= honest:
        return epsilon
    precision = 64
    while precision <= MOST_PRECISION:
        with ctx.workprec(precision):
            loss = privacy_loss(epsilon / s, s, Fraction(honest_now, honest))
            if loss.is_finite() and bool(loss.rad() < arb((1, -32))):
                return above(loss)
        precision *= 2
    raise LocalProtocolError(
        "expected a sharp enclosure of the remaining epsilon, none came in "
        f"{MOST_PRECISION} bits; report it, and the version of python-flint"
    )


def privacy_loss(log_ratio: Fraction, shift: int, shape: Fraction) -> arb:
    """log P(0)/P(shift) of the generalised discrete Laplace law, as a ball; q = exp(-log_ratio)."""
    b = ball(shape)
    square = (-2 * ball(log_ratio)).exp()
    here = square.hypgeom_2f1(b, b, 1)
    there = square.hypgeom_2f1(b, b + shift, 1 + shift)
    factorials = arb(shift + 1).lgamma() + b.lgamma() - (b + shift).lgamma()
    return ball(log_ratio * shift) + (here / there).log() + factorials
