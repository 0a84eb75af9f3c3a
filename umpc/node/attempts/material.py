"""Material from the dealer, read ahead up to a window, used once. Only a study that is prepared ahead keeps it on disk
(`spool.py`)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from umpc.errors import EncodingError, RemoteProtocolError, UmpcError
from umpc.mpc.attempt import Attempt, Chunk
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.frames import Frame
from umpc.transport.services import rpc
from umpc.transport.status import error_of
from umpc.transport.tls import grpc

WINDOW_BYTES = 32 << 20
"""Material that a node holds at most, whatever the size of E."""


class MaterialReader:
    """The stream from the dealer to one node.

    Args: node: this node's index. chunks: its chunks in the common order: what must come, in this order.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        attempt: Attempt,
        openings: Sequence[bytes],
        node: int,
        chunks: Sequence[Chunk],
    ):
        self._ahead = attempt.chunks_ahead(WINDOW_BYTES)[node]
        self.dealer = attempt.study.dealer.name
        self.bytes_received = 0
        self._chunks = chunks
        self._held: deque[Frame] = deque()
        self._held_bytes = 0
        self._came = 0
        self._failure: UmpcError | None = None
        self._changed = asyncio.Condition()
        request = pb.DealRequest(
            study=attempt.study.encode(),
            members=[codec.encode_member(member) for member in attempt.members],
            openings=list(openings),
        )
        self._channel = channel
        self._call = rpc.DealerStub(channel).Deal(request)
        self._closing: asyncio.Task | None = None
        self.is_awaited = False

    async def seed(self) -> bytes:
        """The node's seed, the first frame."""
        frame = await self._read()
        if frame is None or frame.step != "node_seed" or len(frame.payload) != 32:
            raise self._violation("did not begin with the node's seed")
        return frame.payload

    async def pump(self) -> None:
        """Read all frames, in order, never holding more than the window."""
        try:
            for chunk in self._chunks:
                frame = await self._read()
                if frame is None:
                    raise self._violation("ended before all material had come")
                if (
                    frame.key != ("material", 0, chunk.place, chunk.number)
                    or frame.count != chunk.count
                ):
                    raise self._violation(
                        f"sent {frame.label} where chunk {chunk.number} of cell {chunk.place} was due"
                    )
                async with self._changed:
                    await self._changed.wait_for(lambda: self._held_bytes < WINDOW_BYTES)
                    self._held.append(frame)
                    self._held_bytes += len(frame.payload)
                    self._came += 1
                    self._changed.notify_all()
        except UmpcError as error:
            async with self._changed:
                self._failure = error
                self._changed.notify_all()

    async def prefetched(self) -> None:
        """Wait for the material that every node can hold before anybody uses any."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._failure or self._came >= self._ahead)
        if self._failure:
            raise self._failure

    async def next(self) -> bytes:
        """The material of the next chunk; handed out once."""
        async with self._changed:
            self.is_awaited = True
            await self._changed.wait_for(lambda: self._held or self._failure)
            self.is_awaited = False
            if not self._held:
                raise self._failure
            frame = self._held.popleft()
            self._held_bytes -= len(frame.payload)
            self._changed.notify_all()
        return frame.payload

    def close(self) -> None:
        self._call.cancel()
        self._closing = asyncio.ensure_future(self._channel.close())

    async def _read(self) -> Frame | None:
        try:
            message = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise error_of(error, self.dealer, "prepare") from error
        if message is grpc.aio.EOF:
            return None
        try:
            frame = codec.decode_frame(message)
        except EncodingError as error:
            raise self._violation(error.message) from error
        self.bytes_received += frame.wire_bytes
        return frame

    def _violation(self, what: str) -> RemoteProtocolError:
        return RemoteProtocolError(f"{self.dealer} {what}", culprit=self.dealer, step="prepare")
