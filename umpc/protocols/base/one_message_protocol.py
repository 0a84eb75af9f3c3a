"""The protocol object of a protocol in which every node sends one message."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping

import numpy as np

from umpc.crypto.signing import Credentials, Verify
from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.node import NodeSide
from umpc.protocols.base.one_message import OneMessage, uniform_std
from umpc.protocols.base.one_message_coordinator import OneMessageCoordinator, cost_of_messages
from umpc.protocols.base.one_message_node import OneMessageNode
from umpc.protocols.base.protocol import ExactKind, Line, StudyProtocol, Trial
from umpc.protocols.base.seed_agreement import Entropy
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.making_report import SETS

TRIAL_RECORDS = 1000
"""The records of a trial run."""


class OneMessageProtocol(StudyProtocol):
    """Every node sends one message of its own records."""

    @abstractmethod
    def messages(self, study: Study) -> OneMessage:
        """The messages of a checked study. Raises: InvalidEpsilon, StudyError."""

    def node(
        self,
        own: Credentials,
        study: Study,
        columns: Mapping[str, np.ndarray],
        records: int,
        entropy: Entropy,
    ) -> NodeSide:
        return OneMessageNode(own, study, columns, records, entropy, self.messages(study))

    def coordinator(self, study: Study, verify: Verify) -> CoordinatorSide:
        return OneMessageCoordinator(study, verify, self.messages(study))

    def cost(self, attempt: Attempt) -> Cost:
        return cost_of_messages(self.messages(attempt.study), attempt.counts)

    def describe_run(self, attempt: Attempt) -> Iterator[Line]:
        cost = self.cost(attempt)
        yield from describe_sets(attempt)
        yield "noise", f"standard deviation {self._noise_beforehand(attempt):.4g}{self._if_uniform}"
        yield "rounds", f"{cost.rounds}: one message of every node"
        yield "bytes", f"{cost.bytes_online:,} to the coordinator"

    _if_uniform: str = ""
    """The condition under which the predicted noise holds, in words."""

    def _noise_beforehand(self, attempt: Attempt) -> float:
        """The standard deviation of the noise, if the records were uniform."""
        return uniform_std(attempt.study, attempt.counts, self.messages(attempt.study))

    def error(self, attempt: Attempt, table: ReferenceTable) -> PredictedError:
        messages = self.messages(attempt.study)
        return PredictedError(messages.predicted_std(table.columns, table.first))

    def trial(self, study: Study, records: int) -> Trial | None:
        tried = min(records, TRIAL_RECORDS)
        return Trial(study, tried, records / tried)

    def exact_over_edges(self) -> ExactKind:
        return "all"


def describe_sets(attempt: Attempt) -> Iterator[Line]:
    """The line that says how many sets of records count."""
    sizes = attempt.sizes
    count = "all " if attempt.study.edges == "all" else f"{sizes.edges:,} of "
    kind = SETS.get(attempt.study.degree, "sets")
    yield "sets", f"{count}{sizes.sets:,} {kind} of {sizes.records:,} records"
