"""A node's part of `gopa`: noise shared with each other node, and its own, under which it publishes its sum.

begin     draws all noise: Δ with every other node from a seed that only both can know, η from the node's own entropy
randomise adds it to the sum over the node's records
release   the message

A draw's time follows the value that is drawn. So all of it is drawn before the records are looked at, in *prepare*, and
*evaluate* takes a time that follows from the number of records alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.crypto.prg import Stream, derive
from umpc.dp.random_bits import RandomBits
from umpc.errors import LocalProtocolError
from umpc.mpc.attempt import Attempt
from umpc.protocols.base.one_message_node import OneMessageSession
from umpc.protocols.gopa.messages import OfGopa


class GopaSession(OneMessageSession):
    """One node, one study, one attempt."""

    _protocol: OfGopa

    def begin(self, openings: Sequence[bytes]) -> Attempt:
        """Check everybody's opening, then draw. Raises: RemoteProtocolError where an opening or a key does not fit."""
        attempt = super().begin(openings)
        self._noise = sum(
            self._shared(peer) for peer in range(len(self._members)) if peer != self.index
        )
        self._noise += self._protocol.noise.own_law.draw(self._random_bits)
        return attempt

    def _shared(self, peer: int) -> int:
        """±Δ with a peer: the one that comes first in the study adds it, the other one subtracts it."""
        other = self._members[peer]
        seed = derive(
            self._key.seed_with(other.public_key, other.name), "gopa pair", self.attempt.id
        )
        drawn = self._protocol.noise.pair_law.draw(random_bits(Stream(seed)))
        return drawn if self.index < peer else -drawn

    def randomise(self) -> None:
        """Make the message, once."""
        if self._attempt is None or self._message is not None:
            raise LocalProtocolError("a sum is published once, after the attempt has begun")
        self._message = self._protocol.message(self.columns, self._member.classes, self._noise)


def random_bits(stream: Stream) -> RandomBits:
    """A stream's bits, the same at whoever has its seed."""
    return lambda count: int.from_bytes(stream.bytes((count + 7) // 8), "little") >> (-count % 8)
