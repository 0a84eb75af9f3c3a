"""A smooth upper bound on the local sensitivity of the reweighted U-statistic of `hajek`.

The paper's proof leaves a prefactor open ("assume the constant prefactor is 1", before Lemma A.16).
This module derives the bound again, with every constant. Numbers are in one unit.

Notation. C is the range of f, and A the mean of the M values f_S. H_i is the mean over the M_i sets
with record i, and u_i = |H_i - A|. Further q = max M_i/M, p = max M_ij/M_i and d = (q + p) C. The
tables x and x' are neighbours that differ in record r; primes stand for x'. ξ >= 0 and η > 0 are
public parameters. Then

    L = least t >= 0 with #{i: u_i > ξ + d t} <= t,    T = ξ + d L,    s = d/η,
    w_i = max(0, 1 - max(0, u_i - T)/s),    w_S = min of w_i over S,
    Ã = A + (1/M) sum over S of w_S (f_S - A).

Record i is *bad* if w_i < 1, that is if u_i > T, and else good.

1. |A - A'| <= qC, and |H_i - H_i'| <= pC for i != r. So |u_i - u_i'| <= d for i != r. Hence x' has
   at most L + 1 indices above T + d, because r is one more. So L' <= L + 1, and by symmetry
   |L - L'| <= 1.
2. Apart from r, x has at most L bad indices, and so has x'. For if L' = L + 1, then T' = T + d, and
   every index that is good in x is good in x'; else L' <= L. Let B be the indices other than r that
   are bad in x or in x'. Then |B| <= 2L if L' = L, else |B| <= L. Further |w_i - w_i'| <= η if
   L' = L, because only u_i moves, else |w_i - w_i'| <= 2η.
3. Over sets S without r, Ã - Ã' is (1/M) sum of (w_S - w_S')(f_S - A), plus (1/M) sum of
   (1 - w_S')(A - A').
   - The second sum: at most q L of the sets hold an index that is bad in x', so it is at most
     L q · qC.
   - The first sum: only sets S that meet B count. w_S - w_S' is a mean of the changes
     D_i = w_i - w_i' over S ∩ B. It differs from their sum by at most (|S∩B| - 1) max|D|, and the
     sum over S of (|S∩B| - 1)+ is at most |B|(|B| - 1) pqM/2. With max|D| and |B| of step 2, that
     remainder is at most η L (2L - 1) pqC.
   - The sum of the changes itself: for every i in B it is D_i times the sum over S with i, without
     r, of (f_S - A), whose magnitude is at most M_i (u_i + pC). If D_i != 0, then some weight is
     above 0, so u_i < T + s + 2d (T + s + d if L' = L). It is therefore at most
     2ηL q (T + s + 2d + pC).
4. Over sets S with r, |Ã - Ã'| is at most (M_r/M)|A - A'| + Y + Y' with
   Y = (1/M)|sum of w_S (f_S - A)|. Here 0 <= w_r - w_S, and w_r - w_S > 0 only if S holds one of at
   most L other bad indices. So Y <= q w_r u_r + L p q C. And w_r u_r is at most the maximum over
   0 <= w <= 1 of w (T + (1 - w) s), which is T if s <= T, else (T + s)²/(4s). This is `_peak`. It
   increases with T, and T' <= T + d.

Together |Ã - Ã'| is at most q times

    bound(L) = qC + peak(T) + peak(T + d) + 2LpC + LqC + 2ηL (T + s + 2d + pC) + ηL(2L - 1) pC.

The bound increases in L, and |Ã - Ã'| is never more than C itself. The smooth bound is the largest
discounted bound of a later level, the maximum over j of e^{-βj} bound(L + j). It is computed from
the last level down, and rounded up so that both conditions of smoothness hold exactly.

For L = 0, which a well chosen ξ makes likely, it is q (2ξ + d + qC). The global sensitivity is qC.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, appendix A.4.1, Lemmas A.10-A.16. The test
`tests/umpc_papers/central/test_smooth.py` tries all neighbours of small tables.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, lcm
from typing import TypeVar

import numpy as np
from flint import ctx

from umpc.dp.events import PRECISION, above, ball, is_exact
from umpc.errors import StudyError
from umpc.mpc.arrays import Floats

Number = TypeVar("Number", Fraction, Floats)
"""ExactKind numbers for the bound itself, arrays of floats for the choice of its parameters."""

ROUNDED = 1 << 60
"""Discounted values are rounded up to multiples of bound(0)/2^60, which are short fractions."""
MOST_BETA = 64
"""A greater β counts as this one, because e^-64 >= e^-β; and it is a short fraction."""
FADED = 80
"""A bound counts until it is discounted to e^-80, which is less than 2^-60."""


def local_bound(
    level: Number, c: Number, concentration: Number, slope: Number, q: Number, p: Number
) -> Number:
    """min(C, q bound(L)), for fractions or for arrays that broadcast.

    Args:
        level: L.
        c: C.
        concentration: ξ.
        slope: η.
        q, p: as in the module's docstring.
    """
    d = (q + p) * c
    near = concentration + d * level
    fade = d / slope
    peaks = _peak(near, fade) + _peak(near + d, fade)
    return _least(c, _with_peaks(peaks, level, c, concentration, slope, q, p))


def _with_peaks(
    peaks: Number,
    level: Number,
    c: Number,
    concentration: Number,
    slope: Number,
    q: Number,
    p: Number,
) -> Number:
    """Return q bound(L), of which peak(T) + peak(T + d) is given."""
    d = (q + p) * c
    near = concentration + d * level
    fade = d / slope
    # The terms of bound(L), in the order of the formula.
    change = q * c + peaks + level * (2 * p + q) * c
    reweighted = 2 * slope * level * (near + fade + 2 * d + p * c)
    remainder = slope * level * (2 * level - 1) * p * c
    return q * (change + (reweighted + remainder))


def _least(one: Number, other: Number) -> Number:
    """The smaller number, element by element for arrays."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.minimum(one, other)
    return min(one, other)


def _peak(near: Number, fade: Number) -> Number:
    """The maximum over 0 <= w <= 1 of w (near + (1 - w) fade)."""
    inside = (near + fade) ** 2 / (4 * fade)
    if isinstance(near, np.ndarray) or isinstance(fade, np.ndarray):
        return np.where(fade <= near, near, inside)
    return near if fade <= near else inside


@dataclass(frozen=True)
class LocalBound:
    """The bound for one family and one choice of ξ and η. All arguments are exact and public.

    Args:
        width: C > 0.
        concentration: ξ >= 0, in the unit of C.
        slope: η > 0.
        share: q.
        together: p.

    Raises:
        StudyError: an argument is not exact or out of its range.
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
                "a bound of the sensitivity needs a range and a slope above 0, "
                "and a concentration of 0 or more"
            )

    @property
    def step(self) -> Fraction:
        """d: the largest change of a deviation u_i."""
        return (self.share + self.together) * self.width

    @property
    def fade(self) -> Fraction:
        """s: the distance over which a weight falls from 1 to 0."""
        return self.step / self.slope

    def threshold(self, level: int) -> Fraction:
        """T at a table with this L."""
        return self.concentration + self.step * level

    def at(self, level: int) -> Fraction:
        """The largest change of Ã at a table with this L."""
        return local_bound(
            Fraction(level), self.width, self.concentration, self.slope, self.share, self.together
        )

    def smooth(
        self, level: int, beta: Fraction, records: int, within: int | None = None
    ) -> Fraction:
        """S(x) of a table: at least `at(level)`, and at most e^β times a neighbour's.

        Args:
            level: L of the table.
            beta: β.
            records: n.
            within: K, how many levels away a bound still counts; None takes `reach(beta)`.
        """
        return _smooth(self, beta, records, level, reach(beta) if within is None else within)


@lru_cache(maxsize=64)
def _smooth(bound: LocalBound, beta: Fraction, records: int, level: int, within: int) -> Fraction:
    """S_j = step_j(step_{j+1}(... step_{j+K-1}(B))).

    Here step_i(v) = max(bound(i), min(v, ceil(r v))), where r >= e^{-β} is a fraction. K = `within`
    is public. B = bound(n) is at least bound(i) for all i, and step_i(v) = B from n on.

    S is smooth both ways, exactly. All steps increase in v and in i, and lead to at most B. S_j has
    one step more from B than step_j(S_{j+1}), so S_j >= step_j(S_{j+1}). Hence S_j >= r S_{j+1} or
    S_j >= S_{j+1}. And S_j <= S_{j+1}, step by step. Levels beyond `reach(β)` cannot count, because
    e^-80 B is less than bound(0)/2^60.
    """
    with ctx.workprec(PRECISION):
        ratio = above(ball(-min(beta, Fraction(MOST_BETA))).exp())
    whole = WholeBound.of(bound)
    # In units of 1/(under ROUNDED), where bound(0)/ROUNDED is whole, no step divides a fraction.
    found = ROUNDED * whole.at(records)
    grain = whole.at(0)
    # From this level on the bound is B, which most often is C.
    constant_from = bisect_left(range(records), whole.at(records), key=whole.at)
    last = min(constant_from, level + within)
    for number in range(last - 1, level - 1, -1):
        faded = -((-ratio.numerator * found) // (ratio.denominator * grain)) * grain
        found = max(ROUNDED * whole.at(number), min(found, faded))
    return Fraction(found, ROUNDED * whole.under)


@dataclass(frozen=True)
class WholeBound:
    """A local bound in whole numbers of 1/under, for many levels.

    It is a quadratic in L below `edge`, and another one above. At `edge` alone T is below s, and
    T + d is not.

    Args:
        below, above: (e, b, a) of e L² + b L + a.
        at_edge: the value at `edge`.
        most: C.
    """

    under: int
    edge: int
    below: tuple[int, ...]
    above: tuple[int, ...]
    at_edge: int
    most: int

    @classmethod
    def of(cls, bound: LocalBound) -> WholeBound:
        """The bound, with the least `under` that makes all its numbers whole."""
        fade = bound.fade
        edge = ceil((fade - bound.concentration) / bound.step) - 1
        parts = [
            _quadratic(bound, lambda near: (near + fade) ** 2 / (4 * fade)),
            _quadratic(bound, lambda near: near),
            (bound.at(edge) if edge >= 0 else Fraction(0), bound.width),
        ]
        under = lcm(*(number.denominator for part in parts for number in part))
        below, over, (at_edge, most) = (
            tuple(int(number * under) for number in part) for part in parts
        )
        return cls(under, edge, below, over, at_edge, most)

    def at(self, level: int) -> int:
        """The bound at this level, times `under`."""
        if level == self.edge:
            return self.at_edge
        e, b, a = self.below if level < self.edge else self.above
        return min(self.most, (e * level + b) * level + a)


def _quadratic(bound: LocalBound, peak: Callable[[Fraction], Fraction]) -> tuple[Fraction, ...]:
    """Return (e, b, a) of q bound(L) with this form of `_peak`, from its values at three levels."""
    numbers = (bound.width, bound.concentration, bound.slope, bound.share, bound.together)
    values = [
        _with_peaks(
            peak(bound.threshold(level)) + peak(bound.threshold(level + 1)),
            Fraction(level),
            *numbers,
        )
        for level in (0, 1, 2)
    ]
    e = (values[2] - 2 * values[1] + values[0]) / 2
    return e, values[1] - values[0] - e, values[0]


def reach(beta: Fraction | float) -> int:
    """The number of levels after which a bound is discounted to e^-80 and counts no more."""
    return 1 + int(FADED / min(beta, MOST_BETA))


def smooth_estimates(
    concentration: float, slopes: Floats, beta: float, records: int, q: float, p: float
) -> Floats:
    """S_0 for many slopes, in floating point and with C = 1: for the choice of public parameters.

    Args:
        concentration: ξ/C.
        slopes: (m,) float64, the candidates for η.
        beta: β.
        records: n.
        q, p: as in the module's docstring.

    Returns: (m,) float64.
    """
    levels = np.arange(min(records, reach(beta)) + 1, dtype=np.float64)
    xi, c, sets, pairs = (np.asarray(number) for number in (concentration, 1.0, q, p))
    bounds = local_bound(levels, c, xi, slopes[:, None], sets, pairs)
    largest: Floats = (np.exp(-beta * levels) * bounds).max(axis=1)
    return largest
