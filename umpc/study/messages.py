"""The messages between coordinator and node in one study, step by step (docs/protocol.md).

| coordinator | node | step |
|---|---|---|
| Propose | Accepted; Released, or Held, where an attempt was finished before | propose |
| Drop, after Held | Accepted | propose |
| Agree | Opened | agree |
| Begin | Prepared | prepare |
| Evaluate | Ready; Parts, where the coordinator adds up masked vectors | evaluate |
| Parts of the total, after Parts | TotalSigned | evaluate |
| TotalConfirmed, after TotalSigned | Ready | evaluate |
| Park, in place of Evaluate | Parked | park |
| Release, also after Held | Released | release |
| Ask, where the protocol asks | Answer | ask |

In the run of a study that was prepared ahead, Accepted says what waits. Evaluate comes next where
it waits at every node, else Agree.

In a replay with shufflers, Released answers Propose, and once more Release: the stored message has
then gone to the shufflers again.

Lists of all nodes may come in pieces (`umpc/proto/codec.py`).

A node may send Progress at any time and ends with Failure. A coordinator ends with Abort or by
closing the stream.

*Frames.* A message on the wire between nodes, or from the dealer: its place, and its packed bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from umpc.crypto.rounds import Message
from umpc.study.sizes import Member
from umpc.ustat.cell_rows import Owners


@dataclass(frozen=True)
class Propose:
    """ahead: to prepare the study now and run it later."""

    study: bytes
    ahead: bool = False


@dataclass(frozen=True)
class Agree:
    """Everybody's members, for everybody."""

    members: tuple[Member, ...]


@dataclass(frozen=True)
class Begin:
    """Everybody's openings, and signatures of all members, for everybody."""

    openings: tuple[bytes, ...] = field(repr=False)
    signatures: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True)
class Evaluate:
    """Work on the data. signatures: every node's, of the attempt."""

    signatures: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True)
class Part:
    """A frame of a node's masked vector, or of the total of all nodes' vectors."""

    frame: Frame


@dataclass(frozen=True)
class TotalSigned:
    """A node's signature of the total that it was told."""

    signature: bytes = field(repr=False)


@dataclass(frozen=True)
class TotalConfirmed:
    """Everybody's signatures of the total, for everybody."""

    signatures: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True)
class Release:
    """Charge, and release the share."""


@dataclass(frozen=True)
class Ask:
    """A question that follows from what all nodes released."""

    question: bytes = field(repr=False)


@dataclass(frozen=True)
class Park:
    """Keep the prepared attempt for a later run."""


@dataclass(frozen=True)
class Abort:
    """The study ends; culprit: the process at fault, if it is known.

    keep: a node that holds a finished attempt keeps it, because another node may have charged.
    """

    culprit: str
    reason: str
    keep: bool = False


@dataclass(frozen=True)
class Drop:
    """Give up the held attempt and take part in a new one: no node has charged for it."""


@dataclass(frozen=True)
class Opened:
    """The node's part of the joint seed, and its signature of all members."""

    opening: bytes = field(repr=False)
    signature: bytes = field(repr=False)


@dataclass(frozen=True)
class Prepared:
    """The attempt that the node derived. ahead: it was prepared before this run.

    signature: the node's, of the attempt.
    """

    attempt: bytes
    bytes_received: int
    ahead: bool = False
    signature: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class WaitingAttempt:
    """The messages of a node in the preparation of a study that now runs: its attempt waits.

    seconds: since the preparation, whose records the run is over; 0 where the node does not say.
    """

    opened: Opened
    prepared: Prepared
    seconds: int = 0


@dataclass(frozen=True)
class Accepted:
    """The node takes part. waiting: what it has prepared for this run, if it has."""

    study_hash: bytes
    member: Member
    waiting: WaitingAttempt | None = None


@dataclass(frozen=True)
class Parked:
    """The bytes that wait on the node's disk, and for how many seconds at most."""

    bytes: int
    seconds: int


@dataclass(frozen=True)
class StepBytes:
    """The bytes of one step's round, to all peers together."""

    step: str
    round: int
    bytes: int


@dataclass(frozen=True)
class Ready:
    """The node has evaluated everything.

    sent: bytes on data, in ascending order of (number of the step, round).
    bytes_received: before the data.
    """

    sent: tuple[StepBytes, ...]
    bytes_received: int
    rounds: int


@dataclass(frozen=True)
class Released:
    """A node's noisy share of each sum, masked by its zero shares.

    records: the number of records that the node contributed.
    share: empty where shufflers got the node's message, `sent` counts its bytes; and where the node
        released the study with other survivors than the proposal has, so that nothing leaves.
    missing: the names of the nodes that its attempt left out.
    policy: which rules of the site let the attempt through, in words; empty from versions of
        before, which do not say.
    """

    attempt: bytes
    share: bytes = field(repr=False)
    records: int
    first_class: int = 0
    sent: tuple[StepBytes, ...] = ()
    missing: tuple[str, ...] = ()
    policy: str = ""


@dataclass(frozen=True)
class Held:
    """The node has a finished attempt of the proposed study, and has not charged for it.

    records, first_class, missing: as Released will say.
    """

    attempt: bytes
    records: int
    first_class: int = 0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The answer to the first question. Another question has no answer."""

    answer: bytes = field(repr=False)


@dataclass(frozen=True)
class Delivery:
    """A node's message for the shufflers, as its ledger keeps it: masked, with the pad's seed.

    signatures: every node's, of all members. policy: as `Released` will say.
    """

    attempt: bytes
    members: tuple[Member, ...]
    openings: tuple[bytes, ...] = field(repr=False)
    masked: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    signatures: tuple[bytes, ...] = field(repr=False)
    policy: str = ""


@dataclass(frozen=True)
class Progress:
    """How much of a step is done."""

    step: str
    done: int
    total: int


@dataclass(frozen=True)
class Failure:
    """The node's study failed: the class of the error, and its public text."""

    error: str
    message: str
    culprit: str
    step: str


CoordinatorMessage = (
    Propose | Drop | Agree | Begin | Evaluate | Part | TotalConfirmed | Park | Release | Ask | Abort
)
NodeMessage = (
    Accepted
    | Held
    | Opened
    | Prepared
    | Part
    | TotalSigned
    | Parked
    | Ready
    | Released
    | Answer
    | Progress
    | Failure
)


# --- frames ---------------------------------------------------------------------------------------

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
    "list": 21,
    "opening": 22,
    "inverses": 23,
    "proof": 24,
    "answer": 25,
    "statement": 26,
    "commitment": 27,
}
"""The names of the steps and their numbers on the wire."""
FROM_OTHERS = frozenset({"node_seed", "material", "heap"})
"""The steps that a dealer or a shuffler sends."""
TO_SHUFFLERS = frozenset({"shares", "pad"})
WITH_COORDINATOR = frozenset(
    {"histogram", "total", "list", "opening", "inverses", "proof", "statement", "answer"}
    | {"commitment"}
)
"""The steps of an aggregation: masked vectors to the coordinator, their total from it, and where
nodes may lie what each says besides, and the dealer's answer about it."""
BETWEEN_NODES = frozenset(STEPS) - FROM_OTHERS - TO_SHUFFLERS - WITH_COORDINATOR
TOGETHER = {
    "ot_extend": ("labels", 0),
    "pad": ("shares", 0),
    "total": ("histogram", 0),
    "list": ("histogram", 0),
    "opening": ("histogram", 0),
    "proof": ("inverses", 0),
    "statement": ("inverses", 0),
}
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
    payload: bytes = field(repr=False)
    round: int = 0

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
