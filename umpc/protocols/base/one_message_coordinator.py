"""The coordinator's part of a one-message protocol: the same steps, and an estimate from all nodes' messages.

It sees every record's randomised answer, as a trusted curator every record, and in a report says no more than the
estimate.
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.errors import AlreadyReleased, EncodingError, RemoteProtocolError
from umpc.mpc.attempt import Attempt
from umpc.mpc.cost import Cost
from umpc.protocols.ghazi_rounds.messages import OfRounds
from umpc.protocols.ghazi_shuffle.coordinator import predict_shuffled
from umpc.protocols.ghazi_shuffle.messages import OfShufflers
from umpc.protocols.local.estimate import LocalEstimate
from umpc.protocols.local.messages import Counts, OneMessage, check_size, one_message_of
from umpc.protocols.u_mpc.coordinator import CoordinatorSession
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.report import Measured, Report, SumReport, report_of
from umpc.study.sizes import Member, Sizes


class OneMessageCoordinator(CoordinatorSession):
    """One study, one attempt. Lists are in the study's order of nodes."""

    def __init__(self, study: Study):
        super().__init__(study)
        self._protocol = one_message_of(study)

    def _check_sizes(self, members: tuple[Member, ...]) -> None:
        _ = Sizes.of(self.study, members).edges
        for member in members:
            check_size(self._protocol, member.name, member.classes)

    def finish(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        """The report of a run. Raises: RemoteProtocolError naming the node whose message is malformed."""
        counts = [member.classes for member in self.attempt.members]
        return self._report(answers, self.attempt.id, counts, self.attempt, measured)

    def replay(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        """The report of a study that was released before: the same stored messages, nothing charged."""
        counts = [(answer.first_class, answer.records - answer.first_class) for answer in answers]
        return self._report(
            answers, answers[0].attempt, counts, Sizes.of(self.study, answers), measured
        )

    def _report(
        self,
        answers: Sequence[m.Released],
        attempt: bytes,
        counts: Sequence[Counts],
        run: Attempt | Sizes,
        measured: Measured,
    ) -> Report:
        self._check_messages(answers, attempt, counts)
        messages = [answer.share for answer in answers]
        cost = predict(self._protocol, counts) if isinstance(run, Attempt) else Cost(0, (), (), 0)
        return self._report_of(messages, counts, run, cost, measured)

    def _report_of(
        self,
        messages: Sequence[bytes],
        counts: Sequence[Counts],
        run: Attempt | Sizes,
        cost: Cost,
        measured: Measured,
    ) -> Report:
        """From messages that were checked."""
        estimate = self._estimate(messages, counts)
        return report_of(
            self.study, [self._sum(estimate.value, estimate.std, 0.0)], run, cost, measured
        )

    def _sum(self, value: float, std: float, sampling: float) -> SumReport:
        kernel, epsilon = self.study.parsed_kernels[0].text, float(self.study.exact_epsilon)
        return SumReport(kernel, value, epsilon, std, sampling)

    def _estimate(self, messages: Sequence[bytes], counts: Sequence[Counts]) -> LocalEstimate:
        return self._protocol.aggregate(messages, counts)

    def _check_messages(
        self, answers: Sequence[m.Released], attempt: bytes, counts: Sequence[Counts]
    ) -> None:
        for name, answer, both in zip(self.names, answers, counts, strict=True):
            self._check_message(name, answer, attempt, both)

    def _check_share(self, share: bytes, counts: Counts) -> None:
        """Raises: EncodingError."""
        due = self._protocol.message_bytes(counts)
        if len(share) != due:
            raise EncodingError(
                f"{due} bytes were due for its {sum(counts)} records, {len(share)} came"
            )
        self._protocol.check(share, counts)

    def _check_message(self, name: str, answer: m.Released, attempt: bytes, counts: Counts) -> None:
        try:
            self._check_share(answer.share, counts)
        except EncodingError as error:
            raise RemoteProtocolError(
                f"{name} released a malformed message: {error.message}",
                culprit=name,
                step="release",
            ) from error
        if answer.attempt != attempt:
            raise AlreadyReleased(
                f"{name} released the study {self.study.name!r} in another attempt than the others; give the study a "
                f"new name to run it anew",
                culprit=name,
            )


def predict(protocol: OneMessage | OfShufflers, counts: Sequence[Counts]) -> Cost:
    """Every node's message, and a question to each or the shufflers' heaps where there are such; nothing else."""
    if isinstance(protocol, OfShufflers):
        return predict_shuffled(protocol, counts)
    sizes = tuple(map(protocol.message_bytes, counts))
    asked = (protocol.question_bytes,) * len(sizes) if isinstance(protocol, OfRounds) else ()
    return Cost(2 if asked else 1, ((),) * len(sizes), sizes, 0, asked)
