"""The dealer's gRPC server: one stream to every node of an attempt. Each attempt is dealt once.

| call | by | purpose |
|---|---|---|
| Hello | coordinator, node, dealer | the dealer's name, role and version |
| Deal | node | its material for one attempt |
| OpenPeople | coordinator | a study of people is opened, with the key of each place |
| PeopleKeys | node | an aggregator's seed of roots, and the keys of all places |
| Answer | node, coordinator | what the dealer says, once, of an attempt whose nodes may lie |

When all nodes are there, the dealer generates chunk after chunk and puts them
into bounded queues. The slowest node sets the pace. Material takes no more
memory where there are more edges. When a node goes away, its attempt is over for
all nodes.

*Attempt run.* One attempt at the dealer: who is there, and the task that deals.

When all nodes are there, it generates chunk after chunk into each node's queue.

*Frame queue.* Frames for one node of an attempt, which wait until its stream takes them.

*In order.* The material of chunks, several computed at once, in the attempt's order.

Every node takes its material in that order, and bounded queues hold the dealer back. So no more
chunks are computed ahead than keep the workers busy. Chunks of a wave (`umpc/mpc/chunks.py`) are
computed in batches, and each has frames of its own.

*Memory.* A dealer holds E, and 8 bytes for each wire of each record. All else has a bound for any
number of edges. A chunk's material is at most 1 MB for each of its owners that gets any. At most
so much of one attempt waits:

| where | how much |
|---|---|
| a node's queue | QUEUE_BYTES and one chunk, so 9 MB for each node |
| here, computed or being computed | AHEAD full chunks and one batch, or a chunk for each worker |
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from copy import copy
from operator import attrgetter
from weakref import WeakValueDictionary

from umpc import logs
from umpc.compute.executor import SMALLEST_TASK, Executor
from umpc.crypto.prg import digest
from umpc.crypto.signing import Sign, Verify
from umpc.dealer.material import Material, MaterialDealer, dealt
from umpc.dealer.people import PeopleDealer
from umpc.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    StepTimeout,
    StudyError,
    UmpcError,
)
from umpc.failpoints import failpoint
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.base.protocol import AnsweringDealer, CheckingDealer, Dealing
from umpc.protocols.people.terms import survey_of, terms_of
from umpc.protocols.registry import allowed_as, attempt_of, decode_study, load_all, protocol_of
from umpc.study.attempt import check_agreed, check_members, check_openings
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.transport.blocking import KEY_BYTES, pulled, told
from umpc.transport.connections import MAX_FRAME, of_own_end
from umpc.transport.greeting import Greeted
from umpc.transport.identity import Identity, credentials_of, verifier_of
from umpc.transport.patience import time_limit
from umpc.transport.status import blame_of, refusal_of, status_of
from umpc.transport.stream_reader import lost
from umpc.transport.tls import AnyContext, Peer, peer_of, read, rpc

log = logging.getLogger("umpc.dealer")

ALLOWED = {
    "/umpc.v1.Dealer/Hello": {"coordinator", "node", "dealer"},
    "/umpc.v1.Dealer/Deal": {"node"},
    "/umpc.v1.Dealer/Answer": {"node", "coordinator"},
    "/umpc.v1.Dealer/OpenPeople": {"coordinator"},
    "/umpc.v1.Dealer/PeopleKeys": {"node"},
}
REMEMBERED = 1024
"""Number of ended attempts that the dealer remembers, so that proposals do not fill its memory.

An attempt that it has forgotten would be dealt anew, with material that is independent of the
former. An honest node asks once, so that shows nobody anything.
"""


class DealerServer(Greeted, rpc.DealerServicer):
    """The calls to a dealer.

    Args:
        finished: called when an attempt has ended, with its error or None.
        verify: checks the members' certificates; None checks them by the identity's authority.
        workers: computes chunks, several at once; None deals one after the other.
        people: deals for studies of people; None refuses them.
    """

    def __init__(
        self,
        identity: Identity,
        finished: Callable[[UmpcError | None], None],
        verify: Verify | None = None,
        workers: Executor | None = None,
        people: PeopleDealer | None = None,
    ):
        load_all()
        self.workers = workers
        self._people = people
        self.identity = identity
        self.finished = finished
        self.verify = verify or verifier_of(identity)
        self.running: dict[bytes, DealtAttempt] = {}
        self.dealt: dict[bytes, UmpcError | None] = {}
        """The error that ended an attempt early, or None, by the attempt's id, the oldest first."""
        self.asked: dict[bytes, AskedAttempt] = {}
        """Dealt attempts that the dealer answers about, by their id, the oldest first."""
        self._deriving: dict[bytes, asyncio.Task[SharedAttempt]] = {}
        self._attempts: WeakValueDictionary[bytes, SharedAttempt] = WeakValueDictionary()

    async def Deal(
        self, requests: AsyncIterator[pb.DealRequest], context: AnyContext
    ) -> AsyncIterator[pb.Frame]:
        """Send a node its material of one attempt."""
        caller = peer_of(context).name
        run: DealtAttempt | None = None
        study = b""
        complete = False
        try:
            request = await codec.joined(lambda: anext(requests, None))
            if request is None:
                raise RemoteProtocolError(f"{caller} asked for no attempt", culprit=caller)
            study = request.study
            attempt = await self.derived(request, caller)
            del request  # a megabyte where there are a thousand nodes, each of which asks
            index = attempt.study.index_of(caller)
            run, study = self._join(attempt, index), b""
            async for frames in run.frames(index):
                yield codec.encode_frames(frames)
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

    async def Answer(
        self, request: pb.AnswerRequest, context: AnyContext
    ) -> AsyncIterator[pb.Frame]:
        """Say once what the masks are at one point, when all nodes have signed one transcript."""
        caller = peer_of(context)
        try:
            asked = self.asked.get(request.attempt)
            if asked is None:
                raise copy(self.dealt.get(request.attempt)) or RemoteProtocolError(
                    "the dealer holds no masks of this attempt: it answered before, or it was "
                    "started again meanwhile; run the study again",
                    step="evaluate",
                )
            frames = await asked.answer(caller, list(request.statements))
        except UmpcError as error:
            log.warning("%s gets no answer: %s: %s", caller, type(error).__name__, error.message)
            await context.abort(*status_of(error), blame_of(error))
        for frame in frames:
            yield codec.encode_frames([frame])

    async def OpenPeople(self, requests: object, context: AnyContext) -> None:
        """Draw the secrets of all places of a study of people."""
        peer = peer_of(context)
        caller = peer.name
        try:
            people, first = self._people_here(), await read(context)
            study = survey_of(decode_study(b"" if first is None else first.study))
            self._check_own(study)
            if study.coordinator != caller:
                raise StudyError(f"this is a study of {study.coordinator!r}, and {caller!r} called")
            peer.check_study(allowed_as(study))
            most = KEY_BYTES * terms_of(study).places
            places = pulled(context, caller, attrgetter("keys"), most)
            await told(context, "secrets", lambda _: people.open_study(study, places))
            await context.write(pb.PeopleOpening(opened=pb.PeopleOpened()))
        except UmpcError as error:
            await self._refuse_people(context, caller, "opened no study of people", error)

    async def PeopleKeys(
        self, request: pb.PeopleStudy, context: AnyContext
    ) -> AsyncIterator[pb.PeoplePart]:
        """Deal to an aggregator. A part without data is the end."""
        caller = peer_of(context).name
        try:
            people = self._people_here()
            blocks = await asyncio.to_thread(people.deal, request.hash, caller, request.already)
            while block := await asyncio.to_thread(next, blocks, b""):
                for start in range(0, len(block), MAX_FRAME):
                    yield pb.PeoplePart(data=block[start : start + MAX_FRAME])
            yield pb.PeoplePart()
            await asyncio.to_thread(people.sweep)
        except UmpcError as error:
            await self._refuse_people(context, caller, "gets no keys of people", error)

    async def _refuse_people(
        self, context: AnyContext, caller: str, what: str, error: UmpcError
    ) -> None:
        log.warning("%s %s: %s", caller, what, error.message)
        if error.detail:
            log.warning("for the administrator only: %s", error.detail)
        await context.abort(*refusal_of(error, caller))

    def _people_here(self) -> PeopleDealer:
        if self._people is None:
            raise StudyError(
                f"dealer {self.identity.name!r} deals for no studies of people: start it with "
                "--people FOLDER and --people-listen ADDRESS, or name another dealer"
            )
        return self._people

    def _check_own(self, study: Study) -> None:
        """Raises: RemoteProtocolError if a study names another dealer."""
        named = study.dealer.name if study.dealer else None
        if named != self.identity.name:
            raise RemoteProtocolError(
                f"the study names {named!r} as its dealer, this is {self.identity.name!r}"
            )

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
        self._check_own(study)
        members = codec.decode_members(request.members)
        openings = codec.decode_openings(request.openings)
        signatures = codec.decode_signatures(request.signatures)
        keys = check_agreed(study, members, signatures, self.verify, caller)
        protocol_of(study).check_members(study, members, keys)
        check_openings(study, members, openings, caller)
        attempt = attempt_of(study, members, openings)
        if not isinstance(attempt, SharedAttempt):
            raise RemoteProtocolError(f"a study of {study.protocol!r} has nothing to deal")
        _ = attempt.program, attempt.hypergraph  # computed here, off the event loop
        return attempt

    def _join(self, attempt: SharedAttempt, index: int) -> DealtAttempt:
        if attempt.id not in self.running:
            if attempt.id in self.dealt:
                raise copy(self.dealt[attempt.id]) or RemoteProtocolError(
                    "the material of this attempt was dealt before; a new attempt gets new material"
                )
            self.dealt[attempt.id] = None
            self.running[attempt.id] = DealtAttempt(
                attempt,
                lambda error: self.end(attempt, error),
                self.workers,
                lambda session: self._keep(attempt, session),
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

    def _keep(self, attempt: SharedAttempt, session: Dealing) -> None:
        """Keep what the dealer answers about, from before its first frame leaves."""
        if not isinstance(session, AnsweringDealer):
            return
        if isinstance(session, CheckingDealer):
            session.alpha = self._people_here().alpha(survey_of(attempt.study).hash)
        self.asked[attempt.id] = AskedAttempt(attempt, session, self.verify, self._sign)
        if len(self.asked) > MOST_ASKED:
            # answered ones first: another one may be of a study that waits for its run
            by_use = sorted(self.asked, key=lambda key: not self.asked[key].is_answered)
            del self.asked[by_use[0]]

    def _sign(self, statement: bytes) -> bytes:
        return credentials_of(self.identity).sign(statement)

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


# --- attempt run ----------------------------------------------------------------------------------

PART_OF_STEP = 0.9
"""The part of a step for which the dealer waits for all nodes.

The nodes wait for the whole step. So the dealer can tell them which node is missing.
"""


class DealtAttempt:
    """One attempt: a queue for each node, and the task that fills them."""

    def __init__(
        self,
        attempt: SharedAttempt,
        ended: Callable[[UmpcError | None], None],
        workers: Executor | None = None,
        keep: Callable[[Dealing], None] = lambda session: None,
    ):
        self.attempt = attempt
        self._keep = keep
        self._workers = workers
        self._ended = ended
        self._queues = [FrameQueue() for _ in attempt.members]
        self._joined: set[int] = set()
        self._delivered: set[int] = set()
        self._over = False
        self._producer = asyncio.create_task(self._produce())
        self._all_here = asyncio.Event()

    def join(self, index: int) -> None:
        """Count a node as present. Raises: RemoteProtocolError if it asks a second time."""
        if index in self._joined:
            name = self.attempt.members[index].name
            raise RemoteProtocolError(
                f"{name} asked for its material a second time; it is dealt once", culprit=name
            )
        self._joined.add(index)
        if len(self._joined) == len(self.attempt.members):
            self._all_here.set()

    def waits_for(self, name: str) -> bool:
        """Whether this node has yet to ask for its material."""
        members = enumerate(self.attempt.members)
        return any(each.name == name and index not in self._joined for index, each in members)

    async def frames(self, index: int) -> AsyncIterator[list[Frame]]:
        """Yield a node's frames until the end, small ones together.

        Raises: the error that ended the attempt early.
        """
        while frames := await self._queues[index].get():
            yield frames
        self._delivered.add(index)
        if len(self._delivered) == len(self._queues):
            self._end(None)

    def fail(self, error: UmpcError) -> None:
        """End the attempt with this error, for all nodes that do not have everything yet."""
        self._producer.cancel()
        for queue in self._queues:
            queue.fail(error)
        self._end(error)

    def _end(self, error: UmpcError | None) -> None:
        if not self._over:
            self._over = True
            self._ended(error)

    async def _produce(self) -> None:
        try:
            await self._wait_for_all()
            await self._deal()
        except UmpcError as error:
            self.fail(error)
        except (MemoryError, ValueError, ArithmeticError, LookupError, TypeError) as error:
            log.exception("dealing failed")
            self.fail(LocalProtocolError(f"the dealer failed: {type(error).__name__}; see its log"))

    async def _wait_for_all(self) -> None:
        try:
            async with time_limit(PART_OF_STEP * self.attempt.study.seconds_per_step):
                await self._all_here.wait()
        except TimeoutError:
            names = [member.name for member in self.attempt.members]
            absent = [name for index, name in enumerate(names) if index not in self._joined]
            raise StepTimeout(
                f"{', '.join(absent)} did not ask for material", culprit=absent[0], step="prepare"
            ) from None

    async def _deal(self) -> None:
        session = await asyncio.to_thread(_session_of, self.attempt)
        self._keep(session)
        failpoint("before-deal")
        for index, queue in enumerate(self._queues):
            await queue.put(session.seed_frame(index))
        batches = self.attempt.batches()
        async for frames in dealt_in_order(session, batches, self._workers):
            for index, frame in frames:
                await self._queues[index].put(frame)
            failpoint("during-deal")
        for queue in self._queues:
            await queue.put(None)


def _session_of(attempt: SharedAttempt) -> Dealing:
    """Make the masks of an attempt."""
    own = protocol_of(attempt.study).dealing(attempt, os.urandom)
    return own or MaterialDealer(attempt, os.urandom)


# --- answer ---------------------------------------------------------------------------------------

MOST_ASKED = 256
"""The most dealt attempts whose seeds, members and operators the dealer holds until it answers.

A study that is prepared ahead is one of them until its run. Whoever comes when its attempt was
forgotten is told to run the study again.
"""
PATIENCE_SECONDS = 10
"""How much longer than a step the dealer waits for what the coordinator passes on.

The coordinator itself waits for the slowest node, and names it before it is named itself.
"""


class AskedAttempt:
    """One dealt attempt, and what its nodes signed of it: it is answered once, to everybody.

    The seeds are in this process's memory only. So a dealer that starts again answers nothing.
    """

    def __init__(
        self, attempt: SharedAttempt, dealing: AnsweringDealer, verify: Verify, sign: Sign
    ):
        self.attempt = attempt
        self._sign = sign
        self._dealing = dealing
        self._verify = verify
        self._asking: asyncio.Task[None] | None = None
        self._answer: asyncio.Future[list[Frame]] = asyncio.get_running_loop().create_future()

    async def answer(self, caller: Peer, questions: list[bytes]) -> list[Frame]:
        """The answer, once the coordinator has passed on what all nodes signed.

        Args: questions: the coordinator's; a node has none, and waits.
        Raises: RemoteProtocolError for statements that the nodes have not signed, or other ones
            than before; StepTimeout.
        """
        study = self.attempt.study
        if caller.role == "node":
            study.index_of(caller.name)
        else:
            if caller.name != study.coordinator:
                raise RemoteProtocolError(
                    f"this is a study of {study.coordinator}; its statements were due, and "
                    f"{caller.name} sent some",
                    culprit=caller.name,
                    step="evaluate",
                )
            caller.check_study(allowed_as(study))
            if self._asking is None:
                # a task of its own: it goes on if this call ends
                self._asking = asyncio.create_task(self._ask(questions))
        try:
            async with time_limit(study.seconds_per_step + PATIENCE_SECONDS):
                return await asyncio.shield(self._answer)
        except TimeoutError:
            raise StepTimeout(
                f"{study.coordinator} did not pass on what the nodes signed",
                culprit=study.coordinator,
                step="evaluate",
            ) from None

    async def _ask(self, questions: list[bytes]) -> None:
        """Make the answer, once."""
        try:
            found = await asyncio.to_thread(self._made, questions)
        except UmpcError as error:
            self._answer.set_exception(error)
        except Exception:  # all who wait must hear of it
            log.exception("the answer failed")
            failed = LocalProtocolError("the dealer failed to answer; see its log")
            self._answer.set_exception(failed)
        else:
            self._answer.set_result(found)

    @property
    def is_answered(self) -> bool:
        """Whether its seeds are gone."""
        return self._asking is not None

    def _made(self, questions: list[bytes]) -> list[Frame]:
        members, study = self.attempt.members, self.attempt.study
        keys = check_members(study, members, self._verify, None, "evaluate")
        is_signed = self._dealing.is_signed
        if len(questions) != len(keys) or not all(
            is_signed(node, key, questions[node]) for node, key in enumerate(keys)
        ):
            raise RemoteProtocolError(
                f"{study.coordinator} passed on a statement that its node has not signed",
                culprit=study.coordinator,
                step="evaluate",
            )
        return list(self._dealing.answer(questions, self._sign))


# --- frame queue ----------------------------------------------------------------------------------

QUEUE_BYTES = 8 << 20
"""Largest amount of material that waits for one node."""
MESSAGE_BYTES = 64 << 10
"""Largest message of several frames; a large frame is alone in its message."""
FRAME_BYTES = 64
"""The most bytes of a frame beside its payload."""


class FrameQueue:
    """Frames for one node, bounded in bytes, from one producer to one consumer.

    It ends with None, or with an error.
    """

    def __init__(self) -> None:
        self._frames: deque[Frame | None] = deque()
        self._bytes = 0
        self._error: UmpcError | None = None
        self._changed = asyncio.Event()

    async def put(self, frame: Frame | None) -> None:
        """Append a frame when there is room. None ends the queue."""
        await self._until(lambda: self._bytes < QUEUE_BYTES)
        self._frames.append(frame)
        self._bytes += len(frame.payload) if frame else 0
        self._changed.set()

    async def get(self) -> list[Frame]:
        """Return the next frames, which fit one message; none at the end.

        Raises: the error that `fail` was given.
        """
        await self._until(lambda: self._frames or self._error)
        if self._error:
            raise self._error
        frames: list[Frame] = []
        size = 0
        while self._frames and (frame := self._frames[0]) is not None:
            size += FRAME_BYTES + len(frame.payload)
            if frames and size > MESSAGE_BYTES:
                break
            frames.append(frame)
            self._bytes -= len(frame.payload)
            self._frames.popleft()
        self._changed.set()
        return frames

    def fail(self, error: UmpcError) -> None:
        """End the queue with this error, unless another came first."""
        self._error = self._error or error
        self._changed.set()

    async def _until(self, condition: Callable[[], object]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()


# --- in order -------------------------------------------------------------------------------------

AHEAD = 64
"""Full chunks that are computed ahead. They keep eight threads busy, and a machine with more cores
takes no more memory. Python's lock lets fewer threads deal at the same time."""


async def dealt_in_order(
    session: Dealing,
    batches: Iterable[Sequence[Chunk]],
    workers: Executor | None,
) -> AsyncIterator[Material]:
    """Yield the material of each chunk.

    Args:
        batches: all chunks in the attempt's order; those of a batch may be computed together.
        workers: compute large batches of a `MaterialDealer`; None deals one after the other.
    """
    if workers is None or not isinstance(session, MaterialDealer):
        for batch in batches:
            for material in await asyncio.to_thread(dealt, session, batch):
                yield material
        return
    begun: deque[tuple[asyncio.Task[list[Material]], int]] = deque()
    ahead = 0
    most = max(AHEAD, workers.at_once)
    try:
        for batch in batches:
            task = asyncio.create_task(_deal(session, batch, workers))
            begun.append((task, _full_chunks(batch)))
            ahead += _full_chunks(batch)
            while len(begun) > workers.at_once or ahead > most:
                first, size = begun.popleft()
                for material in await first:
                    yield material
                ahead -= size
        while begun:
            first, _ = begun.popleft()
            for material in await first:
                yield material
    finally:
        for task, _ in begun:
            task.cancel()


def _full_chunks(batch: Sequence[Chunk]) -> int:
    """The most full chunks' worth of edges in a batch."""
    return 1 if batch[0].wave else len(batch)


async def _deal(
    session: MaterialDealer, batch: Sequence[Chunk], workers: Executor
) -> list[Material]:
    if sum(chunk.count for chunk in batch) < SMALLEST_TASK:
        return await asyncio.to_thread(dealt, session, batch)
    task = await asyncio.to_thread(session.task, *batch)
    payloads = await workers.run(task.payloads)
    return [list(session.frames(*each)) for each in zip(batch, payloads, strict=True)]
