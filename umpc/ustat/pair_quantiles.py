"""Quantiles of values of pairs, from the shares of pairs between ascending thresholds.

A pair has a value v, such as the mean of its two records. The kernels are the cells

    [v < c_1],  [v < c_1] ⊕ [v < c_2],  …,  [v < c_(D−1)] ⊕ [v < c_D],  ¬[v < c_D]

of which exactly one is 1. With pairs that do not count, such as those of equal x, the last two are
[v < c_D] ⊕ [counts] and ¬[counts].

*Sensitivity.* One record is in at most δ_max edges. Replacing it moves each of them from one cell
to another at most, so Σ |change| <= 2·δ_max for all cells together, however many there are. With
discrete Laplace noise for ε/2 against δ_max in each cell, all cells together are ε-private: the
probabilities of outputs change by at most exp(Σ |change_i|·(ε/2)/δ_max). That needs nothing but
that the cells are disjoint. A node proves it from the kernels (`cuts_of`): the sets [v < c_i] are
nested because the c_i ascend, and a ⊕ b of nested sets is their difference.

*Quantile.* The cells' means add up to 1, which nobody needs to release. So the sum of all cells
less 1 is an error, and is taken from all of them in equal parts (least squares). The share of pairs
below a threshold is then a sum of cells with an error whose law is known, and the interval is

    low:  from the lowest threshold upwards, while "the quantile is below it" is contradicted,
    high: from the highest threshold downwards, while "the quantile is not below it" is.

Each end is wrong only if the first true statement of its row is contradicted, which is tested at
2.5 %. So no correction for the number of thresholds is needed. The ends are thresholds, or the ends
of all possible values. The estimate is interpolated inside its cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import pi, tan
from typing import Any

import numpy as np

from umpc.ustat import expression as ex
from umpc.ustat.error_law import ErrorLaw, Floats
from umpc.ustat.kernel import Kernel
from umpc.ustat.ranges import interval_of
from umpc.ustat.schema import FieldSchema

MEDIAN = 0.5
LEAST_COUNTED = 1e-12
"""The share of pairs that count is taken for at least so much, since noise may make it 0."""
USUAL = 31
"""The number of thresholds where a study names none."""
DIGITS = 3
"""The significant digits of slopes that are thresholds."""
Interval = tuple[float, float]


# --- kernels --------------------------------------------------------------------------------------


def cells(below: Callable[[Fraction], Any], cuts: Sequence[Fraction], counts: Any = None) -> Any:
    """The kernels of all cells. Args: below: c → [v < c]. counts: whether a pair counts, if any."""
    under = [below(cut) for cut in cuts]
    rest = (~under[-1],) if counts is None else (under[-1] ^ counts, ~counts)
    return (under[0], *(one ^ other for one, other in pairwise(under)), *rest)


@lru_cache(maxsize=64)
def cuts_of(kernels: tuple[ex.Expression, ...]) -> tuple[Fraction, ...]:
    """The thresholds of kernels that are disjoint cells; none where they are something else."""
    if len(kernels) < 2 or not isinstance(kernels[-1], ex.Not):
        return ()
    # the nested sets below the thresholds, as the cells name them
    under: list[ex.Expression] = [kernels[0]]
    for cell in kernels[1:-1]:
        if not isinstance(cell, ex.Xor) or cell.left != under[-1]:
            return ()
        under.append(cell.right)
    if kernels[-1].operand != under[-1]:
        return ()
    found = [_threshold(each) for each in under]
    if found[-1] is None and len(under) > 1 and _are_counted(under[-2], under[-1]):
        del found[-1]
    cuts = [each[1] for each in found if each is not None]
    if len(cuts) < len(found) or len({each[0] for each in found if each}) > 1:
        return ()
    return tuple(cuts) if all(one < other for one, other in pairwise(cuts)) else ()


def _threshold(below: ex.Expression) -> tuple[Any, Fraction] | None:
    """The compared part and c: of v < c, or of u < c·abs(w), which is nested in c as well."""
    if not isinstance(below, ex.Less):
        return None
    right = below.right
    if isinstance(right, ex.Constant):
        return below.left, right.value
    if not (isinstance(right, ex.Multiply) and isinstance(right.left, ex.Constant)):
        return None
    is_slope = isinstance(right.right, ex.Absolute)
    return ((below.left, right.right), right.left.value) if is_slope else None


def _are_counted(below: ex.Expression, counts: ex.Expression) -> bool:
    """Whether sign(w)·d < c·abs(w) holds for no pair with w = 0, which `counts` leaves out."""
    if not (isinstance(counts, ex.Not) and isinstance(counts.operand, ex.Equal)):
        return False
    if not (isinstance(below, ex.Less) and isinstance(below.right, ex.Multiply)):
        return False
    apart = ex.Subtract(counts.operand.left, counts.operand.right)
    left = below.left
    is_signed = isinstance(left, ex.Multiply) and left.left == ex.Sign(apart)
    return is_signed and below.right.right == ex.Absolute(apart)


def ends_of(kernels: Sequence[Kernel]) -> tuple[float, ...]:
    """The least possible value, the thresholds and the largest one; none for other kernels."""
    expressions = tuple(kernel.expression for kernel in kernels)
    cuts = cuts_of(expressions)
    if not cuts:
        return ()
    first = expressions[0]
    schema = kernels[0].schema
    assert isinstance(first, ex.Less)
    if isinstance(first.right, ex.Constant):
        values = interval_of(first.left, schema)
        low, high = values.low, values.high
    else:
        # a slope is at most the height of the bounds over one step
        (step,) = {schema[each.name].resolution for each in ex.fields_of(first.right)}
        high = interval_of(first.left, schema).magnitude / step
        low = -high
    return (float(low), *map(float, cuts), float(high))


def usual_thresholds(statistic: str, fields: Sequence[FieldSchema]) -> list[str]:
    """Thresholds from the fields' public bounds: in equal steps, or for slopes in equal angles.

    Fields of few values have fewer, since each is inside the possible values.
    """
    low, high = fields[0].lower_units, fields[0].upper_units
    parts = range(1, USUAL + 1)
    if statistic == "theil_sen":
        height = float(fields[1].upper - fields[1].lower)
        scale = height / float(fields[0].upper - fields[0].lower)
        most = height / float(fields[0].resolution)
        angles = (pi * (part / (USUAL + 1) - 0.5) for part in parts)
        slopes = dict.fromkeys(f"{scale * tan(each):.{DIGITS}g}" for each in angles)
        return [each for each in slopes if abs(float(each)) < most]
    if statistic == "hodges_lehmann_shift":
        low, high = low - high, high - low
    steps = dict.fromkeys(
        Fraction(low + round(part * (high - low) / (USUAL + 1))) for part in parts
    )
    # two values have a mean between them
    found = [step for step in steps if low < step < high] or [Fraction(low + high, 2)]
    return [str(step * fields[0].resolution) for step in found]


# --- quantiles ------------------------------------------------------------------------------------


def contrast(sums: int, cuts: int, below: int, share: float) -> tuple[Floats, float]:
    """Weights and a constant: Σ weight·mean − constant is P(v < c) − share·P(counts).

    Args: sums, cuts: how many there are. below: the number of thresholds up to c, c included.
    """
    wanted = np.zeros(sums)
    wanted[: cuts + 1] -= share
    wanted[:below] += 1
    # the cells add up to 1: their least squares
    middle = float(wanted.mean())
    return wanted - middle, -middle


def curve_of(means: Sequence[float], cuts: int) -> Floats:
    """(cuts + 2,) the share of counted pairs below each threshold and both ends, ascending."""
    found = np.array(means) - (sum(means) - 1) / len(means)
    counted = max(float(found[: cuts + 1].sum()), LEAST_COUNTED)
    raw = np.cumsum(found[:cuts]) / counted
    # the mean of the least ascending curve above and the largest below
    above, under = np.maximum.accumulate(raw), np.minimum.accumulate(raw[::-1])[::-1]
    return np.concatenate([[0.0], np.clip((above + under) / 2, 0, 1), [1.0]])


def quantile_of(curve: Floats, ends: Sequence[float], share: float) -> float:
    """The value below which a share of pairs lies, interpolated. Args: ends: cuts and both ends."""
    place = int(np.clip(np.searchsorted(curve, share, side="left"), 1, len(curve) - 1))
    low, high = float(curve[place - 1]), float(curve[place])
    part = (share - low) / (high - low) if high > low else 0.5
    return ends[place - 1] + part * (ends[place] - ends[place - 1])


def spread_of(curve: Floats, ends: Sequence[float], error: float) -> float:
    """The standard deviation of the median, from that of the share below it."""
    low, high = (quantile_of(curve, ends, MEDIAN + side * error) for side in (-1, 1))
    return (high - low) / 2


def quantile_interval(
    law: Callable[[Sequence[float], float], ErrorLaw],
    means: Sequence[float],
    ends: Sequence[float],
    share: float,
    tail: float,
) -> Interval:
    """The thresholds between which the quantile lies, but for `tail` on each side.

    Args: law: weights and a constant → the law of the error, if the combination is 0.
    """
    cuts = len(ends) - 2

    def beyond(below: int) -> int:
        """-1 or 1 where the share below a threshold is contradicted to be the one looked for."""
        weights, constant = contrast(len(means), cuts, below, share)
        low, high = law(list(weights), constant).central(tail)
        seen = float(weights @ np.array(means)) - constant
        return -1 if seen < low else int(seen > high)

    first = 0
    while first < cuts and beyond(first + 1) < 0:
        first += 1
    last = cuts + 1
    while last > first + 1 and beyond(last - 1) > 0:
        last -= 1
    return ends[first], ends[last]


def median_spread(
    means: Sequence[float], ends: Sequence[float], error: Callable[[Sequence[float], float], float]
) -> float:
    """The standard deviation of the median, from that of the share below the nearest threshold.

    Args: error: weights and a constant → the standard deviation of this combination of the means.
    """
    cuts = len(ends) - 2
    curve = curve_of(means, cuts)
    nearest = int(np.argmin(np.abs(curve[1:-1] - MEDIAN))) + 1
    # the share is of the pairs that count
    counted = max(float(sum(means[: cuts + 1])), LEAST_COUNTED)
    weights, constant = contrast(len(means), cuts, nearest, MEDIAN)
    share = error(list(weights), constant) / counted
    return spread_of(curve, ends, share)
