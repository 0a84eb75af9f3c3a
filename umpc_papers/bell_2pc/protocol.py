"""`bell-2pc`: the protocol object.

*Tuning.* The number of pairings with the least predicted error over a table like the sites' own.

Paper: Bell et al. 2020, section 5 and appendix C.1. P pairings have P times fewer of the sampling's
errors, and P² times the noise variance of a pair, hence P times that of the mean. The paper says
that P should be a small constant, and that P = 1 is best where ε is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import hypot
from typing import Any

from umpc.dp.events import Event
from umpc.errors import StudyError
from umpc.planning.reference_table import ReferenceTable
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.node import NodeSide
from umpc.protocols.base.promise import PromiseTerms, to_sites_alone
from umpc.protocols.base.protocol import Line, StudyProtocol, Variant
from umpc.protocols.u_mpc.protocol import UMpc
from umpc.protocols.u_mpc.settings import Law
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.settings import HONEST, Settings, read_settings
from umpc.study.sizes import Member, Sizes
from umpc_papers.bell_2pc.coordinator import BellCoordinator
from umpc_papers.bell_2pc.drawn_alone import DrawnAlone
from umpc_papers.bell_2pc.group_node import GroupNode
from umpc_papers.bell_2pc.node import BellNode
from umpc_papers.bell_2pc.noise_binding import (
    check_released,
    delta_of_pairs,
    noise_of_pairs,
    pairs_attempt,
)
from umpc_papers.bell_2pc.settings import (
    GROUPS,
    NOISES,
    BellTwoPcSettings,
    check_settings,
    complete,
)

NOISE_IN_WORDS = {
    "pair_laplace": "discrete Laplace on each pair, inside its circuit",
    GROUPS: "discrete Laplace of both nodes on each group of pairs; an upper bound",
    "randomised_response": "randomised response of each pair; an upper bound",
}


class BellTwoPc(UMpc):
    """A noisy value of every pair, garbled between its two nodes."""

    settings: type[Settings] = BellTwoPcSettings
    shares_cells = False
    samplings = StudyProtocol.samplings
    adversaries = (HONEST,)
    protects_people = False
    estimates_variance = False

    def read_settings(self, entries: Mapping[str, Any], nodes: int, epsilon: str) -> Settings:
        return read_settings(self.settings, entries)

    def complete(self, study: Study) -> Study:
        return complete(study)

    def check(self, study: Study) -> None:
        check_settings(study)

    def released(self, terms: PromiseTerms) -> str:
        of = "group of sampled pairs" if terms.noise == GROUPS else "sampled pair of records"
        return f"a noisy value of every {of}"

    def promise_to_sites(self, terms: PromiseTerms) -> str:
        own = "if everybody follows the protocol, neither owner of a pair knows its noise"
        if terms.noise == GROUPS:
            own = "if everybody follows the protocol, each owner of a group adds all of its noise"
        return to_sites_alone(terms, own)

    def describe_noise(self, noise: str) -> str:
        return NOISE_IN_WORDS[noise]

    def noise(self, sizes: Sizes) -> Sequence[Law]:
        return noise_of_pairs(sizes)

    def delta(self, sizes: Sizes) -> Fraction:
        return delta_of_pairs(sizes)

    def events(self, sizes: Sizes) -> tuple[Event, ...]:
        return ()

    def attempt(
        self, study: Study, members: Sequence[Member], openings: Sequence[bytes]
    ) -> Attempt:
        return pairs_attempt(study, members, openings)

    def node_class(self, study: Study) -> type[NodeSide]:
        return GroupNode if study.noise == GROUPS else BellNode

    def coordinator_class(self, study: Study) -> type[CoordinatorSide]:
        return BellCoordinator

    def trial_over_edges(self, study: Study) -> Study:
        """The study's own rule, as the pairs of a record share its ε."""
        relative = study.edges[-1:] in ("n", "p")
        rule = study.edges if relative else "1p"
        return study.replaced(edges=rule, delta="", max_colluding=0)

    def tuned(self, attempt: Attempt, table: ReferenceTable) -> Study | None:
        def predict(study: Study) -> float:
            other = attempt.with_study(study)
            check_released(other.sizes)
            return self.error(other, table).mse

        return best_pairings(attempt.study, attempt.sizes, predict)

    def describe_tuned(self, attempt: Attempt, table: ReferenceTable) -> Iterator[Line]:
        study = attempt.study
        if study.two_sample or study.estimator != "mean" or attempt.sizes.records < 4:
            return
        alone = DrawnAlone(attempt.sizes.records, 1)
        width = float(study.parsed_kernels[0].interval.width)
        noise = alone.noise_std(width, float(study.exact_epsilon))
        error = hypot(noise, alone.sampling_std(table.moments))
        yield (
            "partners drawn alone",
            f"error {error:.3g}, if every record picked one partner by itself and was in at most "
            f"{alone.degree} pairs",
        )

    def variants(self, error: float | None) -> Iterator[Variant]:
        for noise in NOISES:
            yield Variant(f"{self.name}, {noise}", {"noise": noise})
        yield Variant(f"{self.name}, best pairings", {"noise": NOISES[0]}, is_tuned=True)

    def carried(self, entries: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
        return {}


# --- tuning ---------------------------------------------------------------------------------------


PAIRINGS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)
"""The numbers of pairings that are tried; between two classes, pairs of each record of the larger
one."""

Predict = Callable[[Study], float]
"""The mean squared error of a study over the table. Raises: StudyError where it cannot run."""


def best_pairings(study: Study, sizes: Sizes, predict: Predict) -> Study:
    """The study with the edges of the least error. Its own come first."""
    return min([study, *_with_other_edges(study, sizes)], key=lambda each: _error(each, predict))


def _with_other_edges(study: Study, sizes: Sizes) -> Iterator[Study]:
    for number in PAIRINGS:
        if not study.two_sample:
            yield study.replaced(edges=f"{number}p")
        elif number <= min(sizes.classes):
            yield study.replaced(edges=str(number * max(sizes.classes)))


def _error(study: Study, predict: Predict) -> float:
    try:
        return predict(study)
    except StudyError:
        return float("inf")
