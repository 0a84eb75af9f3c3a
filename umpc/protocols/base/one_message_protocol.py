"""The protocol object of a protocol in which every node sends one message.

*One message coordinator.* The coordinator's side of a protocol in which every node sends one
message.

*Reveals*: the coordinator sees every record's randomised answer; a trusted curator sees every
record. A report says no more than the estimate.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from umpc.crypto.signing import Verify
from umpc.errors import AlreadyReleased, EncodingError, RemoteProtocolError
from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.coordinator import CoordinatorSide, counts_of
from umpc.protocols.base.one_message import (
    MessageEstimate,
    OneMessage,
    OneMessageNode,
    check_size,
    uniform_std,
)
from umpc.protocols.base.protocol import ExactKind, Line, StudyProtocol, Trial
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.cost import NO_COST, Cost, Measured
from umpc.study.document import Study
from umpc.study.making_report import SETS, Limits, impossible, report_of, within
from umpc.study.report import Report, SumReport
from umpc.study.sizes import ClassCounts, Member, Sizes


class OneMessageCoordinator(CoordinatorSide):
    """One study, one attempt. Args: messages: the protocol's messages."""

    def __init__(self, study: Study, verify: Verify, messages: OneMessage):
        super().__init__(study, verify)
        self._messages = messages

    def check_sizes(self, members: Sequence[Member]) -> None:
        _ = Sizes.of(self.study, members).edges
        for member in members:
            check_size(self._messages, member.name, member.classes)

    def finish(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        counts = self.attempt.counts
        self._check_messages(answers, self.attempt.id, counts)
        return self._report(answers, counts, self.attempt, measured, self._cost(counts))

    def replay(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        counts = counts_of(answers)
        self._check_messages(answers, answers[0].attempt, counts)
        return self._report(answers, counts, Sizes.of(self.study, answers), measured, NO_COST)

    def _cost(self, counts: Sequence[ClassCounts]) -> Cost:
        return cost_of_messages(self._messages, counts)

    def _report(
        self,
        answers: Sequence[m.Released],
        counts: Sequence[ClassCounts],
        run: Attempt | Sizes,
        measured: Measured,
        cost: Cost,
    ) -> Report:
        """The report, from messages that were checked."""
        shares = [answer.share for answer in answers]
        estimate = self._estimate(shares, counts)
        low, high = self._possible(counts)
        # also false for a value that is no number
        if not low <= estimate.value <= high:
            raise impossible(self.study, f"every possible estimate {within(low, high)}")
        one = sum_report(self.study, estimate)
        delta = self.study.exact_delta
        limits = self._limits(shares, counts)
        return report_of(self.study, [one], run, delta, measured, cost, limits)

    def _estimate(
        self, messages: Sequence[bytes], counts: Sequence[ClassCounts]
    ) -> MessageEstimate:
        return self._messages.aggregate(messages, counts)

    def _possible(self, counts: Sequence[ClassCounts]) -> tuple[float, float]:
        return self._messages.possible(counts)

    def _limits(self, messages: Sequence[bytes], counts: Sequence[ClassCounts]) -> Limits | None:
        return self._messages.limits_by(messages, counts)

    def _check_messages(
        self, answers: Sequence[m.Released], attempt: bytes, counts: Sequence[ClassCounts]
    ) -> None:
        for name, answer, both in zip(self.names, answers, counts, strict=True):
            try:
                self._check_share(answer.share, both)
            except EncodingError as error:
                raise RemoteProtocolError(
                    f"{name} released a malformed message: {error.message}",
                    culprit=name,
                    step="release",
                ) from error
            # parts of two attempts do not add up
            if answer.attempt != attempt:
                raise AlreadyReleased(
                    f"{name} released the study {self.study.name!r} in another attempt than the "
                    f"others; give the study a new name to run it anew",
                    culprit=name,
                )

    def _check_share(self, share: bytes, counts: ClassCounts) -> None:
        """Raises: EncodingError."""
        # the length follows from public counts
        due = self._messages.message_bytes(counts)
        if len(share) != due:
            raise EncodingError(
                f"{due} bytes were due for its {sum(counts)} records, {len(share)} came"
            )
        self._messages.check(share, counts)


def sum_report(study: Study, estimate: MessageEstimate, sampling: float = 0.0) -> SumReport:
    """The one sum of a study that estimates a mean."""
    return SumReport(
        kernel=study.parsed_kernels[0].text,
        mean=estimate.value,
        epsilon=float(study.exact_epsilon),
        noise_std=estimate.std,
        sampling_std_bound=sampling,
        noise_step=estimate.step,
        noise_shape=estimate.shape,
    )


def cost_of_messages(messages: OneMessage, counts: Sequence[ClassCounts]) -> Cost:
    """The cost of one message of every node, and nothing else."""
    sizes = tuple(map(messages.message_bytes, counts))
    return Cost(1, ((),) * len(sizes), sizes, 0)


# --- one message protocol -------------------------------------------------------------------------

TRIAL_RECORDS = 1000
"""The records of a trial run."""


class OneMessageProtocol(StudyProtocol):
    """Every node sends one message of its own records."""

    @abstractmethod
    def messages(self, study: Study) -> OneMessage:
        """The messages of a checked study. Raises: InvalidEpsilon, StudyError."""

    def given_to_sides(self, study: Study) -> tuple[Any, ...]:
        return (self.messages(study),)

    def node_class(self, study: Study) -> type[OneMessageNode]:
        return OneMessageNode

    def coordinator_class(self, study: Study) -> type[CoordinatorSide]:
        return OneMessageCoordinator

    def cost(self, attempt: Attempt) -> Cost:
        return cost_of_messages(self.messages(attempt.study), attempt.counts)

    def describe_run(self, attempt: Attempt) -> Iterator[Line]:
        cost = self.cost(attempt)
        yield from describe_sets(attempt)
        yield "noise", f"standard deviation {self._noise_beforehand(attempt):.4g}{self._if_uniform}"
        asks = self.questions_of(attempt.study)
        later = ", a question, and an answer" if asks else ""
        yield "rounds", f"{cost.rounds}: one message of every node{later}"
        yield "bytes", f"{cost.bytes_online:,} to {'and from ' if asks else ''}the coordinator"

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
