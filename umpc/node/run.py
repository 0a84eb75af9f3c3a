"""One study at one node, from proposal to release: the session's steps with their network and ledger.

The order that matters (docs/protocol.md): reserve before anything is computed; charge, on disk, before the first byte
of the noisy share leaves; give a reservation back on every failure before the charge, never after.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from umpc.agreement import delta_of
from umpc.errors import LocalProtocolError, RemoteProtocolError, StepTimeout, UmpcError
from umpc.failpoints import failpoint
from umpc.mpc import messages as m
from umpc.mpc.attempt import Attempt, Chunk
from umpc.node.amounts import exact_delta
from umpc.node.ledger import Ledger
from umpc.node.material import MaterialReader
from umpc.node.onemessage import OneMessageSession
from umpc.node.peers import PeerLink
from umpc.node.records import Records
from umpc.node.rounds import Rounds
from umpc.node.session import NodeSession
from umpc.node.tasks import together
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import Study, decode_study

log = logging.getLogger("umpc.node")
T = TypeVar("T")

DONE = object()
PATIENCE_SECONDS = 10
"""How much longer than a step a node waits for the coordinator, which waits for the slowest node itself."""
PROPOSE_SECONDS = 60
"""How long a coordinator that has called may take to say what it wants."""


@dataclass(frozen=True)
class Site:
    """What a run needs of its process.

    load: the study's records. dial: a link to a peer that comes later in the study. await_link: the link that an
    earlier peer dials. open_material: the stream from the dealer.
    """

    name: str
    ledger: Ledger
    load: Callable[[Study], Records]
    dial: Callable[[Attempt, int], Awaitable[PeerLink]]
    await_link: Callable[[Attempt, int], Awaitable[PeerLink]]
    open_material: Callable[[Attempt, tuple[bytes, ...], list[Chunk]], Awaitable[MaterialReader]]


class StudyRun:
    """Args: receive: the coordinator's next message. send: one message to the coordinator."""

    def __init__(
        self,
        site: Site,
        coordinator: str,
        receive: Callable[[], Awaitable[m.CoordinatorMessage]],
        send: Callable[[m.NodeMessage], Awaitable[None]],
    ):
        self.site, self.coordinator = site, coordinator
        self._receive, self._send = receive, send
        self._compute = ThreadPoolExecutor(max_workers=1, thread_name_prefix="study")
        self._links: dict[int, PeerLink] = {}
        self._material: MaterialReader | None = None
        self._pump: asyncio.Task | None = None
        self.study: Study | None = None
        self.step = "propose"
        self.answered = False
        """The share is out: whatever the coordinator does now, the study is complete here."""

    async def run(self) -> None:
        """All steps. Raises: UmpcError; whatever happens, an uncharged reservation is given back."""
        try:
            await self._steps()
        except TimeoutError as error:
            raise self._timeout() from error
        except Exception as error:
            if isinstance(error, UmpcError):
                raise
            log.exception("an error of umpc's own")
            raise LocalProtocolError(
                f"step {self.step} failed with {type(error).__name__}, which is an error of umpc's own; see the log",
                step=self.step,
            ) from error
        finally:
            self._close()

    def _timeout(self) -> StepTimeout:
        """A step took too long: whoever was waited for is named, else this node itself."""
        waited_for = [link.peer for link in self._links.values() if link.is_awaited]
        if self._material is not None and (self._material.is_awaited or self.step == "prepare"):
            waited_for.append(self._material.dealer)
        missing = f", waiting for {', '.join(waited_for)}" if waited_for else ""
        return StepTimeout(
            f"step {self.step} did not end within {self.study.seconds_per_step} s{missing}; give it more with "
            f"seconds_per_step, or look at what keeps it",
            culprit=waited_for[0] if waited_for else self.site.name,
            step=self.step,
        )

    async def _steps(self) -> None:
        propose = await self._expect(m.Propose, PROPOSE_SECONDS)
        self.study = await asyncio.to_thread(decode_study, propose.study)
        self._check_caller()
        released = await asyncio.to_thread(self.site.ledger.released, self.study.hash)
        if released is not None:
            await self._release_again(released.share)
        else:
            await self._run_attempt()

    async def _run_attempt(self) -> None:
        study, ledger = self.study, self.site.ledger
        failpoint("before-reserve")
        records = await asyncio.to_thread(self.site.load, study)
        # Not in a thread: no cancellation may come in between.
        ledger.reserve(study.hash, study.exact_epsilon, name=study.name)
        failpoint("after-reserve")
        try:
            kind = OneMessageSession if study.one_message else NodeSession
            session = kind(self.site.name, study, records.columns, records.count, os.urandom)
            who = f"study {self._label} of {self.coordinator}"
            log.info("%s accepted: %d records, %d rows dropped", who, records.count, records.dropped)
            await asyncio.to_thread(lambda: [kernel.interval for kernel in study.parsed_kernels])  # may take seconds
            for kernel in study.parsed_kernels:
                low, high = kernel.interval.low, kernel.interval.high
                log.info(
                    "kernel %s of hash %s, range [%s, %s], delta f %s",
                    kernel.text,
                    kernel.hash[:16],
                    low,
                    high,
                    high - low,
                )
            await self._send(m.Accepted(study.hash, session.accept()))
            await self._agree(session)
            if isinstance(session, OneMessageSession):
                await self._randomise(session)
            else:
                await self._prepare(session)
                await self._evaluate(session)
            await self._release(session, records.count)
        finally:
            ledger.cancel(study.hash)

    async def _agree(self, session: NodeSession) -> None:
        agree = await self._expect(m.Agree)
        failpoint("agree")
        await self._send(m.Opened(session.agree(agree.members)))

    async def _prepare(self, session: NodeSession) -> None:
        begin = await self._expect(m.Begin)
        self.step = "prepare"
        failpoint("before-prepare")
        attempt = await self._in_thread(session.begin, begin.openings)
        self._delta = exact_delta(await self._in_thread(delta_of, attempt.sizes))
        self.site.ledger.reserve_delta(self.study.hash, self._delta)  # not in a thread, as epsilon
        failpoint("after-reserve-delta")
        self._chunks = await self._in_thread(lambda: list(attempt.chunks_of(session.index)))
        async with asyncio.timeout(self.study.seconds_per_step):
            if attempt.needs_dealer:
                self._material = await self.site.open_material(attempt, begin.openings, self._chunks)
                seed = await self._material.seed()
                self._pump = asyncio.create_task(self._material.pump())
            else:
                seed = os.urandom(32)
            await self._in_thread(session.receive_seed, seed)
            await self._connect(session, attempt)
            self._rounds = Rounds(session, self._links, self._material, self._in_thread, self._tell)
            await together(self._rounds.set_up(peer) for peer in session.peers)
            failpoint("after-set-up")
            await self._draw_noise()
            if self._material:
                await self._material.prefetched()
        failpoint("after-prepare")
        await self._send(m.Prepared(attempt.id, self._material.bytes_received if self._material else 0))

    async def _randomise(self, session: OneMessageSession) -> None:
        """Prepare and evaluate of a one-message protocol: nothing is dealt, nobody is called."""
        begin = await self._expect(m.Begin)
        self.step = "prepare"
        failpoint("before-prepare")
        attempt = await self._in_thread(session.begin, begin.openings)
        self._delta = exact_delta(delta_of(attempt.sizes))
        self.site.ledger.reserve_delta(self.study.hash, self._delta)  # not in a thread, as epsilon
        failpoint("after-reserve-delta")
        await self._send(m.Prepared(attempt.id, 0))
        await self._expect(m.Evaluate)
        self.step = "evaluate"
        failpoint("before-evaluate")
        async with asyncio.timeout(self.study.seconds_per_step):
            await self._in_thread(session.randomise)
        failpoint("before-ready")
        await self._send(m.Ready(0, 0, 0))
        failpoint("after-ready")

    async def _draw_noise(self) -> None:
        """The committee's part, before any data are touched; counted as preparation."""
        noise = [chunk for chunk in self._chunks if chunk.noise]
        self._chunks = self._chunks[len(noise) :]
        await self._rounds.evaluate(noise)
        self._sent_before = sum(link.bytes_sent for link in self._links.values())
        for link in self._links.values():
            link.rounds_used.clear()

    async def _connect(self, session: NodeSession, attempt: Attempt) -> None:
        async def link(peer: int) -> None:
            connect = self.site.dial if session.index < peer else self.site.await_link
            self._links[peer] = await connect(attempt, peer)
            self._links[peer].window = attempt.program.window

        await together(link(peer) for peer in session.peers)

    async def _evaluate(self, session: NodeSession) -> None:
        await self._expect(m.Evaluate)
        self.step = "evaluate"
        failpoint("before-evaluate")
        async with asyncio.timeout(self.study.seconds_per_step):
            await together(self._rounds.exchange_fields(peer) for peer in session.peers)
            failpoint("after-fields")
            await self._rounds.evaluate(self._chunks)
            inner = session.inner_steps()
            while await self._in_thread(next, inner, DONE) is not DONE:
                pass
        failpoint("before-ready")
        rounds = len({used for link in self._links.values() for used in link.rounds_used})
        sent = sum(link.bytes_sent for link in self._links.values()) - self._sent_before
        received = self._sent_before + (self._material.bytes_received if self._material else 0)
        await self._send(m.Ready(sent, received, rounds))
        failpoint("after-ready")

    async def _tell(self, done: int, total: int) -> None:
        await self._send(m.Progress(self.step, done, total))

    async def _release(self, session: NodeSession, records: int) -> None:
        await self._expect(m.Release)
        self.step = "release"
        failpoint("release-asked")
        share = session.release()
        message = m.Released(session.attempt.id, share, records, session.accept().first_class)
        stored = codec.encode_node(message).SerializeToString()
        failpoint("before-charge")
        await asyncio.to_thread(self.site.ledger.charge, self.study.hash, session.attempt.id, stored)
        failpoint("after-charge")
        log.info(
            "study %s: epsilon %s, delta %.3g charged, the share leaves", self._label, self.study.epsilon, self._delta
        )
        await self._send(message)
        self.answered = True
        failpoint("after-send")
        await asyncio.shield(asyncio.to_thread(self.site.ledger.record_release, self.study.hash))
        failpoint("after-record-release")

    async def _release_again(self, stored: bytes) -> None:
        """The same study asked again gets the same stored bytes, at no cost."""
        self.step = "release"
        await self._send(codec.decode_node(codec.parse(pb.NodeMessage, stored)))
        self.answered = True
        log.info("study %s was released before: the stored share sent again, nothing charged", self._label)

    def _check_caller(self) -> None:
        study = self.study
        study.index_of(self.site.name)
        if study.coordinator != self.coordinator:
            raise RemoteProtocolError(
                f"the study names {study.coordinator!r} as its coordinator, its certificate says {self.coordinator!r}",
                culprit=self.coordinator,
                step="propose",
            )

    async def _expect(self, kind: type[T], seconds: float | None = None) -> T:
        """The coordinator's next message, which must be of this kind."""
        try:
            async with asyncio.timeout(seconds or self.study.seconds_per_step + PATIENCE_SECONDS):
                message = await self._receive()
        except TimeoutError as error:
            raise StepTimeout(
                f"{self.coordinator} did not continue after step {self.step}", culprit=self.coordinator, step=self.step
            ) from error
        if not isinstance(message, kind):
            raise RemoteProtocolError(
                f"{self.coordinator} sent {type(message).__name__} where {kind.__name__} was due",
                culprit=self.coordinator,
                step=self.step,
            )
        return message

    async def _in_thread(self, function: Callable[..., T], *arguments) -> T:
        """Computation off the event loop, one at a time, in order."""
        return await asyncio.get_running_loop().run_in_executor(self._compute, function, *arguments)

    @property
    def _label(self) -> str:
        return f"{self.study.name!r} ({self.study.hash.hex()[:8]})"

    def _close(self) -> None:
        if self._pump:
            self._pump.cancel()
        if self._material:
            self._material.close()
        for link in self._links.values():
            link.close()
        self._compute.shutdown(wait=False, cancel_futures=True)
