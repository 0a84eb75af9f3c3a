"""`central`: the protocol object.

*Theory.* The predicted error of a trusted curator's estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import comb, sqrt
from typing import Any

import numpy as np

from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.one_message_protocol import TRIAL_RECORDS, OneMessageProtocol
from umpc.protocols.base.promise import PromiseTerms, Trust, to_the_protected
from umpc.protocols.base.protocol import ExactKind, Line, Trial, Variant
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.settings import Settings
from umpc.study.sizes import Sizes
from umpc.ustat.design import LargerMoments, Moments
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

    def coordinator_class(self, study: Study) -> type[CoordinatorSide]:
        return CuratorCoordinator

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


# --- theory ---------------------------------------------------------------------------------------


def error_of_curator(sizes: Sizes, table: ReferenceTable) -> PredictedError:
    """The error: noise whatever the records are, and the sets that the mechanism takes."""
    study = sizes.study
    n = sizes.records
    curator = CuratorMessages(study)
    noise = curator.usual_std(n)
    bound = curator.choice(n).sampling_bound(n)
    if bound == 0:
        return PredictedError(noise)
    if study.settings_as(CentralSettings).chunks > 1:
        return PredictedError(noise, bound)  # of a median, an upper bound
    return PredictedError(noise, sqrt(_sampling_variance(sizes, table)))


def _sampling_variance(sizes: Sizes, table: ReferenceTable) -> float:
    """The variance from taking the mechanism's sets instead of all."""
    noise = sizes.study.noise
    n = sizes.records
    if sizes.study.degree == 1:
        spread = float(np.var(table.slopes @ table.values))
        if noise in SUBSAMPLED:
            return spread / sizes.edges
        part = n - n // 2 if noise == "hajek_split" else n
        return spread / part * (n - part) / max(1, n - 1)
    if sizes.study.degree > 2:
        moments = table.larger_moments
        if noise in SUBSAMPLED:
            return moments.variance / sizes.edges
        if noise == "hajek_split":
            return _larger_over_part(moments, n - n // 2, n)
        return moments.over_balanced(n // sizes.study.degree, n)
    if noise in SUBSAMPLED:
        return table.moments.same / sizes.edges
    if noise == "hajek_split":
        return _variance_of_part(table.moments, n - n // 2, n)
    return table.moments.variance(n // 2, (n,))


def _variance_of_part(moments: Moments, part: int, records: int) -> float:
    """The variance of the mean over all pairs of `part` of the records, chosen at random."""
    n = records
    own = moments.linear[0] * (n - 1) / (2 * max(1, n - 2))
    varying = 4 * own * (n - part) / (part * (n - 1))
    if n < 4 or part < 2:
        return varying
    edges = comb(part, 2)
    left = 1 - 2 * (part - 2) / (n - 2) + comb(part - 2, 2) / comb(n - 2, 2)
    return varying + moments.rest * max(0.0, left) / edges


def _larger_over_part(moments: LargerMoments, part: int, records: int) -> float:
    """The variance of the mean over all sets of `part` of the records, chosen at random.

    The other parts count as functions of two records, as which they matter most.
    """
    n, k = records, moments.degree
    single = moments.linear * k / part * (n - part) / max(1, n - k)
    left = (1 - part / n) ** 2 * comb(k, 2) / comb(part, 2) if part > 1 else 1.0
    return single + moments.rest * left
