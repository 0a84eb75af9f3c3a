"""`vector`: the protocol object.

*Coordinator.* The coordinator's side of `vector`: the nodes' noisy shares of every sum, added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from umpc.crypto.ring import Ring
from umpc.crypto.signing import Verify
from umpc.mpc.attempt import SharedAttempt
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.node import NodeSide
from umpc.protocols.base.promise import PromiseTerms
from umpc.protocols.base.protocol import Line, StudyProtocol, Variant
from umpc.protocols.u_mpc.noise_binding import ring_for
from umpc.protocols.u_mpc.protocol import LOUD, UMpc, UMpcCoordinator
from umpc.protocols.u_mpc.settings import Law, noisy_sums, sum_reports
from umpc.protocols.vector.noise_binding import VectorNode, noise_of_vector, vector_attempt
from umpc.protocols.vector.settings import (
    VectorSettings,
    check_settings,
    course_of,
    loss_of,
)
from umpc.study.attempt import Attempt
from umpc.study.course import Course
from umpc.study.document import Study
from umpc.study.making_report import check_sums
from umpc.study.report import SumReport
from umpc.study.settings import HONEST, Settings
from umpc.study.sizes import Member, Sizes

NOISE_IN_WORDS = {
    "gaussian": "discrete Gaussian for the whole vector, each node adds its part",
    "laplace": "discrete Laplace for the whole vector, each node adds its part",
}


class VectorProtocol(UMpc):
    """A vector of noisy sums over one E, under one joint sensitivity."""

    settings: type[Settings] = VectorSettings
    samplings = StudyProtocol.samplings
    adversaries = (HONEST,)
    protects_people = False
    estimates_variance = False
    read_settings = StudyProtocol.read_settings
    usual_of_grade = StudyProtocol.usual_of_grade
    usual_of_degree = StudyProtocol.usual_of_degree
    complete = StudyProtocol.complete
    with_less_noise = StudyProtocol.with_less_noise
    describe_gain = StudyProtocol.describe_gain
    delta = StudyProtocol.delta
    events = StudyProtocol.events
    """None: the whole course counts with its ε and δ, in every composition."""
    known_events = StudyProtocol.known_events
    carried = StudyProtocol.carried

    def check(self, study: Study) -> None:
        check_settings(study)

    def course(self, study: Study) -> Course | None:
        return course_of(study)

    def describe(self, study: Study) -> Iterator[Line]:
        settings = study.settings_as(VectorSettings)
        if (loss := loss_of(study)) is not None:
            yield "loss", f"{loss.name} of {len(settings.coordinates)} fields, at public weights"
            yield "clip", f"records to length {settings.clip}, in scales from their centres"
        if settings.course:
            yield (
                "course",
                f"step {settings.step} of {settings.steps} of {settings.course!r}; epsilon and "
                f"delta are for all steps together",
            )

    def released(self, terms: PromiseTerms) -> str:
        return (
            f"a noisy vector of {terms.sums} means; epsilon and delta are for all steps of a "
            f"training together"
        )

    def describe_noise(self, noise: str) -> str:
        return NOISE_IN_WORDS[noise]

    def noise(self, sizes: Sizes) -> Sequence[Law]:
        return noise_of_vector(sizes)

    def attempt(
        self, study: Study, members: Sequence[Member], openings: Sequence[bytes]
    ) -> Attempt:
        return vector_attempt(study, members, openings)

    def node_class(self, study: Study) -> type[NodeSide]:
        return VectorNode

    def coordinator(self, study: Study, verify: Verify) -> CoordinatorSide:
        return VectorCoordinator(study, verify)

    def trial_over_edges(self, study: Study) -> Study:
        return study.replaced(edges="all", epsilon=LOUD, max_colluding=0)

    def variants(self, error: float | None) -> Iterator[Variant]:
        """A planner compares ways to one number, and this protocol releases many."""
        yield from ()


# --- coordinator ----------------------------------------------------------------------------------


class VectorCoordinator(UMpcCoordinator):
    """One study, one attempt. Lists are in the study's order of nodes."""

    def _ring(self, sizes: Sizes) -> Ring:
        return ring_for(sizes, [law.tail_bound() for law in noise_of_vector(sizes)])

    def _make_attempt(self, members: Sequence[Member], openings: Sequence[bytes]) -> SharedAttempt:
        return vector_attempt(self.study, members, openings)

    def _sums(self, shares: Sequence[bytes], sizes: Sizes) -> list[SumReport]:
        totals = noisy_sums(shares, len(self.study.kernels))
        laws = noise_of_vector(sizes)
        check_sums(sizes, totals, [law.tail_bound() for law in laws])
        epsilon = float(self.study.exact_epsilon)
        # the sums share all of ε: none of them has a part of its own
        return [replace(entry, epsilon=epsilon) for entry in sum_reports(sizes, totals, laws)]

    def _delta(self, sizes: Sizes) -> Fraction:
        return sizes.study.exact_delta
