"""A node's side of `gopa`: noise shared with its neighbours, noise of its own, and its sum.

    begin      draws all noise: Δ with every neighbour from a seed that only both know, η from the
               node's own entropy
    own_steps  adds it to the sum over the node's records
    release    the message

A draw's work follows from its law, not from the value drawn (`umpc.dp`). So *prepare* takes a time
that follows from the study and the number of nodes, and *evaluate* one that follows from the number
of records.
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.crypto.prg import Stream, derive
from umpc.dp.random_bits import RandomBits
from umpc.protocols.base.one_message import OneMessageNode
from umpc.study.attempt import Attempt
from umpc_papers.gopa.messages import GopaMessages
from umpc_papers.gopa.settings import graph_of


class GopaNode(OneMessageNode):
    """One node, one study, one attempt. Args: as in OneMessageNode."""

    _messages: GopaMessages

    def begin(self, openings: Sequence[bytes]) -> Attempt:
        """Check everybody's opening, then draw. Raises: RemoteProtocolError."""
        attempt = super().begin(openings)
        others = sorted(graph_of(self.study)[self.index])
        self.noise = sum(self.shared_noise(attempt, peer) for peer in others)
        self.noise += self._messages.noise.own_law.draw(self._random_bits)
        return attempt

    def shared_noise(self, attempt: Attempt, peer: int) -> int:
        """±Δ with a peer: the earlier node of the study adds it, the later one subtracts it."""
        other = attempt.members[peer]
        places = (min(self.index, peer), max(self.index, peer))
        agreed = self._key.seed_with(other.public_key, other.name)
        # the places keep a node that copied another's key from cancelling that node's noise
        seed = derive(agreed, "gopa pair", attempt.id, *places)
        drawn = self._messages.noise.pair_law.draw(random_bits(Stream(seed)))
        return drawn if self.index < peer else -drawn

    def _make_message(self) -> bytes:
        return self._messages.message(self.columns, self._member.classes, self.noise)


def random_bits(stream: Stream) -> RandomBits:
    """A stream's bits, the same for everybody who has its seed."""

    def bits(count: int) -> int:
        return int.from_bytes(stream.bytes((count + 7) // 8), "little") >> (-count % 8)

    return bits
