"""The shuffler's gRPC server: it takes deliveries and the order, and gives out the heap.

| call | by | purpose |
|---|---|---|
| Hello | coordinator, node, shuffler | the shuffler's name, role and version |
| Deliver | node | its half of a message: first the attempt, and after its charge the frames |
| Order | the study's first shuffler, at the second | the seed of the permutations |
| Collect | the study's coordinator | the heap |
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable

from umpc import logs
from umpc.crypto.signing import Verify
from umpc.errors import (
    EncodingError,
    LocalProtocolError,
    RemoteProtocolError,
    StepTimeout,
    StudyAborted,
    UmpcError,
)
from umpc.failpoints import failpoint
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocol_version import PROTOCOL
from umpc.protocols.registry import allowed_as, attempt_of, decode_study, load_all
from umpc.study.attempt import Attempt, check_agreed, check_openings
from umpc.study.document import Study
from umpc.transport.connections import LATE_SECONDS, of_own_end
from umpc.transport.identity import Identity, verifier_at_any_date
from umpc.transport.patience import time_limit
from umpc.transport.status import blame_of, error_of, refusal_of, status_of
from umpc.transport.stream import CONNECT_SECONDS, connect
from umpc.transport.stream_reader import lost
from umpc.transport.tls import AnyContext, Context, grpc, peer_of, read, rpc, shuffler_stub
from umpc_papers.ghazi_shuffle.shuffler import Seen, ShufflerAttempt, place_of, run_id
from umpc_papers.shuffler.run import ShuffleRun

log = logging.getLogger("umpc.shuffler")

ALLOWED = {
    "/umpc.v1.Shuffler/Hello": {"coordinator", "node", "shuffler"},
    "/umpc.v1.Shuffler/Deliver": {"node"},
    "/umpc.v1.Shuffler/Order": {"shuffler"},
    "/umpc.v1.Shuffler/Collect": {"coordinator"},
}
REMEMBERED = 1024
"""Number of ended attempts whose deliveries the shuffler remembers, those of the latest runs.

It names a node that delivers something else in a later run of the same attempt. Where it has
forgotten the attempt, such a node changes only what it could have delivered at first.
"""
HELLO_SECONDS = 60
"""Seconds that a busy node may take to say for which attempt it calls."""
DeliverContext = Context[pb.ShuffleRequest, pb.ShuffleReply]
OUR_FAULTS = (MemoryError, ValueError, ArithmeticError, LookupError, TypeError)


class ShufflerServer(rpc.ShufflerServicer):
    """The calls to a shuffler.

    Args:
        finished: called when a run has ended, with its error or None.
        verify: checks the members' certificates; None checks them by the identity's authority.
    """

    def __init__(
        self,
        identity: Identity,
        finished: Callable[[UmpcError | None], None],
        verify: Verify | None = None,
    ):
        load_all()
        self.identity = identity
        self.finished = finished
        self.verify = verify or verifier_at_any_date(identity.ca_pem)
        self._runs: dict[bytes, ShuffleRun] = {}
        self.remembered: dict[bytes, Seen] = {}
        """Digests of what nodes delivered, by the attempt's id, the latest runs at the end."""
        self._ordering: set[asyncio.Task[None]] = set()

    async def Hello(self, request: pb.HelloRequest, context: AnyContext) -> pb.HelloReply:
        """Say who is there."""
        failpoint("greeted")
        return pb.HelloReply(name=self.identity.name, role=self.identity.role, version=PROTOCOL)

    # ---- a node ------------------------------------------------------------------------------

    async def Deliver(self, requests: object, context: DeliverContext) -> None:
        """Take a node's half of its message for one attempt."""
        caller = peer_of(context).name
        run: ShuffleRun | None = None
        session: ShufflerAttempt | None = None
        try:
            attempt = await self._introduced(caller, context)
            index = attempt.study.index_of(caller)
            run = self.run_of(attempt.study, attempt.id)
            session = await run.join(attempt, index)
            failpoint("before-open")
            await context.write(pb.ShuffleReply(attempt=attempt.id))
            await self._receive(caller, context, run, session, index)
            await context.write(pb.ShuffleReply(attempt=attempt.id, delivered=True))
        except UmpcError as error:
            if run is not None and (session is None or error.culprit == caller):
                run.fail(error)
            await context.abort(*refusal_of(error, caller))
        except OUR_FAULTS as error:
            failure = _fault(error)
            if run is not None:
                run.fail(failure)
            await context.abort(*status_of(failure))
        finally:
            if run is not None and (session is None or caller in session.missing):
                run.fail(of_own_end(lost(caller, "prepare" if session is None else "release")))

    async def _introduced(self, caller: str, context: DeliverContext) -> Attempt:
        """Return the attempt for which a node wants to deliver."""

        async def begun() -> pb.DealRequest | None:
            came = await read(context)
            if came is None or came.WhichOneof("body") != "begin":
                return None
            return came.begin

        try:
            async with time_limit(HELLO_SECONDS):
                request = await codec.joined(begun)
        except TimeoutError as error:
            raise StepTimeout(
                f"{caller} called and did not say for which attempt", culprit=caller
            ) from error
        if request is None:
            raise RemoteProtocolError(f"{caller} did not begin with an attempt", culprit=caller)
        return await asyncio.to_thread(self._attempt_of, request, caller)

    def _attempt_of(self, request: pb.DealRequest, caller: str) -> Attempt:
        """Derive the attempt from its parts, as every node of it does.

        Raises: RemoteProtocolError naming the caller, unless all nodes signed and agreed to these
            members.
        """
        study = self._study_of(request.study)
        members = codec.decode_members(request.members)
        openings = codec.decode_openings(request.openings)
        signatures = codec.decode_signatures(request.signatures)
        check_agreed(study, members, signatures, self.verify, caller)
        check_openings(study, members, openings, caller)
        return attempt_of(study, members, openings)

    async def _receive(
        self,
        caller: str,
        context: DeliverContext,
        run: ShuffleRun,
        session: ShufflerAttempt,
        index: int,
    ) -> None:
        """Receive a node's whole message.

        Raises: RemoteProtocolError, which names the node, for anything else; the run's error.
        """
        inbox = session.inbox(index)
        try:
            while not inbox.is_complete:
                request = await run.until(read(context))
                if request is None:
                    raise lost(caller, "release")
                if request.WhichOneof("body") != "frame":
                    raise EncodingError("a frame was due, and something else came")
                inbox.take(codec.decode_frame(request.frame))
                failpoint("during-deliver")
        except EncodingError as error:
            raise RemoteProtocolError(
                f"{caller}: {error.message}", culprit=caller, step="release"
            ) from error
        try:
            await asyncio.to_thread(session.deliver, index, inbox.data)
        finally:
            run.delivered(session)  # also where the node's call ends meanwhile

    # ---- the other shuffler ------------------------------------------------------------------

    async def Order(self, request: pb.OrderRequest, context: AnyContext) -> pb.OrderReply:
        """Take the order of an attempt from the study's first shuffler."""
        caller = peer_of(context).name
        try:
            study = await asyncio.to_thread(self._study_of, request.study)
            if (study.shufflers[0].name, study.shufflers[1].name) != (caller, self.identity.name):
                raise RemoteProtocolError(
                    f"{caller} draws no order for this shuffler in the study", culprit=caller
                )
            if len(request.seed) != 32:
                raise RemoteProtocolError(
                    f"{caller} sent a seed of {len(request.seed)} bytes", culprit=caller
                )
            run = self._new_run(study, request.attempt, lambda run: run.seed.done())
            run.seed.set_result(request.seed)
        except UmpcError as error:
            await context.abort(*status_of(error))
        return pb.OrderReply(attempt=request.attempt)

    async def _tell_order(self, run: ShuffleRun) -> None:
        """Draw the order and send it to the second shuffler. Only then it counts."""
        second = run.study.shufflers[1]
        seed = os.urandom(32)
        try:
            channel = await connect(
                self.identity,
                second.name,
                "shuffler",
                second.address,
                CONNECT_SECONDS,
                run.study.seconds_per_step,
            )
            try:
                request = pb.OrderRequest(study=run.study.encode(), attempt=run.attempt, seed=seed)
                await shuffler_stub(channel).Order(request, timeout=LATE_SECONDS)
            except grpc.aio.AioRpcError as error:
                raise error_of(error, second.name, "prepare") from error
            finally:
                await channel.close(None)
        except UmpcError as error:
            run.fail(error)
            return
        run.seed.set_result(seed)

    # ---- the coordinator ---------------------------------------------------------------------

    async def Collect(
        self, request: pb.CollectRequest, context: AnyContext
    ) -> AsyncIterator[pb.CollectReply]:
        """Send the heap of an attempt to the study's coordinator."""
        peer = peer_of(context)
        caller = peer.name
        run: ShuffleRun | None = None
        try:
            study = await asyncio.to_thread(self._study_of, request.study)
            if study.coordinator != caller:
                raise RemoteProtocolError(
                    f"the study names {study.coordinator!r} as its coordinator", culprit=caller
                )
            peer.check_study(allowed_as(study))
            run = self._new_run(study, request.attempt, lambda run: run.is_collected)
            run.collect()
            yield pb.CollectReply(run=run_id(await run.order(), run.attempt))
            session = await run.complete()
            failpoint("before-heap")
            frames = session.heap()
            frame = await asyncio.to_thread(next, frames, None)
            while frame is not None:
                following = await asyncio.to_thread(next, frames, None)
                run.check()
                if following is None:
                    # The coordinator hangs up as soon as it has the last frame.
                    run.finish()
                reply = pb.CollectReply()
                codec.put_frame(reply.frame, frame)
                yield reply
                frame = following
        except UmpcError as error:
            await context.abort(*status_of(error), blame_of(error))
        except OUR_FAULTS as error:
            await context.abort(*status_of(_fault(error)))
        finally:
            if run is not None:
                run.fail(of_own_end(lost(caller, "release")))

    # ---- runs --------------------------------------------------------------------------------

    def _study_of(self, data: bytes) -> Study:
        """Return a study that names this shuffler. Raises: RemoteProtocolError, StudyError."""
        study = decode_study(data)
        place_of(study, self.identity.name)
        return study

    def run_of(self, study: Study, attempt: bytes) -> ShuffleRun:
        """Return the attempt's run. The first participant that asks makes it.

        Only nodes prove that an attempt belongs to its study. A run therefore serves one study: a
        coordinator with another study would otherwise get the heap.

        Raises: EncodingError, RemoteProtocolError.
        """
        if len(attempt) != 32:
            raise EncodingError(f"an attempt's id has 32 bytes, {len(attempt)} came")
        if attempt in self._runs and self._runs[attempt].study.hash != study.hash:
            raise RemoteProtocolError(
                f"the attempt {attempt.hex()[:8]} was begun for another study than {study.name!r}; "
                "run the study again"
            )
        if attempt not in self._runs:
            seen = self.remembered.pop(attempt, {})
            run = self._runs[attempt] = ShuffleRun(
                study, attempt, self.identity.name, seen, self._ended
            )
            log.info(
                "attempt %s of study %r: a run begins",
                attempt.hex()[:8],
                study.name,
                extra=logs.belongs(study.hash, "release"),
            )
            if place_of(study, self.identity.name) == 0:
                task = asyncio.create_task(self._tell_order(run))
                self._ordering.add(task)
                task.add_done_callback(self._ordering.discard)
        return self._runs[attempt]

    def _new_run(
        self, study: Study, attempt: bytes, is_other: Callable[[ShuffleRun], bool]
    ) -> ShuffleRun:
        """Return the attempt's run, in place of an earlier one.

        The earlier run still waits for a participant that is gone. `is_other` recognizes it.
        """
        run = self.run_of(study, attempt)
        if is_other(run):
            run.fail(StudyAborted("a new run of the attempt has begun"))
        return self.run_of(study, attempt)

    def _ended(self, run: ShuffleRun, error: UmpcError | None) -> None:
        self._runs.pop(run.attempt, None)
        self._remember(run)
        label = f"attempt {run.attempt.hex()[:8]} of study {run.study.name!r}"
        step = error.step if error else None
        place = logs.belongs(run.study.hash, step or "release")
        if error is None:
            log.info("%s is shuffled", label, extra=place)
        else:
            name = type(error).__name__
            log.warning("%s ended: %s: %s", label, name, error.message, extra=place)
        self.finished(error)

    def _remember(self, run: ShuffleRun) -> None:
        """Keep what nodes delivered, if any did: only they prove that there is such an attempt."""
        if run.seen:
            self.remembered[run.attempt] = run.seen
            while len(self.remembered) > REMEMBERED:
                del self.remembered[next(iter(self.remembered))]


def _fault(error: Exception) -> LocalProtocolError:
    """Log an error of umpc's own, and return the error that others may see."""
    log.exception("shuffling failed", exc_info=error)
    return LocalProtocolError(f"the shuffler failed: {type(error).__name__}; see its log")
