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
import shutil
import time
from collections.abc import Awaitable, Callable

from umpc import __version__
from umpc.errors import (
    ApprovalError,
    ConfigError,
    LedgerError,
    LocalProtocolError,
    PeerLost,
    PreparationError,
    StudyAborted,
    TooManySchemas,
    UmpcError,
)
from umpc.mpc.attempt import Attempt
from umpc.mpc.chunks import Chunk
from umpc.node.approvals import Approvals, approvals_beside
from umpc.node.attempts.attempt_runner import Site
from umpc.node.attempts.links import Links
from umpc.node.attempts.material import MaterialReader
from umpc.node.attempts.prepared_attempts import PreparedAttempts
from umpc.node.attempts.spool import Spool
from umpc.node.attempts.study_run import StudyRun
from umpc.node.budget.ledger import Ledger
from umpc.node.config import NodeConfig, load_node_config
from umpc.node.policy import Policy
from umpc.node.records import Records, load_records
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.transport.authority import Identity
from umpc.transport.services import rpc
from umpc.transport.status import lost
from umpc.transport.tls import grpc, peer_of

log = logging.getLogger("umpc.node")

ALLOWED = {
    "/umpc.v1.Node/Hello": {"coordinator", "node", "dealer"},
    "/umpc.v1.Node/Study": {"coordinator"},
    "/umpc.v1.Node/Peer": {"node"},
}
SCHEMAS = 32
"""Different schemas that a node tries on its table between two starts."""
SETTLE_SECONDS = 0.1
"""A configuration that has changed is read until two readings so far apart agree: an editor may write in pieces."""
CAUSE_SECONDS = 2
"""How long a node that lost a peer waits to hear the reason, and one that parked a study, whether the others did."""


class NodeServer(rpc.NodeServicer):
    """Args: finished: called after each study, with its error or None."""

    def __init__(
        self,
        config: NodeConfig,
        identity: Identity,
        ledger: Ledger,
        finished: Callable[[UmpcError | None], None],
    ):
        self.config, self.identity, self.finished = config, identity, finished
        self.links = Links(identity)
        self.approvals = Approvals(approvals_beside(config.ledger))
        self._read = config
        self._schemas: set[tuple] = set()
        self.parking = PreparedAttempts(ledger, config.most_prepared, config.prepared_seconds)
        self.site = Site(
            name=identity.name,
            ledger=ledger,
            parking=self.parking,
            load=self._load,
            permit=self._permit,
            dial=self.links.dial,
            await_link=self.links.wait_for,
            open_material=self._open_material,
            open_spool=self._open_spool,
            open_delivery=lambda delivery: delivery.open(identity),
        )

    def close(self) -> None:
        """What waits for a run is dropped; the ledger must still be open."""
        self.parking.close()

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

        inbox: asyncio.Queue[m.CoordinatorMessage] = asyncio.Queue(maxsize=4)
        run = StudyRun(self.site, coordinator, inbox.get, send)
        steps = asyncio.create_task(run.run())
        listener = asyncio.create_task(_listen(receive, inbox, run, steps))
        error: UmpcError | None = None
        try:
            await steps
            if run.parked is not None:  # what one node could not park the others need not keep
                await asyncio.wait({listener}, timeout=CAUSE_SECONDS)
        except UmpcError as failure:
            error = failure
            with contextlib.suppress(PeerLost):
                await send(codec.failure_of(_public(failure, self.identity.name)))
            error = await _first_cause(failure, listener)
        except (
            asyncio.CancelledError
        ):  # by the listener, or by gRPC when the coordinator's connection is gone
            error = None if run.answered else await _reason(listener, coordinator)
        finally:
            steps.cancel()
            listener.cancel()
            if run.parked is not None and run.aborted:
                self.parking.drop(run.parked, "was given up by the coordinator")
            if error is not None:
                self._log_failure(run, error)
            if run.proposed is not None and (run.parked is None or run.aborted):
                self.finished(error)
            await asyncio.gather(steps, listener, return_exceptions=True)

    async def Peer(self, requests, context) -> None:
        await self.links.serve(peer_of(context).name, context)

    # ---- what a run asks for -----------------------------------------------------------------------------

    def _load(self, study: Study) -> Records:
        """The study's records, if the site's policy allows it. Raises: also PolicyRefused, ApprovalPending."""
        name, policy = self.identity.name, self._permitting(study)
        fields = [field.schema() for field in study.fields]
        self._count_schema(tuple(study.fields))
        records = load_records(self.config.source, fields, node=name, clip=self.config.clip)
        policy.check_records(records.count, name)
        return records

    def _permit(self, study: Study, records: int) -> None:
        """The rules once more, for a study whose records were read before. Raises: PolicyRefused, ApprovalPending."""
        self._permitting(study).check_records(records, self.identity.name)

    def _permitting(self, study: Study) -> Policy:
        """The rules, which allow the study."""
        policy = self._policy()
        policy.check(study, self.identity.name)
        self.approvals.require(study, self.identity.name, approval=policy.approval)
        return policy

    def _policy(self) -> Policy:
        """The rules that the configuration has now; all else in it counts as it was at the start."""
        before = read = self._read
        while (now := load_node_config(self.config.file)) != read:
            read = now
            time.sleep(SETTLE_SECONDS)
        if now != before:
            self._read = now
            log.info("%s changed; its [policy] counts from now on", now.file)
            if stale := self.config.needs_restart(now):
                log.warning(
                    "%s: %s changed, and counts from the next start on", now.file, ", ".join(stale)
                )
        return now.policy

    def _count_schema(self, schema: tuple) -> None:
        """Whether a schema fits is a bit about the data that costs no epsilon: a node tells only so many of them."""
        if schema not in self._schemas and len(self._schemas) >= SCHEMAS:
            raise TooManySchemas(
                f"{self.identity.name} was asked with {SCHEMAS} different schemas since it started, and whether each "
                f"fits tells about its data; propose one of those, or have its administrator restart it",
                culprit=self.identity.name,
            )
        self._schemas.add(schema)

    async def _open_material(
        self, attempt: Attempt, openings: tuple[bytes, ...], chunks: list[Chunk]
    ) -> MaterialReader:
        dealer = attempt.study.dealer
        if dealer is None:
            raise LocalProtocolError("material was asked for in a study without a dealer")
        node = attempt.study.index_of(self.identity.name)
        reader = MaterialReader(dealer, attempt, openings, node, chunks)
        await reader.open(self.identity)
        return reader

    def _open_spool(self, study: Study, size: int) -> Spool:
        """Raises: PreparationError where it would take more than half of what the disk has left."""
        folder = self.config.ledger.parent
        free = shutil.disk_usage(folder).free
        if size > free // 2:
            raise PreparationError(
                f"the material of this study takes {size:,} bytes, for which its disk has no room; run the study "
                f"without preparation, or have its administrator make room",
                detail=f"{free:,} bytes are free in {folder}, of which at most half are taken",
            )
        return Spool(folder, study.dealer.name)

    def _log_failure(self, run: StudyRun, error: UmpcError) -> None:
        name = f"study {run.proposed.name!r}" if run.proposed else "a study"
        log.warning(
            "%s ended in step %s: %s: %s", name, run.step, type(error).__name__, error.message
        )
        if error.detail:
            log.warning("for the administrator only: %s", error.detail)


async def _listen(
    receive: Callable[[], Awaitable], inbox: asyncio.Queue, run: StudyRun, steps: asyncio.Task
) -> UmpcError | None:
    """Hand the coordinator's messages on. An abort, or the stream's end, ends the run, unless it is complete."""
    error: UmpcError | None = None
    try:
        while True:
            message = await receive()
            if isinstance(message, m.Abort):
                run.aborted = True
                raise StudyAborted(
                    message.reason or "the coordinator ended the study",
                    culprit=message.culprit or None,
                )
            await inbox.put(message)
    except UmpcError as failure:
        error = failure
    except (grpc.aio.AioRpcError, grpc.aio.BaseError):
        pass
    if not run.answered:
        steps.cancel()
    return error


async def _first_cause(failure: UmpcError, listener: asyncio.Task) -> UmpcError:
    """A lost link may be a consequence of another loss: the coordinator, told of it, says who was the first."""
    if isinstance(failure, PeerLost):
        await asyncio.wait({listener}, timeout=CAUSE_SECONDS)
        if (
            listener.done()
            and not listener.cancelled()
            and isinstance(listener.result(), StudyAborted)
        ):
            return listener.result()
    return failure


async def _reason(listener: asyncio.Task, coordinator: str) -> UmpcError:
    """Why a run was cancelled: what the listener heard, else the coordinator is gone."""
    if (
        listener.done()
        and not listener.cancelled()
        and listener.exception() is None
        and listener.result()
    ):
        return listener.result()
    return lost(coordinator, "study")


def _public(error: UmpcError, node: str) -> UmpcError:
    """What others may read: paths and internals of this site stay in its own log."""
    if isinstance(error, ConfigError):
        return ConfigError(
            f"{node}: its configuration has an error, which only its administrator can correct; see the node's own log",
            culprit=node,
        )
    if isinstance(error, LedgerError | ApprovalError):
        return type(error)(
            f"{node}: its {type(error).__name__} is for its administrator; see the node's own log",
            culprit=node,
        )
    if node not in error.message:
        return type(error)(
            f"{node}: {error.message}", culprit=error.culprit or node, step=error.step
        )
    return error
