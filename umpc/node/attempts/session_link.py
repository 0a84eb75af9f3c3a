"""The link to one peer over a session of a hub that both nodes make by themselves.

A frame goes from the line to the mailbox in one step, and back in one: there is no stream, no call
and no task. Nothing opens or ends the link at the peer (`umpc/transport/hub/agreed.py`).
"""

from __future__ import annotations

import asyncio
import logging

from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError, UmpcError
from umpc.node.attempts.peers import FINISH_SECONDS, PeerLink
from umpc.proto import frame_codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.frames import Frame, round_of
from umpc.transport.hub.agreed import AgreedSession
from umpc.transport.status import lost

log = logging.getLogger("umpc.node")


class SessionLink(PeerLink):
    """A link over a session, whose user it is. Its maker gives it the session."""

    def __init__(self, peer: str):
        super().__init__(peer)
        self.session: AgreedSession | None = None
        self._step = "prepare"
        self._greeting: asyncio.Future[bytes] | None = None

    @property
    def step(self) -> str:
        return self._step

    @step.setter
    def step(self, step: str) -> None:
        self._step = step
        if step == "evaluate" and self.session is not None:
            self.session.is_early = False  # all nodes have signed the attempt, and so have met

    @property
    def _open(self) -> AgreedSession:
        if self.session is None:
            raise LocalProtocolError(f"the link to {self.peer} was used before it was made")
        return self.session

    async def send(self, frame: Frame) -> None:
        session = self._open
        message = frame_codec.encode_frame(frame).SerializeToString()
        self.sent[frame.step, frame.round] += len(message)
        self.rounds_used.add(round_of(frame.step, frame.round))
        if session.write_now(message):
            return
        self._writing += 1
        try:
            await session.write(message)
        except EOFError:
            raise lost(self.peer, frame.step) from None
        finally:
            self._writing -= 1

    # ---- the greeting, where both nodes may have a channel of transfers -------------------------

    def greet(self, channel: bytes) -> None:
        """Name a channel of transfers to the peer, or none: the first word over the link."""
        self._open.greet(channel)

    async def greeting(self) -> bytes:
        """Return the channel that the peer names, which is empty for none. Raises: PeerLost."""
        self._mailbox.raise_failure()
        return await self._greeted

    @property
    def _greeted(self) -> asyncio.Future[bytes]:
        if self._greeting is None:
            self._greeting = asyncio.get_running_loop().create_future()
        return self._greeting

    # ---- the end -----------------------------------------------------------------------------

    async def finish(self) -> None:
        """Let the last message leave, for FINISH_SECONDS at most."""
        await self._open.left(FINISH_SECONDS)

    def refuse(self) -> None:
        """Tell the peer that nothing more comes, before `close`, where it may wait for it."""
        self._open.refuse()

    def close(self, *, keep: bool = False) -> None:
        """Drop this end of the session. Nobody is told. Args: keep: makes no difference."""
        self._alarm = None
        self.fail(lost(self.peer, self.step))
        self._open.drop()

    async def ended(self) -> None:
        """Return at once: nothing goes on in the background."""

    # ---- the session's side ------------------------------------------------------------------

    def takes(self) -> bool:
        return self._takes()

    def came(self, message: bytes) -> None:
        """Take one message of the peer. Raises: RemoteProtocolError."""
        try:
            self._mailbox.put(frame_codec.decode_frame(pb.Frame.FromString(message)))
        except RemoteProtocolError:
            raise
        except Exception as error:
            # Whatever a peer sent: it ends this link, and not the connection with all others.
            why = error.message if isinstance(error, EncodingError) else "no frame came"
            raise RemoteProtocolError(
                f"{self.peer} broke the protocol: {why}", culprit=self.peer, step=self.step
            ) from error

    def greeted(self, word: bytes) -> None:
        if not self._greeted.done():
            self._greeted.set_result(word)

    def failed(self, error: UmpcError) -> None:
        error.step = error.step or self.step
        log.debug("the session with %s has ended: %s", self.peer, error.message)
        self.fail(error)
        self._sound_alarm()

    def fail(self, error: UmpcError) -> None:
        super().fail(error)
        if self._greeting is not None and not self._greeting.done():
            self._greeting.set_exception(error)

    def _read_on(self) -> None:
        self._open.deliver()
