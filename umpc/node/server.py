"""The node's gRPC server: access control, links to peers, and the end of a study with its stream.

| call | by | purpose |
|---|---|---|
| Hello | coordinator, node, dealer | the node's name, role and version |
| Contact | coordinator | which processes of a study the node reaches (`node/links.py`) |
| Study | coordinator | one study; the stream's end is the study's end |
| Peer | node | rounds with a node that comes earlier in the study |
| OpenPeople, ListPeople, CountPeople, SumPeople | coordinator | people (`people_server.py`) |

*Public errors.* Errors of a node as others may read them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from umpc import logs
from umpc.compute.executor import Executor
from umpc.errors import (
    ApprovalError,
    AuditError,
    ConfigError,
    EncodingError,
    FailedCheck,
    LedgerError,
    PeerLost,
    ProvenLie,
    StudyAborted,
    UmpcError,
)
from umpc.node.approvals import Approvals
from umpc.node.audit.reading import add_missing_charge
from umpc.node.audit.trail import of_failure
from umpc.node.datasets import Dataset, Datasets
from umpc.node.links import ContactCheck, Links
from umpc.node.people_server import PeopleCalls
from umpc.node.policy import Policy
from umpc.node.run.context import RunContext, Site
from umpc.node.run.coordinator import CoordinatorStream
from umpc.node.run.study import run_study
from umpc.node.spool import room_for
from umpc.node.standing import Standing
from umpc.node.starts import Starts
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import document
from umpc.study import messages as m
from umpc.text_file import keep_evidence
from umpc.transport.connections import of_own_end
from umpc.transport.greeting import Greeted
from umpc.transport.identity import Identity, credentials_of
from umpc.transport.status import status_of
from umpc.transport.stream_reader import lost
from umpc.transport.tls import AnyContext, Context, grpc, peer_of, read, rpc

ALLOWED = {
    "/umpc.v1.Node/Hello": {"coordinator", "node", "dealer"},
    "/umpc.v1.Node/Contact": {"coordinator"},
    "/umpc.v1.Node/Study": {"coordinator"},
    "/umpc.v1.Node/Peer": {"node"},
    **{f"/umpc.v1.Node/{call}People": {"coordinator"} for call in ("Open", "List", "Count", "Sum")},
}
"""The roles that may make each call to a node."""
log = logging.getLogger("umpc.node")

CAUSE_SECONDS = 2
"""Seconds that a node waits to hear the reason after it lost a peer.

A node that parked a study waits as long to hear whether the other nodes parked it too.
"""

StudyContext = Context[pb.CoordinatorMessage, pb.NodeMessage]
PeerContext = Context[pb.PeerMessage, pb.PeerMessage]


class NodeServer(PeopleCalls, Greeted, rpc.NodeServicer):
    """The calls to a node.

    Args:
        datasets: at least one.
        finished: called after each study, with its error or None.
        workers: computes chunks beside each run's own thread, if there is such a place.
    """

    def __init__(
        self,
        datasets: Sequence[Dataset],
        identity: Identity,
        finished: Callable[[UmpcError | None], None],
        workers: Executor | None = None,
    ):
        found = Datasets(identity.name, datasets)
        super().__init__(identity, found, partial(public_error, node=identity.name))
        self.workers = workers
        self.finished = finished
        starts = Starts(found.first.ledger, identity.name, os.urandom)
        self.links = Links(identity, starts)
        self.standing = Standing()
        self._sites = {each.name: self._site(each) for each in datasets}
        self._contact = ContactCheck(identity, self._rules_for)

    def _site(self, dataset: Dataset) -> Site:
        """Return the parts of this process that a run over one data set needs."""
        admission = dataset.admission
        return Site(
            name=self.identity.name,
            credentials=lambda: credentials_of(self.identity),
            ledger=dataset.ledger,
            parking=dataset.parking,
            check=self.datasets.check,
            admit=admission.admit,
            load=admission.load,
            permit=admission.permit,
            permit_delta=admission.permit_delta,
            released=admission.released,
            checking=admission.checking,
            dial=self.links.dial,
            await_link=self.links.wait_for,
            dial_helper=lambda call: call.connect(self.identity),
            open_spool=partial(room_for, dataset.config.ledger.parent, self.identity.name),
            record=dataset.audit.append,
            keep=partial(keep_evidence, dataset.config.ledger),
            add_charge=partial(add_missing_charge, dataset.audit, dataset.ledger.history),
            written_at=dataset.config.source.written_at,
            workers=self.workers,
            standing=self.standing,
        )

    def site_of(self, study: document.Study) -> Site:
        """Return the parts for a study's data set; the first one's where it has none."""
        return self._sites[self.datasets.of(study).name]

    def _rules_for(self, study: document.Study) -> tuple[Policy, Approvals]:
        """Return the rules and decisions that hold for a study. Raises: StudyError, ConfigError."""
        self.datasets.check(study)
        dataset = self.datasets.of(study)
        return dataset.admission.policy(), dataset.approvals

    def close(self) -> None:
        """Drop the prepared attempts that wait for a run, and the standing with other nodes.

        The ledgers must still be open.
        """
        self.standing.close()
        for dataset in self.datasets.found:
            dataset.parking.close()
            if dataset.people is not None:
                dataset.people.close()

    # ---- calls from outside ------------------------------------------------------------------

    async def Contact(self, request: pb.ContactRequest, context: AnyContext) -> pb.ContactReply:
        """Call the other processes of a study, and say which of them answer."""
        try:
            return await self._contact.answer(request, peer_of(context))
        except UmpcError as error:
            await context.abort(*status_of(error))

    async def Study(self, requests: object, context: StudyContext) -> None:
        """Run one study of a coordinator, from its proposal to its end."""
        caller = peer_of(context)
        coordinator = caller.name
        inbox: asyncio.Queue[m.CoordinatorMessage] = asyncio.Queue(maxsize=4)

        async def receive() -> m.CoordinatorMessage:
            try:
                message = await codec.joined(lambda: read(context))
                if message is not None:
                    return codec.decode_coordinator(message)
            except EncodingError as error:
                stream.unreadable = error
                raise
            raise StudyAborted(f"{coordinator} ended the study", culprit=coordinator)

        async def send(message: m.NodeMessage) -> None:
            try:
                await context.write(codec.encode_node(message))
            except grpc.aio.BaseError as error:
                raise lost(coordinator, stream.step) from error

        stream = CoordinatorStream(
            self.identity.name,
            coordinator,
            inbox.get,
            send,
            caller.signed_in,
            lambda: peer_of(context, revoked=self.identity.latest().revoked),
        )
        first = self._sites[self.datasets.first.name]
        run = RunContext(first, stream, self.site_of)
        with logs.about(stream.place, f"node {self.identity.name}"):
            await self._follow(run, receive, inbox)
        if stream.unreadable is not None:
            raise stream.unreadable  # the guard ends the call, and tells the log

    async def _follow(
        self,
        run: RunContext,
        receive: Callable[[], Awaitable[m.CoordinatorMessage]],
        inbox: asyncio.Queue[m.CoordinatorMessage],
    ) -> None:
        """Let a run take its steps, until it ends or its coordinator goes away."""
        stream = run.stream
        steps = asyncio.create_task(run_study(run))
        listener = asyncio.create_task(_listen(receive, inbox, stream, steps))
        error: UmpcError | None = None
        try:
            await steps
            if run.parked is not None:  # if one node could not park, the others keep nothing
                await asyncio.wait({listener}, timeout=CAUSE_SECONDS)
        except UmpcError as failure:
            error = failure
            with contextlib.suppress(PeerLost):
                await stream.send(codec.failure_of(public_error(failure, self.identity.name)))
            error = await _first_cause(failure, listener)
        except asyncio.CancelledError:
            # The listener cancels, or gRPC does when the coordinator's connection is gone.
            heard = _heard(listener) or lost(stream.coordinator, "study")
            error = None if stream.answered else heard
        finally:
            steps.cancel()
            listener.cancel()
            self._conclude(run, error)
            await asyncio.gather(steps, listener, return_exceptions=True)

    def _conclude(self, run: RunContext, error: UmpcError | None) -> None:
        """Drop, log and report at the end of a run."""
        stream = run.stream
        if error is not None and not stream.aborted:
            error = of_own_end(error)
        if run.parked is not None and stream.aborted:
            run.site.parking.drop(run.parked, "was given up by the coordinator")
        if stream.aborted and not stream.keeps:
            self._give_up(run)
        if error is not None and (stream.unreadable is None or stream.proposed is not None):
            self._log_failure(run, error)
        if stream.proposed is not None and (run.parked is None or stream.aborted):
            self.finished(error)

    def _give_up(self, run: RunContext) -> None:
        """Drop what the run held: its coordinator says that no node has charged for it.

        Whoever else proposes the study, which many processes know, drops nothing. A coordinator
        whose certificate lists other studies does not either.
        """
        if run.stream.proposed is None:
            return
        try:
            run.stream.check_caller()
        except UmpcError:
            return  # the run says so
        try:
            run.site.ledger.drop(run.study.whole.hash)
        except LedgerError as error:
            log.warning("what the study held stays until its time is up: %s", error.message)

    async def Peer(self, requests: object, context: PeerContext) -> None:
        """Serve a link to a peer."""
        await self.links.serve(peer_of(context).name, context)

    def _log_failure(self, run: RunContext, error: UmpcError) -> None:
        proposed, step = run.stream.proposed, run.stream.step
        try:
            run.site.record(of_failure(error, proposed, run.stream.coordinator, step))
        except AuditError as failure:
            log.error("%s", failure.message)
        if isinstance(error, ProvenLie):
            error.detail = run.site.keep(error.evidence)
        name = f"study {proposed.name!r}" if proposed else "a study"
        log.warning("%s ended in step %s: %s: %s", name, step, type(error).__name__, error.message)
        if error.detail:
            log.warning("for the administrator only: %s", error.detail)
        if proposed is not None and run.site.ledger.holds(proposed.whole.hash):
            log.info("its finished attempt is held here, and another run of it can finish it")


Listener = asyncio.Task[UmpcError | None]


async def _listen(
    receive: Callable[[], Awaitable[m.CoordinatorMessage]],
    inbox: asyncio.Queue[m.CoordinatorMessage],
    stream: CoordinatorStream,
    steps: asyncio.Task[None],
) -> UmpcError | None:
    """Put the coordinator's messages into the inbox until the stream ends, and return the reason.

    An abort, or the stream's end, ends the run unless the run is complete. A coordinator that has
    the last message may end its stream before the run knows that the message left. Then the run
    ends by itself.
    """
    error: UmpcError | None = None
    try:
        while True:
            message = await receive()
            if isinstance(message, m.Abort):
                stream.aborted = True
                stream.keeps = message.keep
                raise StudyAborted(
                    message.reason or "the coordinator ended the study",
                    culprit=message.culprit or None,
                )
            await inbox.put(message)
    except UmpcError as failure:
        error = failure
    except (grpc.aio.AioRpcError, grpc.aio.BaseError):
        pass  # the coordinator is gone
    has_hung_up = isinstance(error, StudyAborted) and not stream.aborted
    if not stream.answered and not (stream.answering and has_hung_up):
        steps.cancel()
    return error


def _heard(listener: Listener) -> UmpcError | None:
    """Return the reason that the listener heard, or None if there is none so far."""
    if not listener.done() or listener.cancelled() or listener.exception() is not None:
        return None
    return listener.result()


async def _first_cause(failure: UmpcError, listener: Listener) -> UmpcError:
    """Return the first cause of a failure.

    A lost link may be a consequence of another loss. The coordinator hears of both and says which
    one was the first.
    """
    if isinstance(failure, PeerLost):
        await asyncio.wait({listener}, timeout=CAUSE_SECONDS)
        cause = _heard(listener)
        if isinstance(cause, StudyAborted):
            return cause
    return failure


# --- public errors --------------------------------------------------------------------------------


def public_error(error: UmpcError, node: str) -> UmpcError:
    """Return the error that others may read. Paths and internals of this site stay in its log."""
    if isinstance(error, ConfigError):
        return ConfigError(
            f"{node}: its configuration has an error, which only its administrator can correct; "
            "see the node's own log",
            culprit=node,
        )
    if isinstance(error, LedgerError | ApprovalError | AuditError):
        return type(error)(
            f"{node}: its {type(error).__name__} is for its administrator; see the node's own log",
            culprit=node,
        )
    if isinstance(error, FailedCheck):
        return error  # the node that noticed it is not at fault
    if node not in error.message:
        return type(error)(
            f"{node}: {error.message}", culprit=error.culprit or node, step=error.step
        )
    return error
