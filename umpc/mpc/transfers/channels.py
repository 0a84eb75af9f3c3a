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

*Chained set up.* The set-up of a channel of correlated transfers from another one, which two
parties already have.

It is the set-up of `channel_set_up.py` without curve points. The parties keep their roles: the
*sender* has Δ, the *receiver* chooses.

    receiver → sender   128 choices in the last channel: base transfers, with the roles exchanged
    sender → receiver   an extension of these by its new Δ
    receiver → sender   the new channel's trees

**From channel to channel.** The receiver extends a fork of the last channel by 128 uniform choices,
and both hash (`ot_products.hash_blocks`): the sender has 128 pairs of keys, the receiver one key of
each. That is the set-up of correlated transfers of fold 1 in which both change places, with the
receiver's choices as an offset Δ' of its own. The sender extends it once, choosing by the
complement of its new Δ. It gets t_j, the receiver q_j and q_j ⊕ Δ'. Hashed, these are the 128 base
transfers of the new channel: each has one of two uniform keys of the receiver (Beaver 1996; Ishai
et al. 2003).

Reveals, and gains of a party that lies:

- The sender sees the first message, pseudorandom whatever the choices are, and the trees.
- The receiver sees rows of the extension, pseudorandom to it whatever Δ is: of each pair of keys it
  lacks one.
- Δ, the choices and all keys are fresh for each channel, and a hash stands between two channels. So
  no former channel follows from a later one. A later one follows from a former one only with the
  messages, and with secrets of both.
- Both extensions are proved, as all are (`correlated_ot.py`). A sender could else test bits of
  Δ', and with Δ' it would have both keys of all base transfers, so the receiver's choices in the
  new channel. A receiver that knew the last Δ would know Δ of all channels that follow.

Cost: the bytes of a set-up by points, three rounds, and no curve point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from umpc.crypto.prg import BLOCK_BYTES, SEED_BYTES, Stream, derive, digest
from umpc.crypto.rounds import Message, Protocol, check_reply, silence
from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import WordArray
from umpc.mpc.transfers.channel_set_up import (
    bits_of,
    expanded,
    open_receiver,
    open_sender,
    receiver_channel,
    sender_channel,
)
from umpc.mpc.transfers.correlated_ot import (
    Blocks,
    CorrelatedReceiver,
    CorrelatedSender,
    fresh_delta,
)
from umpc.mpc.transfers.message_shapes import (
    BLOCK_BITS,
    CHOICE,
    FOLD,
    OFFER,
    TREES,
    extend_message,
    extension_bytes,
    trees_bytes,
)
from umpc.mpc.transfers.ot_products import hash_blocks

End = TypeVar("End", CorrelatedSender, CorrelatedReceiver)


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


class Channels:
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
        return f"Channels({self._names[self._number]}, <redacted>)"

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
        if self._number < peer:
            # Δ of this channel alone
            delta = fresh_delta(derive(seed, "delta"))
            # the earlier member has Δ, as garblers do
            opening = open_sender(derive(seed, "set-up"), delta, session, name)
            self._senders[peer] = yield from opening
        else:
            channel = yield from open_receiver(derive(seed, "set-up"), session, name)
            self._receivers[peer] = channel

    def take_up(self, peer: int, channel: CorrelatedSender | CorrelatedReceiver) -> None:
        """Use a channel that was made before the attempt, in place of `set_up`, once.

        Its fork for this attempt has streams and a session of its own. Args: peer: as in `set_up`.
        """
        name = self._names[peer]
        if peer in self._senders or peer in self._receivers:
            raise LocalProtocolError(f"the channel to {name} was set up before")
        # roles are fixed by the order of members
        if isinstance(channel, CorrelatedSender) != (self._number < peer):
            raise LocalProtocolError(f"the channel to {name} has its ends the other way round")
        session = self._session(peer)
        if isinstance(channel, CorrelatedSender):
            # one Δ, other streams, another hash key
            self._senders[peer] = channel.fork("attempt", session.hex(), session=session)
        else:
            self._receivers[peer] = channel.fork("attempt", session.hex(), session=session)

    def channel(self, peer: int) -> CorrelatedSender | CorrelatedReceiver:
        """This member's end of the channel to a peer, after `set_up` or `take_up`."""
        return self._senders[peer] if peer in self._senders else self._receivers[peer]

    def seat(self) -> CommitteeMember:
        """This member's place at the toss. Raises: LocalProtocolError before all set-ups."""
        ready = self._senders.keys() | self._receivers.keys()
        # every pair needs a channel before the toss
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
        senders = _forks(self._senders, places, labels)
        receivers = _forks(self._receivers, places, labels)
        names = [self._names[place] for place in places]
        return CommitteeMember(list(places).index(self._number), names, senders, receivers)

    def _session(self, peer: int) -> bytes:
        """The name of a channel, the same at both ends."""
        # one name, whoever computes it
        ends = sorted((self._number, peer))
        names = (self._names[end].encode() for end in ends)
        return digest(b"umpc committee link 1", self._attempt, *names)


def _forks(
    own: Mapping[int, End], places: Sequence[int], labels: Sequence[str | int]
) -> dict[int, End]:
    """Forks of the channels to some places, by their order. Both ends name a session alike."""
    words = [str(label).encode() for label in labels]
    forks = {}
    for number, place in enumerate(places):
        if place in own:
            # a session of its own: no hash is asked for twice
            session = digest(b"umpc forked channel 1", own[place].session, *words)
            forks[number] = own[place].fork(*labels, session=session)
    return forks


# --- chained set up -------------------------------------------------------------------------------

BASE_FOLD = 1
"""Fold of the extension in which both change places: it needs no trees, so no check of them."""
EXCHANGED, BASE = b"umpc exchanged transfers 1", b"umpc base transfers 1"
"""Under which both hash the transfers of the last channel, and then the base transfers."""
MOST_PEERS = 7
"""Channels of a study, up to which a node makes others: those of many nodes may never be used."""


def chained_shapes() -> list[tuple[bool, Message]]:
    """The set-up, round by round: whether the sender speaks, and its message without content."""
    return [
        (False, _message(OFFER, bytes(extension_bytes(BLOCK_BITS)))),
        (True, _message(CHOICE, bytes(extension_bytes(BLOCK_BITS, BASE_FOLD)))),
        (False, _message(TREES, bytes(trees_bytes(FOLD)))),
    ]


def chain_sender(
    last: CorrelatedSender, seed: bytes, delta: WordArray, session: bytes
) -> Protocol[CorrelatedSender]:
    """The sender's side of the set-up, three rounds.

    Args:
        last: its end of the channel that is there. Only one channel is made from it.
        seed, delta, session: as in `channel_set_up.open_sender`.

    Raises: RemoteProtocolError.
    """
    offer, choice, due = (shape for _, shape in chained_shapes())
    (reply,) = yield silence(OFFER)
    check_reply(reply, offer, last.peer)
    # Beaver 1996: 128 transfers of the last channel are new base transfers
    made = last.fork("next").extend(extend_message(reply.payload, 1), BLOCK_BITS)
    name = digest(EXCHANGED, session)
    # H(q) and H(q ⊕ Δ): both keys of each transfer
    pairs = list(zip(*_both_keys(made, last.delta, name), strict=True))
    # fold 1: here the sender has all keys
    base, _ = receiver_channel(pairs, name, derive(seed, "base check"), BASE_FOLD)
    # choose by the complement of the new Δ
    blocks, extension = base.extend(1 - bits_of(delta))
    (reply,) = yield _message(CHOICE, extension.payload)
    check_reply(reply, silence(choice.step), last.peer)
    # one of two keys for each bit of Δ
    keys = keys_of(hash_blocks(blocks, digest(BASE, session)))
    (reply,) = yield silence(TREES)
    check_reply(reply, due, last.peer)
    # from here on as after base transfers by points
    return sender_channel(delta, keys, reply.payload, session, last.peer)


def chain_receiver(
    last: CorrelatedReceiver, seed: bytes, session: bytes, peer: str
) -> Protocol[CorrelatedReceiver]:
    """The receiver's side of the set-up; arguments and failures are those of the sender's."""
    _, choice, _ = (shape for _, shape in chained_shapes())
    # the offset of the exchanged extension, drawn anew
    choices = Stream(derive(seed, "choices")).bits(BLOCK_BITS)
    made, extension = last.fork("next").extend(choices)
    (reply,) = yield _message(OFFER, extension.payload)
    check_reply(reply, silence(OFFER), peer)
    (reply,) = yield silence(CHOICE)
    check_reply(reply, choice, peer)
    name = digest(EXCHANGED, session)
    keys = keys_of(hash_blocks(made, name))
    # Its choices are the complement of the offset, as in every set-up.
    offset = ~np.packbits(choices, bitorder="little").view("<u8").astype(np.uint64)
    # fold 1 has no trees to check
    base = sender_channel(offset, keys, b"", name, peer, BASE_FOLD)
    # q of the exchanged roles; q ⊕ Δ' is the other key
    received = base.extend(extend_message(reply.payload, 1), BLOCK_BITS)
    pairs = list(zip(*_both_keys(received, offset, digest(BASE, session)), strict=True))
    # new trees from both keys of each base transfer
    channel, trees = receiver_channel(pairs, session, derive(seed, "channel check"))
    (reply,) = yield _message(TREES, trees)
    check_reply(reply, silence(TREES), peer)
    return channel


def _both_keys(blocks: Blocks, offset: WordArray, session: bytes) -> list[list[bytes]]:
    """Both keys of each transfer, for the party that knows the offset."""
    # blocks of the other choice
    turned = Blocks(blocks.start, blocks.blocks ^ offset)
    return [keys_of(hash_blocks(each, session)) for each in (blocks, turned)]


def keys_of(blocks: WordArray) -> list[bytes]:
    """Blocks as seeds of 16 bytes, spread to the size of a seed."""
    octets = blocks.astype("<u8").tobytes()
    starts = range(0, len(octets), BLOCK_BYTES)
    return [
        expanded(octets[start : start + BLOCK_BYTES], "ot base seed", SEED_BYTES)
        for start in starts
    ]


def _message(step: str, payload: bytes) -> Message:
    return Message(step, payload, len(payload), 8)
