"""The grid: the protocol object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from umpc.crypto.signing import Credentials, Verify
from umpc.mpc.chunks import require
from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.bins import bias_of_bins, read_bins
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.protocol import Dealing, ExactKind, Line, StudyProtocol, Trial, Variant
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.binding import (
    cost_of,
    grid_attempt,
    grid_of,
    statistic_of_grid,
    work_seconds,
)
from umpc.protocols.grid.coarse import binned_table, check_coarse, described
from umpc.protocols.grid.coordinator import GridCoordinator
from umpc.protocols.grid.cross_terms import DealerlessAttempt, transfers_of
from umpc.protocols.grid.settings import BACKEND, EDGES, GridSettings, check_grade, check_settings
from umpc.protocols.u_mpc.protocol import UMpc
from umpc.protocols.u_mpc.theory import error_of_sums
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.settings import HONEST, Settings
from umpc.study.sizes import ClassCounts, Member
from umpc.ustat.clear import Columns

if TYPE_CHECKING:
    from umpc.protocols.base.node import NodeSide

FEW_RECORDS = 3
"""The records of a node in a trial without a dealer: its time grows with their number of bits."""
TRIAL_RECORDS = 1000
"""The records of a trial run: its time depends on the number of cells."""


class GridProtocol(UMpc):
    """Noisy sums over all sets, from one masked histogram; chosen by backend = grid."""

    settings: type[Settings] = GridSettings
    samplings = StudyProtocol.samplings
    adversaries = (HONEST,)
    chosen_by: Mapping[str, str] = MappingProxyType({"backend": BACKEND})
    estimates_variance = False
    usual_of_grade = StudyProtocol.usual_of_grade
    usual_of_degree = StudyProtocol.usual_of_degree
    complete = StudyProtocol.complete
    """A grid is over all sets, so nothing is left open."""

    def numbers_records(self, study: Study) -> bool:
        return False  # a node counts its records, and adds whole numbers: in any order the same

    def check_grade(self, study: Study) -> None:
        check_grade(study)

    def has_links(self, study: Study) -> bool:
        talk = study.coins != "none" or study.preprocessing == "none"
        return len(study.nodes) > 1 and talk

    def read_settings(self, entries: Mapping[str, Any], nodes: int, epsilon: str) -> Settings:
        return super().read_settings({"edges": EDGES, **read_bins(entries)}, nodes, epsilon)

    def check(self, study: Study) -> None:
        check_settings(study)
        check_coarse(study)
        grid_of(study)

    def describe(self, study: Study) -> Iterator[Line]:
        yield from super().describe(study)
        grid = grid_of(study)
        yield "grid", f"{grid.cells:,} cells: {grid.text}"
        yield from described(study)
        if study.preprocessing == "none":
            yield "cross terms", "by transfers between every two nodes; there is no dealer"

    def value_without_noise(self, is_all: bool, sets: str) -> str:
        return "the same value: the grid is over all sets"

    def describe_evaluation(self, backend: str) -> str:
        return "all sets at once, from one histogram of all records that nobody sees"

    def attempt(
        self, study: Study, members: Sequence[Member], openings: Sequence[bytes]
    ) -> Attempt:
        return grid_attempt(study, members, openings)

    def node(
        self,
        own: Credentials,
        study: Study,
        columns: Mapping[str, np.ndarray],
        records: int,
        entropy: Entropy,
    ) -> NodeSide:
        from umpc.protocols.grid.node import GridNode
        from umpc.protocols.grid.node_without_dealer import DealerlessNode

        kind = DealerlessNode if study.preprocessing == "none" else GridNode
        return kind(own, study, columns, records, entropy)

    def coordinator(self, study: Study, verify: Verify) -> CoordinatorSide:
        return GridCoordinator(study, verify)

    def dealing(self, attempt: Attempt, entropy: Entropy) -> Dealing:
        from umpc.protocols.grid.dealing import GridDealing

        return GridDealing(require(attempt, GridAttempt), entropy)

    def cost(self, attempt: Attempt) -> Cost:
        return cost_of(require(attempt, GridAttempt))

    def describe_run(self, attempt: Attempt) -> Iterator[Line]:
        study = attempt.study
        sizes = attempt.sizes
        cost = self.cost(attempt)
        ring = require(attempt, GridAttempt).ring
        yield "sets", f"all {sizes.edges:,} of {sizes.records:,} records"
        yield from self.describe(study)
        for kernel, law in zip(study.parsed_kernels, self.noise(sizes), strict=True):
            deviation = law.std * float(kernel.unit) / sizes.edges
            yield (
                "noise",
                f"standard deviation {deviation:.4g} of a mean, in a ring of {ring.bits} bits",
            )
        yield "rounds", f"{cost.rounds}: {_rounds_in_words(attempt)}, and the reveal"
        yield (
            "bytes",
            f"{cost.bytes_online:,} online, {cost.bytes_offline:,} before, {cost.bytes_dealt:,} "
            f"of them from the dealer",
        )

    def error(self, attempt: Attempt, table: ReferenceTable) -> PredictedError:
        error = error_of_sums(attempt.sizes, table, self.noise(attempt.sizes))
        settings = attempt.study.settings_as(GridSettings)
        if settings.bins:
            return replace(error, bins=bias_of_bins(binned_table(table).statistic, table))
        if settings.levels:
            small = table.small
            coarse = statistic_of_grid(attempt.study, small.columns, small.first)
            return replace(error, bins=bias_of_bins(coarse, table))
        return error

    def quantised(
        self, study: Study, columns: Columns, first: int, counts: Sequence[ClassCounts]
    ) -> float | None:
        settings = study.settings_as(GridSettings)
        if not (settings.bins or settings.levels):
            return None
        return statistic_of_grid(study, columns, first)

    def trial(self, study: Study, records: int) -> Trial:
        if study.preprocessing == "none":
            nodes = len(study.nodes)
            pair = self.trial_over_edges(study).replaced(nodes=study.nodes[:2])
            few = min(records, FEW_RECORDS * len(pair.nodes))
            bits = [(records // nodes).bit_length(), (few // len(pair.nodes)).bit_length()]
            # the trial is both ends of one link, and a node has an end of each of its own
            ends = (nodes - 1) / len(pair.nodes)
            return Trial(pair, few, ends * max(1, bits[0]) / max(1, bits[1]))
        return Trial(study, min(records, TRIAL_RECORDS), 1.0)

    def table_work(self, attempt: Attempt) -> tuple[float, float] | None:
        if attempt.study.preprocessing == "none":
            return None
        work = work_seconds(require(attempt, GridAttempt).grid)
        return work, work

    def exact_over_edges(self) -> ExactKind:
        return "all"

    def variants(self, error: float | None) -> Iterator[Variant]:
        yield Variant(self.name, {})
        yield Variant(f"{self.name}, no dealer", {"preprocessing": "none"})

    def carried(self, entries: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
        if own and entries.get("preprocessing") == "none":
            return {"preprocessing": "none"}
        dealer = entries.get("dealer") or {"name": "dealer", "address": ""}
        return {"dealer": dealer}


def _rounds_in_words(attempt: Attempt) -> str:
    """The rounds before the reveal; without a dealer with the transfers of the busiest node."""
    if not isinstance(attempt, DealerlessAttempt):
        return "masked histograms and their total"
    most = max(transfers_of(attempt.members, attempt.ranges, attempt.width))
    return f"extensions and corrections of at most {most:,} transfers a node"
