"""Cut points at the quantiles of noisy shares in a tree of nested halves.

Level l of the tree has the estimated shares of the records in 2^l parts of equal width. The
estimates of all levels are made consistent, and cut points divide the records evenly:

1. From the leaves up, a part's own estimate and the sum of its two halves are combined, each
   weighted by its inverse variance (Hay et al. 2010, "Boosting the accuracy of differentially
   private histograms", section 4.1). All levels have the same variance here.
2. From the top down, the halves of a part share its mass m: the lower one gets (m + l - r)/2 for
   estimates l and r, between 0 and m. No mass is negative, and all of it is 1.
3. A cut point divides the rest above the former one by the number of bins that are left. So a value
   that many records share takes one bin, not several. Inside a leaf records count as uniform.

All operations are elementwise or in a fixed order, so equal shares give equal cut points on all
machines.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.protocols.arrays import Floats


def consistent(levels: Sequence[Floats]) -> Floats:
    """The mass of each leaf: (2^L,) float64, at least 0, of sum 1.

    Args: levels: the estimated shares of levels 1 to L, (2^l,) float64 each.
    """
    combined = [levels[-1]]
    variance = 1.0
    # Step 1: up.
    for own in reversed(levels[:-1]):
        below = combined[-1][0::2] + combined[-1][1::2]
        of_both = 2 * variance
        combined.append((own * of_both + below) / (of_both + 1))
        variance = of_both / (of_both + 1)
    # Step 2: down.
    mass = np.ones(1)
    for shares in reversed(combined):
        lower = np.clip((mass + shares[0::2] - shares[1::2]) / 2, 0, mass)
        mass = np.stack([lower, mass - lower], axis=1).reshape(-1)
    return mass


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


def _quantile(below: Floats, share: float) -> float:
    """The place, in leaves, below which this share of the mass lies."""
    leaf = min(max(int(np.searchsorted(below, share)) - 1, 0), len(below) - 2)
    inside = float(below[leaf + 1] - below[leaf])
    return leaf + (float(share - below[leaf]) / inside if inside > 0 else 1.0)


def _mass_below(below: Floats, place: float) -> float:
    """The mass below a place, in leaves."""
    leaf = min(int(place), len(below) - 2)
    return float(below[leaf] + (below[leaf + 1] - below[leaf]) * (place - leaf))
