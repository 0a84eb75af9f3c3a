"""The ε of each of several answers of a record that together cost (ε, δ): exact composition.

Paper: Kairouz, Oh & Viswanath 2015, section 3; the second row of table 1 of Bell et al. 2020. No
k mechanisms that are ε0-DP are less private than k answers by randomised response. With
p = 1/(1 + e^-ε0) and q = 1 − p they are (ε, δ)-DP for exactly

    δ = Σ_j C(k, j) max(0, p^j q^(k-j) − e^ε p^(k-j) q^j).

The paper's ε0 = ε/(√k (1 + √(2 ln(1/δ)))) is a bound of it. For at most 20 answers that bound is no
better than ε/k where δ is below e^-10 or so; the exact sum is never worse, and mostly better.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import comb

from flint import arb, ctx

from umpc.dp.events import PRECISION, above, ball

STEPS = 20
"""ε0 is a multiple of ε/k·2^-STEPS."""


@lru_cache(maxsize=64)
def epsilon_of_answers(epsilon: Fraction, delta: Fraction, answers: int) -> Fraction:
    """The largest ε0 at which so many answers of a record cost at most (ε, δ).

    Args:
        epsilon: ε > 0, exact.
        delta: exact; 0 gives ε divided by the number of answers.
        answers: k.
    """
    if not delta or answers < 2:
        return epsilon / answers
    unit = epsilon / answers / (1 << STEPS)
    # Bisection between basic composition's ε/k and ε.
    fits = 1 << STEPS
    too_much = answers << STEPS
    while too_much - fits > 1:
        middle = (fits + too_much) // 2
        if delta_of_answers(unit * middle, answers, epsilon) <= delta:
            fits = middle
        else:
            too_much = middle
    return unit * fits


def delta_of_answers(each: Fraction, answers: int, epsilon: Fraction) -> Fraction:
    """The δ of k answers by randomised response, each ε0-DP, at ε; rounded up.

    Args: each: ε0, exact. answers: k. epsilon: ε, exact.
    """
    with ctx.workprec(PRECISION):
        p = 1 / (1 + ball(-each).exp())
        q = 1 / (1 + ball(each).exp())
        growth = ball(epsilon).exp()
        total = arb(0)
        for truths in range(answers + 1):
            lies = answers - truths
            # The term is positive where its loss (2j − k)·ε0 exceeds ε.
            if (truths - lies) * each > epsilon:
                term = p**truths * q**lies - growth * p**lies * q**truths
                total += comb(answers, truths) * term
        return max(Fraction(0), above(total, grid=None))
