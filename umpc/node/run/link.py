"""Links between nodes: each frame is handed out once, and nothing waits for a peer that is gone.

`PeerLink` is the link to one peer, over a stream that either of the two has begun, directly or
through a hub. `Mailbox` holds frames until they are asked for. `RunLinks` has all links of one run,
made for one meeting and ended together, and counts its bytes and rounds.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from umpc.crypto.rounds import Message
from umpc.errors import EncodingError, MpcError, RemoteProtocolError, UmpcError
from umpc.node.run.context import Site
from umpc.node.standing import KeptChannel, StandingWith
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.base.node import MeshSide
from umpc.study.cost import sent_by_round
from umpc.study.document import Study
from umpc.study.messages import Frame, Key, StepBytes, round_of
from umpc.transport.patience import together
from umpc.transport.stream import RpcStream, as_received
from umpc.transport.stream_reader import StreamReader, lost

PeerStream = RpcStream[pb.PeerMessage, pb.PeerMessage]

MAX_WAITING = 96 << 20
"""Bytes that may wait in a mailbox before they are asked for. An honest peer stays far below."""
SHORT = 64
"""Bytes of a payload that a mailbox remembers itself: its tag would take as long as all else."""
NONCE = bytes(12)
"""No tag leaves its mailbox, so one number serves all of them."""
FRAME_BYTES = 1024
"""Bytes that a waiting frame takes in addition to its payload."""
FINISH_SECONDS = 1.0
"""Seconds that a node waits, after a run that ended well, for its peer to end the link as well."""


class Mailbox:
    """Frames from one peer. `wanted` waits for a frame; `fail` ends all waiting, now and later.

    It takes a repeated frame if it equals the first copy, and blames the peer for a different one.
    After a violation no frame is handed out, also none that came before. After a loss the frames
    that came before are still good.
    """

    def __init__(self, peer: str):
        self.peer = peer
        self._waiting: dict[Key, Frame] = {}
        self._wanted: dict[Key, asyncio.Future[Frame]] = {}
        self._seen: dict[Key, tuple[bytes, bool, int, int]] = {}
        """The content of each frame, or the tag of a long one, with its count and width."""
        self._tags = AESGCM(os.urandom(16))
        self._bytes = 0
        self._failure: UmpcError | None = None

    def put(self, frame: Frame) -> None:
        """Keep a frame, or hand it to the caller that waits for it.

        Raises: RemoteProtocolError if the frame differs from its first copy, or if too many bytes
        wait already.
        """
        key = frame.key
        is_short = len(frame.payload) <= SHORT
        content = frame.payload if is_short else self._tag(frame.payload)
        mark = (content, is_short, frame.count, frame.width)
        if self._seen.setdefault(key, mark) is not mark:
            if self._seen[key] != mark:
                raise self._violation(frame, "came twice with different content")
            return
        wanted = self._wanted.pop(key, None)
        if wanted is not None and not wanted.done():
            wanted.set_result(frame)
        elif self._bytes + len(frame.payload) + FRAME_BYTES <= MAX_WAITING:
            self._waiting[key] = frame
            self._bytes += len(frame.payload) + FRAME_BYTES
        else:
            raise self._violation(frame, f"came while {self._bytes} bytes wait")

    def wanted(self, key: Key) -> asyncio.Future[Frame]:
        """The frame of that place, as soon as it is there.

        Raises: the error that `fail` was given, at once or later.
        """
        wanted: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        frame = self._taken(key)
        if frame is None:
            self._wanted[key] = wanted
        else:
            wanted.set_result(frame)
        return wanted

    def _taken(self, key: Key) -> Frame | None:
        """The frame of that place, if it is there. Raises: the failure, if there was one."""
        if isinstance(self._failure, MpcError):
            raise self._failure
        frame = self._waiting.pop(key, None)
        if frame is not None:
            self._bytes -= len(frame.payload) + FRAME_BYTES
        elif self._failure is not None:
            raise self._failure
        return frame

    def has_room(self, window: int) -> bool:
        """Whether fewer than `window` bytes wait, or a caller waits for a missing frame."""
        return self._bytes < window or self.is_awaited or self._failure is not None

    @property
    def is_awaited(self) -> bool:
        """A caller waits for a frame of this peer."""
        return any(not wanted.done() for wanted in self._wanted.values())

    @property
    def violation(self) -> MpcError | None:
        """The peer's violation, if there was one."""
        return self._failure if isinstance(self._failure, MpcError) else None

    def fail(self, error: UmpcError) -> None:
        """End all waiting with this error, unless another error came first."""
        self._failure = self._failure or error
        for wanted in self._wanted.values():
            if not wanted.done():
                wanted.set_exception(self._failure)
        self._wanted.clear()

    def _tag(self, payload: bytes) -> bytes:
        """A long payload as 16 bytes: GMAC under a key that nobody else knows.

        Two payloads that a peer chooses have one tag with probability at most 2^−111, as it sees
        no tag. It takes a tenth of the time of SHA-256.
        """
        return self._tags.encrypt(NONCE, b"", payload)

    def _violation(self, frame: Frame, what: str) -> RemoteProtocolError:
        return RemoteProtocolError(
            f"{frame.label} from {self.peer} {what}; {self.peer} broke the protocol",
            culprit=self.peer,
            step=frame.step,
        )


def peer_stream(peer: str) -> PeerStream:
    """Return a stream to a peer. It reads a message only when the link asks for one.

    The coordinator hears the heartbeats of all nodes and tells every node whose has stopped: N
    heartbeats in place of one for each of N² links.
    """
    return RpcStream(peer, "prepare", as_received, ahead=0, beats=False)


class PeerLink:
    """The link to one peer: it sends frames, and its mailbox has those that came.

    `pump` ends with the stream. While it runs, each frame goes to the mailbox as it comes.
    """

    def __init__(self, stream: PeerStream):
        peer = self.peer = stream.peer
        self.sent: Counter[tuple[str, int]] = Counter()
        """Bytes by (step, round)."""
        self.rounds_used: set[tuple[str, int]] = set()
        self.channel: KeptChannel | None = None
        """The channel of transfers that both ends have from an earlier study, for this one."""
        self.window: int | None = None
        """While so many bytes wait, nothing is read, unless a caller waits for a missing frame."""
        self._mailbox = Mailbox(peer)
        self._stream = stream
        self._reader: StreamReader[pb.PeerMessage] | None = None
        self._writing = 0
        self._alarm: Callable[[MpcError], None] | None = None

    @property
    def step(self) -> str:
        """The study's step, which failures name."""
        return self._stream.step

    @step.setter
    def step(self, step: str) -> None:
        self._stream.step = step

    async def send(self, frame: Frame) -> None:
        """Send one message of a round. Raises: PeerLost."""
        self.sent[frame.step, frame.round] += frame.wire_bytes
        self.rounds_used.add(frame.round_of_study)
        message = pb.PeerMessage()
        codec.put_frame(message.frame, frame)
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

    def close(self) -> None:
        """End the link and its stream; the connection ends in the background."""
        self._alarm = None
        self.fail(lost(self.peer, self.step))
        self._stream.cancel()

    async def ended(self) -> None:
        """Wait, after `close`, until the connection has ended."""
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

    def _put(self, message: pb.PeerMessage) -> None:
        """Take one message of the peer. Raises: EncodingError, RemoteProtocolError."""
        if message.WhichOneof("body") != "frame":
            raise EncodingError("something that is no frame came")
        self._mailbox.put(codec.decode_frame(message.frame))

    def on_violation(self, alarm: Callable[[MpcError], None]) -> None:
        """Call `alarm` with the peer's violation, now or as soon as there is one.

        Nobody may be waiting for this peer, and the study must end all the same.
        """
        self._alarm = alarm
        self._sound_alarm()

    async def receive(self, key: Key) -> Message:
        """Return the peer's message of a round. Raises: PeerLost, RemoteProtocolError."""
        frame = await self.wanted(key)
        self.rounds_used.add(frame.round_of_study)
        return frame.message

    def wanted(self, key: Key) -> asyncio.Future[Frame]:
        """The peer's message of a round, as soon as it is there. Raises: as `receive`."""
        wanted = self._mailbox.wanted(key)
        if self.window is not None and self._reader is not None:
            self._reader.want()  # what was held back, if there is room now
        return wanted

    @property
    def bytes_sent(self) -> int:
        return self.sent.total()

    @property
    def is_awaited(self) -> bool:
        """A caller waits for a message of this peer, or for room to send it one."""
        return self._mailbox.is_awaited or self._writing > 0

    def fail(self, error: UmpcError) -> None:
        """End all waiting with this error, unless another error came first."""
        self._mailbox.fail(error)

    def _sound_alarm(self) -> None:
        if self._alarm is not None and self._mailbox.violation is not None:
            self._alarm(self._mailbox.violation)

    def _takes(self) -> bool:
        return self.window is None or self._mailbox.has_room(self.window)


async def all_of(asked: Sequence[tuple[PeerLink, Key]]) -> list[Frame]:
    """The messages of these places. Raises: the first failure, as soon as it is there."""
    frames = await asyncio.gather(*[link.wanted(key) for link, key in asked])
    for (link, _), frame in zip(asked, frames, strict=True):
        link.rounds_used.add(frame.round_of_study)
    return frames


# --- the links of a run ---------------------------------------------------------------------------

NO_STANDING: Mapping[int, StandingWith] = {}


class RunLinks:
    """The links of one run, and what is sent over them.

    Args: note: takes note of the peers' violations.
    """

    def __init__(self, note: Callable[[MpcError], None]):
        self.made: dict[int, PeerLink] = {}
        """The links by the peer's index in the study."""
        self.bytes_before = 0
        """Bytes to peers before the data, whenever that was."""
        self._note = note
        self._connecting: set[str] = set()
        self._meeting: asyncio.Task[None] | None = None
        self._with_coordinator: Counter[tuple[str, int]] = Counter()

    @property
    def names(self) -> list[str]:
        """The names of all peers to which there is a link."""
        return [link.peer for link in self.made.values()]

    async def connect(
        self,
        site: Site,
        mesh: MeshSide,
        study: Study,
        meeting: bytes,
        standing: Mapping[int, StandingWith] = NO_STANDING,
    ) -> None:
        """Links to all peers of a meeting.

        Args: standing: with each peer from which the run may take a channel.
        """

        async def link(peer: int) -> None:
            connect = site.dial if mesh.index < peer else site.await_link
            name = study.nodes[peer].name
            self._connecting.add(name)
            made: PeerLink = await connect(study, peer, meeting, standing.get(peer))
            self._connecting.discard(name)
            self.made[peer] = made
            made.window = mesh.attempt.program.window
            made.on_violation(self._note)

        if mesh.peers:
            await together([link(peer) for peer in mesh.peers])

    def begin_to_connect(self, site: Site, mesh: MeshSide, study: Study, meeting: bytes) -> None:
        """Make the links beside the run's other steps. Args: as of `connect`."""
        self._meeting = asyncio.create_task(self.connect(site, mesh, study, meeting))
        # A run that fails before it needs the links has a reason of its own.
        self._meeting.add_done_callback(lambda made: made.cancelled() or made.exception())

    async def connected(self) -> None:
        """Wait for the links that were begun. Raises: why one of them could not be made."""
        if self._meeting is not None:
            await self._meeting

    def waited_for(self) -> list[str]:
        """The names of the peers that have not connected, or whose message is missing."""
        late = [link.peer for link in self.made.values() if link.is_awaited]
        return sorted(self._connecting) + late

    async def finish(self) -> None:
        """Let the last messages leave, before `close`."""
        await asyncio.gather(*(link.finish() for link in self.made.values()))

    async def ended(self) -> None:
        """Wait until all links have ended, after `close`."""
        await asyncio.gather(*(link.ended() for link in self.made.values()))

    def close(self) -> None:
        """Hang up."""
        if self._meeting is not None:
            self._meeting.cancel()
        for link in self.made.values():
            link.close()

    # --- counted -------------------------------------------------------------------------------

    def count_as_prepared(self) -> None:
        """All that was sent to other nodes so far needed no data."""
        for link in self.made.values():
            self.bytes_before += link.bytes_sent
            link.rounds_used.clear()
            link.sent.clear()

    def count_with_coordinator(self, frame: Frame) -> None:
        """Count a frame to or from the coordinator. A vector and its total are one round."""
        self._with_coordinator[frame.step, frame.round] += frame.wire_bytes

    @property
    def bytes_online_by_round(self) -> tuple[StepBytes, ...]:
        """Bytes of each round on data that were sent to peers, and to and from the coordinator."""
        sent = self._with_coordinator.copy()
        for link in self.made.values():
            sent.update(link.sent)
        return sent_by_round(sent)

    @property
    def rounds_used(self) -> int:
        """The number of rounds on data."""
        used = {each for link in self.made.values() for each in link.rounds_used}
        used.update(round_of(*place) for place in self._with_coordinator)
        return len(used)
