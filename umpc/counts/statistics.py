"""The statistics that are computed from counts: their names, roles and sources.

A table answers every question whose roles its fields can play. By default the roles are the axes in
their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from umpc.counts.answers import BAND, RECORDS, CountsAnswer, Number, Series
from umpc.counts.contingency import contingency
from umpc.counts.curves import ecdf, histogram, qq, quantiles, roc
from umpc.counts.survival import GEHAN, LOGRANK, compare_groups, kaplan_meier, nelson_aalen
from umpc.counts.table import CountTable, cells_of
from umpc.errors import StudyError
from umpc.study.report import CountedAxis, CountsReport


@dataclass(frozen=True)
class CountedStatistic:
    """A statistic that is computed from a table of counts.

    answer: takes a table, a level, an axis for each role, and `share` where somebody gave one.
    roles, optional: the fields, in the order of the table's axes. two_cells: roles of exactly two
    cells: the first one is 0, the second one 1. numeric: roles that need numbers, not categories.
    headline: the number that a report shows as its estimate; empty for none.
    """

    title: str
    answer: Callable[..., CountsAnswer]
    roles: tuple[str, ...]
    optional: tuple[str, ...] = ()
    two_cells: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    headline: str = ""

    @property
    def all_roles(self) -> tuple[str, ...]:
        return (*self.roles, *self.optional)

    @property
    def takes(self) -> str:
        """Its roles in words; those in brackets may be left out."""
        return ", ".join((*self.roles, *(f"[{role}]" for role in self.optional)))

    def check_count(self, columns: Sequence[str]) -> None:
        """Raises: StudyError for too few columns, or too many."""
        if not len(self.roles) <= len(columns) <= len(self.all_roles):
            raise StudyError(
                f"{self.title}: the columns {self.takes} were expected; got {', '.join(columns)}"
            )

    def check(self, axes: Sequence[CountedAxis]) -> None:
        """Raises: StudyError where a field does not fit its role. Args: axes: one for a role."""
        for role, axis in zip(self.all_roles, axes, strict=False):
            if role in self.numeric and axis.words:
                raise StudyError(
                    f"{self.title}: numbers were expected as {role}, and {axis.field!r} has "
                    f"categories; take another field, or the histogram of this one"
                )
            if role in self.two_cells and cells_of(axis) != 2:
                raise StudyError(
                    f"{self.title}: the {role} has two values, and {axis.field!r} has "
                    f"{cells_of(axis):,} cells; write categories = [NO, YES], one cut point, or "
                    f"the bounds 0 and 1 with whole = true"
                )

    def quoted(self, answer: CountsAnswer) -> list[Number]:
        """The numbers that a report shows: one, or one for each group; none without a headline."""
        name = self.headline
        return [each for each in answer.numbers if name and each.name.startswith(name)]


SURVIVAL = ("time", "event")
P_VALUE = "p-value"
DEPENDENT = (
    "a person may have several records, which depend on each other: there is no interval for the "
    "population and no p-value, because both need independent records"
)
"""A note of every answer where a person has more than one record."""
_LOGRANK = CountedStatistic(
    "log-rank test",
    lambda table, level, *axes: compare_groups(table, LOGRANK, *axes),
    (*SURVIVAL, "group"),
    two_cells=("event",),
    numeric=("time",),
    headline=P_VALUE,
)
_KAPLAN_MEIER = CountedStatistic(
    "Kaplan–Meier curve", kaplan_meier, SURVIVAL, ("group",), ("event",), ("time",), "median"
)
COUNTED = {
    "counts": CountedStatistic("table of counts", histogram, ("x",), ("y", "z")),
    "histogram": CountedStatistic("histogram", histogram, ("x",)),
    "ecdf": CountedStatistic(
        "distribution function", ecdf, ("x",), numeric=("x",), headline="median"
    ),
    "quantiles": CountedStatistic(
        "median and quartiles", quantiles, ("x",), numeric=("x",), headline="median"
    ),
    "contingency": CountedStatistic(
        "contingency table",
        lambda table, level, x, y: contingency(table, x, y, level),
        ("x", "y"),
        headline="Cramér's V",
    ),
    "roc": CountedStatistic(
        "ROC curve",
        roc,
        ("score", "label"),
        two_cells=("label",),
        numeric=("score",),
        headline="area under the curve",
    ),
    "kaplan_meier": _KAPLAN_MEIER,
    "nelson_aalen": replace(
        _KAPLAN_MEIER, title="Nelson–Aalen curve", answer=nelson_aalen, headline=""
    ),
    LOGRANK: _LOGRANK,
    GEHAN: replace(
        _LOGRANK,
        title="Gehan's test",
        answer=lambda table, level, *axes: compare_groups(table, GEHAN, *axes),
    ),
    "qq": CountedStatistic(
        "quantiles of two groups", qq, ("x", "group"), two_cells=("group",), numeric=("x",)
    ),
}
"""Name in a study → the statistic. A column's cells are bins or categories."""
ACROSS_BINS = ("ecdf", "quantiles", "kaplan_meier", "nelson_aalen")
"""Statistics whose intervals hold the value of the records themselves, also where bins are wide."""


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

    def ask(
        self, kind: str, level: float = 0.95, at_share: float | None = None, **fields: str | None
    ) -> CountsAnswer:
        """A curve, a table or a test.

        Args: kind: a name of COUNTED. at_share: the specificity of a point on a ROC curve, or the
            share of a quantile; None for the usual ones. fields: role → the field that plays it.
        Raises: StudyError where the table has no such field, or the field cannot play the role.
        """
        report, asked = self.table.report, COUNTED[kind]
        needed = max(len(asked.roles), len(report.axes))
        places = [
            self.place(role, fields.get(role), place)
            for place, role in enumerate(asked.all_roles)
            if place < needed or fields.get(role) is not None
        ]
        asked.check([report.axes[place] for place in places])
        given = {} if at_share is None else {"share": at_share}
        answer = asked.answer(self.table, level, *places, **given)
        if report.people == 1:
            return answer
        numbers = [each for each in answer.numbers if each.name != P_VALUE]
        return replace(
            answer,
            series=[_of_these_records(each) for each in answer.series],
            numbers=[_of_these_records(each) for each in numbers],
            notes=[*answer.notes, DEPENDENT],
        )


Shown = TypeVar("Shown", Series, Number)


def _of_these_records(shown: Shown) -> Shown:
    """A curve or a number without intervals for the population."""
    kept = {kind: ends for kind, ends in shown.intervals.items() if kind in (RECORDS, BAND)}
    return replace(shown, intervals=kept)


def answers_of(report: CountsReport, records: int, level: float = 0.95) -> list[CountsAnswer]:
    """The answers that a report shows: the statistic asked for, and of survival in groups both the
    curves and a test.

    Raises: StudyError for a damaged table, or one that the statistic does not fit.
    """
    asker = Asker(CountTable.of(report, records))
    found = [asker.ask(report.statistic, level)]
    if report.statistic == "kaplan_meier" and len(report.axes) > 2:
        found.append(asker.ask(LOGRANK))
    if report.statistic in (LOGRANK, GEHAN):
        found.append(asker.ask("kaplan_meier", level))
    return found


def headline(
    report: CountsReport, records: int
) -> tuple[float, float | None, float | None, float | None] | None:
    """The estimate of a report: (value, low, high, noise_std), for these records.

    noise_std is a quarter of the interval's length, the deviation of a normal law with it.

    Returns: None where the statistic has no such number, where it has one for each group, or where
        the table leaves it open.
    """
    statistic = COUNTED[report.statistic]
    if not statistic.headline:
        return None
    asker, kind = Asker(CountTable.of(report, records)), report.statistic
    # of a curve with quartiles its median alone
    is_median = kind in ("ecdf", "quantiles")
    answer = asker.ask("quantiles", at_share=0.5) if is_median else asker.ask(kind)
    found = statistic.quoted(answer)
    number = next((each for each in found if each.name == statistic.headline), None)
    if number is None or number.value is None:
        return None
    low, high = number.intervals.get(RECORDS, (None, None))
    std = None if low is None or high is None else (high - low) / 4
    return number.value, low, high, std


def reach(report: CountsReport, records: int) -> tuple[float, float] | None:
    """How far the interval for these records reaches below and above the report's number.

    A curve or a table without such a number has half its interval, in the mean over the points
    where it has two ends.

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
    wide = np.concatenate([[], *(np.subtract(each.high, each.low) for each in ends)])
    wide = wide[np.isfinite(wide)]
    return (float(wide.mean()) / 2, float(wide.mean()) / 2) if wide.size else None
