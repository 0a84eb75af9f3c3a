"""The coordinator's side of a protocol that asks: one question from all first messages.

side.ask(released)         ask: the same question from the same messages, also in a replay
side.hear(answers)
side.finish(released, …)   or replay
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.crypto.signing import Verify
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.protocols.base.coordinator import counts_of
from umpc.protocols.base.one_message import MessageEstimate
from umpc.protocols.base.one_message_protocol import OneMessageCoordinator
from umpc.study import messages as m
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.making_report import Limits
from umpc.study.sizes import ClassCounts, Member
from umpc_papers.asking import AskingMessages


class RoundsCoordinator(OneMessageCoordinator):
    """One study, one attempt. Args: as in OneMessageCoordinator."""

    _messages: AskingMessages

    def __init__(self, study: Study, verify: Verify, messages: AskingMessages):
        super().__init__(study, verify, messages)
        self._question = b""
        self._answers: list[bytes] = []

    def check_sizes(self, members: Sequence[Member]) -> None:
        super().check_sizes(members)
        self._messages.check_records([member.classes for member in members])

    def ask(self, answers: Sequence[m.Released]) -> m.Ask:
        """Raises: RemoteProtocolError naming whose message is malformed; AlreadyReleased."""
        if self._question:
            raise LocalProtocolError("one question is asked")
        if self._attempt is not None:
            attempt = self._attempt.id
            counts = self._attempt.counts
        else:
            attempt = answers[0].attempt
            counts = counts_of(answers)
        self._check_messages(answers, attempt, counts)
        self._asked_of = [answer.share for answer in answers]
        self._counts = counts
        self._question = self._messages.question(self._asked_of, counts)
        return m.Ask(self._question)

    def hear(self, answers: Sequence[m.Answer]) -> None:
        """Raises: RemoteProtocolError naming the node whose answer is malformed."""
        if not self._question or self._answers:
            raise LocalProtocolError("answers come once, after the question")
        rows = zip(self.names, answers, self._asked_of, self._counts, strict=True)
        for name, answer, first, counts in rows:
            try:
                self._messages.check_answer(first, answer.answer, counts)
            except EncodingError as error:
                raise RemoteProtocolError(
                    f"{name} sent a malformed answer: {error.message}", culprit=name, step="ask"
                ) from error
        self._answers = [answer.answer for answer in answers]

    def _cost(self, counts: Sequence[ClassCounts]) -> Cost:
        return cost_of_rounds(self._messages, counts)

    def _check_share(self, share: bytes, counts: ClassCounts) -> None:
        self._messages.check(share, counts)

    def _estimate(
        self, messages: Sequence[bytes], counts: Sequence[ClassCounts]
    ) -> MessageEstimate:
        if not self._answers or list(messages) != self._asked_of:
            raise LocalProtocolError(
                "an estimate follows from the messages that led to the question, and its answers"
            )
        return self._messages.estimate(messages, self._question, self._answers, counts)

    def _possible(self, counts: Sequence[ClassCounts]) -> tuple[float, float]:
        return self._messages.possible_after(self._asked_of, self._question, counts)

    def _limits(self, messages: Sequence[bytes], counts: Sequence[ClassCounts]) -> Limits | None:
        return self._messages.limits_after(messages, self._question, self._answers, counts)


def cost_of_rounds(messages: AskingMessages, counts: Sequence[ClassCounts]) -> Cost:
    """The cost of both messages of every node, and of the question to each."""
    sizes = tuple(map(messages.message_bytes, counts))
    asked = (messages.question_bytes,) * len(sizes)
    return Cost(2, ((),) * len(sizes), sizes, 0, asked)
