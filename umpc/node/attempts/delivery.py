"""A node's streams to a study's two shufflers: opened before it is ready, used after its charge."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence

from umpc.errors import RemoteProtocolError, StepTimeout, UmpcError
from umpc.failpoints import failpoint
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.document import Study
from umpc.study.frames import Frame
from umpc.study.messages import StepBytes
from umpc.study.parts import Participant
from umpc.study.sizes import Member
from umpc.transport.authority import Identity
from umpc.transport.channels import connect
from umpc.transport.services import rpc
from umpc.transport.status import error_of, lost
from umpc.transport.structured_concurrency import together
from umpc.transport.tls import grpc

CONNECT_SECONDS = 5


class ShufflerStream:
    """The stream to one shuffler. A task of its own reads, so that a shuffler that goes away is noticed at once."""

    def __init__(self, shuffler: Participant, attempt: bytes, seconds: float):
        self.name, self._address = shuffler.name, shuffler.address
        self._attempt, self._seconds = attempt, seconds
        self._channel: grpc.aio.Channel | None = None
        self._call = None
        self._next: asyncio.Task[pb.ShuffleReply | UmpcError] | None = None

    async def open(self, identity: Identity, begin: pb.DealRequest) -> None:
        """Until the shuffler knows the attempt, and its order. Raises: PeerUnavailable, the shuffler's own failure."""
        self._channel = await connect(
            identity, self.name, "shuffler", self._address, CONNECT_SECONDS
        )
        self._call = rpc.ShufflerStub(self._channel).Deliver()
        self._next = asyncio.create_task(self._read("prepare"))
        await self._write(pb.ShuffleRequest(begin=begin))
        await self._reply("prepare", delivered=False)
        self._next = asyncio.create_task(self._read("release"))

    def check(self) -> None:
        """Raises: what ended the stream before anything was delivered."""
        if self._next.done():
            self._judge(self._next.result(), "evaluate", delivered=False)
            raise RemoteProtocolError(
                f"{self.name} answered before it was asked", culprit=self.name, step="evaluate"
            )

    async def send(self, frames: Iterable[Frame]) -> StepBytes:
        """All frames, until the shuffler has them. Returns: what was sent, framing included."""
        step, size = "", 0
        for frame in frames:
            await self._write(pb.ShuffleRequest(frame=codec.encode_frame(frame)))
            failpoint("during-delivery")
            step, size = frame.step, size + frame.wire_bytes
        await self._reply("release", delivered=True)
        return StepBytes(step, 0, size)

    async def _write(self, request: pb.ShuffleRequest) -> None:
        with contextlib.suppress(
            grpc.aio.AioRpcError, asyncio.InvalidStateError
        ):  # the reader knows why
            await self._call.write(request)

    async def _reply(self, step: str, *, delivered: bool) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                answer = await asyncio.shield(self._next)
        except TimeoutError as error:
            raise StepTimeout(
                f"{self.name} did not answer in step {step} within {self._seconds:.0f} s",
                culprit=self.name,
                step=step,
            ) from error
        self._judge(answer, step, delivered=delivered)

    def _judge(self, answer: pb.ShuffleReply | UmpcError, step: str, *, delivered: bool) -> None:
        if isinstance(answer, UmpcError):
            raise answer
        if (answer.attempt, answer.delivered) != (self._attempt, delivered):
            raise RemoteProtocolError(
                f"{self.name} answered for another attempt", culprit=self.name, step=step
            )

    async def _read(self, step: str) -> pb.ShuffleReply | UmpcError:
        try:
            message = await self._call.read()
        except grpc.aio.AioRpcError as error:
            return error_of(error, self.name, step)
        return lost(self.name, step) if message is grpc.aio.EOF else message

    def close(self) -> list[asyncio.Task]:
        if self._call is not None:
            self._call.cancel()
        return [asyncio.ensure_future(self._channel.close())] if self._channel is not None else []


class ShufflerStreams:
    """Both streams. Args: members, openings: from which the shufflers derive the attempt themselves."""

    def __init__(
        self, study: Study, attempt: bytes, members: Sequence[Member], openings: Sequence[bytes]
    ):
        self._begin = pb.DealRequest(
            study=study.encode(),
            members=[codec.encode_member(member) for member in members],
            openings=list(openings),
        )
        self._streams = [
            ShufflerStream(each, attempt, study.seconds_per_step) for each in study.shufflers
        ]
        self._closing: list[asyncio.Task] = []

    async def open(self, identity: Identity) -> None:
        await together(stream.open(identity, self._begin) for stream in self._streams)

    def check(self) -> None:
        """Raises: PeerLost where a shuffler is gone; nothing was delivered to either."""
        for stream in self._streams:
            stream.check()

    async def send(self, frames: Sequence[Iterable[Frame]]) -> tuple[StepBytes, ...]:
        """frames: for the first shuffler, and for the second. Raises: what a shuffler had against them, PeerLost."""
        sent: list[StepBytes] = []

        async def one(stream: ShufflerStream, own: Iterable[Frame]) -> None:
            sent.append(await stream.send(own))

        await together(one(stream, own) for stream, own in zip(self._streams, frames, strict=True))
        return tuple(sorted(sent, key=lambda each: each.step != "shares"))

    def close(self) -> None:
        for stream in self._streams:
            self._closing += stream.close()
