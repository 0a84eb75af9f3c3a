"""What coordinator and node say to each other in one study, step by step (docs/protocol.md).

| coordinator | node | step |
|---|---|---|
| Propose | Accepted, or Released where the study was released before | propose |
| Agree | Opened | agree |
| Begin | Prepared | prepare |
| Evaluate | Ready | evaluate |
| Park, in place of Evaluate | Parked | park |
| Release | Released | release |
| Ask, where the protocol asks | Answer | ask |

Of a shuffled study Released comes in answer to Propose too, and then once more to Release, when the stored message has
gone to the shufflers again.

A node may send Progress at any time and ends with Failure; a coordinator ends with Abort or by closing the stream.
"""

from __future__ import annotations

from dataclasses import dataclass

from umpc.study.sizes import Member


@dataclass(frozen=True)
class Propose:
    """ahead: to prepare the study now and run it later."""

    study: bytes
    ahead: bool = False


@dataclass(frozen=True)
class Agree:
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Begin:
    openings: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"Begin({len(self.openings)} openings)"


@dataclass(frozen=True)
class Evaluate:
    pass


@dataclass(frozen=True)
class Release:
    pass


@dataclass(frozen=True)
class Ask:
    """A question that follows from what all nodes released."""

    question: bytes

    def __repr__(self) -> str:
        return f"Ask({len(self.question)} bytes)"


@dataclass(frozen=True)
class Park:
    pass


@dataclass(frozen=True)
class Abort:
    culprit: str
    reason: str


@dataclass(frozen=True)
class Accepted:
    study_hash: bytes
    member: Member


@dataclass(frozen=True)
class Opened:
    opening: bytes

    def __repr__(self) -> str:
        return "Opened(<32 bytes>)"


@dataclass(frozen=True)
class Prepared:
    """ahead: it was, before this run."""

    attempt: bytes
    bytes_received: int
    ahead: bool = False


@dataclass(frozen=True)
class Parked:
    """bytes: that wait on the node's disk, for at most so many seconds."""

    bytes: int
    seconds: int


@dataclass(frozen=True)
class StepBytes:
    """Bytes of the frames of one step's round, to all peers together."""

    step: str
    round: int
    bytes: int


@dataclass(frozen=True)
class Ready:
    """sent: on data, in ascending order of (number of the step, round). bytes_received: before the data."""

    sent: tuple[StepBytes, ...]
    bytes_received: int
    rounds: int


@dataclass(frozen=True)
class Released:
    """A node's noisy share of each sum, masked by its zero shares. `records` is what the node contributed.

    Of a shuffled study the share is empty: it went to the shufflers, as `sent` counts.
    """

    attempt: bytes
    share: bytes
    records: int
    first_class: int = 0
    sent: tuple[StepBytes, ...] = ()

    def __repr__(self) -> str:
        return f"Released(attempt={self.attempt.hex()[:8]}, share=<redacted>)"


@dataclass(frozen=True)
class Answer:
    """The answer to Ask; to another question than the first there is none."""

    answer: bytes

    def __repr__(self) -> str:
        return "Answer(answer=<redacted>)"


@dataclass(frozen=True)
class Delivery:
    """What a node gives to the shufflers, as it keeps it: its message under a pad, and the pad's seed."""

    attempt: bytes
    members: tuple[Member, ...]
    openings: tuple[bytes, ...]
    masked: bytes
    seed: bytes

    def __repr__(self) -> str:
        return f"Delivery(attempt={self.attempt.hex()[:8]}, <redacted>)"


@dataclass(frozen=True)
class Progress:
    step: str
    done: int
    total: int


@dataclass(frozen=True)
class Failure:
    error: str
    message: str
    culprit: str
    step: str


CoordinatorMessage = Propose | Agree | Begin | Evaluate | Park | Release | Ask | Abort
NodeMessage = Accepted | Opened | Prepared | Parked | Ready | Released | Answer | Progress | Failure
