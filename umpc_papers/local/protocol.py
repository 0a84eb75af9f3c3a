"""The local protocols `ghazi-ldp`, `bell-auc` and `local-mean`, and what `bell-ldp` shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.bins import bias_of_bins
from umpc.protocols.base.one_message import OneMessage
from umpc.protocols.base.one_message_protocol import OneMessageProtocol
from umpc.protocols.base.promise import PromiseTerms, to_sites_alone
from umpc.protocols.base.protocol import ExactKind, Line, Variant
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.settings import ADVERSARIES, Settings
from umpc.study.sizes import ClassCounts
from umpc.ustat.clear import Columns
from umpc_papers.local.bell_auc import BellAuc
from umpc_papers.local.ghazi_ldp import GhaziLdp
from umpc_papers.local.local_mean import LocalMean
from umpc_papers.local.mean_settings import LocalMeanSettings, check_mean
from umpc_papers.local.messages import (
    CellMessages,
    ClassMessages,
    MeanMessages,
)
from umpc_papers.local.settings import (
    BellAucSettings,
    GhaziLdpSettings,
    auc_field,
    check_auc,
    check_cells,
    constant_cells,
    described,
    quantiser_of,
    with_usual_bins,
)
from umpc_papers.local.tuning import best_bins, best_levels


class RecordProtocol(OneMessageProtocol):
    """Every record answers for itself, and its answer is ε-DP."""

    adversaries = ADVERSARIES

    def noise_withstands(self, study: Study) -> str:
        return "added to each record at its node, which withstands all others"

    def released(self, terms: PromiseTerms) -> str:
        return "randomised answers of every record"

    def promise_to_sites(self, terms: PromiseTerms) -> str:
        return to_sites_alone(terms, "each node randomises the answers of its own records")

    def describe_noise(self, noise: str) -> str:
        return "added to each record's answer at its node; estimated"

    def describe_collusion(self, max_colluding: int) -> str:
        return "all others may collude"


class LocalProtocol(RecordProtocol):
    """The estimate is that of the records' bins."""

    _if_uniform = ", if the records were uniform between their bounds"

    def value_without_noise(self, is_all: bool, sets: str) -> str:
        return "the value on the records' bins"

    def error(self, attempt: Attempt, table: ReferenceTable) -> PredictedError:
        """Noise, and the bias from bins, over the table."""
        messages = self.messages(attempt.study)
        small = table.small
        return PredictedError(
            noise=messages.predicted_std(table.columns, table.first),
            bins=bias_of_bins(messages.quantised(small.columns, small.first), small),
        )

    def _predicted_mse(self, attempt: Attempt, table: ReferenceTable, study: Study) -> float:
        """The mean squared error of another study over the same records and table."""
        self.check(study)
        self.check_new_run(study)
        return self.error(attempt.with_study(study), table).mse

    def quantised(
        self, study: Study, columns: Columns, first: int, counts: Sequence[ClassCounts]
    ) -> float | None:
        return self.messages(study).quantised(columns, first)

    def exact_over_edges(self) -> ExactKind:
        return "bins"


class CellProtocol(LocalProtocol):
    """Records become cells: what all protocols of cells share."""

    def complete(self, study: Study) -> Study:
        return with_usual_bins(study)

    def check(self, study: Study) -> None:
        check_cells(study)

    def why_constant(self, study: Study) -> str:
        return super().why_constant(study) or constant_cells(study)

    def describe(self, study: Study) -> Iterator[Line]:
        yield "bins", described(study)

    def tuned(self, attempt: Attempt, table: ReferenceTable) -> Study | None:
        return best_bins(attempt.study, partial(self._predicted_mse, attempt, table))

    def carried(self, entries: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
        return {key: entries[key] for key in ("bins", "rounding", "cell_kernel") if key in entries}


class GhaziLdpProtocol(CellProtocol):
    """One bit about a record's column of a factor of the kernel."""

    settings: type[Settings] = GhaziLdpSettings

    def messages(self, study: Study) -> OneMessage:
        return CellMessages(GhaziLdp(study.exact_epsilon, quantiser_of(study)))


class BellAucProtocol(LocalProtocol):
    """An AUC from hierarchical histograms."""

    settings: type[Settings] = BellAucSettings

    def check(self, study: Study) -> None:
        check_auc(study)

    def describe(self, study: Study) -> Iterator[Line]:
        settings = study.settings_as(BellAucSettings)
        yield "bins", f"{1 << settings.levels} bins of {auc_field(study)!r}"
        if settings.levels_by == "budget":
            yield "levels", f"every record answers for all {settings.levels}, which share its ε"

    def tuned(self, attempt: Attempt, table: ReferenceTable) -> Study | None:
        return best_levels(attempt.study, partial(self._predicted_mse, attempt, table))

    def variants(self, error: float | None) -> Iterator[Variant]:
        yield Variant(self.name, {})
        yield Variant(f"{self.name}, best levels", {}, is_tuned=True)

    def messages(self, study: Study) -> OneMessage:
        settings = study.settings_as(BellAucSettings)
        return ClassMessages(
            BellAuc(
                study.exact_epsilon,
                study.schema[auc_field(study)],
                settings.levels,
                settings.levels_by,
                settings.discarded,
                delta=study.exact_delta,
            )
        )


class LocalMeanProtocol(RecordProtocol):
    """A mean over single records, of which each answers with a random point near its value."""

    settings: type[Settings] = LocalMeanSettings
    _if_uniform = ", at most"

    def check(self, study: Study) -> None:
        check_mean(study)

    def describe(self, study: Study) -> Iterator[Line]:
        answer = self.messages(study).protocol.answer
        yield "answers", f"each record sends one of {answer.points} points, {answer.width} bit(s)"

    def describe_noise(self, noise: str) -> str:
        return "added to each record's answer at its node; at most"

    def messages(self, study: Study) -> MeanMessages:
        return MeanMessages(LocalMean(study.exact_epsilon, study.parsed_kernels[0]))

    def _noise_beforehand(self, attempt: Attempt) -> float:
        return self.messages(attempt.study).protocol.most_std(attempt.sizes.records)
