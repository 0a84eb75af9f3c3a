"""A site's side of a comparison: its people as points, dummies among them, and the released list.

    both    → other site    round 1: H(x)^k of each of its people and dummies, in the order of bytes
    both    → coordinator   release: the other site's points to the power of its own key, likewise

H(x)^ab is in both lists for a person of both sites. Each site hides its noise among the dummies:
of 2t public ones the other site takes all, and this one a random number, discrete Laplace around t,
and points of nobody in place of the others. So both lists together give the number with the noise
of both, and nothing is seen before both sites have charged. Keys are fresh in every attempt, and
points under an unknown key look random (DDH), so their order by bytes is as good as a shuffle.

Papers: Meadows 1986; De Cristofaro, Gasti & Tsudik 2012 (the cardinality); hashing to the curve as
the sum of two maps of uniform bytes (RFC 9380, section 3), by libsodium.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import shake_256

from nacl import bindings as sodium

from umpc.crypto.rounds import Message
from umpc.errors import LocalProtocolError
from umpc.mpc.chunks import require
from umpc.mpc.transfers.channel_set_up import multiple
from umpc.mpc.transfers.message_shapes import POINT_BYTES
from umpc.protocols.base.node import MeshSide
from umpc.protocols.base.one_message import OneMessageNode
from umpc.protocols.overlap.messages import LEFT_BYTES, OverlapAttempt, cut, due_points, framed
from umpc.protocols.overlap.settings import AT_BOTH, SITES, draw_hidden, most_hidden
from umpc.study.attempt import Attempt
from umpc.ustat.blocks import in_blocks

SECRET_BYTES = 64
AT_ONCE = 1 << 9
"""Points that a core masks at once."""


def hashed(text: bytes) -> bytes:
    """A point of the prime-order group, as a random function gives it: two maps, added."""
    # spec/overlap.py, `hashed`: one map alone reaches half of the group
    maps = cut(shake_256(b"umpc overlap 1" + text).digest(2 * POINT_BYTES), POINT_BYTES)
    return sodium.crypto_core_ed25519_add(*map(sodium.crypto_core_ed25519_from_uniform, maps))


class OverlapNode(OneMessageNode, MeshSide):
    """One site, one study, one attempt. Its column AT_BOTH has each record's person, as text.

    It has no dealer and no transfers, so it takes `MeshSide`'s own methods for these.
    """

    def begin(self, openings: Sequence[bytes]) -> Attempt:
        attempt = super().begin(openings)
        # all randomness is drawn before any record is looked at
        self._scalar = sodium.crypto_core_ed25519_scalar_reduce(self._entropy(SECRET_BYTES))
        self._nobody = self._entropy(SECRET_BYTES)
        self.noise = draw_hidden(self.study, self._random_bits)
        return attempt

    @property
    def attempt(self) -> OverlapAttempt:
        return require(super().attempt, OverlapAttempt)

    @property
    def mesh(self) -> MeshSide:
        return self

    @property
    def peers(self) -> tuple[int, ...]:
        return self.attempt.peers(self.index)

    def own_texts(self) -> list[bytes]:
        """The text of each person and of each dummy."""
        # spec/overlap.py, `texts`
        study, most = self.study.hash, most_hidden(self.study)
        found = [b"person" + study + each.encode() for each in self.columns[AT_BOTH]]
        for site in range(SITES):
            shared = most + self.noise if site == self.index else 2 * most
            for number in range(2 * most):
                known = bytes(SECRET_BYTES) if number < shared else self._nobody
                found.append(b"dummy%d" % site + study + number.to_bytes(8, "little") + known)
        return found

    def _masked(
        self, texts: Sequence[bytes], point: Callable[[bytes], bytes], culprit: str
    ) -> list[bytes]:
        """Points to the power of this site's key, in the order of bytes.

        Raises: RemoteProtocolError.
        """
        masked = [b""] * len(texts)

        def mask(part: slice) -> None:
            masked[part] = [
                multiple(self._scalar, point(each), culprit, "evaluate") for each in texts[part]
            ]

        in_blocks(mask, [slice(at, at + AT_ONCE) for at in range(0, len(texts), AT_ONCE)])
        return sorted(masked)

    def fields_for(self, peer: int) -> list[Message]:
        return framed(b"".join(self._masked(self.own_texts(), hashed, self._member.name)))

    def due_fields(self, peer: int) -> list[Message]:
        return due_points(self.study, self.members[peer].records)

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """The other site's points, of which the release is made, once.

        Raises: RemoteProtocolError.
        """
        if self._message is not None:
            raise LocalProtocolError("the other site's points are masked once")
        came = cut(b"".join(each.payload for each in messages), POINT_BYTES)
        twice = self._masked(came, bytes, self.members[peer].name)
        self._message = b"".join(each[:LEFT_BYTES] for each in twice)

    def own_steps(self) -> Iterator[None]:
        """None: the release is made of the other site's points."""
        yield from ()
