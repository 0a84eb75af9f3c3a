"""`hajek-grid`: the protocol object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import comb
from types import MappingProxyType
from typing import Any

import numpy as np

from umpc.dp.events import Event
from umpc.mpc.chunks import require
from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.node import NodeSide
from umpc.protocols.base.promise import PromiseTerms
from umpc.protocols.base.protocol import Line, StudyProtocol, Variant
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.coarse import check_coarse
from umpc.protocols.grid.protocol import GridProtocol
from umpc.protocols.u_mpc.noise_binding import noise_of_sums
from umpc.protocols.u_mpc.settings import Law
from umpc.protocols.u_mpc.theory import error_of_sums
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.settings import HONEST, Settings
from umpc.study.sizes import Member, Sizes
from umpc_papers.hajek_grid.binding import (
    bound_of,
    cost_of_steps,
    hajek_attempt,
    hajek_grid_of,
    value_law,
)
from umpc_papers.hajek_grid.coordinator import HajekGridCoordinator
from umpc_papers.hajek_grid.node import DealerlessHajekNode, HajekGridNode
from umpc_papers.hajek_grid.settings import HajekGridSettings, check_settings

USUAL_DELTA = "1e-9"
"""The δ of a planner's row, where the file has none."""


class HajekGridProtocol(GridProtocol):
    """A noisy sum over all pairs, with noise for a private bound of its local sensitivity."""

    settings: type[Settings] = HajekGridSettings
    shares_cells = False
    adversaries: tuple[str, ...] = (HONEST,)
    """The scale of the second answer's noise follows from shares, also from those of a liar."""
    chosen_by: Mapping[str, str] = MappingProxyType({})
    questions = 1
    protects_people = False  # the bound is of one replaced record
    takes_several = False  # the bound is of one sum

    def read_settings(self, entries: Mapping[str, Any], nodes: int, epsilon: str) -> Settings:
        return super().read_settings({"noise": "distributed", **entries}, nodes, epsilon)

    def check_grade(self, study: Study) -> None:
        StudyProtocol.check_grade(self, study)

    def check(self, study: Study) -> None:
        check_settings(study)
        check_coarse(study)
        hajek_grid_of(study)

    def check_ahead(self, study: Study) -> None:
        """Everything before the data can be prepared ahead."""

    def describe(self, study: Study) -> Iterator[Line]:
        found = hajek_grid_of(study)
        share = study.settings_as(HajekGridSettings).bound_share
        yield "grid", f"{found.grid.cells:,} cells: {found.grid.text}"
        yield (
            "bound",
            f"{share} of epsilon goes to a bound of the local sensitivity, which fails with a "
            f"chance of at most {study.delta}",
        )

    def released(self, terms: PromiseTerms) -> str:
        return "two noisy sums: one that bounds what a record changes, then the statistic's"

    def with_less_noise(self, study: Study) -> Study | None:
        return None

    def describe_gain(self, noise: str, nodes: int, max_colluding: int) -> str:
        return ""

    def attempt(
        self, study: Study, members: Sequence[Member], openings: Sequence[bytes]
    ) -> Attempt:
        return hajek_attempt(study, members, openings)

    def node_class(self, study: Study) -> type[NodeSide]:
        return DealerlessHajekNode if study.preprocessing == "none" else HajekGridNode

    def coordinator_class(self, study: Study) -> type[CoordinatorSide]:
        return HajekGridCoordinator

    def cost(self, attempt: Attempt) -> Cost:
        return cost_of_steps(require(attempt, GridAttempt))

    def noise(self, sizes: Sizes) -> Sequence[Law]:
        """The noise where no record's projection stands out: the squares are those of chance."""
        return (value_law(sizes, bound_of(sizes, 0)),)

    def events(self, sizes: Sizes) -> tuple[Event, ...]:
        """ε and δ say all that is known of both releases together."""
        return ()

    def known_events(self, study: Study) -> tuple[Event, ...]:
        return ()

    def describe_run(self, attempt: Attempt) -> Iterator[Line]:
        yield from super().describe_run(attempt)
        yield from self.compare_noise(attempt)

    def compare_noise(self, attempt: Attempt) -> Iterator[Line]:
        sizes = attempt.sizes
        scale = float(sizes.study.parsed_kernels[0].unit) / sizes.edges
        own = self.noise(sizes)[0].std * scale
        most = value_law(sizes, sizes.sensitivities[0]).std * scale
        usual = noise_of_sums(sizes)[0].std * scale
        gains = "gains" if own < usual else "does not gain"
        yield (
            "against laplace",
            f'this {gains} if no projection stands out: backend = "grid" has a standard deviation '
            f"of {usual:.4g}. At worst it is {most:.4g} here",
        )

    def error(self, attempt: Attempt, table: ReferenceTable) -> PredictedError:
        sizes = attempt.sizes
        law = value_law(sizes, bound_of(sizes, _squares_like(table, sizes)))
        usual = super().error(attempt, table)
        return replace(usual, noise=error_of_sums(sizes, table, (law,)).noise)

    expected_report = StudyProtocol.expected_report
    """Not known: how much noise there is follows from a noisy bound over the records."""

    def trial_over_edges(self, study: Study) -> Study:
        return study.replaced(epsilon="1000000000", max_colluding=0)

    def variants(self, error: float | None) -> Iterator[Variant]:
        yield Variant(self.name, {"delta": USUAL_DELTA})


def _squares_like(table: ReferenceTable, sizes: Sizes) -> int:
    """P over so many records like those of a table, without noise."""
    found = hajek_grid_of(sizes.study)
    small = table.small
    counts = found.grid.tabulate(small.columns).astype(np.float64)
    gram = found.projections.gram
    doubled = float(counts @ gram @ counts) - float(gram.diagonal() @ counts)
    pairs = max(1, comb(small.records, 2))
    return round(doubled / 2 * (sizes.edges / pairs))
