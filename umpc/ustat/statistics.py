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
    )
}


def find_statistic(name: str) -> Statistic:
    """The library's statistic of that name. Raises: KernelError listing the names."""
    if name not in LIBRARY:
        raise KernelError(f"there is no statistic {name!r}; the library has {', '.join(sorted(LIBRARY))}")
    return LIBRARY[name]
