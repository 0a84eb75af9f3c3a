"""The link to one peer over a stream of gRPC, which either of the two has begun.

`pump` ends with the stream. While it runs, each frame goes to the mailbox as it comes.
"""

from __future__ import annotations

from umpc.errors import EncodingError
from umpc.node.attempts.peers import FINISH_SECONDS, PeerLink
from umpc.proto import frame_codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.frames import Frame
from umpc.transport.status import lost
from umpc.transport.stream import RpcStream, as_received
from umpc.transport.stream_reader import StreamReader

PeerStream = RpcStream[pb.PeerMessage, pb.PeerMessage]


def peer_stream(peer: str) -> PeerStream:
    """Return a stream to a peer. It reads a message only when the link asks for one.

    The coordinator hears the heartbeats of all nodes and tells every node whose has stopped: N
    heartbeats in place of one for each of N² links.
    """
    return RpcStream(peer, "prepare", as_received, ahead=0, beats=False)


class StreamLink(PeerLink):
    """A link over a stream."""

    def __init__(self, stream: PeerStream):
        super().__init__(stream.peer)
        self._stream = stream
        self._reader: StreamReader[pb.PeerMessage] | None = None

    @property
    def step(self) -> str:
        return self._stream.step

    @step.setter
    def step(self, step: str) -> None:
        self._stream.step = step

    async def send(self, frame: Frame) -> None:
        self.sent[frame.step, frame.round] += frame.wire_bytes
        self.rounds_used.add(frame.round_of_study)
        message = pb.PeerMessage()
        frame_codec.put_frame(message.frame, frame)
        self._writing += 1
        try:
            await self._stream.send(message, frame.step)
        finally:
            self._writing -= 1

    async def finish(self) -> None:
        """Send no more, and wait until the peer has ended, too, for FINISH_SECONDS at most.

        The side that has called would otherwise overtake its last message with the call's end.
        """
        await self._stream.finish(FINISH_SECONDS)

    def close(self, *, keep: bool = False) -> None:
        """End the link and its stream; the connection ends in the background.

        Args: keep: the run ended well, so the node that dialled may keep the connection.
        """
        self._alarm = None
        self.fail(lost(self.peer, self.step))
        self._stream.cancel(keep=keep)

    async def ended(self) -> None:
        await self._stream.close()

    async def pump(self) -> None:
        """Move frames to the mailbox until the stream ends; then callers that wait get the reason.

        With a `window`, a message is read only once there is room: a faster peer has to wait.
        """
        reader = self._reader = self._stream.feed(self._put, self._takes)
        try:
            await reader.has_ended.wait()
        finally:
            self.fail(reader.failure or lost(self.peer, self.step))
            self._sound_alarm()

    def _read_on(self) -> None:
        if self._reader is not None:
            self._reader.want()

    def _put(self, message: pb.PeerMessage) -> None:
        """Take one message of the peer. Raises: EncodingError, RemoteProtocolError."""
        if message.WhichOneof("body") != "frame":
            raise EncodingError("something that is no frame came")
        self._mailbox.put(frame_codec.decode_frame(message.frame))
