"""δ of a heap of messages that nobody can tell apart: what a statistical distance costs in privacy."""

from __future__ import annotations

from fractions import Fraction

from flint import ctx

from umpc.dp.balls import PRECISION, above, ball

KAPPA = 40
"""The usual statistical security: heaps of equal sums are within 2^-KAPPA of each other."""


def delta_of_mixing(epsilon: Fraction, kappa: int = KAPPA) -> Fraction:
    """(1 + e^epsilon) 2^-kappa, rounded up, and at most 1: then it promises nothing.

    With d the distance of either table's heap from one that follows from the noisy sums alone, P* and Q* of those:
    P(S) <= P*(S) + d <= e^epsilon Q*(S) + d <= e^epsilon (Q(S) + d) + d.
    """
    if epsilon >= kappa:  # e^kappa > 2^kappa; and a large epsilon takes memory that nobody has
        return Fraction(1)
    with ctx.workprec(PRECISION):
        return min(
            Fraction(1), above((1 + ball(epsilon).exp()) / ball(1 << kappa), grid=kappa + 40)
        )
