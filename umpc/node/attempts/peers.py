"""Links between nodes: frames by their place, each exactly once, and nobody waits for a peer that is gone.

A `Mailbox` is the part without a network: it holds frames until they are asked for, takes a repeated frame if it is
equal, and blames the peer for a different one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from umpc.crypto.prg import digest
from umpc.crypto.rounds import Message
from umpc.errors import EncodingError, RemoteProtocolError, UmpcError
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.frames import Frame, Key
from umpc.transport.status import error_of, lost
from umpc.transport.tls import grpc

MAX_WAITING = 96 << 20
"""Bytes that may wait in a mailbox before they are asked for; an honest peer is never so far ahead."""
FRAME_BYTES = 1024
"""What a waiting frame takes beside its payload."""


class Mailbox:
    """Frames from one peer. `get` waits for a frame; `fail` ends all waiting, now and later."""

    def __init__(self, peer: str):
        self.peer = peer
        self._waiting: dict[Key, Frame] = {}
        self._wanted: dict[Key, asyncio.Future[Frame]] = {}
        self._seen: dict[Key, bytes] = {}
        self._bytes = 0
        self._failure: UmpcError | None = None
        self._changed = asyncio.Event()

    def put(self, frame: Frame) -> None:
        """Raises: RemoteProtocolError where the frame differs from its first copy, or too many wait."""
        mark = digest(
            frame.payload, frame.count.to_bytes(4, "little"), frame.width.to_bytes(4, "little")
        )
        if frame.key in self._seen:
            if self._seen[frame.key] != mark:
                raise self._violation(frame, "came twice with different content")
            return
        self._seen[frame.key] = mark
        wanted = self._wanted.pop(frame.key, None)
        if wanted is not None and not wanted.done():
            wanted.set_result(frame)
        elif self._bytes + len(frame.payload) + FRAME_BYTES <= MAX_WAITING:
            self._waiting[frame.key] = frame
            self._bytes += len(frame.payload) + FRAME_BYTES
        else:
            raise self._violation(frame, f"came while {self._bytes} bytes wait")

    async def get(self, key: Key) -> Frame:
        """The frame of that place. Raises: what `fail` was given."""
        if key in self._waiting:
            frame = self._waiting.pop(key)
            self._bytes -= len(frame.payload) + FRAME_BYTES
            self._changed.set()
            return frame
        if self._failure is not None:
            raise self._failure
        self._changed.set()
        self._wanted[key] = asyncio.get_running_loop().create_future()
        return await self._wanted[key]

    async def has_room(self, window: int) -> None:
        """Wait until fewer bytes wait to be asked for, or somebody waits for what has not come."""
        while self._bytes >= window and not self.is_awaited and self._failure is None:
            self._changed.clear()
            await self._changed.wait()

    @property
    def is_awaited(self) -> bool:
        """Somebody waits for a frame of this peer."""
        return any(not wanted.done() for wanted in self._wanted.values())

    def fail(self, error: UmpcError) -> None:
        self._failure = self._failure or error
        self._changed.set()
        for wanted in self._wanted.values():
            if not wanted.done():
                wanted.set_exception(self._failure)
        self._wanted.clear()

    def _violation(self, frame: Frame, what: str) -> RemoteProtocolError:
        return RemoteProtocolError(
            f"{frame.label} from {self.peer} {what}; {self.peer} broke the protocol",
            culprit=self.peer,
            step=frame.step,
        )


class PeerLink:
    """A stream to one peer, whoever dialled it.

    Args:
        write: sends one message. read: the next message, or gRPC's EOF. close: ends the stream.
    """

    def __init__(
        self,
        peer: str,
        write: Callable[[pb.PeerMessage], Awaitable[None]],
        read: Callable[[], Awaitable[pb.PeerMessage]],
        close: Callable[[], None],
    ):
        self.peer, self.close = peer, close
        self.sent: Counter[tuple[str, int]] = Counter()
        """Bytes by (step, round)."""
        self.rounds_used: set[tuple[str, int]] = set()
        self.window: int | None = None
        """With so many bytes waiting no more is read, unless somebody waits for what has not come."""
        self._mailbox = Mailbox(peer)
        self._write, self._read = write, read
        self._sending = asyncio.Lock()

    async def send(self, frame: Frame) -> None:
        """One message of a round. Raises: PeerLost."""
        self.sent[frame.step, frame.round] += frame.wire_bytes
        self.rounds_used.add(frame.round_of_study)
        try:
            async with self._sending:
                await self._write(pb.PeerMessage(frame=codec.encode_frame(frame)))
        except grpc.aio.AioRpcError as error:
            raise error_of(error, self.peer, frame.step) from error
        except (asyncio.InvalidStateError, grpc.aio.BaseError) as error:
            raise lost(self.peer, frame.step, repr(error)) from error

    async def receive(self, key: Key) -> Message:
        """The peer's message of a round. Raises: PeerLost, RemoteProtocolError."""
        frame = await self._mailbox.get(key)
        self.rounds_used.add(frame.round_of_study)
        return Message(frame.step, frame.payload, frame.count, frame.width, frame.round)

    @property
    def bytes_sent(self) -> int:
        return self.sent.total()

    @property
    def is_awaited(self) -> bool:
        return self._mailbox.is_awaited

    def fail(self, error: UmpcError) -> None:
        """End all waiting with this error, unless another came first."""
        self._mailbox.fail(error)

    async def _next(self) -> pb.PeerMessage:
        """The next message; with a window read only once there is room, so that a faster peer has to wait."""
        if self.window is not None:
            await self._mailbox.has_room(self.window)
        return await self._read()

    async def pump(self) -> None:
        """Read frames into the mailbox until the stream ends; then whoever waits learns it."""
        error: UmpcError = lost(self.peer, "evaluate")
        try:
            while (message := await self._next()) is not grpc.aio.EOF:
                if message.WhichOneof("body") != "frame":
                    raise EncodingError("something that is no frame came")
                self._mailbox.put(codec.decode_frame(message.frame))
        except grpc.aio.AioRpcError as failure:
            error = error_of(failure, self.peer, "evaluate")
        except EncodingError as failure:
            error = RemoteProtocolError(
                f"{self.peer}: {failure.message}", culprit=self.peer, step="evaluate"
            )
        except RemoteProtocolError as failure:
            error = failure
        except grpc.aio.BaseError as failure:
            error = lost(
                self.peer, "evaluate", repr(failure)
            )  # the server's side of a broken stream
        finally:
            self.fail(error)
