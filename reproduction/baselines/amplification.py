"""The gain of secret batches: Rényi divergence of discrete Gaussian noise on a random batch.

A batch of b of n records is drawn without replacement and kept secret. A vector of integers that
depends on it gets discrete Gaussian noise of one parameter σ². Replacing a record of the batch
moves the vector by at most s, ρ = s²/(2σ²). For neighbours of n records (replace-one), g = b/n and
integer orders a, the divergence is at most

    R(a) = 1/(a-1) log(1 + sum over j = 2..a of C(a,j) g^j m_j),
    m_2 = 2(e^{2ρ} - e^ρ),
    even j > 2: m_j = min(2^j sum over i of (-1)^i C(j,i) e^{i(i-1)ρ}, 2e^{j(j-1)ρ}),
    odd j: m_j = sqrt(m_{j-1} m_{j+1}).

Proof.
(1) A batch with record r has, for a random other record j outside it, a partner with j in place of
r. Partners of random batches with r are random batches without r. So both neighbours' outputs are
mixtures, over the rest of the batch and j, of P = (1-g)A + gB and Q = (1-g)A + gB', A with j, B
with r, B' with the other r: pairwise neighbours. The divergence is quasi-convex, so one such triple
bounds it (Balle, Barthe, Gaboardi 2018).
(2) E_Q (P/Q)^a = sum of C(a,j) E_Q (P/Q - 1)^j. The term j = 1 is 0, and P - Q = g(B - B'). Since
|x|^j/y^{j-1} is jointly convex, E_Q |(B-B')/Q|^j is at most the greater of its values with A and
with B' in place of Q (Wang, Balle, Kasiviswanathan 2019). Let m_j bound them; odd ones by Cauchy
and Schwarz.
(3) For integer shifts u, v and integers i, l the moments of the discrete law are exactly those of
the normal law, E_A (B/A)^i (B'/A)^l = exp((|iu + lv|² - i|u|² - l|v|²)/(2σ²)), because completing
the square moves the sum over the integers by an integer. So
E_A ((B-B')/A)² = e^x + e^y - 2e^{u·v/σ²} with x = |u|²/σ², y = |v|²/σ² <= 2ρ, and |u-v|² <= 2ρσ²
gives u·v/σ² >= (x+y)/2 - ρ. This increases in x and y, hence m_2. (With B' for Q it is e^{2ρ} - 1
at most, which is less by (e^ρ - 1)².) For even j Minkowski: the norm of (B-B')/A is at most twice
that of B/A - 1, whose j-th moment is the binomial sum, an f-divergence of two normals and so
increasing with their distance. Or |B-B'|^j <= B^j + B'^j.

The plain curve aρ always holds too, and the smaller one is taken.
`tests/reproduction/baselines/test_dpsgd.py` compares with exact mixtures.

Paper: Bellet 2021 (slides), DP-SGD, which uses advanced composition; Wang, Balle, Kasiviswanathan
2019, whose Theorem 9 bounds m_j for j > 2 by 2e^{(j-1)R(j)} alone, too much to gain anything where
ρ is small.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import comb

from flint import arb, ctx

from umpc.dp.composition import Curve, gaussian_curve
from umpc.dp.events import ball
from umpc.errors import StudyError

MOST_ORDER = 64
"""Largest order for which the sum is computed. A larger one helps only where little is gained."""

PRECISION = 2048
"""Bits of the balls: the binomial sums cancel to about ρ^{j/2}."""


def sampled_gaussian_curve(rho: Fraction, part: Fraction) -> Curve:
    """The curve of one release from a secret batch.

    Args:
        rho: ρ > 0 of the release from a known batch, exact.
        part: b/n, 0 < part <= 1, exact.

    Raises:
        StudyError: an argument is out of range.
    """
    if not 0 < part <= 1 or rho <= 0:
        raise StudyError(
            "a batch is a part of the records above 0 and at most 1, and ρ is above 0; "
            f"{part}, {rho} came"
        )
    plain = gaussian_curve(rho)
    if part == 1:
        return plain

    def sampled(order: int) -> arb:
        if order > MOST_ORDER:
            return plain(order)
        moments = _moments(rho)
        with ctx.workprec(PRECISION):
            total = arb(1)
            for j in range(2, order + 1):
                total += comb(order, j) * ball(part) ** j * moments[j]
            found = total.log() / (order - 1)
            return plain(order).min(found) if found.is_finite() else plain(order)

    return sampled


@lru_cache(maxsize=8)
def _moments(rho: Fraction) -> dict[int, arb]:
    """m_j for j = 2 .. MOST_ORDER."""
    with ctx.workprec(PRECISION):
        grown = [ball(i * (i - 1) * rho).exp() for i in range(MOST_ORDER + 1)]
        even = {2: 2 * (ball(2 * rho).exp() - ball(rho).exp())}
        for j in range(4, MOST_ORDER + 1, 2):
            cancelling = sum(((-1) ** i * comb(j, i) * grown[i] for i in range(j + 1)), arb(0))
            even[j] = (2**j * cancelling).min(2 * grown[j])
        odd = {j: (even[j - 1] * even[j + 1]).sqrt() for j in range(3, MOST_ORDER, 2)}
        return even | odd
