"""The coordinator's part of a shuffled study: the same steps, and an estimate from the heaps of two shufflers.

*Reveals*: a heap of shares for each cell, of which it can say the noisy sum and nothing of whose is whose.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.errors import AlreadyReleased, EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.attempt import Attempt
from umpc.mpc.cost import Cost
from umpc.protocols.ghazi_shuffle.messages import Inbox, OfShufflers
from umpc.protocols.local.messages import one_message_of
from umpc.protocols.u_mpc.coordinator import CoordinatorSession
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.frames import Frame
from umpc.study.report import Measured, Report, SumReport, report_of
from umpc.study.sizes import Member, Sizes


class ShuffledCoordinator(CoordinatorSession):
    """One study, one attempt. Lists are in the study's order of nodes, or of shufflers."""

    def __init__(self, study: Study):
        super().__init__(study)
        self._protocol: OfShufflers | None = None
        self._inboxes: list[Inbox] = []

    def _check_sizes(self, members: tuple[Member, ...]) -> None:
        _ = Sizes.of(self.study, members).edges
        self._learn([member.classes for member in members])

    def _learn(self, counts: Sequence[tuple[int, int]]) -> None:
        """What follows from the numbers of records."""
        self._protocol = one_message_of(self.study, counts)
        self._protocol.check_sizes(self.names, counts)
        self._inboxes = [
            self._protocol.heap_inbox(place) for place in range(len(self.study.shufflers))
        ]

    def recall(self, answers: Sequence[m.Released]) -> bytes:
        """The attempt in which all nodes released the study. Raises: AlreadyReleased where it was not one."""
        for name, answer in zip(self.names, answers, strict=True):
            if answer.attempt != answers[0].attempt:
                raise AlreadyReleased(
                    f"{name} released the study {self.study.name!r} in another attempt than the others; give the study "
                    f"a new name to run it anew",
                    culprit=name,
                )
        self._learn(
            [(answer.first_class, answer.records - answer.first_class) for answer in answers]
        )
        return answers[0].attempt

    def check_runs(self, runs: Sequence[bytes]) -> None:
        """Both shufflers must have one order. Raises: RemoteProtocolError."""
        if len(set(runs)) != 1:
            names = " and ".join(shuffler.name for shuffler in self.study.shufflers)
            raise RemoteProtocolError(
                f"{names} have different orders, so their heaps would not add up; run the study again",
                culprit=self.study.shufflers[1].name,
                step="prepare",
            )

    def receive(self, place: int, frame: Frame) -> bool:
        """A frame of a shuffler's heap. Returns: whether the heap is complete. Raises: EncodingError."""
        self._inboxes[place].take(frame)
        return self._inboxes[place].is_complete

    @property
    def heaps_received(self) -> list[int]:
        """Bytes from either shuffler, framing included."""
        return [inbox.wire_bytes for inbox in self._inboxes]

    def finish(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        """The report of a run. Raises: RemoteProtocolError naming whose message is malformed."""
        return self._report(answers, self.attempt.id, self.attempt, measured)

    def replay(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        """The report of a study that was released before: the same stored messages shuffled anew, nothing charged."""
        return self._report(answers, answers[0].attempt, Sizes.of(self.study, answers), measured)

    def _report(
        self,
        answers: Sequence[m.Released],
        attempt: bytes,
        run: Attempt | Sizes,
        measured: Measured,
    ) -> Report:
        if self._protocol is None or not all(inbox.is_complete for inbox in self._inboxes):
            raise LocalProtocolError("the heaps come before the report")
        for name, answer in zip(self.names, answers, strict=True):
            if answer.attempt != attempt or answer.share:
                raise RemoteProtocolError(
                    f"{name} released something beside what the shufflers got",
                    culprit=name,
                    step="release",
                )
        estimate = self._protocol.aggregate(*map(self._heap, range(len(self._inboxes))))
        kernel, epsilon = self.study.parsed_kernels[0].text, float(self.study.exact_epsilon)
        one = SumReport(kernel, estimate.value, epsilon, estimate.std, 0.0)
        cost = Cost(0, (), (), 0)
        if isinstance(run, Attempt):
            cost = predict_shuffled(self._protocol, [member.classes for member in run.members])
        return report_of(self.study, [one], run, cost, measured)

    def _heap(self, place: int) -> np.ndarray:
        try:
            return self._protocol.decode_heap(self._inboxes[place].data)
        except EncodingError as error:
            name = self.study.shufflers[place].name
            raise RemoteProtocolError(
                f"{name} sent a malformed heap: {error.message}", culprit=name, step="release"
            ) from error


def predict_shuffled(protocol: OfShufflers, counts: Sequence[tuple[int, int]]) -> Cost:
    """Two rounds: every node's message to both shufflers, and the heaps of both."""
    sent = tuple(
        tuple(m.StepBytes(step, 0, size) for step, size in protocol.sent_bytes(node, both).items())
        for node, both in enumerate(counts)
    )
    return Cost(2, sent, (0,) * len(counts), 0, heaps=tuple(map(protocol.heap_bytes, (0, 1))))
