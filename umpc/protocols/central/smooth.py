"""A smooth upper bound on the local sensitivity of the reweighted U-statistic of `hajek`, with every constant.

The paper's proof leaves a prefactor open ("assume the constant prefactor is 1", before Lemma A.16), so this is derived
anew. Numbers are in one unit. Notation: C the range of f; A the mean of the M values f_S; H_i the mean over the M_i
sets with record i; u_i = |H_i - A|; q = max M_i/M; p = max M_ij/M_i; x, x' neighbours that differ in record r;
primes for x'. d = (q + p) C; ξ >= 0 and η > 0 public parameters;

    L = least t >= 0 with #{i: u_i > ξ + d t} <= t,    T = ξ + d L,    s = d/η,
    w_i = max(0, 1 - max(0, u_i - T)/s),    w_S = min of w_i over S,    bad: w_i < 1, that is u_i > T,
    Ã = A + (1/M) sum over S of w_S (f_S - A).

1. |A - A'| <= qC; for i != r |H_i - H_i'| <= pC; so |u_i - u_i'| <= d. Hence x' has at most L + 1 indices (r is one
   more) above T + d, L' <= L + 1, and by symmetry |L - L'| <= 1.
2. Apart from r, x has at most L bad indices, and so has x': if L' = L + 1, then T' = T + d and every i good in x is
   good in x'; else L' <= L. Let B be those bad in either, without r: |B| <= 2L if L' = L, else <= L. |w_i - w_i'| <= η
   if L' = L (only u_i moves), else <= 2η.
3. Ã - Ã' over sets S without r is (1/M) sum of (w_S - w_S')(f_S - A), plus (1/M) sum of (1 - w_S')(A - A'). The
   second: at most q L of the sets hold a bad' index: <= L q · qC. The first: only S that meet B count. w_S - w_S' is a
   mean of the changes D_i = w_i - w_i' over S ∩ B, so it differs from their sum by at most (|S∩B| - 1) max|D|, and sum
   over S of (|S∩B| - 1)+ <= |B|(|B| - 1) pqM/2. With max|D| and |B| of step 2 that remainder is <= η L (2L - 1) pqC.
   The sum itself is, for every i in B, D_i times sum over S with i, without r, of (f_S - A), at most M_i (u_i + pC) in
   absolute value. If D_i != 0 then some weight is above 0, u_i < T + s + 2d (T + s + d if L' = L). So it is <= 2ηL q
   (T + s + 2d + pC).
4. Over S with r: (M_r/M)|A - A'| + Y + Y', Y = (1/M)|sum of w_S (f_S - A)|. There 0 <= w_r - w_S, and > 0 only if S
   holds one of at most L other bad indices: Y <= q w_r u_r + L p q C. And w_r u_r <= max over 0 <= w <= 1 of w (T + (1
   - w) s), which is T if s <= T, else (T + s)²/(4s): `peak`. It increases with T, and T' <= T + d.

Together |Ã - Ã'| is at most q times

    bound(L) = qC + peak(T) + peak(T + d) + 2LpC + LqC + 2ηL (T + s + 2d + pC) + ηL(2L - 1) pC,

increasing in L, and never more than C itself. The smooth bound is its largest discounted future, max over j of
e^{-βj} bound(L + j), computed from the last index down and rounded up so that both conditions hold exactly.

For L = 0, which well chosen ξ makes likely: q (2ξ + d + qC), where the global sensitivity is qC.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, appendix A.4.1, Lemmas A.10-A.16. `tests/dp/central/test_smooth.py` tries
all neighbours of small tables.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import ctx

from umpc.dp.balls import PRECISION, above, ball
from umpc.dp.checks import is_exact
from umpc.errors import StudyError

Number = Any
"""A Fraction, an int, a float, or a numpy array of floats."""

ROUNDED = 1 << 60
"""Discounted values are rounded up to multiples of bound(0)/2^60: short fractions."""
MOST_BETA = 64
"""A greater β counts as this one: e^-64 is at least e^-β, too, and a short fraction."""


def local_bound(
    level: Number, c: Number, concentration: Number, slope: Number, q: Number, p: Number
) -> Number:
    """min(C, q bound(L)), of numbers or of numpy arrays that broadcast.

    Args:
        level: L. c: C. concentration: ξ. slope: η. q, p: as above.
    """
    step = (q + p) * c
    near, fade = concentration + step * level, step / slope
    change = q * c + _peak(near, fade) + _peak(near + step, fade) + level * (2 * p + q) * c
    change += (
        2 * slope * level * (near + fade + 2 * step + p * c)
        + slope * level * (2 * level - 1) * p * c
    )
    return np.minimum(c, q * change) if isinstance(change, np.ndarray) else min(c, q * change)


def _peak(near: Number, fade: Number) -> Number:
    """max over 0 <= w <= 1 of w (near + (1 - w) fade)."""
    if isinstance(near, np.ndarray) or isinstance(fade, np.ndarray):
        return np.where(fade <= near, near, (near + fade) ** 2 / (4 * fade))
    return near if fade <= near else (near + fade) ** 2 / (4 * fade)


@dataclass(frozen=True)
class LocalBound:
    """The bound for one family and one choice of ξ and η.

    Args:
        width: C > 0. concentration: ξ >= 0, in the same unit. slope: η > 0.
        share: q. together: p. All exact and public.
    """

    width: Fraction
    concentration: Fraction
    slope: Fraction
    share: Fraction
    together: Fraction

    def __post_init__(self) -> None:
        numbers = (self.width, self.concentration, self.slope, self.share, self.together)
        if not all(map(is_exact, numbers)):
            raise StudyError("a bound of the sensitivity needs exact numbers")
        if not (self.width > 0 and self.concentration >= 0 and self.slope > 0):
            raise StudyError(
                "a bound of the sensitivity needs a range and a slope above 0, a concentration of 0 or more"
            )

    @property
    def step(self) -> Fraction:
        """d: how far a deviation moves at most."""
        return (self.share + self.together) * self.width

    @property
    def fade(self) -> Fraction:
        """s: over which distance a weight falls from 1 to 0."""
        return self.step / self.slope

    def threshold(self, level: int) -> Fraction:
        """T."""
        return self.concentration + self.step * level

    def at(self, level: int) -> Fraction:
        """What Ã changes at most at a table of this L."""
        return local_bound(
            level, self.width, self.concentration, self.slope, self.share, self.together
        )

    def smooth(self, level: int, beta: Fraction, records: int) -> Fraction:
        """S(x) for a table of n records with this L: at least `at(level)`, and at most e^β times a neighbour's."""
        return _smooth(self, beta, records, level)


@lru_cache(maxsize=64)
def _smooth(bound: LocalBound, beta: Fraction, records: int, level: int) -> Fraction:
    """S_j = step_j(step_{j+1}(... step_{j+K-1}(B))), step_i(v) = max(bound(i), min(v, ceil(r v))).

    r >= e^{-β} is a fraction, K = `reach(β)` is public, B = bound(n) >= bound(i) for all i; from n on step_i(v) = B.
    Smooth both ways, exactly: all steps grow with v and with i and lead to B at most. So S_j >= step_j(S_{j+1}), which
    takes one step more from B, hence S_j >= r S_{j+1} or S_j >= S_{j+1}; and S_j <= S_{j+1}, step by step. Beyond K
    levels nothing counts any more, for e^-80 B is less than bound(0)/2^60.
    """
    with ctx.workprec(PRECISION):
        ratio = above(ball(-min(beta, MOST_BETA)).exp())
    grain, found = bound.at(0) / ROUNDED, bound.at(records)
    last = min(
        bisect_left(range(records), found, key=bound.at), level + reach(beta)
    )  # from there on B, most often C
    for number in range(last - 1, level - 1, -1):
        faded = -((-ratio * found) // grain) * grain
        found = max(bound.at(number), min(found, faded))
    return found


def reach(beta: Number) -> int:
    """How many levels away a bound still counts: there it is faded to e^-80."""
    return 1 + int(80 / min(beta, MOST_BETA))


def smooth_estimates(
    concentration: float, slopes: np.ndarray, beta: float, records: int, q: float, p: float
) -> np.ndarray:
    """S_0 for many slopes, in floating point, with C = 1: for the choice of public parameters."""
    levels = np.arange(min(records, reach(beta)) + 1, dtype=np.float64)
    bounds = local_bound(levels, 1.0, concentration, slopes[:, None], q, p)
    return (np.exp(-beta * levels) * bounds).max(axis=1)
