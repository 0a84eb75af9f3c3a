"""The members that are connected to a hub, and the bounded queue of envelopes for each.

The relay keeps nothing but short queues, so a hub that is killed and started again has lost nothing
that its members do not send again (`transport/hub/numbering.py`).

It drops envelopes in two cases, and tells the sender in both: the receiver is not connected, or its
queue is full. A session of which it dropped one envelope loses all further ones, until its sender
asks to resume. Its receiver therefore never sees a gap.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from umpc.errors import AddressInUse, RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb

PAIR_BYTES = 8 << 20
"""Bytes of one sender that may wait for one receiver."""
MEMBER_BYTES = 64 << 20
"""Bytes that may wait for one receiver. An honest session has far less under way."""
SLACK_BYTES = 1 << 20
"""Bytes above MEMBER_BYTES for notices and questions to resume, without which nothing goes on."""
FRAME_BYTES = 200
"""Bytes that a waiting frame takes in addition to its body."""
INSTANCE_BYTES = 16
MOST_TALKED = 1 << 16

Key = tuple[str, str, bytes]
"""(role, name, instance) of a process."""


@dataclass(eq=False)
class Seat:
    """One connected process. talked: the processes that it exchanged envelopes with."""

    key: Key
    listens: bool
    since: float
    queue: deque[tuple[Key | None, int, pb.HubFrame]] = field(default_factory=deque)
    waiting: int = 0
    relayed: int = 0
    by_sender: Counter[Key] = field(default_factory=Counter)
    held_up: set[tuple[Key, bytes]] = field(default_factory=set)
    talked: set[Key] = field(default_factory=set)

    @property
    def member(self) -> pb.HubMember:
        """The process, as envelopes name it."""
        role, name, instance = self.key
        return pb.HubMember(role=role, name=name, instance=instance)

    def put(self, frame: pb.HubFrame, size: int, sender: Key | None = None) -> None:
        """Add a frame to what waits for this process."""
        self.queue.append((sender, size, frame))
        self.waiting += size
        if sender is not None:
            self.by_sender[sender] += size

    def take(self) -> pb.HubFrame | None:
        """Return the next frame, or None."""
        if not self.queue:
            return None
        sender, size, frame = self.queue.popleft()
        self.waiting -= size
        self.relayed += size
        if sender is not None:
            self.by_sender[sender] -= size
            if not self.by_sender[sender]:
                del self.by_sender[sender]
        return frame

    def has_room(self, sender: Key, size: int) -> bool:
        """Return whether an envelope of a sender may wait here."""
        if self.waiting + size > MEMBER_BYTES:
            return False
        return self.by_sender[sender] + size <= PAIR_BYTES


class Relay:
    """All connected processes. Each method returns the seats that have something new to send."""

    def __init__(self) -> None:
        self.seats: dict[Key, Seat] = {}
        self._listeners: dict[tuple[str, str], Seat] = {}

    def join(self, role: str, name: str, join: pb.HubJoin, now: float) -> Seat:
        """Seat a process. A process may come again before its old connection has ended.

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
        seat = Seat(key, join.listens, now)
        former = self.seats.get(key)
        if former is not None:
            seat.talked |= former.talked
        self.seats[key] = seat
        if join.listens:
            self._listeners[role, name] = seat
        return seat

    def leave(self, seat: Seat, *, for_good: bool) -> list[Seat]:
        """Unseat a process and tell those that it talked with.

        Args: for_good: it said so itself; otherwise its connection broke and may come back.
        """
        if self.seats.get(seat.key) is not seat:
            return []  # the process has a new connection
        del self.seats[seat.key]
        if self._listeners.get(seat.key[:2]) is seat:
            del self._listeners[seat.key[:2]]
        kind = pb.HubNotice.GONE if for_good else pb.HubNotice.ABSENT
        told = [other for key in seat.talked if (other := self.seats.get(key)) is not None]
        for other in told:
            self._notify(other, pb.HubNotice(kind=kind, member=seat.member))
        return told

    def route(self, source: Seat, envelope: pb.HubEnvelope) -> list[Seat]:
        """Put an envelope into its receiver's queue, or a notice into its sender's."""
        target, kind = self._receiver(envelope.target)
        if target is None:
            notice = pb.HubNotice(kind=kind, member=envelope.target, session=envelope.session)
            self._notify(source, notice)
            return [source]
        envelope.source.CopyFrom(source.member)
        size = len(envelope.body) + FRAME_BYTES
        place = (source.key, envelope.session)
        if envelope.kind == pb.HUB_RESUME:
            if target.waiting + size > MEMBER_BYTES + SLACK_BYTES:
                return []
            target.held_up.discard(place)
        elif place in target.held_up:
            return []
        elif not target.has_room(source.key, size):
            target.held_up.add(place)
            notice = pb.HubNotice(
                kind=pb.HubNotice.CONGESTED, member=target.member, session=envelope.session
            )
            self._notify(source, notice)
            return [source]
        target.put(pb.HubFrame(envelope=envelope), size, source.key)
        if len(source.talked) < MOST_TALKED:
            source.talked.add(target.key)
            target.talked.add(source.key)
        return [target]

    def _receiver(self, member: pb.HubMember) -> tuple[Seat | None, pb.HubNotice.Kind]:
        """Return the receiver's seat, or None and why there is none."""
        listener = self._listeners.get((member.role, member.name))
        if not member.instance:
            return listener, pb.HubNotice.ABSENT
        seat = self.seats.get((member.role, member.name, member.instance))
        replaced = listener is not None and listener.key[2] != member.instance
        return seat, pb.HubNotice.GONE if replaced else pb.HubNotice.ABSENT

    def _notify(self, seat: Seat, notice: pb.HubNotice) -> None:
        if seat.waiting <= MEMBER_BYTES + SLACK_BYTES:
            seat.put(pb.HubFrame(notice=notice), FRAME_BYTES)

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
            )
            for _, seat in sorted(self.seats.items())
        ]
