"""The coordinator's part of a one-message protocol: the same steps, and an estimate from all nodes' messages.

It sees every record's randomised answer, and in a report says no more than the estimate.
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.coordinator.report import Measured, Report, SumReport, report_of
from umpc.coordinator.session import CoordinatorSession
from umpc.dp.local.estimate import LocalEstimate
from umpc.errors import AlreadyReleased, EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc import messages as m
from umpc.mpc.attempt import Attempt
from umpc.mpc.cost import Cost
from umpc.mpc.sizes import Member, Sizes
from umpc.onemessage import Counts, OneMessage, check_size, one_message_of
from umpc.study import Study
from umpc.tworounds import OfRounds, check_records


def coordinator_session(study: Study) -> CoordinatorSession:
    """The session of a study, whatever its protocol."""
    if study.asks:
        return TwoRoundsCoordinator(study)
    return (OneMessageCoordinator if study.one_message else CoordinatorSession)(study)


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
        return self._report(answers, answers[0].attempt, counts, Sizes.of(self.study, answers), measured)

    def _report(
        self,
        answers: Sequence[m.Released],
        attempt: bytes,
        counts: Sequence[Counts],
        run: Attempt | Sizes,
        measured: Measured,
    ) -> Report:
        self._check_messages(answers, attempt, counts)
        estimate = self._estimate([answer.share for answer in answers], counts)
        kernel, epsilon = self.study.parsed_kernels[0].text, float(self.study.exact_epsilon)
        one = SumReport(kernel, estimate.value, epsilon, estimate.std, 0.0)
        cost = predict(self._protocol, counts) if isinstance(run, Attempt) else Cost(0, (), (), 0)
        return report_of(self.study, [one], run, cost, measured)

    def _estimate(self, messages: Sequence[bytes], counts: Sequence[Counts]) -> LocalEstimate:
        return self._protocol.aggregate(messages, counts)

    def _check_messages(self, answers: Sequence[m.Released], attempt: bytes, counts: Sequence[Counts]) -> None:
        for name, answer, both in zip(self.names, answers, counts, strict=True):
            self._check_message(name, answer, attempt, both)

    def _check_share(self, share: bytes, counts: Counts) -> None:
        """Raises: EncodingError."""
        due = self._protocol.message_bytes(counts)
        if len(share) != due:
            raise EncodingError(f"{due} bytes were due for its {sum(counts)} records, {len(share)} came")
        self._protocol.check(share, counts)

    def _check_message(self, name: str, answer: m.Released, attempt: bytes, counts: Counts) -> None:
        try:
            self._check_share(answer.share, counts)
        except EncodingError as error:
            raise RemoteProtocolError(
                f"{name} released a malformed message: {error.message}", culprit=name, step="release"
            ) from error
        if answer.attempt != attempt:
            raise AlreadyReleased(
                f"{name} released the study {self.study.name!r} in another attempt than the others; give the study a "
                f"new name to run it anew",
                culprit=name,
            )


class TwoRoundsCoordinator(OneMessageCoordinator):
    """`ghazi-rounds`: a question that follows from all first messages, and the answers to it.

    session.ask(released)           ask: the same from the same messages, also when the study is asked again
    session.hear(told)
    session.finish(released, ...)   or replay
    """

    _protocol: OfRounds

    def __init__(self, study: Study):
        super().__init__(study)
        self._question = b""
        self._told: list[bytes] = []

    def _check_sizes(self, members: tuple[Member, ...]) -> None:
        super()._check_sizes(members)
        check_records([member.classes for member in members])

    def ask(self, answers: Sequence[m.Released]) -> m.Ask:
        """Raises: RemoteProtocolError naming the node whose message is malformed; AlreadyReleased."""
        if self._question:
            raise LocalProtocolError("one question is asked")
        if self._attempt is not None:
            attempt, counts = self._attempt.id, [member.classes for member in self._attempt.members]
        else:
            attempt, counts = answers[0].attempt, [(0, answer.records) for answer in answers]
        self._check_messages(answers, attempt, counts)
        self._asked_of, self._counts = [answer.share for answer in answers], counts
        self._question = self._protocol.question(self._asked_of, counts)
        return m.Ask(self._question)

    def hear(self, answers: Sequence[m.Told]) -> None:
        """Raises: RemoteProtocolError naming the node whose answer is malformed."""
        if not self._question or self._told:
            raise LocalProtocolError("answers come once, after the question")
        for name, answer, first, counts in zip(self.names, answers, self._asked_of, self._counts, strict=True):
            try:
                self._protocol.check_answer(first, answer.answer, counts)
            except EncodingError as error:
                raise RemoteProtocolError(
                    f"{name} told a malformed answer: {error.message}", culprit=name, step="ask"
                ) from error
        self._told = [answer.answer for answer in answers]

    def _check_share(self, share: bytes, counts: Counts) -> None:
        self._protocol.check(share, counts)

    def _estimate(self, messages: Sequence[bytes], counts: Sequence[Counts]) -> LocalEstimate:
        if not self._told or messages != self._asked_of:
            raise LocalProtocolError("an estimate follows from the messages that led to the question, and its answers")
        return self._protocol.aggregate(messages, self._question, self._told, counts)


def predict(protocol: OneMessage, counts: Sequence[Counts]) -> Cost:
    """Every node's message, and a question to each where there is one; nothing between nodes or before the data."""
    sizes = tuple(map(protocol.message_bytes, counts))
    asked = (protocol.question_bytes,) * len(sizes) if isinstance(protocol, OfRounds) else ()
    return Cost(2 if asked else 1, ((),) * len(sizes), sizes, 0, asked)
