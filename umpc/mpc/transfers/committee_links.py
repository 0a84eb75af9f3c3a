"""One member's channels of transfers to all other members of a committee, for coins alone.

The shared backend evaluates edges without transfers, so its committee sets up channels of its own:
one for every two members, also for two that share no edge. The garbled backend has such channels
already and forks them (`garbled/cells.py`).

Edges by triples (`umpc/mpc/triples`) take such channels between their owners, too.

Everything here is made of a seed that the member draws itself. The dealer does not know this seed,
and it sends nothing that the coins depend on. So the coins have their law whatever the dealer does.
`coins_from_transfers.py` says what the members see of them.

Reveals: the set-up's points and sums, which are made before any data (`correlated_ot.py`).

Cost: for each pair of members three rounds, and the bytes of `set_up_shapes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from umpc.crypto.prg import derive, digest
from umpc.crypto.rounds import Protocol
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.transfers.channel_set_up import open_receiver, open_sender
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender, fresh_delta


@dataclass(frozen=True)
class CommitteeMember:
    """One member's place.

    names: of all members, for errors.
    senders: this member's ends of the channels to the members after it.
    receivers: this member's ends of the channels from the members before it.
    """

    number: int
    names: Sequence[str]
    senders: Mapping[int, CorrelatedSender]
    receivers: Mapping[int, CorrelatedReceiver]

    def __repr__(self) -> str:
        return f"CommitteeMember({self.names[self.number]}, <redacted>)"

    @property
    def leads(self) -> np.uint8:
        """1 for the first member, which adds constants."""
        return np.uint8(self.number == 0)

    @property
    def peers(self) -> list[int]:
        """All other members."""
        return [number for number in range(len(self.names)) if number != self.number]


class CommitteeLinks:
    """One member's ends of all its channels.

    Args:
        number: this member's place in the committee.
        names: of all members, in the committee's order.
        attempt: the attempt's identity.
        seed: 32 uniform bytes of this member's own, for this attempt alone.
    """

    def __init__(self, number: int, names: Sequence[str], attempt: bytes, seed: bytes):
        self._number = number
        self._names = list(names)
        self._attempt = attempt
        self._seed = seed
        self._senders: dict[int, CorrelatedSender] = {}
        self._receivers: dict[int, CorrelatedReceiver] = {}

    def __repr__(self) -> str:
        return f"CommitteeLinks({self._names[self._number]}, <redacted>)"

    def set_up(self, peer: int) -> Protocol[None]:
        """The rounds that make the channel to a peer, once.

        The member that comes first sends in transfers, as garblers do.

        Args: peer: the peer's place in the committee.
        Raises: RemoteProtocolError, which names the peer.
        """
        if peer in self._senders or peer in self._receivers:
            raise LocalProtocolError(f"the channel to {self._names[peer]} was set up before")
        seed = derive(self._seed, "committee link", peer)
        name = self._names[peer]
        session = self._session(peer)
        try:
            if self._number < peer:
                delta = fresh_delta(derive(seed, "delta"))
                opening = open_sender(derive(seed, "set-up"), delta, session, name)
                self._senders[peer] = yield from opening
            else:
                channel = yield from open_receiver(derive(seed, "set-up"), session, name)
                self._receivers[peer] = channel
        except EncodingError as error:
            raise RemoteProtocolError(error.message, culprit=name, step=error.step) from error

    def take_up(self, peer: int, channel: CorrelatedSender | CorrelatedReceiver) -> None:
        """Use a channel that was made before the attempt, in place of `set_up`, once.

        Its fork for this attempt has streams and a session of its own. Args: peer: as in `set_up`.
        """
        name = self._names[peer]
        if peer in self._senders or peer in self._receivers:
            raise LocalProtocolError(f"the channel to {name} was set up before")
        if isinstance(channel, CorrelatedSender) != (self._number < peer):
            raise LocalProtocolError(f"the channel to {name} has its ends the other way round")
        session = self._session(peer)
        if isinstance(channel, CorrelatedSender):
            self._senders[peer] = channel.fork("attempt", session.hex(), session=session)
        else:
            self._receivers[peer] = channel.fork("attempt", session.hex(), session=session)

    def channel(self, peer: int) -> CorrelatedSender | CorrelatedReceiver:
        """This member's end of the channel to a peer, after `set_up` or `take_up`."""
        return self._senders[peer] if peer in self._senders else self._receivers[peer]

    def seat(self) -> CommitteeMember:
        """This member's place at the toss. Raises: LocalProtocolError before all set-ups."""
        ready = self._senders.keys() | self._receivers.keys()
        for number, name in enumerate(self._names):
            if number != self._number and number not in ready:
                raise LocalProtocolError(f"nothing is set up with {name}")
        return CommitteeMember(self._number, self._names, self._senders, self._receivers)

    def forked(self, places: Sequence[int], *labels: str | int) -> CommitteeMember:
        """This member's place among some of the members, over forks of the channels to them.

        Two members among them without a channel must have nothing to send each other. Each fork has
        a session of its own, so that no hash is asked for twice under one Δ.

        Args: places: in order. labels: known to all of them, and used once.
        """
        senders = {}
        receivers = {}
        for number, place in enumerate(places):
            if place in self._senders:
                sender = self._senders[place]
                session = _forked_session(sender.session, labels)
                senders[number] = sender.fork(*labels, session=session)
            elif place in self._receivers:
                receiver = self._receivers[place]
                session = _forked_session(receiver.session, labels)
                receivers[number] = receiver.fork(*labels, session=session)
        names = [self._names[place] for place in places]
        return CommitteeMember(list(places).index(self._number), names, senders, receivers)

    def _session(self, peer: int) -> bytes:
        """The name of a channel, the same at both ends."""
        ends = sorted((self._number, peer))
        names = (self._names[end].encode() for end in ends)
        return digest(b"umpc committee link 1", self._attempt, *names)


def _forked_session(session: bytes, labels: Sequence[str | int]) -> bytes:
    """The name of a fork, the same at both ends."""
    return digest(b"umpc forked channel 1", session, *(str(label).encode() for label in labels))
