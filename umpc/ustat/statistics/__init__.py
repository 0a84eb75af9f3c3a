"""The library: each statistic a few lines of kernel, with its citation.

| file | what it is |
|---|---|
| `statistic.py` | what is said of a statistic: arguments, parameters, degree, sampling, estimator |
| `spread.py` | of one column, and agreement of partitions: mean, variance, Gini, signed rank, skewness, collisions |
| `dependence.py` | of two columns: covariance, Kendall, Goodman–Kruskal, Spearman, Bergsma–Dassios |
| `classes.py` | of classes: AUC, Mann–Whitney, volume under the surface, losses over pairs |

What is computed from the released means (a ratio, an entropy, a total) is in `estimators.py`.
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
