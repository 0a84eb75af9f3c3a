"""Several statistics of a study file, and their strata: the study's kernels and parts.

    [[statistics]]
    statistic = "kendall_tau"
    columns = ["age", "balance"]
    [[statistics]]
    statistic = "gini_mean_difference"
    columns = ["balance"]

With `strata = "sex"` each statistic is inside each category of the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from umpc.errors import StudyError
from umpc.study.several import StudyPart
from umpc.ustat.estimators import VECTOR
from umpc.ustat.expression import Expression
from umpc.ustat.statistics import find_statistic
from umpc.ustat.strata import restricted
from umpc.ustat.text import to_text


class StatisticEntry(msgspec.Struct, forbid_unknown_fields=True):
    """One of several statistics, as study.toml has it."""

    statistic: str
    columns: list[str]
    parameters: dict[str, int | str | list[int | str]] = {}


@dataclass(frozen=True)
class NamedStatistic:
    """A statistic with its kernels. columns: the fields that it takes, for its name."""

    statistic: str
    columns: tuple[str, ...]
    expressions: tuple[Expression, ...]
    degree: int
    estimator: str
    sampling: str

    @property
    def name(self) -> str:
        """Its name among several statistics."""
        return f"{self.statistic}({', '.join(self.columns)})" if self.columns else self.statistic


def read_statistic(entry: StatisticEntry) -> NamedStatistic:
    """A statistic of the library over its columns. Raises: KernelError."""
    found = find_statistic(entry.statistic)
    return NamedStatistic(
        found.name,
        tuple(entry.columns),
        found.expressions(entry.columns, entry.parameters),
        found.degree,
        found.estimator,
        found.sampling,
    )


def parts_of(
    statistics: Sequence[NamedStatistic], strata: str, categories: Sequence[str]
) -> dict[str, Any]:
    """The keys of a study that reports several values: statistic after statistic, all strata each.

    Args: strata: the field; empty for none. categories: its own.
    Raises: StudyError where the statistics are over different sets, or one came twice; KernelError.
    """
    shapes = {(each.degree, each.sampling) for each in statistics}
    if len(shapes) > 1:
        told = ", ".join(
            f"{each.name} ({each.degree} records, {each.sampling})" for each in statistics
        )
        raise StudyError(
            f"all statistics of a study are over the same sets, and these are not: {told}; ask for "
            f"them in several studies"
        )
    ((degree, sampling),) = shapes
    kernels: list[str] = []
    parts: list[StudyPart] = []
    for each in statistics:
        for number, stratum in enumerate(categories if strata else ("",)):
            found, estimator = each.expressions, each.estimator
            if strata:
                found, estimator = restricted(found, estimator, strata, number, degree)
            kernels += map(to_text, found)
            parts.append(StudyPart(each.name, each.statistic, estimator, len(found), stratum))
    names = ", ".join(dict.fromkeys(each.name for each in statistics))
    return {
        "statistic": f"{names} by {strata}" if strata else names,
        "kernels": tuple(kernels),
        "degree": degree,
        "estimator": VECTOR,
        "sampling": sampling,
        "parts": tuple(parts),
        **({"strata": strata} if strata else {}),
    }


def check_keys(values: Mapping[str, Any]) -> None:
    """Raises: StudyError where keys of one statistic stand beside several."""
    for key in ("statistic", "kernel", "columns", "parameters", "estimator"):
        if values.get(key):
            raise StudyError(
                f"`statistics` lists statistics of the library, each with its own columns and "
                f"parameters, and `{key}` came beside it. Remove `{key}`"
            )
    if not values["statistics"]:
        raise StudyError("`statistics` lists at least one statistic, got none. Add one")
