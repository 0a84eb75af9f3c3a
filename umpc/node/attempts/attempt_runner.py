"""An attempt at one node, beside its session: threads, links, material, and the rounds over them.

ready(openings)      prepare: seed, links, transfers, noise; the material read ahead up to a window,
  ahead=True         or all of it onto the disk, for a run that comes later
resume(parked)       prepare, of what an earlier run parked: links only
evaluate()           evaluate: records, then chunk by chunk
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from umpc.crypto.prg import digest
from umpc.failpoints import failpoint
from umpc.mpc.attempt import Attempt, Chunk
from umpc.mpc.cost import sent_by_round
from umpc.mpc.masked.material import dealt_bytes
from umpc.node.attempts.delivery import ShufflerStreams
from umpc.node.attempts.material import WINDOW_BYTES, MaterialReader
from umpc.node.attempts.peers import PeerLink
from umpc.node.attempts.prepared_attempts import PreparedAttempt, PreparedAttempts
from umpc.node.attempts.rounds import PROGRESS_EVERY, Rounds
from umpc.node.attempts.spool import TAG_BYTES, Spool
from umpc.node.budget.ledger import Ledger
from umpc.node.records import Records
from umpc.protocols.ghazi_shuffle.node import frames_to
from umpc.protocols.u_mpc.node import NodeSession
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.messages import StepBytes
from umpc.study.sizes import Member
from umpc.transport.structured_concurrency import together

T = TypeVar("T")
DONE = object()


@dataclass(frozen=True)
class Site:
    """What a run needs of its process.

    load: the study's records, if the site's rules allow it. permit: whether they still allow it, over so many records.
    dial: a link to a peer that comes later in the study. await_link: the link that an earlier peer dials; both name the
    meeting. open_material: the stream from the dealer. open_spool: room on disk for so many bytes. open_delivery: the
    streams to the shufflers.
    """

    name: str
    ledger: Ledger
    parking: PreparedAttempts
    load: Callable[[Study], Records]
    permit: Callable[[Study, int], None]
    dial: Callable[[Study, int, bytes], Awaitable[PeerLink]]
    await_link: Callable[[Study, int, bytes], Awaitable[PeerLink]]
    open_material: Callable[[Attempt, tuple[bytes, ...], list[Chunk]], Awaitable[MaterialReader]]
    open_spool: Callable[[Study, int], Spool]
    open_delivery: Callable[[ShufflerStreams], Awaitable[None]]


class AttemptRunner:
    """Args: tell: progress of the step, as (done, of)."""

    def __init__(self, site: Site, tell: Callable[[int, int], Awaitable[None]]):
        self.site, self._tell = site, tell
        self._compute = ThreadPoolExecutor(max_workers=1, thread_name_prefix="study")
        self._links: dict[int, PeerLink] = {}
        self._reader: MaterialReader | None = None
        self._spool: Spool | None = None
        self.delivery: ShufflerStreams | None = None
        self._pump: asyncio.Task | None = None
        self._sent_before = self._received_before = 0
        self._parked = False

    async def in_thread(self, function: Callable[..., T], *arguments) -> T:
        """Computation off the event loop, one at a time, in order."""
        return await asyncio.get_running_loop().run_in_executor(self._compute, function, *arguments)

    # ---- prepare -------------------------------------------------------------------------------------------

    async def ready(
        self, session: NodeSession, openings: tuple[bytes, ...], *, ahead: bool = False
    ) -> None:
        """Everything before the data. ahead: all material is fetched, so that the dealer is not needed again."""
        attempt = session.attempt
        self.session, self._openings = session, openings
        self._chunks = await self.in_thread(lambda: list(attempt.chunks_of(session.index)))
        async with asyncio.timeout(attempt.study.seconds_per_step):
            if attempt.needs_dealer:
                if ahead:
                    self._spool = await self.in_thread(self._open_spool)
                self._reader = await self.site.open_material(attempt, openings, self._chunks)
                seed = await self._reader.seed()
                self._pump = asyncio.create_task(self._reader.pump())
            else:
                seed = os.urandom(32)
            await self.in_thread(session.receive_seed, seed)
            await self._connect(attempt.study, attempt.id)
            rounds = self._rounds = Rounds(
                session, self._links, self._reader, self.in_thread, self._tell
            )
            await together(rounds.set_up(peer) for peer in session.peers)
            failpoint("after-set-up")
            await self._draw_noise()
            if self._spool:
                await self._fetch_all()
            elif self._reader:
                await self._reader.prefetched()

    def _open_spool(self) -> Spool:
        """With room for this node's material, but for that of the noise, which is used at once."""
        attempt, node = self.session.attempt, self.session.index
        sizes = (
            dealt_bytes(attempt.plan(chunk), chunk.parties.index(node), chunk.count) + TAG_BYTES
            for chunk in self._chunks
            if not chunk.noise
        )
        return self.site.open_spool(attempt.study, sum(sizes))

    async def _connect(self, study: Study, meeting: bytes) -> None:
        session = self.session

        async def link(peer: int) -> None:
            connect = self.site.dial if session.index < peer else self.site.await_link
            self._links[peer] = await connect(study, peer, meeting)
            self._links[peer].window = session.attempt.program.window

        await together(link(peer) for peer in session.peers)

    async def _draw_noise(self) -> None:
        """The committee's part, before any data are touched; counted as preparation."""
        noise = [chunk for chunk in self._chunks if chunk.noise]
        self._chunks = self._chunks[len(noise) :]
        await self._rounds.evaluate(noise)
        await self._rounds.toss()
        self._sent_before = self._sent()
        for link in self._links.values():
            link.rounds_used.clear()
            link.sent.clear()

    async def _fetch_all(self) -> None:
        """All material onto the disk. The dealer is let go with the run, when every node has all of its own."""
        for done in range(len(self._chunks)):
            await self.in_thread(self._spool.add, await self._reader.next())
            failpoint("during-spool")
            if done % PROGRESS_EVERY == PROGRESS_EVERY - 1:
                await self._tell(done + 1, len(self._chunks))

    def park(self, delta: Fraction) -> PreparedAttempt:
        """What a later run takes up. Spool and session are no longer this run's."""
        self._parked = True
        return PreparedAttempt(
            self.session, self._openings, self._chunks, self._spool, self.bytes_offline, delta
        )

    async def resume(self, parked: PreparedAttempt, study: Study) -> None:
        """Links of a meeting of its own: those of the preparation are gone, and may still be known to a peer.

        study: as it was proposed for the run, perhaps with other addresses.
        """
        self.session, self._chunks, self._spool = parked.session, parked.chunks, parked.spool
        self._received_before = parked.bytes_offline
        async with asyncio.timeout(study.seconds_per_step):
            await self._connect(study, digest(b"umpc links of a prepared run 1", parked.attempt.id))
            if self._spool:
                await self._spool.read_ahead(WINDOW_BYTES)
        self._rounds = Rounds(self.session, self._links, self._spool, self.in_thread, self._tell)

    # ---- evaluate ------------------------------------------------------------------------------------------

    async def evaluate(self) -> None:
        session, rounds = self.session, self._rounds
        async with asyncio.timeout(session.study.seconds_per_step):
            await together(rounds.exchange_fields(peer) for peer in session.peers)
            failpoint("after-fields")
            await rounds.evaluate(self._chunks)
            inner = session.inner_steps()
            while await self.in_thread(next, inner, DONE) is not DONE:
                pass

    # ---- shufflers -------------------------------------------------------------------------------------------

    async def reach_shufflers(
        self, study: Study, attempt: bytes, members: Sequence[Member], openings: Sequence[bytes]
    ) -> None:
        """Streams to both, each of which has then derived the attempt and waits."""
        self.delivery = ShufflerStreams(study, attempt, members, openings)
        await self.site.open_delivery(self.delivery)

    async def deliver(self, study: Study, kept: m.ShufflerStreams) -> tuple[m.StepBytes, ...]:
        """What the ledger keeps, to both shufflers; until both have it all."""
        node = study.index_of(self.site.name)
        frames = await self.in_thread(
            lambda: [list(frames_to(place, node, study, kept)) for place in (0, 1)]
        )
        return await self.delivery.send(frames)

    # ---- what it took, and its end ----------------------------------------------------------------------------

    @property
    def bytes_offline(self) -> int:
        """Received from the dealer and sent to peers before the data, whenever that was."""
        return (
            self._received_before
            + self._sent_before
            + (self._reader.bytes_received if self._reader else 0)
        )

    @property
    def bytes_online_by_round(self) -> tuple[StepBytes, ...]:
        return sent_by_round(sum((link.sent for link in self._links.values()), Counter()))

    @property
    def rounds_used(self) -> int:
        return len({used for link in self._links.values() for used in link.rounds_used})

    def waited_for(self, step: str) -> list[str]:
        """Whose messages are missing."""
        names = [link.peer for link in self._links.values() if link.is_awaited]
        if self._reader is not None and (self._reader.is_awaited or step == "prepare"):
            names.append(self._reader.dealer)
        return names

    def _sent(self) -> int:
        return sum(link.bytes_sent for link in self._links.values())

    def close(self) -> None:
        if self._pump:
            self._pump.cancel()
        if self._reader:
            self._reader.close()
        if self._spool and not self._parked:
            self._spool.close()
        for link in self._links.values():
            link.close()
        if self.delivery:
            self.delivery.close()
        self._compute.shutdown(wait=False, cancel_futures=True)
