"""The node's side of a protocol: one node, one study, one attempt; no network, disk or clock.

    member = side.accept()             propose: number of records, commitment, key, signed
    opening = side.agree(members)      agree: the node's part of the joint seed
    side.sign_members()                … and its signature of all members
    side.check_agreed(signatures)      prepare: all nodes have signed the same members
    attempt = side.begin(openings)     noise is drawn before the records are looked at
    side.sign_attempt()                the node has prepared the attempt
    side.check_prepared(signatures)    evaluate: so has every other node
    side.mesh                          the part that talks to other nodes, if there is one
    side.aggregation                   the part whose vector the coordinator adds up, if any
    for _ in side.own_steps(): ...     evaluate: the work on the node's own records
    message = side.release()           release: all that leaves the node, once
    side.answer(question)              ask: in protocols with a question after the release

A call out of order is a LocalProtocolError. Randomness comes in as `entropy`, so a node is a
deterministic function of its arguments and of the messages that it receives.

*Aggregation.* The coordinator adds up the nodes' masked vectors, and tells all nodes the total.

It is a part of *evaluate*, for protocols whose sides have one:

| message | from | to |
|---|---|---|
| Part, Part, … | every node | coordinator: its masked vector, frame by frame |
| Part, Part, … | coordinator | every node: the total of all vectors, frame by frame |
| TotalSigned | every node | coordinator: the node's signature of the attempt and the total |
| TotalConfirmed | coordinator | every node: all signatures |

A node goes on only if all nodes have signed the total that it was told. So nothing leaves a node
that was computed from two different totals, and the coordinator that told them is named before
anything is charged. While a node waits for the signatures it may compute ahead: what it computes
stays in its memory, and is dropped if they are not right.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol

from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import Mesh, Message
from umpc.crypto.rounds import Protocol as Rounds
from umpc.errors import LocalProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk
from umpc.mpc.masked.tasks import OwnerBatch
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender
from umpc.protocols.base.seed_agreement import SeedAgreement
from umpc.study import messages as m
from umpc.study.attempt import Attempt, attempt_statement
from umpc.study.messages import Frame
from umpc.study.sizes import Member


class MeshSide(Protocol):
    """The part of a node's side that exchanges messages with other nodes, round by round.

    A method that is not overridden does nothing: a protocol may lack dealer, transfers or chunks.
    """

    index: int

    @property
    def attempt(self) -> SharedAttempt: ...

    @property
    def peers(self) -> tuple[int, ...]:
        """The nodes with which this node exchanges messages."""
        ...

    @property
    def tosses_early(self) -> bool:
        """Whether `set_up` and `toss` may come before the seed, which the dealer sends."""
        return False

    def receive_seed(self, node_seed: bytes) -> None:
        """The seed of all that this node keeps secret in its cells."""
        ...

    def set_up(self, peer: int) -> Rounds[None] | None:
        """The messages between this node and a peer that go before all data, if any."""
        ...

    def toss(self) -> Mesh[None] | None:
        """The committee's noise from transfers; None where this node has no part in it."""
        ...

    def fields_for(self, peer: int) -> list[Message]:
        """Round 1: this node's records that occur in an edge with the peer."""
        ...

    def due_fields(self, peer: int) -> list[Message]:
        """The messages that the peer must send in round 1, without their content."""
        ...

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """Round 1 from a peer. Raises: EncodingError, RemoteProtocolError."""
        ...

    def protocol(
        self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash
    ) -> Rounds[Any] | Mesh[Any]:
        """The further rounds of one chunk, once; the result goes to `add`.

        They are a mesh where the plan's messages are `addressed`.
        """
        raise LocalProtocolError("this protocol has no chunks")

    def add(self, chunk: Chunk, shares: Any) -> None:
        """A chunk's result."""
        ...

    def batch(self, chunks: Sequence[Chunk], materials: Sequence[bytes]) -> OwnerBatch | None:
        """The rounds of chunks as a value that another process or machine may compute.

        They have the same plan, and this node is the same party in all of them. None: by
        `protocol` only.
        """
        ...

    @property
    def channel_peers(self) -> tuple[int, ...]:
        """The nodes to which it needs a channel of transfers, one for each pair of nodes."""
        return ()

    def channel(self, peer: int) -> CorrelatedSender | CorrelatedReceiver:
        """Its end of the channel to a peer, after all set-ups."""
        raise LocalProtocolError("this protocol has no transfers")

    def take_up(self, peer: int, channel: CorrelatedSender | CorrelatedReceiver) -> None:
        """Use a channel that was made before this attempt, once, in place of `set_up`."""
        ...

    @property
    def asks_early(self) -> bool:
        """Whether a dealer is surely needed, so that it can be asked before E is known."""
        return False

    @property
    def members(self) -> tuple[Member, ...]:
        """All members, once they have agreed."""
        ...


class NodeAggregation(Protocol):
    """The part of a node's side that has its vector added to those of all other nodes.

    exchanges: how often `masked` leaves; once, unless nodes may lie.
    answers: how often an answer is taken; less often where other nodes check for this one.
    asks: the exchange in which the dealer is asked about what was said, before the answer is taken;
        0 for none.
    """

    exchanges: int = 1
    answers: int = 1
    asks: int = 0

    def masked(self) -> Iterator[Frame]:
        """The node's masked vector, once, or what it says in the next exchange."""
        ...

    def take(self, frame: Frame) -> bool:
        """Take the next frame of the exchange's answer, such as the total.

        Returns: whether it was the last one.
        Raises: RemoteProtocolError naming the coordinator.
        """
        ...

    def hear(self, frame: Frame, dealer: bytes) -> bool:
        """Take the next frame of the dealer's answer. Returns: whether it was the last one.

        Args: dealer: the dealer's certificate.
        """
        raise LocalProtocolError("no dealer is asked about this total")

    def sign(self) -> bytes:
        """The node's signature of the attempt and the total."""
        ...

    def confirm(self, signatures: Sequence[bytes]) -> None:
        """Check that all nodes were told one total, and compute what follows from it.

        Raises: RemoteProtocolError naming the coordinator.
        """
        ...


class NodeSide(SeedAgreement, ABC):
    """One node's part of one attempt. Args: as in SeedAgreement."""

    own_protocol: Any
    """The study's `StudyProtocol`, which makes this side and has the coordinator's, too."""
    _attempt: Attempt | None = None

    @property
    def mesh(self) -> MeshSide | None:
        """The part that talks to other nodes; None where a node talks to no other node."""
        return None

    @property
    def aggregation(self) -> NodeAggregation | None:
        """The part whose masked vector the coordinator adds up; None without one."""
        return None

    @property
    def attempt(self) -> Attempt:
        if self._attempt is None:
            raise LocalProtocolError("the attempt has not begun")
        return self._attempt

    @abstractmethod
    def begin(self, openings: Sequence[bytes]) -> Attempt:
        """Check everybody's opening, and do all that needs no records.

        Raises: RemoteProtocolError where an opening does not fit.
        """

    def _begin(self, openings: Sequence[bytes]) -> Attempt:
        """The attempt, once. Raises: also TooFewRecords, RangeError."""
        if self._attempt is not None:
            raise LocalProtocolError("begin comes once, after agree")
        attempt: Attempt = self.own_protocol.attempt(self.study, self._agreed(openings), openings)
        # spec/joint_seed.py, `prepare`
        _ = attempt.sizes.edges  # too few records are refused before anything is charged
        return attempt

    def sign_attempt(self) -> bytes:
        """The node's signature of the attempt, which it has prepared."""
        # spec/joint_seed.py, `attempt_statement`
        return self._own.sign(attempt_statement(self.attempt.id))

    def check_prepared(self, signatures: Sequence[bytes]) -> None:
        """Check that all nodes have prepared this attempt. Nothing uses data before.

        Raises: RemoteProtocolError where another node has signed another attempt, or none.
        """
        # all derived one E and one plan, or nobody goes on
        statement = attempt_statement(self.attempt.id)
        self._check_signatures("this attempt", statement, signatures, "evaluate")

    @property
    def delta(self) -> Fraction:
        """δ of the release, which the ledger reserves before any record is looked at."""
        found: Fraction = self.own_protocol.delta(self.attempt.sizes)
        return found

    @abstractmethod
    def own_steps(self) -> Iterator[None]:
        """The work on the node's own records, in steps after which the driver may stop."""

    @abstractmethod
    def release(self) -> m.Released | m.Delivery:
        """All that leaves the node, once. The ledger keeps it, and later sends it again."""

    def answer(self, question: bytes) -> bytes:
        """The answer to a question after the release. Raises: LocalProtocolError without one."""
        raise LocalProtocolError("this protocol asks no question")

    @property
    def rest(self) -> bytes:
        """All that a later process of this node needs for its answer, after the release.

        The ledger keeps it under a pad of its key; it never leaves the node. The table is not read
        again: whether it has changed is nobody else's business.
        """
        return b""

    def recall(self, share: bytes, rest: bytes) -> None:
        """Take up the attempt that released this share, to answer its question later.

        The side was made without records. Args: rest: as that attempt's side had it.

        Raises: LocalProtocolError without a question.
        """
        raise LocalProtocolError("this protocol asks no question")

    def _released(self, share: bytes) -> m.Released:
        """The message that releases a share."""
        member = self._member
        return m.Released(self.attempt.id, share, self.records, member.first_class)
