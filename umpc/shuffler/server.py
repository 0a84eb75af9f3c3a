"""The shuffler's gRPC shell: nodes deliver, the other shuffler shares the order, the coordinator collects.

| call | by | what |
|---|---|---|
| Hello | anybody with a certificate | who is there |
| Deliver | node | its half of a message: first what the attempt is, after its charge the frames |
| Order | the study's first shuffler, at the second | the seed of the permutations |
| Collect | the study's coordinator | the heap |
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable

from umpc import __version__
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
from umpc.protocols.ghazi_shuffle.shuffler import Seen, ShufflerSession, place_of, run_id
from umpc.protocols.registry import attempt_of, decode_study
from umpc.shuffler.run import Run
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.transport.authority import Identity
from umpc.transport.channels import connect
from umpc.transport.services import rpc
from umpc.transport.status import error_of, lost, status_of
from umpc.transport.stream import CONNECT_SECONDS
from umpc.transport.tls import grpc, peer_of

log = logging.getLogger("umpc.shuffler")

ALLOWED = {
    "/umpc.v1.Shuffler/Hello": {"coordinator", "node", "shuffler"},
    "/umpc.v1.Shuffler/Deliver": {"node"},
    "/umpc.v1.Shuffler/Order": {"shuffler"},
    "/umpc.v1.Shuffler/Collect": {"coordinator"},
}
HELLO_SECONDS = 10
OUR_FAULTS = (MemoryError, ValueError, ArithmeticError, LookupError, TypeError)


class ShufflerServer(rpc.ShufflerServicer):
    """Args: finished: called when a run has ended, with its error or None."""

    def __init__(self, identity: Identity, finished: Callable[[UmpcError | None], None]):
        self.identity, self.finished = identity, finished
        self._runs: dict[bytes, Run] = {}
        self._seen: dict[bytes, Seen] = {}
        self._ordering: set[asyncio.Task] = set()

    async def Hello(self, request: pb.HelloRequest, context) -> pb.HelloReply:
        failpoint("greeted")
        return pb.HelloReply(name=self.identity.name, role=self.identity.role, version=__version__)

    # ---- a node ------------------------------------------------------------------------------------------

    async def Deliver(self, requests, context) -> None:
        caller, run, session, index = peer_of(context).name, None, None, 0
        try:
            attempt = await self._introduced(caller, context)
            index = attempt.study.index_of(caller)
            run = self._run_of(attempt.study, attempt.id)
            session = await run.join(attempt, index)
            failpoint("before-open")
            await context.write(pb.ShuffleReply(attempt=attempt.id))
            await self._receive(caller, context, run, session, index)
            await context.write(pb.ShuffleReply(attempt=attempt.id, delivered=True))
        except UmpcError as error:
            if run is not None and (session is None or error.culprit == caller):
                run.fail(error)
            await context.abort(*status_of(error))
        except OUR_FAULTS as error:
            failure = _fault(error)
            if run is not None:
                run.fail(failure)
            await context.abort(*status_of(failure))
        finally:
            if run is not None and (session is None or caller in session.missing):
                run.fail(lost(caller, "prepare" if session is None else "release"))

    async def _introduced(self, caller: str, context) -> Attempt:
        """The attempt that a node wants to deliver for."""
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                request = await context.read()
        except TimeoutError as error:
            raise StepTimeout(
                f"{caller} called and did not say for which attempt", culprit=caller
            ) from error
        if request is grpc.aio.EOF or request.WhichOneof("body") != "begin":
            raise RemoteProtocolError(f"{caller} did not begin with an attempt", culprit=caller)
        return await asyncio.to_thread(self._attempt_of, request.begin)

    def _attempt_of(self, request: pb.DealRequest) -> Attempt:
        """The attempt, derived from its parts, so that every node of it derives the same one."""
        study = self._study_of(request.study)
        return attempt_of(
            study, codec.decode_members(request.members), codec.decode_openings(request.openings)
        )

    async def _receive(
        self, caller: str, context, run: Run, session: ShufflerSession, index: int
    ) -> None:
        """A node's whole message. Raises: RemoteProtocolError naming it for anything else, what ended the run."""
        inbox = session.inbox(index)
        try:
            while not inbox.is_complete:
                request = await run.until(context.read())
                if request is grpc.aio.EOF:
                    raise lost(caller, "release")
                if request.WhichOneof("body") != "frame":
                    raise EncodingError("a frame was due, and something else came")
                inbox.take(codec.decode_frame(request.frame))
                failpoint("during-deliver")
        except EncodingError as error:
            raise RemoteProtocolError(
                f"{caller}: {error.message}", culprit=caller, step="release"
            ) from error
        await asyncio.to_thread(session.deliver, index, inbox.data)
        run.delivered(session)

    # ---- the other shuffler --------------------------------------------------------------------------------

    async def Order(self, request: pb.OrderRequest, context) -> pb.OrderReply:
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
            self._new_run(study, request.attempt, lambda run: run.seed.done()).seed.set_result(
                request.seed
            )
        except UmpcError as error:
            await context.abort(*status_of(error))
        return pb.OrderReply(attempt=request.attempt)

    async def _tell_order(self, run: Run) -> None:
        """The first shuffler draws the order; it counts once the second has it."""
        second, seed = run.study.shufflers[1], os.urandom(32)
        try:
            channel = await connect(
                self.identity, second.name, "shuffler", second.address, CONNECT_SECONDS
            )
            try:
                request = pb.OrderRequest(study=run.study.encode(), attempt=run.attempt, seed=seed)
                await rpc.ShufflerStub(channel).Order(request, timeout=CONNECT_SECONDS)
            except grpc.aio.AioRpcError as error:
                raise error_of(error, second.name, "prepare") from error
            finally:
                await channel.close()
        except UmpcError as error:
            run.fail(error)
            return
        run.seed.set_result(seed)

    # ---- the coordinator -----------------------------------------------------------------------------------

    async def Collect(self, request: pb.CollectRequest, context) -> AsyncIterator[pb.CollectReply]:
        caller, run = peer_of(context).name, None
        try:
            study = await asyncio.to_thread(self._study_of, request.study)
            if study.coordinator != caller:
                raise RemoteProtocolError(
                    f"the study names {study.coordinator!r} as its coordinator", culprit=caller
                )
            run = self._new_run(study, request.attempt, lambda run: run.is_collected)
            run.collect()
            yield pb.CollectReply(run=run_id(await run.order(), run.attempt))
            session = await run.complete()
            failpoint("before-heap")
            *frames, last = await asyncio.to_thread(lambda: list(session.heap()))
            for frame in frames:
                yield pb.CollectReply(frame=codec.encode_frame(frame))
            run.finish()  # before the coordinator, which has all then, can hang up
            yield pb.CollectReply(frame=codec.encode_frame(last))
        except UmpcError as error:
            await context.abort(*status_of(error))
        except OUR_FAULTS as error:
            await context.abort(*status_of(_fault(error)))
        finally:
            if run is not None:
                run.fail(lost(caller, "release"))

    # ---- runs ----------------------------------------------------------------------------------------------

    def _study_of(self, data: bytes) -> Study:
        """A study that names this shuffler. Raises: RemoteProtocolError, and as decode_study."""
        study = decode_study(data)
        place_of(study, self.identity.name)
        return study

    def _run_of(self, study: Study, attempt: bytes) -> Run:
        """The attempt's run, made by whoever comes first.

        Only nodes prove that the attempt is the study's, so whoever names another one would be given its heap.
        """
        if len(attempt) != 32:
            raise EncodingError(f"an attempt's id has 32 bytes, {len(attempt)} came")
        if attempt in self._runs and self._runs[attempt].study.hash != study.hash:
            raise RemoteProtocolError(
                f"the attempt {attempt.hex()[:8]} was begun for another study than {study.name!r}; run the study again"
            )
        if attempt not in self._runs:
            seen = self._seen.setdefault(attempt, {})
            run = self._runs[attempt] = Run(study, attempt, self.identity.name, seen, self._ended)
            log.info("attempt %s of study %r: a run begins", attempt.hex()[:8], study.name)
            if place_of(study, self.identity.name) == 0:
                task = asyncio.create_task(self._tell_order(run))
                self._ordering.add(task)
                task.add_done_callback(self._ordering.discard)
        return self._runs[attempt]

    def _new_run(self, study: Study, attempt: bytes, is_other: Callable[[Run], bool]) -> Run:
        """The same, but of an earlier one that still waits for somebody who is gone."""
        if is_other(run := self._run_of(study, attempt)):
            run.fail(StudyAborted("a new run of the attempt has begun"))
        return self._run_of(study, attempt)

    def _ended(self, run: Run, error: UmpcError | None) -> None:
        self._runs.pop(run.attempt, None)
        label = f"attempt {run.attempt.hex()[:8]} of study {run.study.name!r}"
        if error is None:
            log.info("%s is shuffled", label)
        else:
            log.warning("%s ended: %s: %s", label, type(error).__name__, error.message)
        self.finished(error)


def _fault(error: Exception) -> LocalProtocolError:
    """What others may know of an error of umpc's own."""
    log.exception("shuffling failed", exc_info=error)
    return LocalProtocolError(f"the shuffler failed: {type(error).__name__}; see its log")
