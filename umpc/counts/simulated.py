"""A test with noise: its p-value is the share of simulated studies with a statistic as large.

The simulated studies have the hypothesis, n records and the released noise (Gaboardi, Lim, Rogers &
Vadhan 2016, algorithm 3). Their margins are estimates. So a test is valid only if its statistic has
nearly one law for all margins that the released table leaves open. This is why each statistic is
divided by a variance that has the noise in it, and why there is no p-value where the noise leaves
every margin open.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from umpc.counts.answers import Number
from umpc.counts.table import RUNS, CountTable, Floats

LEAST_SIGNAL = 4.0
"""Deviations of the noise of half of the cells that n is at least. With fewer, two deviations are
half of the records: all that is possible for a half. No difference of groups would then show."""
Statistic = Callable[[Floats, float], Floats]
"""Tables (runs, *shape) and the variance of a count's noise → (runs,) float64."""


def simulated_test(
    table: CountTable,
    purpose: str,
    axes: tuple[int, ...],
    null: Floats,
    statistic: Statistic,
    is_hidden: bool = False,
) -> tuple[Number, Number]:
    """The statistic and its p-value.

    Args: purpose: of the draws. axes: of the tested table. null: its expected counts under the
        hypothesis. is_hidden: whether the noise is known to hide a part of the table.
    """
    counts = table.onto(*axes)
    variance = float(np.mean(counts.errors**2))
    value = float(statistic(counts.value[None], variance)[0])
    cells = counts.errors.reshape(RUNS, -1)
    noise = float(np.std(cells[:, : cells.shape[1] // 2].sum(axis=1)))
    size, told = None, "the noise is too large for so few records, in all or in a group"
    if LEAST_SIGNAL * noise <= table.records and not is_hidden:
        simulated = table.drawn(null, purpose) + table.fresh_errors(purpose, *axes)
        exceeding = int(np.sum(statistic(simulated, variance) >= value * (1 - 1e-12)))
        size, told = (1 + exceeding) / (RUNS + 1), f"with the noise, by {RUNS} simulated studies"
    return Number("chi-squared", value), Number("p-value", size, note=told)
