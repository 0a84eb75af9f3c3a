"""`umpc.Result`: a report with intervals, a test and a picture."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from umpc.counts import answers_of
from umpc.counts.answers import CountsAnswer, Number, Picture
from umpc.counts.statistics import Asker
from umpc.counts.table import CountTable
from umpc.errors import ConfigError, StudyError
from umpc.inference.matrix import CorrelationMatrix, matrix_of
from umpc.inference.null_laws import NullTest
from umpc.inference.report_inference import (
    RECORDS,
    ErrorSource,
    Inference,
    PairQuantile,
    ReportInterval,
)
from umpc.reporting.json_document import document
from umpc.reporting.page import body_of, heat_map, page, picture
from umpc.reporting.rows import names_of_parts, rounded, sentence_of
from umpc.study.report import Report
from umpc.text_file import write_text


@dataclass(frozen=True)
class Result:
    """The result of a study. Nothing here takes further ε.

    Args: report: everything that the study released and cost.
    """

    report: Report

    @property
    def estimate(self) -> float | None:
        """The private estimate; None where it is withheld, and `report.note` says why."""
        return self.report.estimate

    @property
    def epsilon(self) -> float:
        """The privacy of the result, against replacing one record."""
        return self.report.epsilon

    @property
    def parts(self) -> dict[str, Result]:
        """Each of several values by its name, as a result of its own; empty for one value.

        A stratum's name is its category, and with several statistics the statistic comes first.
        """
        return {
            name: Result(self.report.of_part(place))
            for place, name in enumerate(names_of_parts(self.report))
        }

    def interval(self, level: float = 0.95, kind: str = RECORDS) -> ReportInterval:
        """An interval: `low, high = result.interval()`.

        Args:
            kind: "noise" for the value on the sampled sets; "records" for the value on all sets of
                these records; "population" for the population that they are a sample of, by a
                normal law with the largest possible variance; "hoeffding" for the same by a bound
                that holds for every number of records.
        Raises: StudyError where the study has no value, for another kind or level, and where the
            interval has no end.
        """
        return self._inference.interval(level, kind)

    def test(self, alternative: str | None = None, null: float | None = None) -> NullTest:
        """A test of the statistic's own hypothesis, or that its value is `null`.

        Args: alternative: "two-sided", "greater" or "less"; by default the statistic's usual one.
            The hypothesis of tau* has "greater" only.
        Raises: StudyError where the statistic has no hypothesis and no value is given, and where
            the test of its hypothesis has no such alternative.
        """
        return self._inference.test(alternative, null)

    def p_value(self, alternative: str | None = None, null: float | None = None) -> float:
        """The p-value of `test`: the null law together with the exact law of the noise.

        1e-12 stands for all smaller ones; `test().is_below` says so.
        """
        return self.test(alternative, null).p_value

    def pair_quantile(
        self, share: float = 0.5, level: float = 0.95, kind: str = RECORDS
    ) -> PairQuantile:
        """The value below which a share of pairs lies, at no further ε, also beside the median.

        Args: share: between 0 and 1. level, kind: as of `interval`.
        Raises: StudyError where the study is not hodges_lehmann, hodges_lehmann_shift or theil_sen.
        """
        return self._inference.pair_quantile(share, level, kind)

    def matrix(self) -> CorrelationMatrix:
        """The statistic of every pair of columns, with Holm's p-values and the nearest
        correlation matrix.

        Raises: StudyError where the study has not one statistic of all pairs of its columns.
        """
        if (found := matrix_of(self.report)) is None:
            raise StudyError(
                "a matrix takes a study of one statistic of every pair of 3 columns or more: "
                f'matrix = true with protocol = "vector"; this one has {self.report.statistic}'
            )
        return found

    def errors(self) -> list[ErrorSource]:
        """The four sources of error: noise, sampling of sets, coarse values, population."""
        return self._inference.errors()

    def plot(self, level: float = 0.95) -> Picture:
        """The estimate with its intervals, as a picture that a notebook shows.

        A table of counts shows the curve or the bars of the statistic that was asked for, and a
        matrix its heat map.
        """
        if (matrix := matrix_of(self.report)) is not None:
            return heat_map(matrix)
        if self.report.counts is not None:
            answers = answers_of(self.report.counts, self.report.records, level)
            return next((each for each in answers if each.series), answers[0]).plot()
        return picture(self.report, level)

    # --- from a table of counts ----------------------------------------------------------------
    # Every answer follows from the released table. A field is named, or taken by its place.

    @cached_property
    def _asker(self) -> Asker:
        return Asker(CountTable.of(self.report.counts, self.report.records))

    def km(
        self,
        time: str | None = None,
        event: str | None = None,
        group: str | None = None,
        level: float = 0.95,
    ) -> CountsAnswer:
        """Kaplan–Meier curves with bands, medians and restricted means.

        Raises: StudyError here and in the methods below, where the report holds no table, the table
            has no such field, or the field cannot play its role.
        """
        return self._asker.ask("kaplan_meier", level, time=time, event=event, group=group)

    def nelson_aalen(
        self,
        time: str | None = None,
        event: str | None = None,
        group: str | None = None,
        level: float = 0.95,
    ) -> CountsAnswer:
        """Cumulative hazards."""
        return self._asker.ask("nelson_aalen", level, time=time, event=event, group=group)

    def logrank(
        self, time: str | None = None, event: str | None = None, group: str | None = None
    ) -> CountsAnswer:
        """The log-rank test, with a p-value that counts the noise."""
        return self._asker.ask("logrank", time=time, event=event, group=group)

    def gehan(
        self, time: str | None = None, event: str | None = None, group: str | None = None
    ) -> CountsAnswer:
        """Gehan's test, with a p-value that counts the noise."""
        return self._asker.ask("gehan", time=time, event=event, group=group)

    def roc(
        self,
        score: str | None = None,
        label: str | None = None,
        level: float = 0.95,
        specificity: float = 0.9,
    ) -> CountsAnswer:
        """The ROC curve with a band, its area, and the sensitivity at a specificity."""
        return self._asker.ask("roc", level, specificity, score=score, label=label)

    def ecdf(self, x: str | None = None, level: float = 0.95) -> CountsAnswer:
        """The distribution function of a field with a band, and its quartiles."""
        return self._asker.ask("ecdf", level, x=x)

    def quantile(self, share: float = 0.5, x: str | None = None, level: float = 0.95) -> Number:
        """A quantile of a field; its intervals stay inside the field's bounds."""
        return self._asker.ask("quantiles", level, share, x=x).numbers[0]

    def histogram(self, x: str | None = None, level: float = 0.95) -> CountsAnswer:
        """The number of records in each cell of a field."""
        return self._asker.ask("histogram", level, x=x)

    def contingency(
        self, x: str | None = None, y: str | None = None, level: float = 0.95
    ) -> CountsAnswer:
        """The table of two fields, the chi-squared test with the noise, and Cramér's V."""
        return self._asker.ask("contingency", level, x=x, y=y)

    def qq(
        self, x: str | None = None, group: str | None = None, level: float = 0.95
    ) -> CountsAnswer:
        """Quantiles of one group against those of another."""
        return self._asker.ask("qq", level, x=x, group=group)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `umpc study run --format json` (`report.schema.json`)."""
        return document(self.report)

    def to_json(self) -> str:
        """The document as text."""
        return json.dumps(self.to_dict())

    def to_html(self) -> str:
        """The report as one HTML page that needs no network."""
        return page(self.report)

    def save(self, path: str | Path) -> Path:
        """Write the report to a file, in the form that its name ends with.

        Args:
            path: of .html for the page, or .json for the document that `umpc infer` reads.
        Raises: ConfigError for another ending, and where the file cannot be written.
        """
        file = Path(path)
        forms = {".html": self.to_html, ".json": self.to_json}
        form = forms.get(file.suffix.lower())
        if form is None:
            raise ConfigError(
                f"{file}: a report is saved as {' or '.join(forms)}, and the file's name has to "
                f"end with one of them; got {file.suffix!r}"
            )
        return write_text(file, form(), "the report", ConfigError)

    @cached_property
    def _inference(self) -> Inference:
        return Inference(self.report)

    def _repr_html_(self) -> str:
        return f'<div class="umpc-report">{"".join(body_of(self.report))}</div>'

    def __repr__(self) -> str:
        report = self.report
        if report.parts:
            return f"<umpc.Result of {len(report.parts)} values: {report.statistic}; see parts>"
        if report.counts is not None:
            return f"<umpc.Result {sentence_of(report)}>"
        if report.estimate is None:
            return f"<umpc.Result {report.statistic}: {report.note}>"
        value = rounded(report.estimate, report.noise_std)
        ends = (report.low, report.high)
        shown = ("none" if end is None else rounded(end, report.noise_std) for end in ends)
        return (
            f"<umpc.Result {report.statistic} = {value}, 95 % [{', '.join(shown)}] for "
            f"{report.interval_covers}, epsilon {report.epsilon:g}>"
        )
