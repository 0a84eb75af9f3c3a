"""The interval that a plan promises, as a mean over tables with noise.

An interval between a few bins or thresholds has one of a few lengths. Which one depends on the
noise that a run happens to have, so one table without noise does not tell their mean. It costs 24
intervals, or up to 400 where they differ much. `python -m bench.plan_widths` compares it with
studies, as does `tests/api/test_pair_medians.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

FEWEST_NOISY, MOST_NOISY = 24, 400
"""Tables with noise over which a plan takes the mean of intervals, at least and at most."""
CLOSE = 0.04
"""They are enough when the mean's standard error is at most this part of the mean."""
Reach = tuple[float, float]
"""How far an interval reaches below its estimate, and above it."""


def mean_reach(reach: Callable[[], Reach | None]) -> Reach | None:
    """The mean over tables with noise that have an interval; None where none has one.

    Args: reach: of another table with noise at each call; None where it has no interval.
    """
    ends = []
    for drawn in range(1, MOST_NOISY + 1):
        if (found := reach()) is not None:
            ends.append(found)
        if drawn < FEWEST_NOISY:
            continue
        if not ends:
            return None
        widths = np.sum(ends, axis=1)
        if np.std(widths) <= CLOSE * np.mean(widths) * sqrt(len(widths)):
            break
    low, high = np.mean(ends, axis=0)
    return float(low), float(high)
