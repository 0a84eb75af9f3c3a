"""`bell-ldp`: the protocol object, with given bins or with bins that a first answer finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import Any

from umpc.dp.events import Event, PureEvent
from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.bins import bias_of_bins
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.one_message import OneMessage, OneMessageNode
from umpc.protocols.base.protocol import Line, Variant
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.settings import Settings
from umpc.study.sizes import Sizes
from umpc_papers.ghazi_rounds.coordinator import RoundsCoordinator, cost_of_rounds
from umpc_papers.ghazi_rounds.node import RoundsNode
from umpc_papers.local.adaptive_messages import AdaptiveMessages, Cuts
from umpc_papers.local.bell_ldp import BellLdp
from umpc_papers.local.bell_ldp_classes import BellLdpClasses
from umpc_papers.local.bin_search import BinSearch, Masses
from umpc_papers.local.messages import CellClassMessages, CellMessages
from umpc_papers.local.protocol import CellProtocol
from umpc_papers.local.quantisation import Quantiser
from umpc_papers.local.search_settings import (
    check_search,
    is_adaptive,
    searched_fields,
    split_epsilon,
)
from umpc_papers.local.settings import BellLdpSettings, quantiser_of
from umpc_papers.local.tuning import best_bins, best_share

TRIALS = 3
"""Trials of the noise of cut points in a predicted error."""


class BellLdpProtocol(CellProtocol):
    """Randomised response on cells, with given bins or with bins from a first answer."""

    settings: type[Settings] = BellLdpSettings

    def check(self, study: Study) -> None:
        super().check(study)
        check_search(study)

    def describe(self, study: Study) -> Iterator[Line]:
        yield from super().describe(study)
        if is_adaptive(study):
            first, second = split_epsilon(study)
            names = ", ".join(each.field.name for each in searched_fields(study))
            yield (
                "cut points",
                f"of {names}, at quantiles: a first answer of every record finds them with "
                f"epsilon {first}, and its second answer has epsilon {second}",
            )

    def carried(self, entries: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
        share = {key: entries[key] for key in ("bins_epsilon_share",) if key in entries}
        return {**super().carried(entries, own=own), **(share if own else {})}

    def variants(self, error: float | None) -> Iterator[Variant]:
        yield Variant(self.name, {})
        yield Variant(f"{self.name}, best bins", {}, is_tuned=True)

    def tuned(self, attempt: Attempt, table: ReferenceTable) -> Study | None:
        predict = partial(self._predicted_mse, attempt, table)
        if is_adaptive(attempt.study):
            return best_share(attempt.study, predict)
        return best_bins(attempt.study, predict)

    def messages(self, study: Study) -> OneMessage:
        if is_adaptive(study):
            return adaptive_messages(study)
        return cell_messages(study, study.exact_epsilon, quantiser_of(study))

    # --- two answers ---------------------------------------------------------------------------

    def questions_of(self, study: Study) -> int:
        return int(is_adaptive(study))

    def events(self, sizes: Sizes) -> tuple[Event, ...]:
        return self.known_events(sizes.study)

    def known_events(self, study: Study) -> tuple[Event, ...]:
        """Both answers of a record; one answer is what epsilon says."""
        if not is_adaptive(study):
            return ()
        return tuple(map(PureEvent, split_epsilon(study)))

    def node_class(self, study: Study) -> type[OneMessageNode]:
        return RoundsNode if is_adaptive(study) else super().node_class(study)

    def given_to_sides(self, study: Study) -> tuple[Any, ...]:
        return (adaptive_messages(study),) if is_adaptive(study) else super().given_to_sides(study)

    def coordinator_class(self, study: Study) -> type[CoordinatorSide]:
        return RoundsCoordinator if is_adaptive(study) else super().coordinator_class(study)

    def cost(self, attempt: Attempt) -> Cost:
        if is_adaptive(attempt.study):
            return cost_of_rounds(adaptive_messages(attempt.study), attempt.counts)
        return super().cost(attempt)

    def compare_noise(self, attempt: Attempt) -> Iterator[Line]:
        """The parts of epsilon, beside the predicted noise of a plan."""
        if is_adaptive(attempt.study):
            first, second = split_epsilon(attempt.study)
            yield "epsilon", f"{first} for the cut points, {second} for the answer"

    def error(self, attempt: Attempt, table: ReferenceTable) -> PredictedError:
        """Noise and bias over the table; with a first answer, the mean over trials of its noise."""
        if not is_adaptive(attempt.study):
            return super().error(attempt, table)
        messages, small = adaptive_messages(attempt.study), table.small
        noise = bins = 0.0
        for number in range(TRIALS):
            second = messages.tried(table.columns, number)
            value = second.quantised(small.columns, small.first)
            noise += second.predicted_std(table.columns, table.first) ** 2 / TRIALS
            bins += bias_of_bins(value, small) ** 2 / TRIALS
        return PredictedError(noise=sqrt(noise), bins=sqrt(bins))


def cell_messages(
    study: Study, epsilon: Fraction, cells: Quantiser
) -> CellMessages | CellClassMessages:
    """The messages of randomised response on these cells."""
    if study.two_sample:
        return CellClassMessages(BellLdpClasses(epsilon, cells))
    return CellMessages(BellLdp(epsilon, cells))


def adaptive_messages(study: Study) -> AdaptiveMessages:
    """The messages of a study whose first answers find the cut points."""
    first, second = split_epsilon(study)
    fields = searched_fields(study)

    search = BinSearch(first, fields)

    def answers(cuts: Cuts, masses: Masses | None) -> CellMessages | CellClassMessages:
        found = {each.field.name: own for each, own in zip(fields, cuts, strict=True)}
        cells = quantiser_of(study, found)
        if masses and cells.cell_kernel == "average":
            cells = replace(cells, weights=search.measures(masses))
        return cell_messages(study, second, cells)

    return AdaptiveMessages(search, answers, second)
