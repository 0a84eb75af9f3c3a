"""A private estimate of a kernel's spread, with its own share of epsilon.

Groups of 2k records are drawn at random, without a record in common. Each group has a number
d = |f_S - f_T| from its two halves S and T. A replaced record changes one group, so it changes one
of the m numbers d.

*Scale* (τ of CoinPress). N_b is the number of groups with d >= 2^b. One record changes each N_b by
at most 1, so it changes the score -|4 N_b - m| by at most 4. The b with the largest score plus
discrete Laplace noise of scale 2·4/epsilon is epsilon-DP ("report noisy max": given the other
scores' noise, b wins if its noise is above a number that moves by at most 2·4). τ is 2^(b+1): about
a quarter of the groups differ by half of τ or more. For normal values of standard deviation σ, τ
then is between 1.5 σ and 6 σ.

*Variance* (v of corollary 2). d²/2 has the expectation Var f and lies in [0, C²/2]. The sum of the
d² changes by at most C², and gets discrete Laplace noise of that sensitivity. For a variable in
[0, b] of mean v, the mean of m copies is below v - t with a chance of at most exp(-m t²/(2 v b))
(Bernstein's bound for nonnegative variables, whose second moment is at most b v). So with
L = log(1/γ)

    √v <= (√(C² L/m) + √(C² L/m + 4 v̂))/2,   v̂ = the mean without noise,

except with a chance of γ, and the noise is allowed for with another γ. v never exceeds C²/4
(Popoviciu). For a kernel that is degenerate, the variance of f given one record is Var f.

Privacy never rests on the estimate; accuracy does.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, remark A.8 and corollary 2; Biswas et al. 2020. The
mechanism is this module's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from umpc.dp.random_bits import RandomBits
from umpc.errors import TooFewRecords
from umpc.mpc.arrays import Integers
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc_papers.central.laplace import discrete_laplace
from umpc_papers.central.terms import Terms, kernel_terms, permutation

FAILURE = Fraction(1, 100)
"""The chance that a ξ that follows from chance alone does not hold."""


@dataclass(frozen=True)
class PrivateSpread:
    """The spread of a kernel's values. Each method takes all of epsilon.

    Args:
        kernel: symmetric, of degree k.
        epsilon: > 0, exact.
    """

    kernel: Kernel
    epsilon: Fraction

    def scale(self, columns: Columns, bits: RandomBits) -> Fraction:
        """τ, in values. Reveals: this number."""
        terms = kernel_terms(self.kernel, columns)
        found = differences(terms, bits)
        top = terms.width.bit_length()
        scores = [-abs(4 * int((found >= 1 << b).sum()) - len(found)) for b in range(top + 1)]
        # Report noisy max: twice the sensitivity of one score, which is 4.
        noisy = [discrete_laplace(score, 2 * 4, self.epsilon, bits) for score in scores]
        return Fraction(2 << noisy.index(max(noisy))) * terms.unit

    def variance(self, columns: Columns, bits: RandomBits) -> Fraction:
        """At least Var f, in squared values, except with a chance of `FAILURE`. At most C²/4.

        Reveals: this number.
        """
        terms = kernel_terms(self.kernel, columns)
        found = differences(terms, bits)
        groups = len(found)
        wide = terms.width**2
        exact = sum(int(each) ** 2 for each in found)
        noisy = discrete_laplace(exact, wide, self.epsilon, bits) if wide else 0
        likely = math.log(2 / float(FAILURE))
        # P(noise < -reach) <= exp(-reach ε/C²).
        reach = wide * likely / float(self.epsilon)
        mean = max(0.0, noisy + reach) / (2 * groups)
        spare = wide * likely / groups
        root = (math.sqrt(spare) + math.sqrt(spare + 4 * mean)) / 2
        units = min(Fraction(wide, 4), Fraction(root**2).limit_denominator(1 << 20))
        return units * terms.unit**2


def differences(terms: Terms, bits: RandomBits) -> Integers:
    """|f_S - f_T| of disjoint random S and T: (n // 2k,) int64, in units.

    Raises: TooFewRecords.
    """
    k = terms.degree
    groups = terms.records // (2 * k)
    if not groups:
        raise TooFewRecords(
            f"a private spread needs at least {2 * k} records, {terms.records} came"
        )
    sets = permutation(terms.records, bits)[: 2 * k * groups].reshape(2 * k, groups)
    found: Integers = np.abs(terms.evaluate(sets[:k]) - terms.evaluate(sets[k:]))
    return found
