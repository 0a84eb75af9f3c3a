"""The library: each statistic a few lines of kernel, with its citation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from umpc.errors import KernelError
from umpc.ustat.expression import Expression
from umpc.ustat.tracing import sign, trace


@dataclass(frozen=True)
class Statistic:
    """A named U-statistic: `build(*columns)` gives its kernel over the columns of a table."""

    name: str
    title: str
    arguments: tuple[str, ...]
    citation: str
    build: Callable[..., Callable[..., Any]]

    def expression(self, columns: Sequence[str]) -> Expression:
        """The kernel's expression over these columns."""
        if len(columns) != len(self.arguments):
            raise KernelError(
                f"{self.name} takes {len(self.arguments)} field(s) ({', '.join(self.arguments)}), "
                f"got {len(columns)}: {', '.join(columns)}"
            )
        return trace(self.build(*columns))


def _kendall_tau(x: str, y: str) -> Callable[..., Any]:
    return lambda a, b: sign(a[x] - b[x]) * sign(a[y] - b[y])


def _gini_mean_difference(x: str) -> Callable[..., Any]:
    return lambda a, b: abs(a[x] - b[x])


def _variance(x: str) -> Callable[..., Any]:
    return lambda a, b: (a[x] - b[x]) ** 2 / 2


def _covariance(x: str, y: str) -> Callable[..., Any]:
    return lambda a, b: (a[x] - b[x]) * (a[y] - b[y]) / 2


def _duplicate_pair_ratio(x: str) -> Callable[..., Any]:
    return lambda a, b: a[x] == b[x]


def _rand_index(x: str, y: str) -> Callable[..., Any]:
    def kernel(a: Any, b: Any) -> Any:
        together, also = a[x] == b[x], a[y] == b[y]
        return (together & also) | (~together & ~also)

    return kernel


def _wilcoxon_signed_rank(x: str) -> Callable[..., Any]:
    return lambda a, b: (sign(a[x] + b[x]) + 1) / 2


LIBRARY = {
    statistic.name: statistic
    for statistic in (
        Statistic(
            "kendall_tau",
            "Kendall's tau-a",
            ("x", "y"),
            "Kendall 1938; Sinh & Ramon 2025, A.5.1, with ties counted as 0",
            _kendall_tau,
        ),
        Statistic(
            "gini_mean_difference",
            "Gini mean difference",
            ("x",),
            "Gini 1912; Sinh & Ramon 2025, A.5.2",
            _gini_mean_difference,
        ),
        Statistic(
            "variance",
            "Variance, unbiased",
            ("x",),
            "Hoeffding 1948, as the mean of (x − x')²/2",
            _variance,
        ),
        Statistic(
            "covariance",
            "Covariance, unbiased",
            ("x", "y"),
            "Hoeffding 1948, as the mean of (x − x')(y − y')/2",
            _covariance,
        ),
        Statistic(
            "duplicate_pair_ratio",
            "Ratio of pairs with equal values",
            ("x",),
            "Sinh & Ramon 2025, section 6; minus its logarithm is the Rényi entropy of order 2",
            _duplicate_pair_ratio,
        ),
        Statistic(
            "rand_index",
            "Rand index of two clusterings",
            ("x", "y"),
            "Rand 1971: pairs on which both clusterings agree (not Sinh & Ramon 2025, A.5.4, see docs/papers.md)",
            _rand_index,
        ),
        Statistic(
            "wilcoxon_signed_rank",
            "Wilcoxon's signed rank, pair form",
            ("x",),
            "Tukey 1949: pairs whose sum is positive, zero counted half",
            _wilcoxon_signed_rank,
        ),
    )
}


def find_statistic(name: str) -> Statistic:
    """The library's statistic of that name. Raises: KernelError listing the names."""
    if name not in LIBRARY:
        raise KernelError(f"there is no statistic {name!r}; the library has {', '.join(sorted(LIBRARY))}")
    return LIBRARY[name]
