"""The runner of an attempt at one node: threads, links, material, shufflers, and rounds over them.

    ready(side, openings)   prepare: seed, links, transfers, noise; the material read ahead up to a
                            window, or with ahead=True all of it onto the disk, for a later run,
                            be it dealt or made by the nodes
    resume(prepared)        prepare, for what an earlier run prepared: links only
    evaluate()              evaluate: records, then chunk by chunk

A side without a mesh talks to no other node. Its attempt then needs none of the above but its own
steps.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ParamSpec, TypeVar

from umpc.compute.executor import Executor
from umpc.crypto.prg import SEED_BYTES, digest
from umpc.crypto.signing import Credentials
from umpc.errors import LocalProtocolError
from umpc.failpoints import failpoint
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.backends import backend_of
from umpc.mpc.chunks import AFTER, AHEAD, Chunk
from umpc.mpc.masked.material import dealt_bytes
from umpc.mpc.triples.plan import TriplesPlan
from umpc.node.attempts.compute_calls import ComputeCalls
from umpc.node.attempts.compute_threads import COMPUTE_THREADS
from umpc.node.attempts.delivery import ShufflerStreams
from umpc.node.attempts.guard import ViolationGuard
from umpc.node.attempts.making_channels import (
    NO_CHAINS,
    EndedLink,
    chain_of,
    ended_links,
    make_channels,
)
from umpc.node.attempts.material import WINDOW_BYTES, DealerCall, MaterialReader
from umpc.node.attempts.next_channels import Channel, ChannelsOfKind, NextChannels, TossedCoins
from umpc.node.attempts.next_coins import bytes_of_toss, is_tossed_ahead, toss_ahead
from umpc.node.attempts.peers import PeerLink
from umpc.node.attempts.prepared_attempts import PreparedAttempt, PreparedAttempts
from umpc.node.attempts.rounds import PROGRESS_EVERY, Rounds
from umpc.node.attempts.running_chunks import evaluate_chunks
from umpc.node.attempts.spool import TAG_BYTES, Spool
from umpc.node.audit.study_rows import Record, nothing
from umpc.node.budget.ledger import Ledger
from umpc.node.records import Records
from umpc.protocols.base.node import AsksEarly, MeshSide, NodeSide, TakesChannels, WorksAhead
from umpc.protocols.ghazi_shuffle.node import frames_to
from umpc.study import messages as m
from umpc.study.cost import sent_by_round
from umpc.study.document import Study
from umpc.study.frames import Frame, frame_of
from umpc.study.sizes import Member
from umpc.transport.patience import time_limit
from umpc.transport.structured_concurrency import together

log = logging.getLogger("umpc.node")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


FEW_NODES = 8
"""The most nodes whose signatures the event loop checks itself: a millisecond's work."""
NO_CHANNELS: Mapping[int, ChannelsOfKind] = {}
SMALL_STUDY = 1 << 15
"""The largest study whose brief computations the event loop does itself: its edges, its records,
and its cells as if they were edges."""


@dataclass(frozen=True)
class Site:
    """The parts of its process that a run needs.

    credentials: what the node signs with and checks others by, as its files are now.
    admit: whether the site's rules and its administrator allow a study, before any data is read.
    load: the study's records, once its ε is reserved.
    permit: whether the rules still allow it, over so many records.
    permit_delta: whether the rules allow a release of so much δ.
    dial: a link to a peer that comes later in the study.
    await_link: the link that an earlier peer dials. Both take the study, the peer's index, the
        meeting's name, and the `channels` of which the run may use one, or None.
    open_material: the stream from the dealer; it takes openings, signatures of all members, the
        node's chunks, and the call if the dealer is asked already.
    ask_dealer: opens such a call, if dealers may be asked before E is expanded.
    open_spool: room on disk for so many bytes.
    open_delivery: opens the streams to the shufflers.
    record: appends rows to the audit trail, on disk when it returns.
    workers: computes chunks of edges beside the run's own thread, if there is such a place.
    channels: of transfers, made after one study for the next one, if they are kept; with coins
        that were tossed over them.
    """

    name: str
    credentials: Callable[[], Credentials]
    ledger: Ledger
    parking: PreparedAttempts
    admit: Callable[[Study], None]
    load: Callable[[Study], Records]
    permit: Callable[[Study, int], None]
    permit_delta: Callable[[Fraction], None]
    dial: Callable[..., Awaitable[PeerLink]]
    await_link: Callable[..., Awaitable[PeerLink]]
    open_material: Callable[..., Awaitable[MaterialReader]]
    open_spool: Callable[[Study, int], Spool]
    open_delivery: Callable[[ShufflerStreams], Awaitable[None]]
    record: Record = nothing
    workers: Executor | None = None
    channels: NextChannels | None = None
    ask_dealer: Callable[[DealerCall], Awaitable[None]] | None = None


class AttemptRunner:
    """Args: tell: reports progress of the step, as (done, of)."""

    def __init__(self, site: Site, tell: Callable[[int, int], Awaitable[None]]):
        self.site = site
        self.guard = ViolationGuard()
        self.study = b""
        """The study's hash, once it is proposed."""
        self._tell = tell
        self._thread: ThreadPoolExecutor | None = None
        self._calls: ComputeCalls | None = None
        self._chains = NO_CHAINS
        self._has_met = False
        """This run, or the preparation that it goes on with, has set up transfers if due."""
        self._is_small = False
        """The attempt with other nodes has a size of at most SMALL_STUDY."""
        self._side: NodeSide | None = None
        self._openings: tuple[bytes, ...] = ()
        self._chunks: list[Chunk] = []
        self._rounds: Rounds | None = None
        self._links: dict[int, PeerLink] = {}
        self._asked: DealerCall | None = None
        self._reader: MaterialReader | None = None
        self._spool: Spool | None = None
        self.delivery: ShufflerStreams | None = None
        self._pump: asyncio.Task[None] | None = None
        self._sent_before = 0
        self._received_before = 0
        self._with_coordinator: Counter[tuple[str, int]] = Counter()
        self._ahead: asyncio.Task[None] | None = None
        self._is_parked = False
        self._is_closed = False
        self.ended_well = False
        """The run has taken all its steps, so its connections may serve another one."""
        self._connecting: set[str] = set()
        self._meeting: asyncio.Task[None] | None = None
        """The links of a prepared run are being made."""
        self.missing: list[str] = []
        """The names whose messages were missing when the time of a step was up."""

    async def in_thread(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Computation off the event loop, one at a time, in order."""
        if self._is_closed:
            raise LocalProtocolError("a run that has ended wanted to compute")
        if self._calls is None:
            self._thread = COMPUTE_THREADS.take(self.study)
            self._calls = ComputeCalls(self._thread)
        return await self._calls.run(partial(function, *arguments, **named))

    async def briefly(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Computation in proportion to the records and edges: in place where these are few.

        A change of threads and back takes longer than a millisecond's work on a busy machine, and
        a small study has dozens. Never while another computation of this run goes on.
        """
        is_computing = self._calls is not None and self._calls.is_busy
        if self._is_small and not is_computing and not self._is_closed:
            return function(*arguments, **named)
        return await self.in_thread(function, *arguments, **named)

    async def for_nodes(
        self, function: Callable[[Sequence[Any]], Result], given: Sequence[Any]
    ) -> Result:
        """Computation in proportion to the number of nodes: in place where these are few.

        Args: given: the function's argument, which has an item for each node.
        """
        if len(given) <= FEW_NODES:
            return function(given)
        return await self.in_thread(function, given)

    @property
    def side(self) -> NodeSide:
        if self._side is None:
            raise LocalProtocolError("the attempt has no side before it is ready")
        return self._side

    # --- prepare -------------------------------------------------------------------------------

    async def ask_dealer(self, side: NodeSide, openings: tuple[bytes, ...]) -> None:
        """Ask the dealer for material, where a study surely needs some, before E is expanded.

        The dealer then expands E at the same time. All that it is told are public facts that every
        node has signed. Raises: PeerUnavailable, CertificateError.
        """
        ask, dealer = self.site.ask_dealer, side.study.dealer
        mesh = side.mesh
        if ask is None or dealer is None or not isinstance(mesh, AsksEarly) or not mesh.asks_early:
            return
        self._asked = DealerCall(dealer, side.study, mesh.members, openings, side.signatures)
        await ask(self._asked)

    async def ready(
        self, side: NodeSide, openings: tuple[bytes, ...], *, ahead: bool = False
    ) -> None:
        """Everything before the data.

        Args: ahead: all material is fetched, so that the dealer is not needed again.
        """
        self._side = side
        self._openings = openings
        study = side.study
        if side.mesh is not None:
            async with self._step("prepare", study.seconds_per_step):
                await self._ready_mesh(side.mesh, ahead)
        if study.shufflers:
            attempt = side.attempt
            await self.reach_shufflers(
                study, attempt.id, attempt.members, openings, side.signatures
            )

    async def _ready_mesh(self, mesh: MeshSide, ahead: bool) -> None:
        attempt = mesh.attempt
        self._is_small = is_small(attempt)
        self._chunks = await self.briefly(lambda: list(attempt.chunks_of(mesh.index)))
        rounds = self._rounds_over(mesh, None)
        self._rounds = rounds
        if mesh.tosses_early:
            # The coins come from a seed of the node's own, so they need not wait for the dealer.
            await together([self._take_seed(mesh, ahead), self._meet(mesh, rounds)])
        else:
            await self._take_seed(mesh, ahead)
            await self._meet(mesh, rounds)
        rounds.material = self._reader
        await self._draw_noise(rounds)
        if ahead and attempt.makes_ahead:
            await self._make_ahead(mesh, rounds)
        elif self._spool:
            await self._fetch_all(self._spool)
        elif self._reader:
            await self._reader.prefetched()

    async def _meet(self, mesh: MeshSide, rounds: Rounds) -> None:
        """Connect to all peers, set up transfers, and toss the committee's coins over them."""
        await self._connect(mesh, mesh.attempt.study, mesh.attempt.id, self._channels(mesh))
        self._sent_before += self._set_up_before(mesh)
        await together(rounds.set_up(peer) for peer in mesh.peers)
        failpoint("after-set-up")
        if not self._take_coins(mesh):
            await rounds.toss()
        self._has_met = True

    def _take_coins(self, mesh: MeshSide) -> bool:
        """Use coins that were tossed before over a channel of this run, if there are any.

        Both ends of the channel have them, or neither. Garbled studies have channels beside those
        of the committee, too; coins of these serve nobody. Returns: whether there are any.
        """
        attempt = mesh.attempt
        plan = attempt.toss_plan
        if plan is None or not isinstance(mesh, TakesChannels):
            return False
        for peer, link in self._links.items():
            coins = link.channel.coins if link.channel is not None else None
            if coins is not None and coins.plan == plan and attempt.tosses(mesh.index, peer):
                mesh.take_coins(coins.shares)
                member = attempt.committee.index(mesh.index)
                self._sent_before += bytes_of_toss(plan, member)
                log.debug("the coins with %s are from after an earlier study", link.peer)
                return True
        return False

    async def _take_seed(self, mesh: MeshSide, ahead: bool) -> None:
        seed = await self._open_material(mesh, ahead)
        await self.briefly(mesh.receive_seed, seed)

    def _rounds_over(self, mesh: MeshSide, material: MaterialReader | Spool | None) -> Rounds:
        workers = self.site.workers
        return Rounds(
            mesh, self._links, material, self.in_thread, self._tell, workers, self.briefly
        )

    async def _open_material(self, mesh: MeshSide, ahead: bool) -> bytes:
        """The node's seed: the dealer's, or its own where nothing is dealt."""
        attempt = mesh.attempt
        if not attempt.needs_dealer:
            self._close_dealer()
            return os.urandom(SEED_BYTES)
        if ahead:
            self._spool = await self.in_thread(self._open_spool, mesh, dealt_bytes)
        asked = (self._asked,) if self._asked is not None else ()
        self._reader = await self.site.open_material(
            attempt, self._openings, self.side.signatures, self._chunks, *asked
        )
        seed = await self._reader.seed()
        self._reader.on_violation(self.guard.note)
        self._pump = asyncio.create_task(self._reader.pump())
        return seed

    def _open_spool(self, mesh: MeshSide, size_of: Callable[[Any, int, int], int]) -> Spool:
        """Room for this node's material, except that of the noise, which is used at once.

        Args: size_of: the bytes of a chunk's material, from its plan, party and number of edges.
        """
        attempt = mesh.attempt
        sizes = (
            size_of(attempt.plan(chunk), chunk.parties.index(mesh.index), chunk.count) + TAG_BYTES
            for chunk in self._chunks
            if not chunk.noise
        )
        return self.site.open_spool(attempt.study, sum(sizes))

    def _channels(self, mesh: MeshSide) -> dict[int, ChannelsOfKind]:
        """For each peer to which a channel that was made before may serve this run, these."""
        if self.site.channels is None or not isinstance(mesh, TakesChannels):
            return {}
        kind = ChannelsOfKind(self.site.channels, mesh.checks_channels)
        return dict.fromkeys(mesh.channel_peers, kind)

    def _set_up_before(self, mesh: MeshSide) -> int:
        """The bytes that set up the channels which this attempt uses, after an earlier study."""
        attempt, index = mesh.attempt, mesh.index
        frames = [
            frame_of(shape, (min(index, peer), max(index, peer)), 0)
            for peer, link in self._links.items()
            if link.channel is not None
            for shape in backend_of(attempt.study).set_up_shapes(attempt, index, peer)
        ]
        return sum(frame.wire_bytes for frame in frames)

    async def _connect(
        self,
        mesh: MeshSide,
        study: Study,
        meeting: bytes,
        channels: Mapping[int, ChannelsOfKind] = NO_CHANNELS,
    ) -> None:
        """Links to all peers of a meeting. Args: channels: for each peer those of use, if any."""
        window = mesh.attempt.program.window

        async def link(peer: int) -> None:
            connect = self.site.dial if mesh.index < peer else self.site.await_link
            name = study.nodes[peer].name
            self._connecting.add(name)
            given = (channels[peer],) if peer in channels else ()
            self._links[peer] = await connect(study, peer, meeting, *given)
            self._connecting.discard(name)
            self._links[peer].window = window
            self._links[peer].on_violation(self.guard.note)

        await together(link(peer) for peer in mesh.peers)

    async def _draw_noise(self, rounds: Rounds) -> None:
        """The committee's coins from the dealer's material, before any data are touched."""
        noise = [chunk for chunk in self._chunks if chunk.noise]
        self._chunks = self._chunks[len(noise) :]
        await evaluate_chunks(rounds, noise)
        self._count_as_prepared()

    async def _make_ahead(self, mesh: MeshSide, rounds: Rounds) -> None:
        """The rounds of all chunks that need no data. The run then does the others only."""
        self._spool = await self.in_thread(self._open_spool, mesh, TriplesPlan.triples_bytes)
        await rounds.make_ahead([replace(each, part=AHEAD) for each in self._chunks], self._spool)
        self._chunks = [replace(each, part=AFTER) for each in self._chunks]
        self._count_as_prepared()

    def _count_as_prepared(self) -> None:
        """All that was sent to other nodes so far needed no data."""
        self._sent_before += self._sent()
        for link in self._links.values():
            link.rounds_used.clear()
            link.sent.clear()

    async def _fetch_all(self, spool: Spool) -> None:
        """All material onto the disk. The dealer's stream ends with the run."""
        if self._reader is None:
            return
        for done in range(len(self._chunks)):
            await self.in_thread(spool.add, await self._reader.next())
            failpoint("during-spool")
            if done % PROGRESS_EVERY == PROGRESS_EVERY - 1:
                await self._tell(done + 1, len(self._chunks))

    def park(self, delta: Fraction) -> PreparedAttempt:
        """The attempt for a later run. Spool and side are no longer this run's."""
        self._is_parked = True
        chains = NO_CHAINS
        if self.site.channels is not None:
            now = self.site.channels.now()
            chains = {peer: chain_of(link, now) for peer, link in self._links.items()}
        offline = self.bytes_offline
        return PreparedAttempt(
            self.side, self._openings, self._chunks, self._spool, offline, delta, chains
        )

    def meet_again(self, prepared: PreparedAttempt, study: Study) -> None:
        """Begin to make links of a new meeting: those of the preparation are gone.

        Their peers are known, so this goes on while the members agree. Args: as of `resume`.
        """
        mesh = prepared.side.mesh
        if mesh is not None:
            meeting = digest(b"umpc links of a prepared run 1", mesh.attempt.id)
            self._meeting = asyncio.create_task(self._connect(mesh, study, meeting))
            # A run that fails before it needs the links has a reason of its own.
            self._meeting.add_done_callback(lambda made: made.cancelled() or made.exception())

    async def resume(self, prepared: PreparedAttempt, study: Study) -> None:
        """Go on with what was prepared, over links of a new meeting.

        Args: study: as it was proposed for the run, perhaps with other addresses.
        """
        self._side = prepared.side
        self._chunks = prepared.chunks
        self._spool = prepared.spool
        self._received_before = prepared.bytes_offline
        self._chains = prepared.chains
        mesh = prepared.side.mesh
        if mesh is None:
            return
        self._is_small = is_small(mesh.attempt)
        if self._meeting is None:
            self.meet_again(prepared, study)
        async with self._step("prepare", study.seconds_per_step):
            if self._meeting is not None:
                await self._meeting
            if self._spool:
                await self._spool.read_ahead(WINDOW_BYTES)
        self._rounds = self._rounds_over(mesh, self._spool)
        self._has_met = True

    # --- evaluate ------------------------------------------------------------------------------

    def work_ahead(self) -> None:
        """Begin work on no data in the thread; later computations there wait for it."""
        mesh = self.side.mesh
        if isinstance(mesh, WorksAhead):
            self._ahead = asyncio.create_task(self.in_thread(mesh.work_ahead))

    async def evaluate(self, signatures: Sequence[bytes]) -> None:
        """The rounds with other nodes, and the work on the node's own records.

        Args: signatures: every node's, of the attempt; nothing uses data before they are checked.
        """
        side = self.side
        if self._ahead is not None:
            await self._ahead
        await self.briefly(side.check_prepared, signatures)
        async with self._step("evaluate", side.study.seconds_per_step):
            if side.mesh is not None and self._rounds is not None:
                rounds = self._rounds
                rounds.begin_step("evaluate")
                await together(rounds.exchange_fields(peer) for peer in side.mesh.peers)
                failpoint("after-fields")
                await evaluate_chunks(rounds, self._chunks)
            steps = side.own_steps()
            while await self.briefly(_goes_on, steps):
                pass

    # --- shufflers -----------------------------------------------------------------------------

    async def reach_shufflers(
        self,
        study: Study,
        attempt: bytes,
        members: Sequence[Member],
        openings: Sequence[bytes],
        signatures: Sequence[bytes],
    ) -> None:
        """Streams to all shufflers, each of which has then derived the attempt and waits."""
        self.delivery = ShufflerStreams(study, attempt, members, openings, signatures)
        await self.site.open_delivery(self.delivery)

    def check_delivery(self, kept: m.Released | m.Delivery) -> None:
        """The last look before the charge: no violation, and shufflers that take what goes to them.

        Raises: the violation; PeerLost where a shuffler is gone.
        """
        self.guard.settle()
        if isinstance(kept, m.Released):
            return
        if self.delivery is None:
            raise LocalProtocolError("the shufflers were not reached before the charge")
        self.delivery.check()

    async def deliver(self, study: Study, kept: m.Delivery) -> tuple[m.StepBytes, ...]:
        """The kept message to all shufflers, until each has its part."""
        if self.delivery is None:
            raise LocalProtocolError("the shufflers were not reached before the delivery")
        node = study.index_of(self.site.name)
        places = range(len(study.shufflers))
        frames = await self.in_thread(
            lambda: [list(frames_to(place, node, study, kept)) for place in places]
        )
        return await self.delivery.send(frames)

    # --- cost, and the end ---------------------------------------------------------------------

    @property
    def bytes_offline(self) -> int:
        """Bytes received from the dealer and sent to peers before the data, whenever that was."""
        dealt = self._reader.bytes_received if self._reader else 0
        return self._received_before + self._sent_before + dealt

    @property
    def bytes_online_by_round(self) -> tuple[m.StepBytes, ...]:
        sent = self._with_coordinator.copy()
        for link in self._links.values():
            sent.update(link.sent)
        return sent_by_round(sent)

    @property
    def rounds_used(self) -> int:
        between_nodes = {used for link in self._links.values() for used in link.rounds_used}
        return len(between_nodes) + bool(self._with_coordinator)

    def count_with_coordinator(self, frame: Frame) -> None:
        """Count a frame to or from the coordinator. A vector and its total are one round."""
        self._with_coordinator[frame.step, frame.round] += frame.wire_bytes

    def _step(self, step: str, seconds: float) -> AbstractAsyncContextManager[None]:
        """Limit the time of a step. When it is up, note who is missing before all waiting ends."""

        def note() -> None:
            self.missing = self._waited_for(step)

        return time_limit(seconds, note)

    def _waited_for(self, step: str) -> list[str]:
        """The names whose messages are missing. The dealer's is missing if no peer's is."""
        names = sorted(self._connecting)
        names += [link.peer for link in self._links.values() if link.is_awaited]
        if self._reader is not None and (self._reader.is_awaited or step == "prepare"):
            names.append(self._reader.dealer)
        return names

    def _sent(self) -> int:
        return sum(link.bytes_sent for link in self._links.values())

    def end(self) -> None:
        """End the run. A run that ended well makes channels for the next study before `close`.

        A preparation leaves that to its run, which may follow at once.
        """
        ended = self._ended_links()
        channels = self.site.channels if ended else None
        if channels is None:
            self.close()
            return
        self._close_dealer()

        async def close(made: bool) -> None:
            self.ended_well = made
            if made:
                await asyncio.gather(*(link.finish() for link in self._links.values()))
            self.close()
            await asyncio.gather(*(link.ended() for link in self._links.values()))

        names = [each.link.peer for each in ended]
        making = make_channels(channels, ended, self.in_thread, close, self._toss_ahead)
        channels.make(names, making)

    async def _toss_ahead(self, ended: EndedLink, made: Channel) -> TossedCoins | None:
        """Toss the coins of this run's law for the next one, over a channel that was just made.

        Returns: this member's shares; None unless both ends are this run's committee.
        """
        mesh = self.side.mesh
        plan = mesh.attempt.toss_plan if mesh is not None else None
        if mesh is None or plan is None or not is_tossed_ahead(plan):
            return None
        if not mesh.attempt.tosses(*ended.owners):
            return None
        own, owners = self.site.name, ended.owners
        shares = await toss_ahead(ended.link, made, own, plan, owners, self.briefly)
        return TossedCoins(plan, shares)

    def _ended_links(self) -> list[EndedLink]:
        """The links over which this run makes channels for the next study."""
        mesh = self._side.mesh if self._side is not None else None
        if not self.ended_well or not self._has_met or self._is_parked or mesh is None:
            return []
        place = mesh.index, self.site.name, mesh.attempt.id
        return ended_links(self.site.channels, mesh, *place, self._links, self._chains)

    def _close_dealer(self) -> None:
        if self._pump:
            self._pump.cancel()
        if self._reader:
            self._reader.close(keep=self.ended_well)
        elif self._asked:
            self._asked.close()

    def close(self) -> None:
        """End everything that belongs to this run; what waits prepared does not."""
        self._close_dealer()
        if self._meeting is not None:
            self._meeting.cancel()
        if self._spool and not self._is_parked:
            self._spool.close()
        for link in self._links.values():
            link.close(keep=self.ended_well)
        if self._links and not self.ended_well and self.site.channels is not None:
            self.site.channels.drop([link.peer for link in self._links.values()])
        if self.delivery:
            self.delivery.close()
        self._is_closed = True
        if self._ahead is not None:
            self._ahead.cancel()
        if self._calls is not None and self._thread is not None:
            self._calls.close()
            COMPUTE_THREADS.give_back(self._thread)
            self._calls = self._thread = None


def is_small(attempt: SharedAttempt) -> bool:
    """Whether work in proportion to the attempt's records, edges or cells takes a moment only."""
    return attempt.size <= SMALL_STUDY


def _goes_on(steps: Iterator[None]) -> bool:
    """Take one step. Returns: whether there was one."""
    for _ in steps:
        return True
    return False
