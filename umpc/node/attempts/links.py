"""Where links between nodes are made: the later node of a pair waits, the earlier one dials.

A dialled node answers only when a run of its own is at the same attempt and wants this peer, and reads nothing before:
whoever is in no study with it can neither send frames nor fill its memory.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from umpc.errors import RemoteProtocolError, StepTimeout, UmpcError
from umpc.node.attempts.peers import PeerLink
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.document import Study
from umpc.transport.authority import Identity
from umpc.transport.channels import connect
from umpc.transport.services import grpc, rpc
from umpc.transport.status import error_of, lost, status_of

CONNECT_SECONDS = 5
HELLO_SECONDS = 10
DIALS_AT_ONCE = 16
"""Handshakes that a node begins at once: they take both sides' processors, and who waits for one answers no ping."""
UNCLAIMED = 8
"""Calls of one peer that may wait for a run of this node."""

Place = tuple[bytes, str]
"""(meeting, peer's name). A meeting is an attempt's, by its id; the run of what was prepared has one of its own."""


@dataclass
class Meeting:
    """A run that wants a peer, and the peer's call, whoever comes first."""

    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    link: asyncio.Future[PeerLink] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Links:
    def __init__(self, identity: Identity):
        self.identity = identity
        self._meetings: dict[Place, Meeting] = {}
        self._dialling = asyncio.Semaphore(DIALS_AT_ONCE)

    async def serve(self, caller: str, context: grpc.aio.ServicerContext) -> None:
        """A peer's call, for as long as its link lives."""
        place: Place | None = None
        try:
            place = (await self._greeting(caller, context), caller)
            meeting = self._meetings.setdefault(place, Meeting())
            await meeting.wanted.wait()
            if meeting.link.done():
                raise RemoteProtocolError(
                    f"{caller} opened a second link for one attempt", culprit=caller
                )
            await self._serve_link(caller, context, place[0], meeting)
        except UmpcError as error:
            await context.abort(*status_of(error))
        finally:
            if place is not None:
                self._meetings.pop(place, None)

    async def _greeting(self, caller: str, context: grpc.aio.ServicerContext) -> bytes:
        """The attempt that a caller wants to meet in."""
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                hello = await context.read()
        except TimeoutError as error:
            raise StepTimeout(
                f"{caller} called and did not say for which attempt", culprit=caller
            ) from error
        if hello is grpc.aio.EOF or len(hello.hello.attempt) != 32:
            raise RemoteProtocolError(f"{caller} did not begin with an attempt", culprit=caller)
        unclaimed = sum(
            name == caller and not m.wanted.is_set() for (_, name), m in self._meetings.items()
        )
        if unclaimed >= UNCLAIMED:
            raise RemoteProtocolError(
                f"{caller} has {unclaimed} calls waiting already", culprit=caller
            )
        return hello.hello.attempt

    async def _serve_link(self, caller: str, context, attempt: bytes, meeting: Meeting) -> None:
        closed = asyncio.Event()
        link = PeerLink(caller, context.write, context.read, closed.set)
        # The greeting goes first: nobody else may write to this stream before.
        await context.write(pb.PeerMessage(hello=pb.PeerHello(attempt=attempt)))
        meeting.link.set_result(link)
        ends = [asyncio.create_task(link.pump()), asyncio.create_task(closed.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in ends:
                task.cancel()
            link.fail(lost(caller, "evaluate"))

    async def wait_for(self, study: Study, peer: int, meeting_id: bytes) -> PeerLink:
        """The link of a peer that comes earlier in the study, once it has dialled."""
        name = study.nodes[peer].name
        place = (meeting_id, name)
        meeting = self._meetings.setdefault(place, Meeting())
        meeting.wanted.set()
        try:
            async with asyncio.timeout(study.seconds_per_step):
                link = await asyncio.shield(meeting.link)
        except TimeoutError as error:
            raise StepTimeout(
                f"{name} did not connect to {self.identity.name}", culprit=name, step="prepare"
            ) from error
        finally:
            if not meeting.link.done():
                self._meetings.pop(place, None)
        return link

    async def dial(self, study: Study, peer: int, meeting_id: bytes) -> PeerLink:
        """A link to a peer that comes later in the study."""
        node = study.nodes[peer]
        async with self._dialling:
            channel = await connect(self.identity, node.name, "node", node.address, CONNECT_SECONDS)
        call = rpc.NodeStub(channel).Peer()
        background: set[asyncio.Task] = set()

        def close() -> None:
            call.cancel()
            background.add(asyncio.ensure_future(channel.close()))

        try:
            await call.write(pb.PeerMessage(hello=pb.PeerHello(attempt=meeting_id)))
            if (await call.read()) is grpc.aio.EOF:
                raise lost(node.name, "prepare")
        except grpc.aio.AioRpcError as error:
            close()
            raise error_of(error, node.name, "prepare") from error
        except BaseException:
            close()
            raise
        link = PeerLink(node.name, call.write, call.read, close)
        background.add(asyncio.create_task(link.pump()))
        return link
