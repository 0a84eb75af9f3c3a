"""δ of a heap of indistinguishable messages: the privacy cost of a statistical distance."""

from __future__ import annotations

from fractions import Fraction

from flint import ctx

from umpc.dp.events import PRECISION, above, ball

KAPPA = 40
"""The usual statistical security: heaps of equal sums are within distance 2^-KAPPA."""


def delta_of_mixing(epsilon: Fraction, kappa: int = KAPPA) -> Fraction:
    """(1 + e^epsilon) 2^-kappa, rounded up, and at most 1, where it promises nothing.

    Let d be the distance of either table's heap from a heap that follows from the noisy sums
    alone, and let P* and Q* be the laws of these heaps. Then

        P(S) <= P*(S) + d <= e^epsilon Q*(S) + d <= e^epsilon (Q(S) + d) + d.

    Args:
        epsilon: > 0, exact; that of the noisy sums.
        kappa: d = 2^-kappa.
    """
    # e^kappa > 2^kappa, and a large epsilon would take more memory than any machine has.
    if epsilon >= kappa:
        return Fraction(1)
    with ctx.workprec(PRECISION):
        cost = (1 + ball(epsilon).exp()) / ball(1 << kappa)
        return min(Fraction(1), above(cost, grid=kappa + 40))
