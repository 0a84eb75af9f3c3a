"""The members that are connected to a hub, and the bounded queue of envelopes for each.

The relay keeps nothing but short queues, so a hub that is killed and started again has lost nothing
that its members do not send again (`transport/hub/numbering.py`).

It states of each process that is not connected whether it is expected. A process is expected for
the grace time after its connection broke. A hub that is younger than that expects everybody, since
it does not know who was connected to the former one. Nobody else is expected, and the processes
that wait for one hear so at once.

It drops envelopes in two cases, and tells the sender in both: the receiver is not connected, or its
queue is full. A session of which it dropped one envelope loses all further ones, until its sender
asks to resume. Its receiver therefore never sees a gap.

A member may lie, and the memory that it can take here is bounded: its envelopes have a fixed form,
each counts with all the memory that it needs, and a member has few connections.

*Turns.* A queue in which the members that something comes from take turns.

In one line for all, an honest member's envelope would wait behind all that a member which floods
has put there. Here it waits behind one frame of each other member. Frames of one member, and
notices about it, keep their order.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

from umpc.errors import AddressInUse, RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.certificates import ROLES

Item = TypeVar("Item")
Member = tuple[str, str]
"""(role, name); all processes of a member take one turn."""


class Turns(Generic[Item]):
    """A queue of items, each of a member."""

    def __init__(self) -> None:
        self._of: OrderedDict[Member, deque[Item]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def __contains__(self, member: Member) -> bool:
        """Return whether something of a member waits."""
        return member in self._of

    def put(self, member: Member, item: Item) -> None:
        """Add an item behind all others of its member."""
        self._of.setdefault(member, deque()).append(item)

    def take(self) -> Item | None:
        """Return the first item of the member whose turn it is; None where nothing waits."""
        if not self._of:
            return None
        member, waiting = self._of.popitem(last=False)
        item = waiting.popleft()
        if waiting:
            self._of[member] = waiting
        return item

    def clear(self) -> None:
        """Forget all that waits."""
        self._of.clear()


PAIR_BYTES = 8 << 20
"""Bytes of one member, in all its processes, that may wait for one receiver."""
MEMBER_BYTES = 64 << 20
"""Bytes that may wait for one receiver. An honest session has far less under way."""
HUB_BYTES = 1 << 30
"""Bytes that may wait in all. Above it, a receiver gets no more than an equal share of it."""
SLACK_BYTES = 1 << 20
"""Bytes above MEMBER_BYTES for notices and questions to resume, without which nothing goes on."""
PAIR_SLACK_BYTES = 256 << 10
"""Bytes above PAIR_BYTES for one sender's questions to resume: there is one for each session."""
FRAME_BYTES = 2000
"""Bytes of memory that a waiting frame takes in addition to its body."""
INSTANCE_BYTES = 16
SESSION_BYTES = 16
RESUME_BYTES = 256
"""Longest body of a question to resume; that of an honest one has 57 bytes."""
DROPPED_BYTES = 16 << 10
"""Bytes of a dropped body that cost the hub as much as one more small envelope."""
MOST_NAME = 63
MOST_SEATS = 64
"""Processes of one certificate that may be connected: a coordinator has one for each study."""
MOST_HELD_UP = 1024
"""Sessions of one sender that are held up before one receiver. More have not begun and not ended;
the oldest one has, so it is forgotten."""

NOBODY = "", ""
"""The turn of notices about members of which nothing waits: a sender may name many of them."""

Key = tuple[str, str, bytes]
"""(role, name, instance) of a process."""


@dataclass(eq=False, repr=False)
class Seat:
    """One connected process.

    held_up: sender → its sessions of which an envelope was dropped, the oldest one first.
    dropped: the cost of its envelopes for which there was no room, in small envelopes.
    talked: the processes that it exchanged envelopes with, or that asked for it while it was away.
    replaces: the process's former connection, if that has not ended yet.
    is_replaced: the process has a newer connection.
    """

    key: Key
    listens: bool
    since: float
    queue: Turns[tuple[Member | None, int, int, pb.HubFrame]] = field(default_factory=Turns)
    waiting: int = 0
    relayed: int = 0
    sent: int = 0
    dropped: int = 0
    heard: float = 0.0
    by_sender: Counter[Member] = field(default_factory=Counter)
    held_up: dict[Key, dict[bytes, None]] = field(default_factory=dict)
    talked: set[Key] = field(default_factory=set)
    replaces: Seat | None = None
    is_replaced: bool = False

    @cached_property
    def member(self) -> pb.HubMember:
        """The process, as envelopes name it. It is copied into each of them."""
        role, name, instance = self.key
        return pb.HubMember(role=role, name=name, instance=instance)

    @property
    def places(self) -> list[Key]:
        """The places at which others reach the process: its own, and its name's if it listens."""
        return [self.key, (*self.key[:2], b"")] if self.listens else [self.key]

    def put(self, frame: pb.HubFrame, body: int, sender: Key | None = None) -> None:
        """Add a frame to what waits for this process. Args: body: bytes of its envelope's body."""
        size = body + FRAME_BYTES
        self.waiting += size
        if sender is None:
            about = frame.notice.member.role, frame.notice.member.name
            # a notice comes after all that its member has sent
            self.queue.put(about if about in self.queue else NOBODY, (None, size, body, frame))
            return
        member = sender[:2]
        self.queue.put(member, (member, size, body, frame))
        self.by_sender[member] += size

    def take(self) -> pb.HubFrame | None:
        """Return the next frame, or None."""
        found = self.queue.take()
        if found is None:
            return None
        member, size, body, frame = found
        self.waiting -= size
        self.relayed += body
        if member is not None:
            self.by_sender[member] -= size
            if not self.by_sender[member]:
                del self.by_sender[member]
        return frame

    def has_room(self, sender: Key, size: int, kind: int) -> bool:
        """Return whether an envelope of a sender may wait here."""
        asks = kind == pb.HUB_RESUME
        if self.waiting + size > MEMBER_BYTES + asks * SLACK_BYTES:
            return False
        return self.by_sender[sender[:2]] + size <= PAIR_BYTES + asks * PAIR_SLACK_BYTES

    def hold_up(self, sender: Key, session: bytes) -> None:
        """Note that a session lacks an envelope, until its sender asks to resume."""
        sessions = self.held_up.setdefault(sender, {})
        sessions[session] = None
        if len(sessions) > MOST_HELD_UP:
            del sessions[next(iter(sessions))]

    def is_held_up(self, sender: Key, session: bytes) -> bool:
        """Return whether a session lacks an envelope."""
        return session in self.held_up.get(sender, ())

    def let_go(self, sender: Key, session: bytes) -> None:
        """Note that a session's sender asked to resume."""
        sessions = self.held_up.get(sender, {})
        sessions.pop(session, None)
        if not sessions:
            self.held_up.pop(sender, None)


class Relay:
    """All connected processes. Each method returns the seats that have something new to send.

    Args: is_young: whether the hub is younger than its grace time.
    """

    def __init__(self, is_young: Callable[[], bool] = lambda: False) -> None:
        self._is_young = is_young
        self.seats: dict[Key, Seat] = {}
        self.waiting = 0
        self._processes: Counter[tuple[str, str]] = Counter()
        self._listeners: dict[tuple[str, str], Seat] = {}
        self._lost: dict[Key, Seat] = {}
        """Processes whose connection broke, by their place and, if they listen, by their name's.
        `expire` forgets one after the grace time."""
        self._left: set[Member] = set()
        """Members whose listening process left for good while this hub was young."""

    def processes_of(self, seat: Seat) -> int:
        """Return the number of connected processes of a process's member."""
        return self._processes[seat.key[:2]]

    def join(self, role: str, name: str, join: pb.HubJoin, now: float) -> tuple[Seat, list[Seat]]:
        """Seat a process. A process may come again before its old connection has ended.

        Returns: also those that wait for the former process that listened under this name.
        Raises: AddressInUse if another process of this name listens, RemoteProtocolError.
        """
        if len(join.instance) != INSTANCE_BYTES:
            raise RemoteProtocolError(
                f"{name} joined with an instance of {len(join.instance)} bytes", culprit=name
            )
        key = (role, name, join.instance)
        listener = self._listeners.get((role, name))
        if join.listens and listener is not None and listener.key != key:
            raise AddressInUse(
                f"another process of {role} {name!r} is connected to this hub; stop it, or give "
                "this one a certificate of its own"
            )
        former = self.seats.get(key)
        if former is None and self._processes[role, name] >= MOST_SEATS:
            raise RemoteProtocolError(
                f"{name} has {MOST_SEATS} processes connected to this hub already; stop some",
                culprit=name,
            )
        seat = Seat(key, join.listens, now, heard=now)
        if former is None:
            self._processes[role, name] += 1
        else:
            seat.talked |= former.talked
            seat.replaces, former.is_replaced = former, True
            self.waiting -= former.waiting
        self.seats[key] = seat
        told: list[Seat] = []
        for place in seat.places:
            lost = self._lost.pop(place, None)
            if lost is not None and lost.key != key:  # another process listens in its place
                told += self.expire(lost)
        if join.listens:
            self._listeners[role, name] = seat
            self._left.discard((role, name))
        return seat, told

    def leave(self, seat: Seat, *, for_good: bool) -> list[Seat]:
        """Unseat a process and tell those that it talked with.

        Args: for_good: it said so itself; otherwise its connection broke and may come back.
        """
        if self.seats.get(seat.key) is not seat:
            return []  # the process has a new connection
        del self.seats[seat.key]
        self.waiting -= seat.waiting
        self._processes[seat.key[:2]] -= 1
        if not self._processes[seat.key[:2]]:
            del self._processes[seat.key[:2]]
        if self._listeners.get(seat.key[:2]) is seat:
            del self._listeners[seat.key[:2]]
        if not for_good:
            self._lost |= dict.fromkeys(seat.places, seat)
        elif seat.listens and self._is_young():
            self._left.add(seat.key[:2])
        seat.queue.clear()
        seat.held_up.clear()
        for each in self.seats.values():
            each.held_up.pop(seat.key, None)  # it asks to resume when it comes back
        told = self._tell(seat, pb.HubNotice.GONE if for_good else pb.HubNotice.AWAY)
        for other in told:
            other.talked.discard(seat.key)
        return told

    def expire(self, seat: Seat) -> list[Seat]:
        """Expect a process no longer whose connection broke: its grace time is over, or another
        process listens in its place.

        The processes that it talked with hear so from here. Their own time is longer where they
        share a processor, and this hub said how long it waits.
        """
        if self._lost.get(seat.key) is not seat:
            return []  # it came back since
        for place in seat.places:
            if self._lost.get(place) is seat:
                del self._lost[place]
        return self._tell(seat, pb.HubNotice.GONE)

    def _tell(self, seat: Seat, kind: pb.HubNotice.Kind) -> list[Seat]:
        """Tell the processes that a process talked with, or that wait for it, where it is."""
        told = [other for key in seat.talked if (other := self.seats.get(key)) is not None]
        for other in told:
            self._notify(other, pb.HubNotice(kind=kind, member=seat.member))
        return told

    def take(self, seat: Seat) -> pb.HubFrame | None:
        """Return the next frame for a process, or None."""
        before = seat.waiting
        frame = seat.take()
        if self.seats.get(seat.key) is seat:
            self.waiting -= before - seat.waiting
        return frame

    def route(self, source: Seat, envelope: pb.HubEnvelope) -> list[Seat]:
        """Put an envelope into its receiver's queue, or a notice into its sender's.

        Raises: RemoteProtocolError for an envelope of a form that no member sends.
        """
        member, session, kind = envelope.target, envelope.session, envelope.kind
        place = member.role, member.name, member.instance
        body = len(envelope.body)
        if not _is_right(place, session, kind, body):
            name = source.key[1]
            raise RemoteProtocolError(
                f"{name} sent an envelope of a wrong form to the hub; see which version runs there",
                culprit=name,
            )
        envelope.DiscardUnknownFields()
        source.sent += body
        sender = source.key
        if self.seats.get(sender) is not source:
            return []  # left over in a former connection: the process has asked to resume since
        target, why_not = self._receiver(place)
        if target is None:
            lost = self._lost.get(place)
            if lost is not None:
                lost.talked.add(sender)
            self._notify(source, pb.HubNotice(kind=why_not, member=member, session=session))
            return [source]
        size = body + FRAME_BYTES
        if kind == pb.HUB_SEALED and target.held_up and target.is_held_up(sender, session):
            source.dropped += _cost(body)
            return []
        if not target.has_room(sender, size, kind) or self._is_over_share(target, size):
            return self._congested(source, target, envelope)
        if kind == pb.HUB_RESUME:
            target.let_go(sender, session)
        envelope.source.CopyFrom(source.member)
        target.put(pb.HubFrame(envelope=envelope), body, sender)
        self.waiting += size
        source.talked.add(target.key)
        target.talked.add(sender)
        return [target]

    def _is_over_share(self, target: Seat, size: int) -> bool:
        """Return whether all queues are full, and this one has its equal share."""
        if self.waiting + size <= HUB_BYTES:
            return False
        return target.waiting + size > HUB_BYTES // len(self.seats)

    def _congested(self, source: Seat, target: Seat, envelope: pb.HubEnvelope) -> list[Seat]:
        """Drop an envelope for which there is no room, and tell its sender once."""
        source.dropped += _cost(len(envelope.body))
        if envelope.kind == pb.HUB_RESUME:
            return []  # its sender asks again
        if envelope.kind == pb.HUB_SEALED:
            target.hold_up(source.key, envelope.session)
        congested = pb.HubNotice.CONGESTED
        notice = pb.HubNotice(kind=congested, member=target.member, session=envelope.session)
        self._notify(source, notice)
        return [source]

    def _receiver(self, place: Key) -> tuple[Seat | None, pb.HubNotice.Kind]:
        """Return the receiver's seat, or None, and AWAY if it is expected, otherwise GONE.

        Args: place: its instance is empty for the process that listens.
        """
        member = place[:2]
        listener = self._listeners.get(member)
        seat = self.seats.get(place) if place[2] else listener
        may_come = self._is_young() and listener is None and member not in self._left
        is_expected = place in self._lost or may_come
        return seat, pb.HubNotice.AWAY if is_expected else pb.HubNotice.GONE

    def _notify(self, seat: Seat, notice: pb.HubNotice) -> None:
        if seat.waiting + FRAME_BYTES <= MEMBER_BYTES + SLACK_BYTES:
            seat.put(pb.HubFrame(notice=notice), 0)
            self.waiting += FRAME_BYTES

    def status(self, now: float) -> list[pb.HubSeat]:
        """Return who is connected, by role and name."""
        return [
            pb.HubSeat(
                role=seat.key[0],
                name=seat.key[1],
                listens=seat.listens,
                seconds=int(now - seat.since),
                waiting=seat.waiting,
                relayed=seat.relayed,
                sent=seat.sent,
                silent=int(max(0.0, now - seat.heard)),
            )
            for _, seat in sorted(self.seats.items())
        ]


def _is_right(target: Key, session: bytes, kind: int, body: int) -> bool:
    """Return whether the parts of an envelope that a queue keeps have their form.

    Args: body: bytes of the body.
    """
    role, name, instance = target
    return (
        len(session) == SESSION_BYTES
        and role in ROLES
        and 0 < len(name) <= MOST_NAME
        and len(instance) in (0, INSTANCE_BYTES)
        and (kind != pb.HUB_RESUME or body <= RESUME_BYTES)
    )


def _cost(body: int) -> int:
    """Return what a dropped envelope costs the hub, in small ones. Args: body: its bytes."""
    return 1 + body // DROPPED_BYTES
