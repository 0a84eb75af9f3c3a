"""A message on the wire between nodes, or from the dealer: its place, and its packed bytes."""

from __future__ import annotations

from dataclasses import dataclass

from umpc.crypto.rounds import Message
from umpc.ustat.hypergraph import Owners

MAX_PAYLOAD = 1 << 20
"""Largest payload in bytes; checked before anything is allocated."""

ONE_BYTE = 1 << 7
"""The first number that protobuf writes in two bytes."""

Key = tuple[str, int, Owners, int]
"""(step, round, owners, chunk): each occurs once."""

STEPS = {
    "node_seed": 1,
    "material": 2,
    "masked_fields": 3,
    "open": 4,
    "ot_offer": 5,
    "ot_choice": 6,
    "ot_trees": 7,
    "ot_extend": 8,
    "labels": 9,
    "garbled": 10,
    "coins": 11,
    "shares": 12,
    "pad": 13,
    "heap": 14,
    "ot_multiples": 15,
    "ot_open_bits": 16,
    "histogram": 17,
    "total": 18,
    "triples": 19,
    "toss": 20,
}
"""The names of the steps and their numbers on the wire."""
FROM_OTHERS = frozenset({"node_seed", "material", "heap"})
"""The steps that a dealer or a shuffler sends."""
TO_SHUFFLERS = frozenset({"shares", "pad"})
WITH_COORDINATOR = frozenset({"histogram", "total"})
"""The steps of an aggregation: masked vectors to the coordinator, and their total from it."""
BETWEEN_NODES = frozenset(STEPS) - FROM_OTHERS - TO_SHUFFLERS - WITH_COORDINATOR
TOGETHER = {"ot_extend": ("labels", 0), "pad": ("shares", 0), "total": ("histogram", 0)}
"""Steps that share the round of another step.

Both nodes of a link, or one node to both shufflers, send them at once. A total answers the masked
vectors of its round.
"""


@dataclass(frozen=True)
class Frame:
    """`count` values of `width` bits for one chunk of one cell (material, open: `count` edges).

    owners: those of the cell; for a message that is sent once per link, the link's two nodes.
    round: the round of the step, from 1; 0 where there is only one.
    """

    step: str
    owners: Owners
    chunk: int
    count: int
    width: int
    payload: bytes
    round: int = 0

    def __repr__(self) -> str:
        return f"Frame({self.label}, {self.count} × {self.width} bits)"

    @property
    def label(self) -> str:
        """The frame's place, as errors name it."""
        step = f"{self.step} {self.round}" if self.round else self.step
        return f"{step} of cell {self.owners}, chunk {self.chunk}"

    @property
    def key(self) -> Key:
        return self.step, self.round, self.owners, self.chunk

    @property
    def round_of_study(self) -> tuple[str, int]:
        """The place by which rounds are counted: frames that leave at once share it."""
        return round_of(self.step, self.round)

    @property
    def message(self) -> Message:
        """The message that the frame carries."""
        return Message(self.step, self.payload, self.count, self.width, self.round)

    @property
    def wire_bytes(self) -> int:
        return frame_bytes(
            self.step,
            self.owners,
            self.chunk,
            self.count,
            self.width,
            len(self.payload),
            self.round,
        )


def round_of(step: str, round: int) -> tuple[str, int]:
    """The place by which rounds are counted."""
    return TOGETHER.get(step, (step, round))


def frame_of(message: Message, owners: Owners, number: int) -> Frame:
    """A message of a round as chunk `number` of a cell (or of a link)."""
    return Frame(
        message.step, owners, number, message.count, message.width, message.payload, message.round
    )


def key_of(message: Message, owners: Owners, number: int) -> Key:
    """The key of `frame_of` these, without the frame."""
    return message.step, message.round, owners, number


def frame_bytes(
    step: str, owners: Owners, chunk: int, count: int, width: int, payload: int, round: int = 0
) -> int:
    """The bytes of a frame as protobuf sends it.

    They follow from the frame's shape alone, so costs can be predicted.
    """
    size = 2  # the step's number is below 128
    for number in (round, chunk, count, width):
        if number:
            size += 2 if number < ONE_BYTE else 1 + _varint_bytes(number)
    if owners:
        size += 2 + (len(owners) if max(owners) < ONE_BYTE else sum(map(_varint_bytes, owners)))
    return size + (1 + _varint_bytes(payload) + payload if payload else 0)


def _varint_bytes(number: int) -> int:
    return 1 if number < ONE_BYTE else (number.bit_length() + 6) // 7
