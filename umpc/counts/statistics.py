"""The statistics that are computed from counts: their names, roles and sources.

A table answers every question whose roles its fields can play. By default the roles are the axes in
their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from umpc.counts.answers import RECORDS, CountsAnswer
from umpc.counts.contingency import contingency
from umpc.counts.curves import QUARTILES, ecdf, histogram, qq, quantiles, roc
from umpc.counts.survival import GEHAN, LOGRANK, compare_groups, kaplan_meier, nelson_aalen
from umpc.counts.table import CountTable
from umpc.errors import StudyError
from umpc.study.report import CountsReport


@dataclass(frozen=True)
class CountedStatistic:
    """A statistic that is computed from a table of counts.

    roles, optional: the fields, in the order of the table's axes. two_cells: roles of exactly two
    cells: the first one is 0, the second one 1. numeric: roles that need numbers, not categories.
    headline: the number that a report shows as its estimate; empty for none.
    """

    title: str
    roles: tuple[str, ...]
    optional: tuple[str, ...] = ()
    two_cells: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    headline: str = ""


SURVIVAL = ("time", "event")
NELSON_AALEN = "nelson_aalen"
SPECIFICITY = 0.9
DEPENDENT = (
    "a person may have several records, which depend on each other: intervals for the population "
    "and p-values take all records as independent, and do not hold here"
)
"""A note of every answer where a person has more than one record."""
COUNTED = {
    "counts": CountedStatistic("table of counts", ("x",), ("y", "z")),
    "histogram": CountedStatistic("histogram", ("x",)),
    "ecdf": CountedStatistic(
        "distribution function",
        ("x",),
        numeric=("x",),
        headline="median",
    ),
    "quantiles": CountedStatistic(
        "median and quartiles",
        ("x",),
        numeric=("x",),
        headline="median",
    ),
    "contingency": CountedStatistic(
        "contingency table",
        ("x", "y"),
        headline="Cramér's V",
    ),
    "roc": CountedStatistic(
        "ROC curve",
        ("score", "label"),
        two_cells=("label",),
        numeric=("score",),
        headline="area under the curve",
    ),
    "kaplan_meier": CountedStatistic(
        "Kaplan–Meier curve",
        SURVIVAL,
        ("group",),
        ("event",),
        ("time",),
        "median",
    ),
    LOGRANK: CountedStatistic(
        "log-rank test",
        (*SURVIVAL, "group"),
        two_cells=("event",),
        numeric=("time",),
        headline="p-value",
    ),
    GEHAN: CountedStatistic(
        "Gehan's test",
        (*SURVIVAL, "group"),
        two_cells=("event",),
        numeric=("time",),
        headline="p-value",
    ),
    "qq": CountedStatistic(
        "quantiles of two groups",
        ("x", "group"),
        two_cells=("group",),
        numeric=("x",),
    ),
}
"""Name in a study → the statistic. A column's cells are bins or categories."""


@dataclass(frozen=True)
class Asker:
    """Questions to one released table. Fields are named, or taken in the order of the axes."""

    table: CountTable

    def place(self, role: str, field: str | None, default: int) -> int:
        """The axis of a role. Raises: StudyError where the table has no such field."""
        names = [axis.field for axis in self.table.report.axes]
        if field is None and default < len(names):
            return default
        if field in names:
            return names.index(field)
        wanted = f"the field {field!r}" if field else "one more field"
        raise StudyError(
            f"the {role} needs {wanted}, and the released table has {', '.join(map(repr, names))}: "
            "run a study of counts over this field, too"
        )

    def group(self, field: str | None) -> int | None:
        """The axis of an optional group."""
        is_there = field is not None or len(self.table.report.axes) > 2
        return self.place("group", field, 2) if is_there else None

    def ask(
        self, kind: str, level: float = 0.95, at_share: float | None = None, **fields: str | None
    ) -> CountsAnswer:
        """A curve, a table or a test.

        Args: kind: a name of COUNTED, or "nelson_aalen". at_share: the specificity of a point on a
            ROC curve, or the share of a quantile; None for the usual ones. fields: role → the field
            that plays it.
        Raises: StudyError where the table has no such field, or the field cannot play the role.
        """
        answer = self._answer(kind, level, at_share, fields)
        if self.table.report.people == 1:
            return answer
        return replace(answer, notes=[*answer.notes, DEPENDENT])

    def _answer(
        self, kind: str, level: float, at_share: float | None, fields: Mapping[str, str | None]
    ) -> CountsAnswer:
        table = self.table
        counted = COUNTED["kaplan_meier" if kind == NELSON_AALEN else kind]
        at = [self.place(role, fields.get(role), place) for place, role in enumerate(counted.roles)]
        one, other = at[0], at[-1]
        if kind == "counts":
            return histogram(table, level, *range(len(table.shape)))
        if kind == "histogram":
            return histogram(table, level, one)
        if kind == "ecdf":
            return ecdf(table, one, level)
        if kind == "quantiles":
            return quantiles(table, one, level, QUARTILES if at_share is None else (at_share,))
        if kind == "contingency":
            return contingency(table, one, other, level)
        if kind == "qq":
            return qq(table, one, other, level)
        if kind == "roc":
            return roc(table, one, other, level, SPECIFICITY if at_share is None else at_share)
        if kind in (LOGRANK, GEHAN):
            return compare_groups(table, kind, one, at[1], other)
        group = self.group(fields.get("group"))
        if kind == NELSON_AALEN:
            return nelson_aalen(table, one, at[1], group, level)
        return kaplan_meier(table, one, at[1], group, level)


def answers_of(report: CountsReport, records: int, level: float = 0.95) -> list[CountsAnswer]:
    """The answers that a report shows: the statistic asked for, and the test of its groups.

    Raises: StudyError for a damaged table, or one that the statistic does not fit.
    """
    asker = Asker(CountTable.of(report, records))
    found = [asker.ask(report.statistic, level)]
    if report.statistic == "kaplan_meier" and len(report.axes) > 2:
        found.append(asker.ask(LOGRANK))
    return found


def headline(
    report: CountsReport, records: int
) -> tuple[float, float | None, float | None, float | None] | None:
    """The estimate of a report: (value, low, high, noise_std), for these records.

    noise_std is a quarter of the interval's length, the deviation of a normal law with it.

    Returns: None where the statistic has no such number, where it has one for each group, or where
        the table leaves it open.
    """
    name = COUNTED[report.statistic].headline
    if not name:
        return None
    asker, kind = Asker(CountTable.of(report, records)), report.statistic
    # of a curve with quartiles its median alone
    is_median = kind in ("ecdf", "quantiles")
    answer = asker.ask("quantiles", at_share=0.5) if is_median else asker.ask(kind)
    number = next((each for each in answer.numbers if each.name == name), None)
    if number is None or number.value is None:
        return None
    low, high = number.intervals.get(RECORDS, (None, None))
    std = None if low is None or high is None else (high - low) / 4
    return number.value, low, high, std


def reach(report: CountsReport, records: int) -> tuple[float, float] | None:
    """How far the interval for these records reaches below and above the report's number.

    A curve or a table without such a number has half its interval, in the mean over its points.

    Returns: None where the statistic has neither, and where the table leaves the number open.
    """
    statistic = COUNTED[report.statistic]
    if report.statistic in (LOGRANK, GEHAN):
        return None  # a p-value has no interval
    if statistic.headline and len(report.axes) == len(statistic.roles):
        value, low, high, _ = headline(report, records) or (None,) * 4
        return None if value is None or low is None or high is None else (value - low, high - value)
    answer = Asker(CountTable.of(report, records)).ask(report.statistic)
    ends = [each.intervals[RECORDS] for each in answer.series if RECORDS in each.intervals]
    if not ends:
        return None
    wide = np.concatenate([np.subtract(each.high, each.low) for each in ends])
    return float(wide.mean()) / 2, float(wide.mean()) / 2
