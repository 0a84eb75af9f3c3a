"""The coordinator's part of `ghazi-rounds`: a question that follows from all first messages, and the answers to it."""

from __future__ import annotations

from collections.abc import Sequence

from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.protocols.base.one_message_coordinator import OneMessageCoordinator
from umpc.protocols.ghazi_rounds.messages import OfRounds, check_records
from umpc.protocols.local.estimate import LocalEstimate
from umpc.protocols.local.messages import Counts
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.sizes import Member


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

    def hear(self, answers: Sequence[m.Answer]) -> None:
        """Raises: RemoteProtocolError naming the node whose answer is malformed."""
        if not self._question or self._told:
            raise LocalProtocolError("answers come once, after the question")
        for name, answer, first, counts in zip(
            self.names, answers, self._asked_of, self._counts, strict=True
        ):
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
            raise LocalProtocolError(
                "an estimate follows from the messages that led to the question, and its answers"
            )
        return self._protocol.aggregate(messages, self._question, self._told, counts)
