"""Material from the dealer: read ahead up to a window, and used once.

Only a study that is prepared ahead keeps its material on disk (`spool.py`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from umpc.errors import MpcError, UmpcError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk
from umpc.proto import codec, frame_codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.study.parts import Participant
from umpc.study.sizes import Member
from umpc.transport.authority import Identity
from umpc.transport.services import dealer_stub
from umpc.transport.stream import RpcStream

WINDOW_BYTES = 32 << 20
"""Material that a node reads ahead at most, for any number of edges.

The chunks on their way have theirs, too (`running_chunks.py`)."""


class DealerLine:
    """One node's connection to the study's dealer, over which `DealerCall` asks for material."""

    def __init__(self, dealer: Participant, study: Study):
        self._dealer = dealer
        self._patience = study.seconds_per_step
        # It reads on demand, so that the reader's window is all that this node holds.
        self.stream: RpcStream[pb.DealRequest, list[Frame]] = RpcStream(
            dealer.name,
            "prepare",
            frame_codec.decode_frames,
            ahead=0,
            early_end="ended before all material had come",
        )

    async def connect(self, identity: Identity) -> None:
        """Connect to the dealer, which is told nothing yet.

        Raises: PeerUnavailable, CertificateError.
        """
        at = self._dealer.address
        await self.stream.connect(identity, "dealer", at, self._patience)

    def close(self) -> None:
        """Hang up; the connection ends in the background."""
        self.stream.cancel()


def request_of(
    study: Study,
    members: Sequence[Member],
    openings: Sequence[bytes],
    signatures: Sequence[bytes],
) -> pb.DealRequest:
    """The request for the material of an attempt that all nodes have agreed to.

    It needs all that the attempt's id follows from, and not E: the dealer may expand E meanwhile.

    Args: signatures: every node's, of all members.
    """
    return codec.deal_request(study.encode(), members, openings, signatures)


class DealerCall:
    """One node's call to the dealer for the material of one attempt, which `MaterialReader` reads.

    Args: line: to the study's dealer.
    """

    def __init__(self, line: DealerLine, request: pb.DealRequest):
        self.stream = line.stream
        self._line = line
        self._request = request

    async def ask(self) -> None:
        """Ask for the material, over a line that is connected."""
        self.stream.begin(dealer_stub(self.stream.channel).Deal())
        for piece in frame_codec.cut(self._request):
            await self.stream.write(piece)

    def close(self) -> None:
        """Hang up."""
        self._line.close()


class MaterialReader:
    """The material of one node, as it comes from the dealer.

    Args:
        dealer: the study's dealer.
        call: to it, which was opened or is about to be.
        node: this node's index.
        chunks: its chunks in the common order. Their material must come in this order.
    """

    def __init__(
        self,
        dealer: Participant,
        call: DealerCall,
        attempt: SharedAttempt,
        node: int,
        chunks: Sequence[Chunk],
    ):
        self.dealer = dealer.name
        self.bytes_received = 0
        self.is_awaited = False
        self._call = call
        self._stream = call.stream
        self._ahead = len(chunks)
        if attempt.dealt_at_most > WINDOW_BYTES:
            self._ahead = attempt.chunks_ahead(WINDOW_BYTES)[node]
        self._chunks = chunks
        self._read_frames: deque[Frame] = deque()
        self._held: deque[Frame] = deque()
        self._held_bytes = 0
        self._came = 0
        self._failure: UmpcError | None = None
        self._alarm: Callable[[MpcError], None] | None = None
        self._changed = asyncio.Condition()

    async def seed(self) -> bytes:
        """Return the node's seed, which is the first frame."""
        frame = await self._read()
        if frame.step != "node_seed" or len(frame.payload) != 32:
            raise self._stream.violation("did not begin with the node's seed")
        return frame.payload

    async def pump(self) -> None:
        """Read all frames in order, and never hold more than the window."""
        try:
            for chunk in self._chunks:
                frame = await self._read()
                self._check(frame, chunk)
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
            if self._alarm is not None and self.violation is not None:
                self._alarm(self.violation)

    def _check(self, frame: Frame, chunk: Chunk) -> None:
        """Raises: RemoteProtocolError if the frame is not the material of this chunk."""
        due = ("material", 0, chunk.place, chunk.number)
        if frame.key != due or frame.count != chunk.count:
            raise self._stream.violation(
                f"sent {frame.label} where chunk {chunk.number} of cell {chunk.place} was due"
            )

    async def prefetched(self) -> None:
        """Wait for the material that every node can hold before any node uses any."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._failure is not None or self._came >= self._ahead
            )
        if self._failure is not None:
            raise self._failure

    async def next(self) -> bytes:
        """Return the material of the next chunk, which is handed out once."""
        async with self._changed:
            self.is_awaited = True
            try:
                await self._changed.wait_for(lambda: self._held or self._failure is not None)
            finally:
                self.is_awaited = False
            if self._failure is not None and (self.violation is not None or not self._held):
                raise self._failure
            frame = self._held.popleft()
            self._held_bytes -= len(frame.payload)
            self._changed.notify_all()
        return frame.payload

    @property
    def violation(self) -> MpcError | None:
        """The dealer's violation, if there was one. No material is handed out after it."""
        return self._failure if isinstance(self._failure, MpcError) else None

    def on_violation(self, alarm: Callable[[MpcError], None]) -> None:
        """Call `alarm` with the dealer's violation, now or as soon as there is one."""
        self._alarm = alarm
        if self.violation is not None:
            alarm(self.violation)

    def close(self) -> None:
        """Hang up; the connection ends in the background."""
        self._alarm = None
        self._call.close()

    async def _read(self) -> Frame:
        """The next frame of the stream, whose messages have one or more."""
        if not self._read_frames:
            self._read_frames.extend(await self._stream.next("prepare"))
        frame = self._read_frames.popleft()
        self.bytes_received += frame.wire_bytes
        return frame
