"""How many people two sites share: the protocol object, and the coordinator's side.

*Reveals*: a site sees points under a key that it lacks; the coordinator sees two lists of points
under a key of both sites, and how many they share: the number with both sites' noise. With one of
the sites it knows that site's noise, and the other's is left. docs/overlap.md has the argument, and
what a liar gains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from umpc.errors import StudyError
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.one_message import OneMessageNode
from umpc.protocols.base.one_message_protocol import OneMessageCoordinator, OneMessageProtocol
from umpc.protocols.base.promise import PromiseTerms
from umpc.protocols.base.protocol import Line, Trial, Variant
from umpc.protocols.overlap.messages import OverlapAttempt, SharedPeople, cost_of
from umpc.protocols.overlap.settings import (
    AT_BOTH,
    KERNEL,
    OverlapSettings,
    check_overlap,
    noise_of,
    points_of,
)
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.study.settings import Settings
from umpc.study.sizes import ClassCounts, Member

SECONDS_OF_RECORD = 3e-6
"""About, on one core of 2020, for each record of `OverlapAttempt.size`."""


class OverlapProtocol(OneMessageProtocol):
    """How many people two sites share, with noise of both."""

    settings: type[Settings] = OverlapSettings
    protects_people = True

    def own_sums(
        self, settings: Mapping[str, Any], fields: Sequence[FieldText]
    ) -> tuple[str, str] | None:
        return KERNEL, "total"

    def complete_entries(self, entries: Mapping[str, Any]) -> Mapping[str, Any]:
        given = sorted(entries.keys() & {"statistic", "columns", "kernel", "statistics"})
        if given:
            raise StudyError(
                f'a study of protocol = "overlap" has one number of its own; leave '
                f"{', '.join(given)} out, or run `umpc overlap`"
            )
        own = {"name": AT_BOTH, "lower": 0, "upper": 1, "whole": True}
        fields = [*entries.get("fields", ()), own]
        return {"records_per_person": 1, **entries, "fields": fields, "kernel": self.name}

    def check(self, study: Study) -> None:
        check_overlap(study)

    def has_links(self, study: Study) -> bool:
        return True

    def messages(self, study: Study) -> SharedPeople:
        return SharedPeople(study)

    def attempt(
        self, study: Study, members: Sequence[Member], openings: Sequence[bytes]
    ) -> Attempt:
        return OverlapAttempt(study, members, openings)

    def node_class(self, study: Study) -> type[OneMessageNode]:
        from umpc.protocols.overlap.node import OverlapNode

        return OverlapNode

    def coordinator_class(self, study: Study) -> type[CoordinatorSide]:
        return OverlapCoordinator

    def cost(self, attempt: Attempt) -> Cost:
        return cost_of(attempt)

    def describe(self, study: Study) -> Iterator[Line]:
        first, second = (node.name for node in study.nodes)
        yield "compares", f"the people of {first} and {second}, by their texts in the table"
        yield "", "both must follow the protocol: a liar learns more (docs/overlap.md)"
        yield "dummies", f"{points_of(study, 0):,} points of nobody at each site"

    def describe_run(self, attempt: Attempt) -> Iterator[Line]:
        cost = self.cost(attempt)
        yield "noise", f"standard deviation {noise_of(attempt.study).std:.4g} people"
        yield "rounds", f"{cost.rounds}: points, and points masked twice, of which some are shared"
        yield "bytes", f"{cost.bytes_online:,}"

    def words(self, study: Study) -> str:
        return "how many people both sites share"

    def released(self, terms: PromiseTerms) -> str:
        return "the noisy number of people who are at both sites"

    def describe_noise(self, noise: str) -> str:
        return "discrete Laplace of both sites, as numbers of dummies"

    def describe_evaluation(self, backend: str) -> str:
        return "compared as points of a curve under keys of both sites"

    def table_work(self, attempt: Attempt) -> tuple[float, float] | None:
        # a site hashes and masks its own points, and masks the other's
        return 0.0, SECONDS_OF_RECORD * attempt.size

    def trial(self, study: Study, records: int) -> Trial | None:
        return None

    def variants(self, error: float | None) -> Iterator[Variant]:
        """None: no other protocol compares people."""
        yield from ()


class OverlapCoordinator(OneMessageCoordinator):
    """One study, one attempt."""

    def _cost(self, counts: Sequence[ClassCounts]) -> Cost:
        return cost_of(self.attempt)

    def _check_messages(
        self, answers: Sequence[m.Released], attempt: bytes, counts: Sequence[ClassCounts]
    ) -> None:
        # each site has masked the other one's points
        super()._check_messages(answers, attempt, counts[::-1])
