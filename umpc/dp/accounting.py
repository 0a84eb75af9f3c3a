"""The cost of many pure releases together: advanced composition, rounded up.

The relation is replace-one. The bound holds for adaptively chosen releases whose parameters were
fixed beforehand. The composition of other events is in `bench/baselines/accounting.py`.

Paper: Dwork, Rothblum, Vadhan 2010, in the form of Kairouz, Oh, Viswanath 2015, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from flint import arb, ctx

from umpc.dp.balls import PRECISION, above, ball


def advanced_composition(counts: Mapping[Fraction, int], delta: Fraction) -> Fraction:
    """The epsilon of several epsilon_i-DP releases together, for a given delta.

        sum of eps (e^eps - 1)/(e^eps + 1) + sqrt(2 ln(1/delta) sum of eps^2)

    The privacy loss of one release is +-eps with the odds of randomised response. Its mean is the
    first term. The sum of k bounded losses exceeds its mean by the second term with a probability
    of at most delta (Hoeffding).

    Args:
        counts: the number of releases for each epsilon > 0, exact.
        delta: 0 < delta < 1, exact.

    Returns:
        An exact fraction, certainly not below the expression above.
    """
    with ctx.workprec(PRECISION):
        mean = arb(0)
        for epsilon, times in counts.items():
            mean += times * ball(epsilon) * (ball(epsilon) / 2).tanh()
        squares = ball(sum(times * epsilon**2 for epsilon, times in counts.items()))
        return above(mean + (-2 * ball(delta).log() * squares).sqrt())
