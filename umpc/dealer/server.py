"""The dealer's gRPC server: one stream to every node of an attempt. Each attempt is dealt once.

| call | by | purpose |
|---|---|---|
| Hello | coordinator, node, dealer | the dealer's name, role and version |
| Deal | node | its material for one attempt |

When all nodes are there, the dealer generates chunk after chunk and puts them
into bounded queues (`attempt_run.py`). The slowest node sets the pace. Material takes no more
memory where there are more edges. When a node goes away, its attempt is over for
all nodes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from copy import copy
from weakref import WeakValueDictionary

from umpc import logs
from umpc.compute.executor import Executor
from umpc.crypto.prg import digest
from umpc.crypto.signing import Verify
from umpc.dealer.attempt_run import AttemptRun
from umpc.errors import RemoteProtocolError, UmpcError
from umpc.mpc.attempt import SharedAttempt
from umpc.proto import codec, frame_codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocol_version import PROTOCOL
from umpc.protocols.registry import attempt_of, decode_study, load_all
from umpc.study.attempt import check_agreed, check_openings
from umpc.transport.authority import Identity
from umpc.transport.identity import verifier_of
from umpc.transport.role_guard import of_own_end
from umpc.transport.services import AnyContext, rpc
from umpc.transport.status import blame_of, lost, refusal_of, status_of
from umpc.transport.tls import peer_of

log = logging.getLogger("umpc.dealer")

ALLOWED = {
    "/umpc.v1.Dealer/Hello": {"coordinator", "node", "dealer"},
    "/umpc.v1.Dealer/Deal": {"node"},
}
REMEMBERED = 1024
"""Number of ended attempts that the dealer remembers, so that proposals do not fill its memory.

An attempt that it has forgotten would be dealt anew, with material that is independent of the
former. An honest node asks once, so that shows nobody anything.
"""


class DealerServer(rpc.DealerServicer):
    """The calls to a dealer.

    Args:
        finished: called when an attempt has ended, with its error or None.
        verify: checks the members' certificates; None checks them by the identity's authority.
        workers: computes chunks, several at once; None deals one after the other.
    """

    def __init__(
        self,
        identity: Identity,
        finished: Callable[[UmpcError | None], None],
        verify: Verify | None = None,
        workers: Executor | None = None,
    ):
        load_all()
        self.workers = workers
        self.identity = identity
        self.finished = finished
        self.verify = verify or verifier_of(identity)
        self.running: dict[bytes, AttemptRun] = {}
        self.dealt: dict[bytes, UmpcError | None] = {}
        """The error that ended an attempt early, or None, by the attempt's id, the oldest first."""
        self._deriving: dict[bytes, asyncio.Task[SharedAttempt]] = {}
        self._attempts: WeakValueDictionary[bytes, SharedAttempt] = WeakValueDictionary()

    async def Hello(self, request: pb.HelloRequest, context: AnyContext) -> pb.HelloReply:
        """Say who is there."""
        return pb.HelloReply(name=self.identity.name, role=self.identity.role, version=PROTOCOL)

    async def Deal(
        self, requests: AsyncIterator[pb.DealRequest], context: AnyContext
    ) -> AsyncIterator[pb.Frame]:
        """Send a node its material of one attempt."""
        caller = peer_of(context).name
        run: AttemptRun | None = None
        study = b""
        complete = False
        try:
            request = await frame_codec.joined(lambda: anext(requests, None))
            if request is None:
                raise RemoteProtocolError(f"{caller} asked for no attempt", culprit=caller)
            study = request.study
            attempt = await self.derived(request, caller)
            del request  # a megabyte where there are a thousand nodes, each of which asks
            index = attempt.study.index_of(caller)
            run, study = self._join(attempt, index), b""
            async for frames in run.frames(index):
                yield frame_codec.encode_frames(frames)
            complete = True
        except UmpcError as error:
            log.warning("%s gets no material: %s: %s", caller, type(error).__name__, error.message)
            if run is None:
                refusal = refusal_of(error, caller)
                self._end_without(caller, study, error)
                await context.abort(*refusal)
            await context.abort(*status_of(error), blame_of(error))
        finally:
            if run is not None and not complete:
                run.fail(of_own_end(lost(caller, "prepare")))

    @property
    def attempts_in_use(self) -> int:
        """The number of attempts that are being derived, or that a node uses."""
        return len(self._attempts) + len(self._deriving)

    async def derived(self, request: pb.DealRequest, caller: str) -> SharedAttempt:
        """Return the attempt of a request.

        It is derived once for all nodes that send the same bytes, and kept as long as one of them
        uses it.

        Raises: as `_attempt_of`.
        """
        key = digest(request.SerializeToString(deterministic=True))
        attempt = self._attempts.get(key)
        if attempt is None:
            if key not in self._deriving:
                self._deriving[key] = asyncio.create_task(self._derive(key, request, caller))
            attempt = await asyncio.shield(self._deriving[key])
        return attempt

    async def _derive(self, key: bytes, request: pb.DealRequest, caller: str) -> SharedAttempt:
        try:
            attempt = await asyncio.to_thread(self._attempt_of, request, caller)
            self._attempts[key] = attempt
            return attempt
        finally:
            del self._deriving[key]

    def _attempt_of(self, request: pb.DealRequest, caller: str) -> SharedAttempt:
        """Derive the attempt from its parts, as every node of it does.

        Every node must have signed its member, and all members. A node that asks with other
        members than the rest is therefore refused by its name.

        Raises: RemoteProtocolError if the study names another dealer, or names the caller;
            CertificateError, EncodingError, StudyError.
        """
        study = decode_study(request.study)
        named = study.dealer.name if study.dealer else None
        if named != self.identity.name:
            raise RemoteProtocolError(
                f"the study names {named!r} as its dealer, this is {self.identity.name!r}"
            )
        members = codec.decode_members(request.members)
        openings = codec.decode_openings(request.openings)
        signatures = codec.decode_signatures(request.signatures)
        check_agreed(study, members, signatures, self.verify, caller)
        check_openings(study, members, openings, caller)
        attempt = attempt_of(study, members, openings)
        if not isinstance(attempt, SharedAttempt):
            raise RemoteProtocolError(f"a study of {study.protocol!r} has nothing to deal")
        _ = attempt.program, attempt.hypergraph  # computed here, off the event loop
        return attempt

    def _join(self, attempt: SharedAttempt, index: int) -> AttemptRun:
        if attempt.id not in self.running:
            if attempt.id in self.dealt:
                raise copy(self.dealt[attempt.id]) or RemoteProtocolError(
                    "the material of this attempt was dealt before; a new attempt gets new material"
                )
            self.dealt[attempt.id] = None
            self.running[attempt.id] = AttemptRun(
                attempt, lambda error: self.end(attempt, error), self.workers
            )
            log.info(
                "attempt %s of study %r begins",
                attempt.id.hex()[:8],
                attempt.study.name,
                extra=logs.belongs(attempt.study.hash, "prepare"),
            )
        run = self.running[attempt.id]
        run.join(index)
        return run

    def _end_without(self, caller: str, study: bytes, error: UmpcError) -> None:
        """End the attempts of a study that wait for a node whose request was refused."""
        for run in list(self.running.values()):
            if run.attempt.study.encode() == study and run.waits_for(caller):
                run.fail(error)

    def end(self, attempt: SharedAttempt, error: UmpcError | None) -> None:
        """Take note that an attempt has ended, with its error or None."""
        self.running.pop(attempt.id, None)
        # A copy has no traceback, which would keep the attempt, and grows whenever it is raised.
        self.dealt[attempt.id] = copy(error)
        ended = [key for key in self.dealt if key not in self.running]
        for key in ended[: max(0, len(ended) - REMEMBERED)]:
            del self.dealt[key]
        label = f"attempt {attempt.id.hex()[:8]} of study {attempt.study.name!r}"
        step = error.step if error else None
        place = logs.belongs(attempt.study.hash, step or "prepare")
        if error is None:
            log.info("%s is dealt", label, extra=place)
        else:
            log.warning("%s ended: %s", label, error.message, extra=place)
        self.finished(error)
