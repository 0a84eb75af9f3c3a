"""The coordinator's stream to one shuffler: its heap, and before that whether it is there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from umpc.coordinator.links import CONNECT_SECONDS
from umpc.errors import EncodingError, RemoteProtocolError, StepTimeout, UmpcError
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.document import Study
from umpc.study.frames import Frame
from umpc.study.parts import Participant
from umpc.transport.authority import Identity
from umpc.transport.channels import connect
from umpc.transport.services import grpc, rpc
from umpc.transport.status import error_of, lost


class ShufflerLink:
    """The stream from one shuffler. Args: place: 0 for the study's first one, 1 for the second.

    A task of its own reads it, as for `links.NodeLink`; of frames that wait unread there are at most a few.
    """

    def __init__(self, study: Study, place: int):
        self.node: Participant = study.shufflers[place]
        self.study, self.place = study, place
        self._channel: grpc.aio.Channel | None = None
        self._call = None
        self._answers: asyncio.Queue[pb.CollectReply | UmpcError] = asyncio.Queue(maxsize=4)
        self._reader: asyncio.Task | None = None
        self._step = "connect"

    async def open(self, identity: Identity) -> None:
        self._channel = await connect(
            identity, self.node.name, "shuffler", self.node.address, CONNECT_SECONDS
        )

    async def begin(self, attempt: bytes, seconds: float) -> bytes:
        """Ask for the attempt's heap. Returns: which run it will be of, once the shuffler has its order."""
        self._step = "prepare"
        self._call = rpc.ShufflerStub(self._channel).Collect(
            pb.CollectRequest(study=self.study.encode(), attempt=attempt)
        )
        self._reader = asyncio.create_task(self._read())
        reply = await self._next(seconds)
        if len(reply.run) != 32:
            raise self._violation("did not begin with its run")
        return reply.run

    async def greet(self) -> None:
        """Whether it still answers. Raises: PeerLost, or what ended its stream."""
        self._step = "evaluate"
        if not self._answers.empty():
            answer = self._answers.get_nowait()
            raise (
                answer
                if isinstance(answer, UmpcError)
                else self._violation("sent a heap before it was due")
            )
        try:
            await rpc.ShufflerStub(self._channel).Hello(pb.HelloRequest(), timeout=CONNECT_SECONDS)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise lost(self.node.name, "evaluate", "it did not answer") from error
            raise error_of(error, self.node.name, "evaluate") from error

    async def collect(self, receive: Callable[[int, Frame], bool], seconds: float) -> None:
        """The whole heap. receive: place and frame → whether that was the last one."""
        self._step, done = "release", False
        while not done:
            reply = await self._next(seconds)
            try:
                if reply.WhichOneof("body") != "frame":
                    raise EncodingError("a frame was due, and something else came")
                done = receive(self.place, codec.decode_frame(reply.frame))
            except EncodingError as error:
                raise self._violation(error.message) from error

    async def _read(self) -> None:
        try:
            while (message := await self._call.read()) is not grpc.aio.EOF:
                await self._answers.put(message)
            await self._answers.put(lost(self.node.name, self._step))
        except grpc.aio.AioRpcError as error:
            await self._answers.put(error_of(error, self.node.name, self._step))

    async def _next(self, seconds: float) -> pb.CollectReply:
        try:
            async with asyncio.timeout(seconds):
                answer = await self._answers.get()
        except TimeoutError as error:
            raise StepTimeout(
                f"{self.node.name} did not finish step {self._step} within {seconds:.0f} s",
                culprit=self.node.name,
                step=self._step,
            ) from error
        if isinstance(answer, UmpcError):
            raise answer
        return answer

    async def close(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        if self._channel is not None:
            await self._channel.close()

    def _violation(self, what: str) -> RemoteProtocolError:
        name = self.node.name
        return RemoteProtocolError(
            f"{name} broke the protocol: {what}", culprit=name, step=self._step
        )
