"""The library of statistics: for each a few lines of kernel, and its citation.

| file | what it is |
|---|---|
| `statistic.py` | the definition of a statistic: arguments, parameters, sampling, estimator |
| `spread.py` | one column: mean, variance, Gini, signed rank, collisions; the Rand index |
| `dependence.py` | two columns: covariance, Kendall, Goodman–Kruskal, Spearman, Bergsma–Dassios |
| `classes.py` | classes: AUC, Mann–Whitney, volume under the surface, losses over pairs |

`umpc/ustat/estimators.py` computes ratios, entropies and totals from the released means.
"""

from __future__ import annotations

from umpc.errors import KernelError
from umpc.ustat.statistics.classes import CLASSES
from umpc.ustat.statistics.dependence import DEPENDENCE
from umpc.ustat.statistics.spread import SPREAD
from umpc.ustat.statistics.statistic import Parameter, Statistic

__all__ = ["LIBRARY", "Parameter", "Statistic", "find_statistic"]

LIBRARY = {statistic.name: statistic for statistic in (*SPREAD, *DEPENDENCE, *CLASSES)}


def find_statistic(name: str) -> Statistic:
    """The library's statistic of that name. Raises: KernelError listing the names."""
    if name not in LIBRARY:
        raise KernelError(
            f"there is no statistic {name!r}; the library has {', '.join(sorted(LIBRARY))}"
        )
    return LIBRARY[name]
