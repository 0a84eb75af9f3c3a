"""A node's streams to a study's two shufflers.

The node opens them before it is ready and delivers over them after its charge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from umpc.failpoints import failpoint
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.document import Study
from umpc.study.messages import Frame, StepBytes
from umpc.study.parts import Participant
from umpc.study.sizes import Member
from umpc.transport.identity import Identity
from umpc.transport.patience import together
from umpc.transport.stream import RpcStream, as_received
from umpc.transport.tls import shuffler_stub

REPLIES_AHEAD = 1
"""Replies that may wait unread: a shuffler that goes away is noticed at once."""


class ShufflerStream:
    """The stream to one shuffler. Args: seconds: time limit of each of its two replies."""

    def __init__(self, shuffler: Participant, attempt: bytes, seconds: float):
        self.name = shuffler.name
        self._address = shuffler.address
        self._attempt = attempt
        self._seconds = seconds
        self._stream: RpcStream[pb.ShuffleRequest, pb.ShuffleReply] = RpcStream(
            shuffler.name, "prepare", as_received, ahead=REPLIES_AHEAD
        )

    async def open(self, identity: Identity, begin: pb.DealRequest) -> None:
        """Connect, and wait until the shuffler knows the attempt and its order.

        Raises: PeerUnavailable, PeerLost, StepTimeout, the shuffler's own failure.
        """
        await self._stream.connect(identity, "shuffler", self._address, self._seconds)
        self._stream.begin(shuffler_stub(self._stream.channel).Deliver())
        for piece in codec.cut(begin):
            await self._stream.write(pb.ShuffleRequest(begin=piece))
        await self._reply("prepare", delivered=False)
        self._stream.step = "release"

    def check(self) -> None:
        """Check that the stream waits for frames. Raises: what ended it before."""
        if self._stream.early() is not None:
            self._stream.step = "evaluate"
            raise self._stream.violation("answered before it was asked")

    async def send(self, frames: Iterable[Frame]) -> StepBytes:
        """Send all frames, wait until the shuffler has them, and return the bytes with framing."""
        step = ""
        size = 0
        for frame in frames:
            request = pb.ShuffleRequest()
            codec.put_frame(request.frame, frame)
            await self._stream.write(request)
            failpoint("during-delivery")
            step = frame.step
            size += frame.wire_bytes
        await self._reply("release", delivered=True)
        return StepBytes(step, 0, size)

    async def _reply(self, step: str, *, delivered: bool) -> None:
        answer = await self._stream.next(step, self._seconds)
        if (answer.attempt, answer.delivered) != (self._attempt, delivered):
            raise self._stream.violation("answered for another attempt")

    def close(self) -> None:
        """Hang up; the channel closes in the background."""
        self._stream.cancel()


class ShufflerStreams:
    """The streams to both shufflers.

    Args:
        members, openings: the values from which each shuffler derives the attempt itself.
        signatures: every node's, of all members.
    """

    def __init__(
        self,
        study: Study,
        attempt: bytes,
        members: Sequence[Member],
        openings: Sequence[bytes],
        signatures: Sequence[bytes],
    ):
        self._begin = codec.deal_request(study.encode(), members, openings, signatures)
        self._streams = [
            ShufflerStream(each, attempt, study.seconds_per_step) for each in study.shufflers
        ]

    async def connect(self, identity: Identity) -> None:
        """Open both. Raises: PeerUnavailable, or what a shuffler has against the attempt."""
        await together(stream.open(identity, self._begin) for stream in self._streams)

    def check(self) -> None:
        """Check that both are there, before anything is delivered. Raises: PeerLost."""
        for stream in self._streams:
            stream.check()

    async def send(self, frames: Sequence[Iterable[Frame]]) -> tuple[StepBytes, ...]:
        """Deliver to both at once, and return the bytes sent to each.

        Args:
            frames: the frames for the first shuffler, and those for the second.

        Raises: what a shuffler has against the frames, PeerLost, StepTimeout.
        """
        sent: list[StepBytes] = []

        async def one(stream: ShufflerStream, own: Iterable[Frame]) -> None:
            sent.append(await stream.send(own))

        await together(one(stream, own) for stream, own in zip(self._streams, frames, strict=True))
        return tuple(sorted(sent, key=lambda each: each.step != "shares"))

    def close(self) -> None:
        """Hang up; the channels close in the background."""
        for stream in self._streams:
            stream.close()
