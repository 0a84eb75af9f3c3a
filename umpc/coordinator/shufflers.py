"""The coordinator's stream from one shuffler: first a sign of life, then the shuffler's heap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Never

from umpc.errors import EncodingError
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.study.parts import Participant
from umpc.transport.identity import Identity
from umpc.transport.status import error_of
from umpc.transport.stream import RpcStream, as_received
from umpc.transport.stream_reader import lost
from umpc.transport.tls import grpc, shuffler_stub

FRAMES_AHEAD = 4
"""Frames that may wait unread; gRPC's flow control then holds the shuffler back."""


class ShufflerLink:
    """The stream from one shuffler. Args: place: 0 for the study's first one, 1 for the second."""

    def __init__(self, study: Study, place: int):
        self.node: Participant = study.shufflers[place]
        self.study = study
        self.place = place
        self._stream: RpcStream[Never, pb.CollectReply] = RpcStream(
            self.node.name, "connect", as_received, ahead=FRAMES_AHEAD
        )

    async def open(
        self,
        identity: Identity,
        patience: float | None = None,
    ) -> None:
        """Connect. Args: patience: as of `RpcStream.connect`.

        Raises: PeerUnavailable, CertificateError.
        """
        await self._stream.connect(identity, "shuffler", self.node.address, patience)

    async def begin(self, attempt: bytes, seconds: float) -> bytes:
        """Ask for the attempt's heap and return the id of the run, once the shuffler has its order.

        Raises: the shuffler's own failure, PeerLost, StepTimeout, RemoteProtocolError.
        """
        stub = shuffler_stub(self._stream.channel)
        request = pb.CollectRequest(study=self.study.encode(), attempt=attempt)
        self._stream.begin(stub.Collect(request))
        reply = await self._stream.next("prepare", seconds)
        if len(reply.run) != 32:
            raise self._stream.violation("did not begin with its run")
        return reply.run

    async def greet(self) -> None:
        """Check that the shuffler still answers. Raises: PeerLost, or what ended its stream."""
        self._stream.step = "evaluate"
        if self._stream.early() is not None:
            raise self._stream.violation("sent a heap before it was due")
        try:
            await self._stream.beside(self._hello())
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise lost(self.node.name, "evaluate", "it did not answer") from error
            raise error_of(error, self.node.name, "evaluate") from error

    async def _hello(self) -> None:
        stub = shuffler_stub(self._stream.channel)
        await stub.Hello(pb.HelloRequest(), timeout=self.study.seconds_per_step)

    async def collect(self, receive: Callable[[int, Frame], bool], seconds: float) -> None:
        """Receive the whole heap, each frame within `seconds`.

        Args:
            receive: takes place and frame, and returns whether that was the last frame.
        """
        done = False
        while not done:
            reply = await self._stream.next("release", seconds)
            try:
                if reply.WhichOneof("body") != "frame":
                    raise EncodingError("a frame was due, and something else came")
                done = receive(self.place, codec.decode_frame(reply.frame))
            except EncodingError as error:
                raise self._stream.violation(error.message) from error

    async def close(self) -> None:
        """Hang up at once."""
        await self._stream.close()
