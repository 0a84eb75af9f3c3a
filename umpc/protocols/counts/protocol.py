"""`counts`: the protocol object, and both sides.

*Node*: as that of U-MPC over single records. It adds up its own histogram, its part of the noise of
every count, and its zero shares. There is no dealer, and no link but for a committee's coins.

*Coordinator*: it adds the nodes' shares up. *Reveals*: shares that are uniform to it, and the noisy
counts. Statistics are read off them afterwards at no cost (`umpc/counts`).

*Lying nodes.* Records of different nodes never meet, so a liar learns nothing beside the result. It
adds any numbers to the table, whatever its records are, and cannot take away the noise of the
honest nodes, which suffices alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil, prod
from typing import Any

import numpy as np

from umpc.counts import COUNTED, answers_of, headline, reach
from umpc.counts.statistics import ACROSS_BINS, DEPENDENT
from umpc.counts.table import law_of_noise
from umpc.crypto.prg import Stream
from umpc.crypto.signing import verify_nobody
from umpc.dp.committee import CommitteeLaplace
from umpc.dp.distributed_gaussian import GaussianShare
from umpc.errors import StudyError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import require
from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.bins import limits_of_bins
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.node import NodeSide
from umpc.protocols.base.promise import PromiseTerms
from umpc.protocols.base.protocol import EndsOf, ExactKind, Line, StudyProtocol
from umpc.protocols.counts.settings import (
    MOST_IN_MPC,
    PLAIN,
    CountsSettings,
    axes_in_report,
    axes_of,
    changing,
    check_counts,
    counted,
    kernel_of,
    law_of,
    shapes_of,
    size_of,
    tree_of,
    with_noise,
)
from umpc.protocols.u_mpc.node import UMpcNode
from umpc.protocols.u_mpc.protocol import JointSums, UMpcCoordinator
from umpc.protocols.u_mpc.settings import Law
from umpc.study.attempt import Attempt
from umpc.study.cost import Measured
from umpc.study.document import Study
from umpc.study.making_report import impossible, sum_range
from umpc.study.parts import FieldText
from umpc.study.report import CountsReport, Report, SumReport
from umpc.study.settings import HONEST, Settings
from umpc.study.sizes import ClassCounts, Sizes
from umpc.ustat.cell_rows import Owners
from umpc.ustat.clear import Columns
from umpc.ustat.error_law import ErrorLaw, Noise
from umpc.ustat.estimators import VECTOR
from umpc.ustat.over_noise import Reach, mean_reach
from umpc.ustat.schema import Schema

NOISE_IN_WORDS = {
    "distributed": "discrete Laplace for the whole table, each node adds its part",
    "gaussian": "discrete Gaussian for the whole table, each node adds its part",
    "in_mpc": "discrete Laplace for the whole table, drawn under secret sharing",
}
LEFT_OUT = {
    "strata": "name its field as a further column",
    "statistics": "ask for one of them, and read the others off its table",
    "label": "name it among the columns, because it is private here",
    "parameters": "leave it out",
    "split": "leave it out, because all counts share epsilon",
    "variance": "leave it out",
    "estimator": "leave it out",
}
"""Keys of a study file that a table of counts has not → what to do instead."""
NO_NUMBER = "a group of them is empty"
"""The reason where a number has no value and no note."""
TAIL = 0.025
"""The chance of an error beyond each end of a 95 % interval."""
MOST_CUTS = 40
"""Cut points that a description lists; of more it tells the first ones and the last one."""


class CountsProtocol(JointSums):
    """Noisy counts of records in cells of up to three fields, as one table."""

    settings: type[Settings] = CountsSettings
    samplings = ("balanced",)
    takes_several = False
    check_ahead = StudyProtocol.check_ahead

    def numbers_records(self, study: Study) -> bool:
        return False  # counts are the same in any order

    def complete_entries(self, entries: Mapping[str, Any]) -> Mapping[str, Any]:
        for key, instead in LEFT_OUT.items():
            if entries.get(key):
                raise StudyError(f"a table of counts has no `{key}`; {instead}")
        own = {"kernel": entries.get("statistic", PLAIN)}
        if "columns" in entries:
            own["cells"] = entries["columns"]
        rest = {key: entries[key] for key in entries if key not in ("statistic", "columns")}
        return {**rest, **own}

    def own_sums(
        self, settings: Mapping[str, Any], fields: Sequence[FieldText]
    ) -> tuple[str, str] | None:
        schema = Schema(field.schema() for field in fields)
        return kernel_of(schema, tuple(settings.get("cells", ()))), VECTOR

    def sure_statistic(self, study: Study) -> str:
        return study.statistic

    def complete(self, study: Study) -> Study:
        return with_noise(study)

    def check(self, study: Study) -> None:
        check_counts(study)

    def check_sampling(self, study: Study) -> None:
        if study.sampling not in self.samplings:
            raise StudyError(
                f'sampling = "{study.sampling}" is of pairs, and a table counts single records; '
                f"leave sampling out"
            )

    # --- words ---------------------------------------------------------------------------------

    def describe(self, study: Study) -> Iterator[Line]:
        yield from super().describe(study)
        if (statistic := COUNTED.get(study.statistic)) is not None:
            yield "statistic", f"{statistic.title}, read off the table"
        sizes = (f"{axis.size:,} of {axis.field.name}" for axis in axes_of(study))
        yield "cells", f"{prod(shapes_of(study)[0]):,}: {' x '.join(sizes)}"
        if tree_of(study) >= 0:
            levels = f"{len(shapes_of(study))} levels, {size_of(study):,} counts"
            yield "tree", f"of {study.settings_as(CountsSettings).tree}: {levels}"

    def describe_sums(self, study: Study) -> Iterator[Line]:
        yield "", f"{self.words(study)}, counts of single records"
        for axis in axes_in_report(study):
            cuts = [f"{cut:.6g}" for cut in axis.cuts]
            if len(cuts) > MOST_CUTS:
                cuts = [*cuts[:3], "…", cuts[-1]]
            told = f"cells cut at {', '.join(cuts)}" if cuts else "one cell"
            yield "  cells of", f"{axis.field!r}: {', '.join(map(repr, axis.words)) or told}"
        records, levels = changing(study)
        told = "one record replaced changes two cells by 1 each"
        if records > 1:
            told = f"one person's {records} records replaced change cells by {2 * records} in sum"
        told += f", in each of {levels} levels of the tree" * (levels > 1)
        yield "  changes by", f"{told}; the table gets all of epsilon {study.epsilon}"

    def words(self, study: Study) -> str:
        axes = " by ".join(f"{axis.field.name!r} ({axis.size:,} cells)" for axis in axes_of(study))
        return f"a whole table of counts of {axes}"

    def released(self, terms: PromiseTerms) -> str:
        return "a table of noisy counts"

    def describe_noise(self, noise: str) -> str:
        return NOISE_IN_WORDS[noise]

    def describe_evaluation(self, backend: str) -> str:
        return "each node counts its own records"

    def value_without_noise(self, is_all: bool, sets: str) -> str:
        return "the value on these records' cells"

    def describe_run(self, attempt: Attempt) -> Iterator[Line]:
        yield "counts", f"{size_of(attempt.study):,} of {attempt.sizes.records:,} records"
        yield from self.compare_noise(attempt)
        cost = self.cost(attempt)
        yield "rounds", f"{cost.rounds}, the reveal included"
        yield "bytes", f"{cost.bytes_online:,} online, {cost.bytes_offline:,} before"

    def compare_noise(self, attempt: Attempt) -> Iterator[Line]:
        study, records = attempt.study, attempt.sizes.records
        if (counts := size_of(study)) > records:
            told = f"{counts:,}, more than there are records: most are 0, and all have noise"
            yield "many counts", told
        if changing(study)[0] > 1:
            yield "persons", DEPENDENT
        law, half = law_of(study), half_width(law_of(study))
        told = f"standard deviation {law.std:.4g}, within {half:,} in 95 % of all cases"
        yield "noise of a count", told
        can_draw = len(study.nodes) > 1 and study.adversary == HONEST
        others = {"in_mpc": size_of(study) <= MOST_IN_MPC and can_draw}
        others["distributed"] = True
        for noise, is_possible in others.items():
            if is_possible and noise != study.noise:
                other = law_of(study.replaced(noise=noise, delta=""))
                yield f'noise = "{noise}"', f"standard deviation {other.std:.4g}"
        if half >= records:
            epsilon = float(study.exact_epsilon) * 10 * half / records
            yield (
                "too much noise",
                f"it is more than all {records:,} records, so that no count is told from another; "
                f"about epsilon = {epsilon:.2g} would tell a tenth of them. Or take fewer bins",
            )

    # --- privacy and sides ---------------------------------------------------------------------

    def noise(self, sizes: Sizes) -> Sequence[Law]:
        """The noise of a count, which is at most n, as the sum of the study's one kernel is."""
        return (law_of(sizes.study),)

    def sums(self, study: Study) -> int:
        return size_of(study)

    def node_class(self, study: Study) -> type[NodeSide]:
        return CountsNode

    def coordinator_class(self, study: Study) -> type[CoordinatorSide]:
        return CountsCoordinator

    # --- error ---------------------------------------------------------------------------------

    def expected_report(self, attempt: Attempt, table: ReferenceTable) -> Report:
        """The report of a run without noise over this table, with the mean of noisy intervals.

        How wide an interval is depends on the noise that a run happens to have.
        """
        study, plain = attempt.study, counted(attempt.study, table.columns).tolist()
        side = require(self.coordinator(study, verify_nobody), CountsCoordinator)
        report = side.report_of_counts(plain, attempt.sizes, Measured())
        ends = reach_over_noise(study, tuple(plain), report.records)
        if report.estimate is None or ends is None:
            return report
        low, high = report.estimate - ends[0], report.estimate + ends[1]
        std = (high - low) / 4
        return replace(report, low=low, high=high, noise_low=low, noise_high=high, noise_std=std)

    def half_width(
        self, attempt: Attempt, table: ReferenceTable, ends: EndsOf | None = None
    ) -> float | None:
        """Half the interval of the statistic's number, or of the points of a curve in the mean."""
        if ends is not None:
            return super().half_width(attempt, table, ends)
        plain = tuple(counted(attempt.study, table.columns).tolist())
        found = reach_over_noise(attempt.study, plain, attempt.sizes.records)
        return None if found is None else sum(found) / 2

    def error(self, attempt: Attempt, table: ReferenceTable) -> PredictedError:
        """The error of the statistic's number, or of a count where there is no such number.

        Raises: StudyError where these records leave the number open.
        """
        report, study = self.expected_report(attempt, table), attempt.study
        if report.estimate is None and report.counts is not None:
            for number in answers_of(report.counts, report.records)[0].numbers:
                if number.value is None:
                    told = number.note or NO_NUMBER
                    raise StudyError(f"records like these have no {number.name}, because {told}")
        statistic = COUNTED[study.statistic]
        for role, axis in zip(statistic.all_roles, axes_of(study), strict=False):
            if role not in statistic.two_cells:
                continue
            is_second = table.columns[axis.field.name] >= axis.cuts[0]
            if not is_second.any() or (role != "event" and is_second.all()):
                raise StudyError(
                    f"records like these have one value of {axis.field.name!r}, the {role}, so "
                    f"that there is nothing to compare"
                )
        noise = report.noise_std
        return PredictedError(law_of(study).std if noise is None else noise)

    def quantised(
        self, study: Study, columns: Columns, first: int, counts: Sequence[ClassCounts]
    ) -> float | None:
        records = sum(map(sum, counts))
        found = headline(counts_report(study, counted(study, columns).tolist()), records)
        return None if found is None else found[0]

    def exact_over_edges(self) -> ExactKind:
        return "bins"


def half_width(law: Law) -> int:
    """The least number that a count's noise stays within in 95 % of all cases, about."""
    noise = Noise(law.std, 1.0, float(getattr(law, "shape", 1.0)))
    return ceil(ErrorLaw([noise], [1.0]).central(TAIL)[1])


@lru_cache(maxsize=8)
def reach_over_noise(study: Study, plain: tuple[int, ...], records: int) -> Reach | None:
    """How far the interval reaches as a mean. Args: plain: the counts without noise."""
    report = counts_report(study, plain)
    places, below = law_of_noise(report)
    stream = Stream(bytes(32))

    def noisy_reach() -> Reach | None:
        noise = places[np.searchsorted(below, stream.reals(len(plain)), "right")]
        noisy = np.array(plain) + np.rint(noise).astype(np.int64)
        return reach(replace(report, values=noisy.tolist()), records)

    return mean_reach(noisy_reach)


# --- node -----------------------------------------------------------------------------------------


class CountsNode(UMpcNode):
    """One node, one study, one attempt. Args: as in SeedAgreement."""

    def own_noise(self, attempt: SharedAttempt) -> list[int]:
        law = law_of(attempt.study)
        if isinstance(law, CommitteeLaplace):
            return super().own_noise(attempt)
        return law.draws(attempt.sums, self._random_bits)

    def edge_values(self, records: Sequence[Columns]) -> list[np.ndarray]:
        (own,) = records
        return [counted(self.study, own)]

    def _keep_inner(self, owners: Owners, start: int, values: list[np.ndarray]) -> None:
        (counts,) = values
        self.parts.append(counts.tolist())


# --- coordinator ----------------------------------------------------------------------------------


class CountsCoordinator(UMpcCoordinator):
    """One study, one attempt. Lists are in the study's order of nodes."""

    def _sums(self, shares: Sequence[bytes], sizes: Sizes) -> list[SumReport]:
        return []  # a count is no mean over E

    def _report(
        self, shares: Sequence[bytes], run: SharedAttempt | Sizes, measured: Measured
    ) -> Report:
        sizes = run if isinstance(run, Sizes) else run.sizes
        study, tail = self.study, law_of(self.study).tail_bound()
        totals = self._totals(shares, sizes)
        low, high = sum_range(study, study.parsed_kernels[0], sizes.edges, tail)
        if not low <= min(totals) <= max(totals) <= high:
            raise impossible(study, f"every possible count lies in [{low}, {high}]")
        return self.report_of_counts(totals, run, measured)

    def report_of_counts(
        self, totals: Sequence[int], run: SharedAttempt | Sizes, measured: Measured
    ) -> Report:
        """The report of these counts, with the statistic's number where it has one."""
        table, study = counts_report(self.study, totals), self.study
        limits = None
        if study.statistic not in ACROSS_BINS:
            limits = limits_of_bins((axis.field, axis.size) for axis in axes_of(study))
        report = super()._report([], run, measured)
        found = headline(table, report.records)
        told = "" if found else f"the result is a table of {len(totals):,} counts, and no number"
        value, low, high, std = found or (None,) * 4
        sampling = 0.0 if found else None
        return replace(
            report,
            counts=table,
            interval_covers=limits.covers if limits else report.interval_covers,
            note="; ".join(filter(None, (told, limits.note if limits else ""))),
            estimate=value,
            noise_std=std,
            noise_std_if_honest=std,
            low=low,
            high=high,
            noise_low=low,
            noise_high=high,
            sampling_std=sampling,
            sampling_std_bound=sampling,
        )


def counts_report(study: Study, values: Sequence[int]) -> CountsReport:
    """The table of a report. Args: values: (D,) counts."""
    law, people = law_of(study), study.people
    if isinstance(law, GaussianShare):
        kind, scale, shape = "gaussian", law.variance, 1.0
    else:
        kind, scale = "laplace", float(1 / law.log_ratio)
        shape = float(getattr(law, "shape", 1.0))
    return CountsReport(
        statistic=study.statistic,
        axes=axes_in_report(study),
        values=list(values),
        tree=tree_of(study),
        noise=kind,
        scale=scale,
        shape=shape,
        people=people.records if people else 1,
    )
