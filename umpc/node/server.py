"""The node's gRPC shell: who may call, links between nodes, and the end of everything that a peer's end ends.

| call | by | what |
|---|---|---|
| Hello | coordinator, node, dealer | who is there |
| Study | coordinator | one study; the stream's end is the study's end |
| Peer | node | rounds with a node that comes earlier in the study |
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from umpc import __version__
from umpc.errors import (
    ConfigError,
    LedgerError,
    LocalProtocolError,
    PeerLost,
    RemoteProtocolError,
    StepTimeout,
    StudyAborted,
    UmpcError,
)
from umpc.mpc import messages as m
from umpc.mpc.attempt import Attempt, Chunk
from umpc.node.config import NodeConfig
from umpc.node.ledger import Ledger
from umpc.node.material import MaterialReader
from umpc.node.peers import PeerLink
from umpc.node.records import Records, load_records
from umpc.node.run import Site, StudyRun
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import Study
from umpc.transport.authority import Identity
from umpc.transport.channels import connect
from umpc.transport.services import rpc
from umpc.transport.status import error_of, lost, status_of
from umpc.transport.tls import grpc, peer_of

log = logging.getLogger("umpc.node")

ALLOWED = {
    "/umpc.v1.Node/Hello": {"coordinator", "node", "dealer"},
    "/umpc.v1.Node/Study": {"coordinator"},
    "/umpc.v1.Node/Peer": {"node"},
}
CONNECT_SECONDS = 10
CAUSE_SECONDS = 2
"""How long a node that lost a peer waits to hear the reason."""


class NodeServer(rpc.NodeServicer):
    """Args: finished: called after each study, with its error or None."""

    def __init__(
        self, config: NodeConfig, identity: Identity, ledger: Ledger, finished: Callable[[UmpcError | None], None]
    ):
        self.config, self.identity, self.finished = config, identity, finished
        self._expected: dict[tuple[bytes, str], asyncio.Future[PeerLink]] = {}
        self.site = Site(identity.name, ledger, self._load, self._dial, self._await_link, self._open_material)

    def _load(self, study: Study) -> Records:
        fields = [field.schema() for field in study.fields]
        return load_records(self.config.source, fields, node=self.identity.name, clip=self.config.clip)

    # ---- calls from outside -----------------------------------------------------------------------------

    async def Hello(self, request: pb.HelloRequest, context) -> pb.HelloReply:
        return pb.HelloReply(name=self.identity.name, role=self.identity.role, version=__version__)

    async def Study(self, requests, context) -> None:
        coordinator = peer_of(context).name

        async def receive() -> m.CoordinatorMessage:
            message = await context.read()
            if message is grpc.aio.EOF:
                raise StudyAborted(f"{coordinator} ended the study", culprit=coordinator)
            return codec.decode_coordinator(message)

        async def send(message: m.NodeMessage) -> None:
            try:
                await context.write(codec.encode_node(message))
            except grpc.aio.BaseError as error:
                raise lost(coordinator, run.step) from error

        inbox: asyncio.Queue[m.CoordinatorMessage | UmpcError] = asyncio.Queue()
        run = StudyRun(self.site, coordinator, lambda: _next(inbox), send)
        steps = asyncio.create_task(run.run())
        listener = asyncio.create_task(_listen(receive, inbox, steps))
        error: UmpcError | None = None
        try:
            await steps
        except UmpcError as failure:
            with contextlib.suppress(PeerLost):
                await send(codec.failure_of(_public(failure, self.identity.name)))
            error = await _first_cause(failure, listener)
            self._log_failure(run, error)
        except asyncio.CancelledError:
            error = await _reason(listener, coordinator)
            self._log_failure(run, error)
        finally:
            steps.cancel()
            listener.cancel()
            await asyncio.gather(steps, listener, return_exceptions=True)
            if run.study is not None:
                self.finished(error)

    async def Peer(self, requests, context) -> None:
        """A peer's link. The handler lives as long as the link does."""
        caller = peer_of(context).name
        hello = await context.read()
        if hello is grpc.aio.EOF or hello.WhichOneof("body") != "hello":
            await context.abort(*status_of(RemoteProtocolError(f"{caller} did not begin with a hello")))
        future = self._expect_link(hello.hello.attempt, caller)
        closed = asyncio.Event()

        async def read() -> pb.PeerMessage | None:
            message = await context.read()
            return None if message is grpc.aio.EOF else message

        link = PeerLink(caller, context.write, read, closed.set)
        if future.done():
            await context.abort(*status_of(RemoteProtocolError(f"{caller} opened a second link for one attempt")))
        await context.write(pb.PeerMessage(hello=hello.hello))  # before anybody else may write to this stream
        future.set_result(link)
        pump = asyncio.create_task(link.pump())
        try:
            await asyncio.wait({pump, asyncio.create_task(closed.wait())}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pump.cancel()
            link.fail(lost(caller, "evaluate"))
            self._expected.pop((hello.hello.attempt, caller), None)

    # ---- what a run asks for -----------------------------------------------------------------------------

    def _expect_link(self, attempt: bytes, peer: str) -> asyncio.Future[PeerLink]:
        """The place where a peer's link is laid down and picked up, whoever comes first."""
        if (attempt, peer) not in self._expected:
            if len(self._expected) >= 4096:
                raise LocalProtocolError("more than 4096 links are expected at once")
            self._expected[attempt, peer] = asyncio.get_running_loop().create_future()
        return self._expected[attempt, peer]

    async def _await_link(self, attempt: Attempt, peer: int) -> PeerLink:
        name = attempt.members[peer].name
        try:
            async with asyncio.timeout(CONNECT_SECONDS + 5):
                link = await asyncio.shield(self._expect_link(attempt.id, name))
        except TimeoutError as error:
            self._expected.pop((attempt.id, name), None)
            raise StepTimeout(
                f"{name} did not connect to {self.identity.name}", culprit=name, step="prepare"
            ) from error
        return link.for_cell((peer, attempt.study.index_of(self.identity.name)))

    async def _dial(self, attempt: Attempt, peer: int) -> PeerLink:
        participant = attempt.study.nodes[peer]
        channel = await connect(self.identity, participant.name, "node", participant.address, CONNECT_SECONDS)
        call = rpc.NodeStub(channel).Peer(timeout=3 * attempt.study.seconds_per_step)
        tasks: set[asyncio.Task] = set()

        def close() -> None:
            call.cancel()
            tasks.add(asyncio.ensure_future(channel.close()))

        async def read() -> pb.PeerMessage | None:
            message = await call.read()
            return None if message is grpc.aio.EOF else message

        try:
            await call.write(pb.PeerMessage(hello=pb.PeerHello(attempt=attempt.id)))
            if (await call.read()) is grpc.aio.EOF:
                raise lost(participant.name, "prepare")
        except grpc.aio.AioRpcError as error:
            await channel.close()
            raise error_of(error, participant.name, "prepare") from error
        link = PeerLink(participant.name, call.write, read, close)
        tasks.add(asyncio.create_task(link.pump()))
        return link.for_cell((attempt.study.index_of(self.identity.name), peer))

    async def _open_material(
        self, attempt: Attempt, openings: tuple[bytes, ...], chunks: list[Chunk]
    ) -> MaterialReader:
        dealer = attempt.study.dealer
        channel = await connect(self.identity, dealer.name, "dealer", dealer.address, CONNECT_SECONDS)
        return MaterialReader(channel, attempt, openings, chunks)

    def _log_failure(self, run: StudyRun, error: UmpcError) -> None:
        name = f"study {run.study.name!r}" if run.study else "a study"
        log.warning("%s ended in step %s: %s: %s", name, run.step, type(error).__name__, error.message)
        if error.detail:
            log.warning("for the administrator only: %s", error.detail)


async def _next(inbox: asyncio.Queue) -> m.CoordinatorMessage:
    message = await inbox.get()
    if isinstance(message, UmpcError):
        raise message
    return message


async def _listen(receive: Callable[[], Awaitable], inbox: asyncio.Queue, steps: asyncio.Task) -> UmpcError | None:
    """Hand the coordinator's messages on; an abort, or the stream's end, ends the run at once."""
    try:
        while True:
            message = await receive()
            if isinstance(message, m.Abort):
                raise StudyAborted(message.reason or "the coordinator ended the study", culprit=message.culprit or None)
            await inbox.put(message)
    except UmpcError as error:
        steps.cancel()
        return error
    except (grpc.aio.AioRpcError, grpc.aio.BaseError):
        steps.cancel()
        return None


async def _first_cause(failure: UmpcError, listener: asyncio.Task) -> UmpcError:
    """A lost link may be a consequence of another loss: the coordinator, told of it, says who was the first."""
    if isinstance(failure, PeerLost):
        await asyncio.wait({listener}, timeout=CAUSE_SECONDS)
        if listener.done() and not listener.cancelled() and isinstance(listener.result(), StudyAborted):
            return listener.result()
    return failure


async def _reason(listener: asyncio.Task, coordinator: str) -> UmpcError:
    """Why a run was cancelled: what the listener heard, else the coordinator is gone."""
    if listener.done() and not listener.cancelled() and listener.exception() is None and listener.result():
        return listener.result()
    return lost(coordinator, "study")


def _public(error: UmpcError, node: str) -> UmpcError:
    """What others may read: paths and internals of this site stay in its own log."""
    if isinstance(error, LedgerError | ConfigError):
        return type(error)(
            f"{node}: its {type(error).__name__} is for its administrator; see the node's own log", culprit=node
        )
    if not error.message.startswith(node):
        return type(error)(f"{node}: {error.message}", culprit=error.culprit or node, step=error.step)
    return error
