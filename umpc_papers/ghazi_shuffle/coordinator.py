"""The coordinator's side of `ghazi-shuffle`: an estimate from the heaps of two shufflers.

*Reveals*: the coordinator gets a heap of shares for each cell. It learns the noisy sums, and
nothing of whose is whose.
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.crypto.signing import Verify
from umpc.errors import AlreadyReleased, LocalProtocolError, RemoteProtocolError
from umpc.protocols.base.coordinator import CoordinatorSide, Finished, HeapSide, counts_of
from umpc.protocols.base.one_message_protocol import sum_report
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.cost import NO_COST, Cost, Measured
from umpc.study.document import Study
from umpc.study.making_report import impossible, report_of
from umpc.study.messages import Frame
from umpc.study.report import Report
from umpc.study.sizes import ClassCounts, Member, Sizes
from umpc_papers.ghazi_shuffle.inbox import HeapInbox
from umpc_papers.ghazi_shuffle.messages import ShuffleMessages, shuffle_messages
from umpc_papers.ghazi_shuffle.mixing import delta_of_mixing


class ShuffleCoordinator(CoordinatorSide):
    """One study, one attempt. Lists are in the study's order of nodes, or of shufflers."""

    def __init__(self, study: Study, verify: Verify):
        super().__init__(study, verify)
        self._messages: ShuffleMessages | None = None
        self._inboxes: list[HeapInbox] = []

    @property
    def heaps(self) -> HeapSide:
        return self

    def check_sizes(self, members: Sequence[Member]) -> None:
        _ = Sizes.of(self.study, members).edges
        self._learn([member.classes for member in members])

    def _learn(self, counts: Sequence[ClassCounts]) -> None:
        """Take the numbers of records, from which the sizes of the heaps follow."""
        self._messages = shuffle_messages(self.study, counts)
        self._messages.check_sizes(self.names, counts)
        places = range(len(self.study.shufflers))
        self._inboxes = [self._messages.heap_inbox(place) for place in places]

    def recall(self, answers: Sequence[Finished]) -> bytes:
        """The attempt that all nodes have finished. Raises: AlreadyReleased."""
        for name, answer in zip(self.names, answers, strict=True):
            if answer.attempt != answers[0].attempt:
                raise AlreadyReleased(
                    f"{name} released the study {self.study.name!r} in another attempt than the "
                    f"others; give the study a new name to run it anew",
                    culprit=name,
                )
        self._learn(counts_of(answers))
        return answers[0].attempt

    def check_runs(self, runs: Sequence[bytes]) -> None:
        """Both shufflers must have one order. Raises: RemoteProtocolError."""
        if len(set(runs)) != 1:
            names = " and ".join(shuffler.name for shuffler in self.study.shufflers)
            raise RemoteProtocolError(
                f"{names} have different orders, so their heaps would not add up; run the study "
                f"again",
                culprit=self.study.shufflers[1].name,
                step="prepare",
            )

    def receive(self, place: int, frame: Frame) -> bool:
        """A frame of a shuffler's heap. Returns: whether the heap is complete.

        Raises: EncodingError.
        """
        self._inboxes[place].take(frame)
        return self._inboxes[place].is_complete

    @property
    def heaps_received(self) -> list[int]:
        """The bytes from either shuffler, framing included."""
        return [inbox.wire_bytes for inbox in self._inboxes]

    def finish(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        attempt = self.attempt
        cost = NO_COST
        if self._messages is not None:
            cost = cost_of_shuffling(self._messages, attempt.counts)
        return self._report(answers, attempt.id, attempt, measured, cost)

    def replay(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        sizes = Sizes.of(self.study, answers)
        return self._report(answers, answers[0].attempt, sizes, measured, NO_COST)

    def _report(
        self,
        answers: Sequence[m.Released],
        attempt: bytes,
        run: Attempt | Sizes,
        measured: Measured,
        cost: Cost,
    ) -> Report:
        if self._messages is None or not all(inbox.is_complete for inbox in self._inboxes):
            raise LocalProtocolError("the heaps come before the report")
        for name, answer in zip(self.names, answers, strict=True):
            if answer.attempt != attempt or answer.share:
                raise RemoteProtocolError(
                    f"{name} released something beside what the shufflers got",
                    culprit=name,
                    step="release",
                )
        first, second = (inbox.sums for inbox in self._inboxes)
        if not self._messages.is_possible(first, second):
            limit = (
                f"a cell's count lies in 0 .. {self._messages.protocol.records}, but for its noise"
            )
            raise impossible(self.study, limit)
        one = sum_report(self.study, self._messages.aggregate(first, second))
        delta = delta_of_mixing(self.study.exact_epsilon)
        limits = self._messages.protocol.cells.limits()
        return report_of(self.study, [one], run, delta, measured, cost, limits)


def cost_of_shuffling(messages: ShuffleMessages, counts: Sequence[ClassCounts]) -> Cost:
    """The cost of two rounds: every node's message to both shufflers, and the heaps of both."""
    sent = tuple(
        tuple(m.StepBytes(step, 0, size) for step, size in messages.sent_bytes(node, both).items())
        for node, both in enumerate(counts)
    )
    heaps = tuple(map(messages.heap_bytes, (0, 1)))
    return Cost(2, sent, (0,) * len(counts), 0, heaps=heaps)
