"""The points between both sites, the two lists that leave them, and the number from these.

Each site releases what it made of the other site's points: the first LEFT_BYTES bytes of each, in
the order of bytes. The coordinator counts the values that both lists have. Two different points
agree in these bytes with a probability of 2^-48. So two lists of 10^5 count one person too many in
about one study of 28,000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from umpc.crypto.ring import RINGS
from umpc.crypto.rounds import Message
from umpc.dp.random_bits import RandomBits
from umpc.errors import LocalProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.transfers.message_shapes import POINT_BYTES
from umpc.protocols.base.one_message import OneMessage
from umpc.protocols.overlap.settings import most_hidden, noise_of, points_of
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.messages import StepBytes, frame_of
from umpc.study.sizes import ClassCounts, Member
from umpc.ustat.clear import Columns

FRAME_BYTES = POINT_BYTES << 12
LEFT_BYTES = 6
"""The bytes of a point that a site releases."""
WORK_OF_POINT = 1 << 6
"""A point takes as long as so many records of other studies, about."""


class OverlapAttempt(SharedAttempt):
    """One comparison: round 1 between both sites, and no edge that they share."""

    def __init__(self, study: Study, members: Sequence[Member], openings: Sequence[bytes]):
        super().__init__(study, members, openings, RINGS[-1])

    @property
    def size(self) -> int:
        return WORK_OF_POINT * sum(points_of(self.study, each.records) for each in self.members)

    def peers(self, node: int) -> tuple[int, ...]:
        return (1 - node,)


def framed(points: bytes) -> list[Message]:
    """Round 1: a site's points, frame by frame."""
    parts = [points[at : at + FRAME_BYTES] for at in range(0, len(points), FRAME_BYTES)]
    return [
        Message("masked_fields", part, len(part) // POINT_BYTES, 8 * POINT_BYTES) for part in parts
    ]


def due_points(study: Study, records: int) -> list[Message]:
    """Round 1 of a site with so many people, with zero bytes as content."""
    return framed(bytes(POINT_BYTES * points_of(study, records)))


def cut(payload: bytes, size: int) -> list[bytes]:
    """A payload's values of so many bytes each."""
    return [payload[at : at + size] for at in range(0, len(payload), size)]


def cost_of(attempt: Attempt) -> Cost:
    """Rounds and bytes, exactly."""
    sent = []
    for member in attempt.members:
        due = enumerate(due_points(attempt.study, member.records))
        frames = [frame_of(message, (0, 1), number) for number, message in due]
        sent.append((StepBytes("masked_fields", 0, sum(each.wire_bytes for each in frames)),))
    # each site has masked the other one's points
    released = map(SharedPeople(attempt.study).message_bytes, attempt.counts[::-1])
    return Cost(2, tuple(sent), tuple(released), 0)


@dataclass(frozen=True)
class NoisyMean:
    """The noisy number for each record of both sites, as the mean that a report multiplies."""

    value: float
    std: float
    step: float
    shape: float


@dataclass(frozen=True)
class SharedPeople(OneMessage):
    """A released list, and the number of values that both lists have."""

    study: Study
    smaller_by = "a larger epsilon, which needs fewer dummies; compare a part of it, with where"

    def randomise(self, columns: Columns, counts: ClassCounts, bits: RandomBits) -> bytes:
        raise LocalProtocolError("a site of a comparison releases the other site's points")

    def message_bytes(self, counts: ClassCounts) -> int:
        return LEFT_BYTES * points_of(self.study, sum(counts))

    def check(self, message: bytes, counts: ClassCounts) -> None:
        """Any bytes may be those of points; a value that comes twice counts once."""

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[ClassCounts]) -> NoisyMean:
        # spec/overlap.py, `number`
        first, second = (set(cut(each, LEFT_BYTES)) for each in messages)
        number = len(first & second) - 2 * most_hidden(self.study)
        records, law = sum(map(sum, counts)), noise_of(self.study)
        return NoisyMean(number / records, law.std / records, 1 / records, law.shape)

    def predicted_std(self, columns: Columns, first: int) -> float:
        return noise_of(self.study).std
