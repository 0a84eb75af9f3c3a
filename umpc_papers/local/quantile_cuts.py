"""Cut points at the quantiles of noisy shares in a tree of nested halves.

Level l of the tree has the estimated shares of the records in 2^l parts of equal width. The
estimates of all levels are made consistent, and cut points divide the records evenly:

1. From the leaves up, a part's own estimate and the sum of its two halves are combined, each
   weighted by its inverse variance (Hay et al. 2010, "Boosting the accuracy of differentially
   private histograms", section 4.1). All levels have the same variance here.
2. From the top down, the halves of a part share its mass m: the lower one gets (m + l - r)/2 for
   estimates l and r, between 0 and m. No mass is negative, and all of it is 1. A half below
   `SIGNIFICANT` standard deviations counts as empty, as noise would otherwise fill the wide empty
   parts of a range. If both halves are so small, nothing is known of them, and they are equal.
3. A cut point divides the rest above the former one by the number of bins that are left. So a value
   that many records share takes one bin, not several. Inside a leaf records count as uniform.

All operations are elementwise or in a fixed order, so equal shares give equal cut points on all
machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from umpc.mpc.arrays import Floats

SIGNIFICANT = 2.0
"""Standard deviations from which on the mass of half of a part counts as not empty."""
EVEN = 2.0**-30
"""The share of λ that does not follow the estimated masses."""


def consistent(levels: Sequence[Floats], variance: float = 0.0) -> Floats:
    """The mass of each leaf: (2^L,) float64, at least 0, of sum 1.

    Args:
        levels: the estimated shares of levels 1 to L, (2^l,) float64 each.
        variance: of each of them; 0 without noise.
    """
    combined = [levels[-1]]
    variances = [variance]
    weight = 1.0
    # Step 1: up. `weight` is the variance of a combined share, divided by that of a single one.
    for own in reversed(levels[:-1]):
        below = combined[-1][0::2] + combined[-1][1::2]
        of_both = 2 * weight
        combined.append((own * of_both + below) / (of_both + 1))
        weight = of_both / (of_both + 1)
        variances.append(variance * weight)
    # Step 2: down.
    mass = np.ones(1)
    for shares, spread in zip(reversed(combined), reversed(variances), strict=True):
        lower = _lower_half(mass, shares, SIGNIFICANT * sqrt(spread / 2))
        mass = np.stack([lower, mass - lower], axis=1).reshape(-1)
    return mass


def _lower_half(mass: Floats, shares: Floats, least: float) -> Floats:
    """The masses of lower halves. Args: mass: of both together. least: that counts as not empty."""
    lower = np.clip((mass + shares[0::2] - shares[1::2]) / 2, 0, mass)
    is_low = lower < least
    is_high = mass - lower < least
    lower = np.where(is_low & ~is_high, 0.0, lower)
    lower = np.where(is_high & ~is_low, mass, lower)
    halves: Floats = np.where(is_low & is_high, mass / 2, lower)
    return halves


def quantile_cuts(mass: Floats, bins: int, width: int, values: int) -> tuple[int, ...]:
    """The cut points between bins of about equal mass, ascending in 1 .. values - 1.

    Args:
        mass: (leaves,) of sum 1. bins: at least 1, at most `values`.
        width: of a leaf, in values. values: how many there are; the last leaves may have none.
    """
    below = np.concatenate([np.zeros(1), np.cumsum(mass)])
    cuts: list[int] = []
    for left in range(bins, 1, -1):
        done = _mass_below(below, cuts[-1] / width) if cuts else 0.0
        # Step 3: an even part of the rest.
        place = _quantile(below, done + (below[-1] - done) / left) * width
        least = cuts[-1] + 1 if cuts else 1
        cuts.append(min(max(least, round(place)), values - left + 1))
    return tuple(cuts)


def measure_of_values(mass: Floats, width: int, values: int) -> Floats:
    """λ of each value: (values,) float64, above 0, for the average kernel between bins.

    A leaf's mass is even over its values. A share of `EVEN` is even over all, so no bin is empty.
    """
    return (1 - EVEN) * np.repeat(mass / width, width)[:values] + EVEN / values


def _quantile(below: Floats, share: float) -> float:
    """The place, in leaves, below which this share of the mass lies."""
    leaf = min(max(int(np.searchsorted(below, share)) - 1, 0), len(below) - 2)
    inside = float(below[leaf + 1] - below[leaf])
    return leaf + (float(share - below[leaf]) / inside if inside > 0 else 1.0)


def _mass_below(below: Floats, place: float) -> float:
    """The mass below a place, in leaves."""
    leaf = min(int(place), len(below) - 2)
    return float(below[leaf] + (below[leaf + 1] - below[leaf]) * (place - leaf))
