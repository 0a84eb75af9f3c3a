"""The library of statistics: for each a few lines of kernel, and its citation.

| file | what it is |
|---|---|
| `statistic.py` | the definition of a statistic: arguments, parameters, sampling, estimator |
| `spread.py` | one column: mean, variance, Gini, symmetry, collisions; the Rand index |
| `dependence.py` | two columns: covariance, Kendall, Somers, phi, Spearman, Bergsma–Dassios |
| `classes.py` | classes: AUC, Mann–Whitney, losses; inside strata; two scores compared |
| `distances.py` | distances: two samples, distance covariance, scatter; triangles of graphs |

`umpc/ustat/estimators.py` computes ratios, entropies and totals from the released means.
"""

from __future__ import annotations

from difflib import get_close_matches

from umpc.errors import KernelError
from umpc.ustat.statistics.classes import CLASSES, COMPARISONS, STRATA
from umpc.ustat.statistics.dependence import DEPENDENCE
from umpc.ustat.statistics.distances import DISTANCES, GRAPHS
from umpc.ustat.statistics.spread import SPREAD
from umpc.ustat.statistics.statistic import Parameter, Statistic

__all__ = ["LIBRARY", "Parameter", "Statistic", "find_statistic"]

_ALL = (*SPREAD, *DEPENDENCE, *CLASSES, *STRATA, *COMPARISONS, *DISTANCES, *GRAPHS)
LIBRARY = {statistic.name: statistic for statistic in _ALL}


def find_statistic(name: str) -> Statistic:
    """The library's statistic of that name. Raises: KernelError listing the names."""
    if name not in LIBRARY:
        close = get_close_matches(name, LIBRARY, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ";"
        raise KernelError(
            f"there is no statistic {name!r}{hint} the library has {', '.join(sorted(LIBRARY))}"
        )
    return LIBRARY[name]
