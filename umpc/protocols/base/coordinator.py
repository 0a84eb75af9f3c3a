"""The coordinator's side of a protocol: one study, one attempt; no network, disk or clock.

    side.propose()                    propose
    side.state(answers)            is there an attempt to finish, to drop, or to show again?
    agree = side.agree(answers)       agree: everybody's members, or None for a replay
    prepared = side.resume(answers)   … or all of them have prepared one, and evaluate comes next
    begin = side.begin(opened)        prepare: everybody's openings
    side.check_prepared(prepared)     all nodes derived the same attempt, and signed it
    evaluate = side.evaluate()        evaluate: everybody's signatures of the attempt
    ask = side.ask(released)          a question after the release, in protocols that have one
    side.hear(answers)
    report = side.finish(released, measured)      or side.replay(...)

A coordinator holds no secret. Lists are in the study's order of nodes. It checks each signature
where it comes from, so it names the node that sent a wrong one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Protocol, cast

from umpc.crypto.signing import Verify
from umpc.errors import (
    AlreadyReleased,
    LocalProtocolError,
    RemoteProtocolError,
)
from umpc.study import messages as m
from umpc.study.attempt import (
    Attempt,
    attempt_statement,
    check_member,
    check_signatures,
    members_statement,
)
from umpc.study.cost import Measured
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.study.report import Report
from umpc.study.sizes import ClassCounts, Member

Finished = m.Released | m.Held
"""A node's answer to a proposal whose attempt it has finished: it has charged, or it holds it."""
Proposed = m.Accepted | Finished
"""A node's answer to a proposal."""


class StudyState(Enum):
    """The state of a proposed study at its nodes."""

    ANEW = "no node has finished an attempt"
    DROP = "some nodes hold an attempt that cannot be finished, and none has charged"
    FINISH = "every node has finished the same attempt, and some have not charged"
    REPLAY = "every node has charged"


class HeapSide(Protocol):
    """The part of a coordinator's side that collects the heaps of shufflers."""

    def recall(self, answers: Sequence[Finished]) -> bytes:
        """The attempt that all nodes have finished. Raises: AlreadyReleased."""
        ...

    def check_runs(self, runs: Sequence[bytes]) -> None:
        """All shufflers must have one order. Raises: RemoteProtocolError."""
        ...

    def receive(self, place: int, frame: Frame) -> bool:
        """A frame of one shuffler's heap. Returns: whether the heap is complete."""
        ...

    @property
    def heaps_received(self) -> list[int]:
        """The bytes that came from each shuffler, framing included."""
        ...


class CoordinatorAggregation(Protocol):
    """The part of a coordinator's side that adds the vectors up.

    exchanges, asks: as of a `NodeAggregation` that asks.
    """

    exchanges: int = 1
    asks: int = 0

    def add(self, node: int, frame: Frame) -> bool:
        """Add the next frame of a node's vector. Raises: RemoteProtocolError naming the node.

        Returns: whether it was the node's last one.
        """
        ...

    def told(self, node: int) -> Iterator[Frame]:
        """The frames that a node is told in this exchange, once all nodes have said theirs."""
        ...

    def end_exchange(self) -> None:
        """All nodes have said all of an exchange, or after them the dealer.

        Raises: RemoteProtocolError naming a node.
        """
        return

    @property
    def questions(self) -> list[bytes]:
        """All nodes' signed statements for the dealer, after the exchange in which it is asked."""
        raise LocalProtocolError("no dealer is asked about this total")

    def hear(self, frame: Frame, dealer: bytes) -> bool:
        """Take the next frame of the dealer's answer. Returns: whether it was the last one.

        Args: dealer: the dealer's certificate.
        """
        raise LocalProtocolError("no dealer is asked about this total")

    def check_signed(self, signatures: Sequence[bytes]) -> None:
        """All nodes must have signed this total. Raises: RemoteProtocolError naming the node."""
        ...


class CoordinatorSide(ABC):
    """One study, one attempt. Args: study: checked. verify: checks the nodes' certificates."""

    protocol: Any
    """The study's `StudyProtocol`, which makes this side."""

    def __init__(self, study: Study, verify: Verify):
        self.study = study
        self._verify = verify
        self._keys: list[bytes] = []
        self._signatures: tuple[bytes, ...] = ()
        self.names = [node.name for node in study.nodes]
        self._members: tuple[Member, ...] | None = None
        self._attempt: Attempt | None = None

    @property
    def heaps(self) -> HeapSide | None:
        """The part that collects heaps; None where the nodes' messages come to the coordinator."""
        return None

    @property
    def aggregation(self) -> CoordinatorAggregation | None:
        """The part that adds up masked vectors of this attempt; None without one."""
        return None

    def propose(self, *, ahead: bool = False) -> m.Propose:
        """ahead: to prepare the study now, and to run it later."""
        return m.Propose(self.study.encode(), ahead)

    def state(self, answers: Sequence[Proposed]) -> StudyState:
        """The state of the study at its nodes.

        Raises: AlreadyReleased where some nodes have charged for an attempt that another node has
        not: the study cannot be finished under its name.
        """
        named = list(zip(self.names, answers, strict=True))
        released = {name: a.attempt for name, a in named if isinstance(a, m.Released)}
        held = {name: a.attempt for name, a in named if isinstance(a, m.Held)}
        # attempts of other survivors do not add up with these
        missing = {a.missing for _, a in named if isinstance(a, m.Released | m.Held)}
        fits = missing <= {self.study.names_missing}  # what others survived is of no use here
        # everybody charged: show the same numbers again
        if len(released) == len(named):
            return StudyState.REPLAY
        attempts = {*released.values(), *held.values()}
        # one attempt at all nodes: finish it, charging once
        if fits and len(released) + len(held) == len(named) and len(attempts) == 1:
            return StudyState.FINISH
        if not released:
            return StudyState.DROP if held else StudyState.ANEW
        rest = [name for name in self.names if name not in released]
        without = [name for name in rest if held.get(name) not in released.values()] or rest
        raise AlreadyReleased(
            f"the study {self.study.name!r} was released before by {', '.join(released)}, but "
            f"not by all nodes: {', '.join(without)} no longer has its part of that attempt (its "
            f"time was up, or its file was lost), so the shares do not add up; its epsilon is "
            f"charged at {', '.join(released)}; give the study a new name to run it anew",
            culprit=without[0],
            step="propose",
        )

    def agree(self, answers: Sequence[Proposed]) -> m.Agree | None:
        """Everybody's members to everybody; None where every node finished this study before.

        Raises: TooFewRecords, StudyError, RangeError where it cannot run over so many records;
            RemoteProtocolError, CertificateError naming a node whose member is not its own; as
            `state`.
        """
        state = self.state(answers)
        if state in (StudyState.FINISH, StudyState.REPLAY):
            return None
        if state is StudyState.DROP:
            raise LocalProtocolError("held attempts are dropped before the members agree")
        accepted = cast(Sequence[m.Accepted], answers)
        for name, answer in zip(self.names, accepted, strict=True):
            # an answer to another proposal is no consent
            if answer.study_hash != self.study.hash or answer.member.name != name:
                raise RemoteProtocolError(
                    f"{name} answered for another study or under another name",
                    culprit=name,
                    step="propose",
                )
        members = tuple(answer.member for answer in accepted)
        self._keys = [
            # each entry is checked where it comes from
            check_member(self.study.hash, each, self._verify, each.name, "propose")
            for each in members
        ]
        self.check_sizes(members)
        self._members = members
        return m.Agree(members)

    def resume(self, answers: Sequence[Proposed]) -> list[m.Prepared] | None:
        """Take up the attempt that every node has prepared, so that data may be used next.

        Returns: what each node prepared; None where some node has none, or has another attempt:
            then all of them agree again.
        Raises: as `agree`, `begin` and `check_prepared`.
        """
        accepted = [answer for answer in answers if isinstance(answer, m.Accepted)]
        waiting = [answer.waiting for answer in accepted if answer.waiting is not None]
        if len(waiting) < len(self.names):
            return None
        members = [answer.member for answer in accepted]
        openings = [each.opened.opening for each in waiting]
        if [member.name for member in members] != self.names:
            return None
        # prepared attempts must be one attempt
        own = Attempt(self.study, members, openings).id
        if any(each.prepared.attempt != own for each in waiting):
            return None
        if self.agree(answers) is None:
            return None
        self.begin([each.opened for each in waiting])
        prepared = [each.prepared for each in waiting]
        self.check_prepared(prepared)
        return prepared

    @abstractmethod
    def check_sizes(self, members: Sequence[Member]) -> None:
        """Whether the study can run over so many records. Raises: as `agree`."""

    def begin(self, answers: Sequence[m.Opened]) -> m.Begin:
        """Everybody's openings and signatures to everybody. Raises: RemoteProtocolError."""
        if self._members is None or self._attempt is not None:
            raise LocalProtocolError("begin comes once, after agree")
        # every node signed the members that all others saw
        statement = members_statement(self.study, self._members)
        signatures = tuple(answer.signature for answer in answers)
        self.check_signed("all members", statement, signatures, "agree")
        openings = tuple(answer.opening for answer in answers)
        self._attempt = self.protocol.attempt(self.study, self._members, openings)
        return m.Begin(openings, signatures)

    @property
    def attempt(self) -> Attempt:
        if self._attempt is None:
            raise LocalProtocolError("the attempt has not begun")
        return self._attempt

    def check_prepared(self, answers: Sequence[m.Prepared]) -> None:
        """All nodes must have derived and signed the same attempt. Raises: RemoteProtocolError."""
        for name, answer in zip(self.names, answers, strict=True):
            # same openings, other attempt: other software
            if answer.attempt != self.attempt.id:
                raise RemoteProtocolError(
                    f"{name} derived another attempt from the same openings; is its software the "
                    f"same?",
                    culprit=name,
                    step="prepare",
                )
        statement = attempt_statement(self.attempt.id)
        signatures = tuple(answer.signature for answer in answers)
        self.check_signed("the attempt", statement, signatures, "prepare")
        self._signatures = signatures

    def check_signed(
        self, what: str, statement: bytes, signatures: Sequence[bytes], step: str
    ) -> None:
        """Each node must have signed the statement. Raises: RemoteProtocolError naming it."""
        for number, member in enumerate(self._members or ()):
            # one by one, so that a wrong signature has a name
            one = slice(number, number + 1)
            check_signatures(
                what, statement, [member], self._keys[one], signatures[one], member.name, step
            )

    def evaluate(self) -> m.Evaluate:
        """The order to go on, once all nodes are prepared, with everybody's signatures."""
        if not self._signatures:
            raise LocalProtocolError("evaluate comes after prepare")
        return m.Evaluate(self._signatures)

    @property
    def asks(self) -> bool:
        """Whether a question may follow a release."""
        return type(self).ask is not CoordinatorSide.ask

    def ask(self, answers: Sequence[m.Released]) -> m.Ask | None:
        """The question that follows from what all nodes released; None for no question."""
        return None

    def hear(self, answers: Sequence[m.Answer]) -> None:
        """The answers to the question."""
        raise LocalProtocolError("this protocol asks no question")

    @abstractmethod
    def finish(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        """The report of a run. Raises: RemoteProtocolError naming whose message is malformed."""

    @abstractmethod
    def replay(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        """The report of a study that was released before: the stored messages, nothing charged."""


def counts_of(answers: Sequence[Finished]) -> list[ClassCounts]:
    """Each node's records, as it releases them: of the first class, and all others."""
    return [(answer.first_class, answer.records - answer.first_class) for answer in answers]
