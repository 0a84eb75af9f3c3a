"""A node's looks at members in a hash tree, over its stream to the coordinator.

look(side, begin)      prepare: the members that this node must see, checked
signed()               evaluate: their signatures of the attempt
attempt(), check(told) prepare: the whole attempt, which the dealer asks one node for
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from umpc.crypto.signing import Verify
from umpc.errors import EncodingError, RemoteProtocolError
from umpc.node.attempts.coordinator_stream import CoordinatorStream
from umpc.proto import member_codec
from umpc.proto.checks import parse
from umpc.proto.member_codec import MOST_BYTES
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.base.node import NodeSide
from umpc.study import messages as m
from umpc.study.attempt import check_openings
from umpc.study.document import Study
from umpc.study.member_tree import MOST_SHOWN, ShownMember
from umpc.study.members import check_agreed
from umpc.study.statements import attempt_id


class Looking:
    """Args: stream: to the coordinator."""

    def __init__(self, stream: CoordinatorStream):
        self._stream = stream
        self._places: tuple[int, ...] = ()

    async def look(self, side: NodeSide, begin: m.BeginInShort) -> None:
        """See and check the members that this node must see.

        Raises: RemoteProtocolError naming the coordinator; CertificateError.
        """
        self._places = await asyncio.to_thread(side.look, begin.openings)
        shown: list[ShownMember] = []
        for places in _at_once(self._places):
            await self._stream.send(m.Look(places))
            shown += (await self._stream.expect(m.Shown)).members
        await asyncio.to_thread(side.take_shown, shown)

    async def signed(self) -> list[bytes]:
        """The signatures of the attempt by the same members, which the side then checks."""
        signatures: list[bytes] = []
        for places in _at_once(self._places):
            await self._stream.send(m.Look(places, signed=True))
            signatures += (await self._stream.expect(m.Signed)).signatures
        return signatures

    async def attempt(self) -> bytes:
        """The attempt as the dealer is told it, not checked yet.

        Raises: RemoteProtocolError naming the coordinator.
        """
        await self._stream.send(m.WantAttempt())
        body = bytearray()
        while part := (await self._stream.expect(m.AttemptPiece)).part:
            body += part
            if len(body) > MOST_BYTES:
                raise self._refused(f"sent an attempt of more than {MOST_BYTES} bytes")
        return bytes(body)

    async def check(self, told: bytes, attempt: bytes, verify: Verify) -> None:
        """Check all of the attempt that came, before the dealer is told it.

        The dealer then need not find out who of two lied: the coordinator's lie ends here.

        Args: attempt: its id. verify: checks the members' certificates.

        Raises: RemoteProtocolError naming the coordinator; CertificateError.
        """
        try:
            await asyncio.to_thread(_check_told, told, self._stream.study, attempt, verify)
        except EncodingError as error:
            raise self._refused(f"sent an attempt that cannot be read: {error.message}") from error

    def _refused(self, what: str) -> RemoteProtocolError:
        coordinator = self._stream.coordinator
        return RemoteProtocolError(f"{coordinator} {what}", culprit=coordinator, step="prepare")


def _at_once(places: Sequence[int]) -> list[tuple[int, ...]]:
    """The places, as many at a time as may be shown."""
    return [tuple(places[at : at + MOST_SHOWN]) for at in range(0, len(places), MOST_SHOWN)]


def _check_told(body: bytes, study: Study, attempt: bytes, verify: Verify) -> None:
    request = parse(pb.DealRequest, body)
    relay = study.coordinator
    members = member_codec.decode_members(request.members)
    openings = member_codec.decode_openings(request.openings)
    signatures = member_codec.decode_signatures(request.signatures)
    check_agreed(study, members, signatures, verify, relay)
    check_openings(study, members, openings, relay)
    if request.study != study.encode() or attempt_id(study, members, openings) != attempt:
        raise RemoteProtocolError(
            f"{relay} sent another attempt for the dealer than it told this node, so it told two "
            f"stories; nothing was computed, and the study ends",
            culprit=relay,
            step="prepare",
        )
