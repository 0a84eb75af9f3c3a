"""The dealer's material of one run: asked for, read ahead up to a window, and used once.

A study that is prepared ahead keeps its material on disk for its run (`umpc/node/spool.py`). A node
that makes its material with the other nodes keeps that on disk by the same means.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from umpc.crypto.prg import SEED_BYTES
from umpc.errors import MpcError, UmpcError
from umpc.failpoints import failpoint
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk
from umpc.node.run.context import PROGRESS_EVERY, RunContext
from umpc.node.spool import TAG_BYTES, Spool
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.base.node import MeshSide, NodeSide
from umpc.study.document import Study, dealer_of
from umpc.study.messages import Frame, Key
from umpc.transport.identity import Identity
from umpc.transport.stream import RpcStream
from umpc.transport.stream_reader import StreamReader
from umpc.transport.tls import dealer_stub

WINDOW_BYTES = 32 << 20
"""Material that a node reads ahead at most, for any number of edges.

The chunks on their way have theirs, too (`chunks.py`)."""


DealerStream = RpcStream[pb.DealRequest, list[Frame]]


class Material:
    """The material of one run."""

    def __init__(self, run: RunContext):
        self.reader: MaterialReader | None = None
        """The dealer's stream, once it is open."""
        self.spool: Spool | None = None
        """The material on disk, where it is fetched or made ahead of the data."""
        self._run = run
        self._call: DealerCall | None = None
        self._dialled: asyncio.Task[None] | None = None
        self._pump: asyncio.Task[None] | None = None

    @property
    def bytes_received(self) -> int:
        return self.reader.bytes_received if self.reader else 0

    def dial(self, side: NodeSide) -> None:
        """Begin to connect to the dealer, where a study surely needs one, once the members agree.

        The coordinator waits for the other nodes meanwhile, and the dealer has nothing to do. One
        that cannot be reached is told of when it is asked.
        """
        if side.study.dealer is not None and side.mesh is not None and side.mesh.asks_early:
            self._dial(side.study)

    async def ask(self, side: NodeSide, openings: Sequence[bytes]) -> None:
        """Ask the dealer that was dialled for material, before E is expanded.

        The dealer then expands E at the same time. All that it is told are public facts that every
        node has signed. Raises: PeerUnavailable, CertificateError.
        """
        if self._call is not None and side.mesh is not None:
            await self._ask(side.study, side.mesh.members, openings, side.signatures)

    def _dial(self, study: Study) -> DealerCall:
        call = self._call = DealerCall(study)
        self._dialled = asyncio.create_task(self._run.site.dial_helper(call))
        # A dealer that nobody asks any more need not have answered.
        self._dialled.add_done_callback(lambda done: done.cancelled() or done.exception())
        return call

    async def _ask(self, study: Study, *facts: Any) -> None:
        """Ask the dealer. Args: facts: as of `codec.deal_request`."""
        request = codec.deal_request(study.encode(), *facts)
        if self._dialled is not None and self._call is not None:
            await self._dialled
            await self._call.ask(request)

    async def open(
        self,
        attempt: SharedAttempt,
        openings: Sequence[bytes],
        signatures: Sequence[bytes],
        chunks: Sequence[Chunk],
    ) -> bytes:
        """Begin to read. Returns: the node's seed: the dealer's, or its own if nothing is dealt.

        Args: signatures: every node's, of all members. chunks: this node's, in the common order.
        """
        if not attempt.needs_dealer:
            self.hang_up()
            return os.urandom(SEED_BYTES)
        study, call = attempt.study, self._call
        if call is None:
            call = self._dial(study)
            await self._ask(study, attempt.members, openings, signatures)
        node = study.index_of(self._run.site.name)
        self.reader = MaterialReader(call.stream, attempt, node, chunks)
        seed = await self.reader.seed()
        self._pump = asyncio.create_task(self.reader.pump(self._run.guard.note))
        return seed

    async def open_spool(
        self, mesh: MeshSide, chunks: Sequence[Chunk], size_of: Callable[[Any, int, int], int]
    ) -> Spool:
        """Room on disk for this node's material, except that of the noise, which is used at once.

        Args: size_of: the bytes of a chunk's material, from its plan, party and number of edges.
        """
        attempt = mesh.attempt

        def opened() -> Spool:
            sizes = (
                size_of(attempt.plan(chunk), chunk.parties.index(mesh.index), chunk.count)
                + TAG_BYTES
                for chunk in chunks
                if not chunk.noise
            )
            return self._run.site.open_spool(attempt.study, sum(sizes))

        self.spool = await self._run.compute.in_thread(opened)
        return self.spool

    async def ready(self, chunks: int, tell: Callable[[int, int], Awaitable[None]]) -> None:
        """All of it on disk, if there is room for that, or as much as the window holds.

        Args: chunks: whose material is still to come. tell: reports progress, as (done, of).
        """
        if self.reader is None:
            return
        if self.spool is None:
            await self.reader.prefetched()
            return
        # The dealer's stream ends with the run.
        for done in range(chunks):
            await self._run.compute.in_thread(self.spool.add, await self.reader.next())
            failpoint("during-spool")
            if done % PROGRESS_EVERY == PROGRESS_EVERY - 1:
                await tell(done + 1, chunks)

    async def read_ahead(self) -> None:
        """Begin to read what an earlier run put on disk."""
        if self.spool:
            await self.spool.read_ahead(WINDOW_BYTES)

    def waited_for(self, step: str) -> list[str]:
        """The dealer's name, if its material is missing or may be, as in the step *prepare*."""
        if self.reader is not None and (self.reader.is_awaited or step == "prepare"):
            return [self.reader.dealer]
        return []

    def hang_up(self) -> None:
        """End the call to the dealer."""
        if self._pump:
            self._pump.cancel()
        if self._dialled:
            self._dialled.cancel()
        if self._call:
            self._call.stream.cancel()  # the connection ends in the background

    def close(self, *, keep_spool: bool) -> None:
        """End all of it. Args: keep_spool: what is on disk stays."""
        self.hang_up()
        if self.spool and not keep_spool:
            self.spool.close()


class DealerCall:
    """One node's call to the study's dealer for the material of one attempt."""

    def __init__(self, study: Study):
        name, self._address = dealer_of(study)
        self._patience = study.seconds_per_step
        # It reads on demand, so that the reader's window is all that this node holds.
        self.stream: DealerStream = RpcStream(
            name,
            "prepare",
            codec.decode_frames,
            ahead=0,
            early_end="ended before all material had come",
        )

    async def connect(self, identity: Identity) -> None:
        """Connect to the dealer, which is told nothing yet.

        Raises: PeerUnavailable, CertificateError.
        """
        await self.stream.connect(identity, "dealer", self._address, self._patience)

    async def ask(self, request: pb.DealRequest) -> None:
        """Ask for the material of an attempt that all nodes have agreed to.

        Args: request: all that the attempt's id follows from, and not E: the dealer may expand E
            meanwhile.
        """
        self.stream.begin(dealer_stub(self.stream.channel).Deal())
        for piece in codec.cut(request):
            await self.stream.write(piece)


class MaterialReader:
    """The material of one node, as it comes from the dealer.

    Args:
        stream: to the study's dealer, which was asked or is about to be.
        node: this node's index.
        chunks: its chunks in the common order. Their material must come in this order.
    """

    def __init__(
        self, stream: DealerStream, attempt: SharedAttempt, node: int, chunks: Sequence[Chunk]
    ):
        self.dealer = stream.peer
        self.bytes_received = 0
        self.is_awaited = False
        self._stream = stream
        self._reader: StreamReader[list[Frame]] | None = None
        self._due = deque(chunks)
        ahead = len(chunks)
        if attempt.dealt_at_most > WINDOW_BYTES:
            ahead = attempt.chunks_ahead(WINDOW_BYTES)[node]
        self._due_later = len(chunks) - ahead
        self._held: deque[bytes] = deque()
        self._held_bytes = 0
        self._failure: UmpcError | None = None
        self._changed = asyncio.Event()

    async def seed(self) -> bytes:
        """Return the node's seed, which is the first frame."""
        first, *more = await self._stream.next("prepare")
        self.bytes_received += first.wire_bytes
        if first.step != "node_seed" or len(first.payload) != 32:
            raise self._stream.violation("did not begin with the node's seed")
        self._keep(more)
        return first.payload

    async def pump(self, alarm: Callable[[MpcError], None]) -> None:
        """Read all frames in order, and never hold more than the window and a message.

        Args: alarm: called with the dealer's violation as soon as there is one.
        """
        reader = self._reader = self._stream.feed(self._keep, self._takes)
        await reader.has_ended.wait()
        self._failure = reader.failure
        self._changed.set()
        if isinstance(self._failure, MpcError):
            alarm(self._failure)

    def _takes(self) -> bool:
        return len(self._due) > 0 and self._held_bytes < WINDOW_BYTES

    def _keep(self, frames: Sequence[Frame]) -> None:
        """Raises: RemoteProtocolError if a frame is not the material of the chunk that is due."""
        for frame in frames:
            self.bytes_received += frame.wire_bytes
            chunk = self._due.popleft() if self._due else None
            if chunk is None or (frame.key, frame.count) != (_key_of(chunk), chunk.count):
                due = f"chunk {chunk.number} of cell {chunk.place}" if chunk else "nothing"
                raise self._stream.violation(f"sent {frame.label} where {due} was due")
            self._held.append(frame.payload)
            self._held_bytes += len(frame.payload)
        self._changed.set()

    async def prefetched(self) -> None:
        """Wait for the material that every node can hold before any node uses any."""
        await self._until(lambda: len(self._due) <= self._due_later)
        if self._failure is not None:
            raise self._failure

    async def next(self) -> bytes:
        """Return the material of the next chunk, which is handed out once.

        No material is handed out after the dealer's violation.
        """
        self.is_awaited = True
        try:
            await self._until(lambda: self._held)
        finally:
            self.is_awaited = False
        if self._failure is not None and (isinstance(self._failure, MpcError) or not self._held):
            raise self._failure
        payload = self._held.popleft()
        self._held_bytes -= len(payload)
        if self._reader is not None:
            self._reader.want()
        return payload

    async def _until(self, is_there: Callable[[], object]) -> None:
        """Wait for this, or for a failure."""
        while not is_there() and self._failure is None:
            self._changed.clear()
            await self._changed.wait()


def _key_of(chunk: Chunk) -> Key:
    return "material", 0, chunk.place, chunk.number
