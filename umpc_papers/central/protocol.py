"""`central`: the protocol object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import comb
from typing import Any

from umpc.crypto.signing import Verify
from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.one_message_protocol import TRIAL_RECORDS, OneMessageProtocol
from umpc.protocols.base.promise import PromiseTerms, Trust, to_the_protected
from umpc.protocols.base.protocol import ExactKind, Line, Trial, Variant
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.settings import Settings
from umpc_papers.central.central_mechanisms import Choice
from umpc_papers.central.coordinator import CuratorCoordinator
from umpc_papers.central.messages import CuratorMessages
from umpc_papers.central.settings import (
    MECHANISMS,
    SUBSAMPLED,
    CentralSettings,
    check_settings,
    usual_settings,
)
from umpc_papers.central.terms import CompleteFamily
from umpc_papers.central.theory import error_of_curator
from umpc_papers.central.uniformity import describe_errors

TRIAL_SETS = 1 << 20
"""The sets of records of a trial; there are fewer if a mechanism needs that many records."""


MECHANISMS_IN_WORDS = {
    "laplace": "discrete Laplace for the global sensitivity",
    "coinpress_naive": "CoinPress over disjoint sets",
    "coinpress_all": "CoinPress over all sets",
    "coinpress_subsampled": "CoinPress over independent sets",
    "hajek": "local Hájek, heavy tails",
    "hajek_subsampled": "local Hájek over independent sets",
    "hajek_split": "local Hájek over half the records",
}


class CentralProtocol(OneMessageProtocol):
    """A trusted curator: the coordinator sees all records, which every node must allow."""

    settings: type[Settings] = CentralSettings

    def read_settings(self, entries: Mapping[str, Any], nodes: int, epsilon: str) -> Settings:
        return super().read_settings(usual_settings(entries), nodes, epsilon)

    def check(self, study: Study) -> None:
        check_settings(study)

    def describe(self, study: Study) -> Iterator[Line]:
        yield (
            "curator",
            f"{study.coordinator} is shown {', '.join(self.discloses(study))} of all records, if "
            f"nodes allow it (trusted_curator under [policy])",
        )
        limits = self.messages(study).limits()
        if limits is not None:
            yield "assumed", limits.note

    def discloses(self, study: Study) -> tuple[str, ...]:
        return tuple(study.parsed_kernels[0].fields)

    def promise_to_the_protected(self, terms: PromiseTerms) -> str:
        return to_the_protected(terms, ", but not against the coordinator")

    def promise_to_sites(self, terms: PromiseTerms) -> str:
        return (
            "To every site: the coordinator is a trusted curator. It is shown the statistic's "
            "fields of every record, without noise, and nothing protects a record from it or from "
            "whoever breaks into it. If it follows the protocol, every record keeps epsilon "
            "against everybody who sees the released number only."
        )

    def trusted(self, terms: PromiseTerms) -> Trust:
        return Trust("curator", "a curator")

    def noise_withstands(self, study: Study) -> str:
        return "added by the trusted coordinator"

    def value_without_noise(self, is_all: bool, sets: str) -> str:
        return "the mean over the curator's sets"

    def describe_noise(self, noise: str) -> str:
        return f"{MECHANISMS_IN_WORDS[noise]}, added by the curator"

    def describe_collusion(self, max_colluding: int) -> str:
        return "the coordinator has seen all their records"

    def describe_evaluation(self, backend: str) -> str:
        return "by the coordinator, a trusted curator"

    def messages(self, study: Study) -> CuratorMessages:
        return CuratorMessages(study)

    def coordinator(self, study: Study, verify: Verify) -> CoordinatorSide:
        return CuratorCoordinator(study, verify, self.messages(study))

    def _noise_beforehand(self, attempt: Attempt) -> float:
        messages = self.messages(attempt.study)
        messages.check_records(attempt.sizes.records)
        return messages.usual_std(attempt.sizes.records)

    def describe_run(self, attempt: Attempt) -> Iterator[Line]:
        yield from super().describe_run(attempt)
        yield from self.compare_noise(attempt)

    def compare_noise(self, attempt: Attempt) -> Iterator[Line]:
        study, records = attempt.study, attempt.sizes.records
        messages = self.messages(study)
        test = messages.test(records)
        if test is not None:
            yield "test", describe_errors(test, messages.fixed_noise(records))
        if told := messages.median_in_words(records):
            yield "median", told
        if study.noise == "laplace":
            return
        own = self._noise_beforehand(attempt)
        usual = Choice("laplace", study.parsed_kernels[0], study.exact_epsilon)
        laplace = usual.noise_std(records, CompleteFamily(records, study.degree))
        gains = "gains" if own < laplace else "does not gain"
        if study.settings_as(CentralSettings).private:
            yield (
                "against laplace",
                f"the noise follows from a private estimate: at most {own:.4g}, where noise = "
                f'"laplace" has a standard deviation of {laplace:.4g}',
            )
            return
        yield (
            "against laplace",
            f'noise = "{study.noise}" {gains} here: noise = "laplace" has a standard deviation of '
            f"{laplace:.4g}",
        )

    def error(self, attempt: Attempt, table: ReferenceTable) -> PredictedError:
        return error_of_curator(attempt.sizes, table)

    def sets_used(self, attempt: Attempt) -> int:
        return self._sets(attempt.study, attempt.sizes.records)

    def trial(self, study: Study, records: int) -> Trial | None:
        tried = min(records, TRIAL_RECORDS)
        subsampled = study.noise in SUBSAMPLED
        while not subsampled and self._sets(study, tried) > TRIAL_SETS:
            tried -= tried // 8
        whole = self._sets(study, records)
        if subsampled:
            few = min(TRIAL_SETS, comb(tried, study.degree), max(1, whole * tried // records))
            study = study.replaced(edges=str(few))
        factor = max(records / tried, whole / self._sets(study, tried))
        return Trial(study, tried, factor)

    def _sets(self, study: Study, records: int) -> int:
        return self.messages(study).choice(records).sets(records)

    def variants(self, error: float | None) -> Iterator[Variant]:
        for noise in MECHANISMS:
            yield Variant(f"{self.name}, {noise}", {"noise": noise})

    def exact_over_edges(self) -> ExactKind:
        return "none"
