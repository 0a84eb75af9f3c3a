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

Lists of all nodes may come in pieces (`umpc/proto/pieces.py`).

A node may send Progress at any time and ends with Failure. A coordinator ends with Abort or by
closing the stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from umpc.study.frames import Frame
from umpc.study.sizes import Member


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

    openings: tuple[bytes, ...]
    signatures: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"Begin({len(self.openings)} openings)"


@dataclass(frozen=True)
class Evaluate:
    """Work on the data. signatures: every node's, of the attempt."""

    signatures: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"Evaluate({len(self.signatures)} signatures)"


@dataclass(frozen=True)
class Part:
    """A frame of a node's masked vector, or of the total of all nodes' vectors."""

    frame: Frame


@dataclass(frozen=True)
class TotalSigned:
    """A node's signature of the total that it was told."""

    signature: bytes

    def __repr__(self) -> str:
        return "TotalSigned(<64 bytes>)"


@dataclass(frozen=True)
class TotalConfirmed:
    """Everybody's signatures of the total, for everybody."""

    signatures: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"TotalConfirmed({len(self.signatures)} signatures)"


@dataclass(frozen=True)
class Release:
    """Charge, and release the share."""


@dataclass(frozen=True)
class Ask:
    """A question that follows from what all nodes released."""

    question: bytes

    def __repr__(self) -> str:
        return f"Ask({len(self.question)} bytes)"


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

    opening: bytes
    signature: bytes

    def __repr__(self) -> str:
        return "Opened(<32 bytes>)"


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
    """

    attempt: bytes
    share: bytes
    records: int
    first_class: int = 0
    sent: tuple[StepBytes, ...] = ()
    missing: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Released(attempt={self.attempt.hex()[:8]}, share=<redacted>)"


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

    answer: bytes

    def __repr__(self) -> str:
        return "Answer(answer=<redacted>)"


@dataclass(frozen=True)
class Delivery:
    """A node's message for the shufflers, as its ledger keeps it: masked, with the pad's seed.

    signatures: every node's, of all members.
    """

    attempt: bytes
    members: tuple[Member, ...]
    openings: tuple[bytes, ...]
    masked: bytes
    seed: bytes
    signatures: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"Delivery(attempt={self.attempt.hex()[:8]}, <redacted>)"


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
