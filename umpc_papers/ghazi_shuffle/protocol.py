"""`ghazi-shuffle`: the protocol object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.bins import bias_of_bins
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.node import NodeSide
from umpc.protocols.base.one_message import uniform_std
from umpc.protocols.base.one_message_protocol import describe_sets
from umpc.protocols.base.promise import SHUFFLERS, PromiseTerms, Trust
from umpc.protocols.base.protocol import ExactKind, HelperSide, Line, StudyProtocol, Trial
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.study.settings import Settings
from umpc.study.sizes import ClassCounts, Sizes
from umpc.ustat.clear import Columns
from umpc_papers.ghazi_shuffle.coordinator import ShuffleCoordinator, cost_of_shuffling
from umpc_papers.ghazi_shuffle.messages import ShuffleMessages, shuffle_messages
from umpc_papers.ghazi_shuffle.mixing import delta_of_mixing
from umpc_papers.ghazi_shuffle.node import ShuffleNode, frames_to
from umpc_papers.ghazi_shuffle.settings import GhaziShuffleSettings, check_settings
from umpc_papers.ghazi_shuffle.split_mix import LEAST_USERS
from umpc_papers.local.settings import constant_cells, described, with_usual_bins

TRIAL_RECORDS = 250
"""The records of a trial run, where every node then has enough to be shuffled."""


class GhaziShuffleProtocol(StudyProtocol):
    """Noisy counts of cells, through two shufflers."""

    settings: type[Settings] = GhaziShuffleSettings

    def complete(self, study: Study) -> Study:
        return with_usual_bins(study)

    def check(self, study: Study) -> None:
        check_settings(study)

    def why_constant(self, study: Study) -> str:
        return super().why_constant(study) or constant_cells(study)

    def describe(self, study: Study) -> Iterator[Line]:
        yield "bins", described(study)
        names = " and ".join(shuffler.name for shuffler in study.shufflers)
        yield (
            "shufflers",
            f"{names}; neither may collude with {study.coordinator} or with the other",
        )

    def value_without_noise(self, is_all: bool, sets: str) -> str:
        return "the value on the records' bins"

    def describe_noise(self, noise: str) -> str:
        return "discrete Laplace on each cell's count, each node adds its part; estimated"

    def describe_helpers(self) -> Iterator[tuple[str, str, str]]:
        note = "each sees uniform numbers; neither may collude with the coordinator or the other"
        yield "shufflers", "2", note

    def released(self, terms: PromiseTerms) -> str:
        return "noisy counts of cells, over the records of all sites together"

    def trusted(self, terms: PromiseTerms) -> Trust:
        return SHUFFLERS

    def delta(self, sizes: Sizes) -> Fraction:
        return delta_of_mixing(sizes.study.exact_epsilon)

    def known_delta(self, study: Study) -> Fraction:
        return delta_of_mixing(study.exact_epsilon)

    def delivered(self, place: int, node: int, study: Study, kept: m.Delivery) -> Iterator[Frame]:
        return frames_to(place, node, study, kept)

    def helper(self, attempt: Attempt, name: str, seed: bytes) -> HelperSide:
        from umpc_papers.ghazi_shuffle.shuffler import ShufflerAttempt

        return ShufflerAttempt(attempt, name, seed, {})

    def node_class(self, study: Study) -> type[NodeSide]:
        return ShuffleNode

    def coordinator_class(self, study: Study) -> type[CoordinatorSide]:
        return ShuffleCoordinator

    def messages(self, attempt: Attempt) -> ShuffleMessages:
        """The messages of an attempt, whose noise depends on all nodes' records."""
        return shuffle_messages(attempt.study, attempt.counts)

    def cost(self, attempt: Attempt) -> Cost:
        return cost_of_shuffling(self.messages(attempt), attempt.counts)

    def describe_run(self, attempt: Attempt) -> Iterator[Line]:
        cost = self.cost(attempt)
        heaps = sum(cost.heaps)
        noise = uniform_std(attempt.study, attempt.counts, self.messages(attempt))
        yield from describe_sets(attempt)
        yield (
            "noise",
            f"standard deviation {noise:.4g}, if the records were uniform between their bounds",
        )
        yield "rounds", f"{cost.rounds}: one message of every node, a heap of either shuffler"
        yield "bytes", f"{heaps:,} to the coordinator"
        yield "", f"{cost.bytes_online - heaps:,} to the shufflers"
        yield "delta", f"{float(self.delta(attempt.sizes)):.3g}"

    def error(self, attempt: Attempt, table: ReferenceTable) -> PredictedError:
        messages = self.messages(attempt)
        small = table.small
        return PredictedError(
            noise=messages.predicted_std(table.columns, table.first),
            bins=bias_of_bins(messages.quantised(small.columns, small.first), small),
        )

    def trial(self, study: Study, records: int) -> Trial | None:
        """A trial in which every node has enough records to be shuffled."""
        tried = min(records, max(TRIAL_RECORDS, LEAST_USERS * len(study.nodes)))
        return Trial(study, tried, records / tried)

    def carried(self, entries: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
        found = {key: entries[key] for key in ("bins", "rounding") if key in entries}
        names = ("shuffler-1", "shuffler-2")
        usual = [{"name": name, "address": ""} for name in names]
        return {**found, "shufflers": entries.get("shufflers") or usual}

    def quantised(
        self, study: Study, columns: Columns, first: int, counts: Sequence[ClassCounts]
    ) -> float | None:
        return shuffle_messages(study, counts).quantised(columns, first)

    def exact_over_edges(self) -> ExactKind:
        return "bins"
