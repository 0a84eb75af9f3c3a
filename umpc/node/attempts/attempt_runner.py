"""The runner of an attempt at one node: its course, step by step.

    ready(side, openings)   prepare: seed, links, transfers, noise; the material read ahead up to a
                            window, or with ahead=True all of it onto the disk, for a later run,
                            be it dealt or made by the nodes
    resume(prepared)        prepare, for what an earlier run prepared: links only
    evaluate()              evaluate: records, then chunk by chunk

| part of a run | file |
|---|---|
| what it needs of its process | `site.py` |
| computation; the dealer's material, or the nodes' own | `run_material.py` |
| links to the other nodes; channels of transfers, taken and made | `run_channels.py` |
| bytes and rounds, counted | `run_channels.py` |
| the preparation, where there are peers; delivery to shufflers | here |

A side without a mesh talks to no other node. Its attempt then needs none of the above but its own
steps.

*Mesh preparation.* All that a node with peers does before the data: seed, links, transfers, noise,
material.

*Run delivery.* The delivery of one run to the study's shufflers: reached before the charge, sent
after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from fractions import Fraction

from umpc.crypto.prg import digest
from umpc.errors import LocalProtocolError
from umpc.failpoints import failpoint
from umpc.mpc.chunks import AFTER, AHEAD, Chunk
from umpc.mpc.masked.material import dealt_bytes
from umpc.mpc.triples.plan import TriplesPlan
from umpc.node.attempts.delivery import ShufflerStreams
from umpc.node.attempts.material import MaterialReader
from umpc.node.attempts.prepared_attempts import PreparedAttempt
from umpc.node.attempts.rounds import Rounds
from umpc.node.attempts.run_channels import RunChannels, RunLinks, RunTraffic
from umpc.node.attempts.run_material import RunCompute, RunMaterial, ViolationGuard, is_small
from umpc.node.attempts.running_chunks import evaluate_chunks
from umpc.node.attempts.site import Site
from umpc.node.attempts.spool import Spool
from umpc.protocols.base.node import MeshSide, NodeSide, WorksAhead
from umpc.protocols.registry import protocol_of
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.sizes import Member
from umpc.transport.patience import time_limit, together


class AttemptRunner:
    """Args: tell: reports progress of the step, as (done, of)."""

    def __init__(self, site: Site, tell: Callable[[int, int], Awaitable[None]]):
        self.site = site
        self.guard = ViolationGuard()
        self.compute = RunCompute()
        self.links = RunLinks(self.guard)
        self.material = RunMaterial(self.compute, self.guard)
        self.traffic = RunTraffic(self.links, self.material)
        self.channels = RunChannels(self.links, self.traffic, self.compute)
        self.delivery = RunDelivery(self.compute)
        self._tell = tell
        self._has_met = False
        """This run, or the preparation that it goes on with, has set up transfers if due."""
        self._side: NodeSide | None = None
        self._openings: tuple[bytes, ...] = ()
        self._chunks: list[Chunk] = []
        self._rounds: Rounds | None = None
        self._ahead: asyncio.Task[None] | None = None
        self._is_parked = False
        self.ended_well = False
        """The run has taken all its steps, so its connections may serve another one."""
        self.missing: list[str] = []
        """The names whose messages were missing when the time of a step was up."""

    @property
    def side(self) -> NodeSide:
        if self._side is None:
            raise LocalProtocolError("the attempt has no side before it is ready")
        return self._side

    # --- prepare -------------------------------------------------------------------------------

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
            facts = attempt.id, attempt.members, openings, side.signatures
            await self.delivery.reach(self.site, study, *facts)

    async def _ready_mesh(self, mesh: MeshSide, ahead: bool) -> None:
        self.compute.is_small = is_small(mesh.attempt)
        parts = RunParts(self.compute, self.links, self.material, self.traffic, self.channels)
        rounds = self._rounds = self._rounds_over(mesh, None)
        facts = rounds, self._openings, self.side.signatures
        self._chunks = await MeshPreparation(self.site, parts, *facts).ready(ahead=ahead)
        self._has_met = True

    def _rounds_over(self, mesh: MeshSide, material: MaterialReader | Spool | None) -> Rounds:
        in_thread, briefly = self.compute.in_thread, self.compute.briefly
        workers = self.site.workers
        return Rounds(mesh, self.links.made, material, in_thread, self._tell, workers, briefly)

    def park(self, delta: Fraction) -> PreparedAttempt:
        """The attempt for a later run. Spool and side are no longer this run's."""
        self._is_parked = True
        chains = self.channels.chains_now(self.site)
        spool, offline = self.material.spool, self.traffic.bytes_offline
        return PreparedAttempt(
            self.side, self._openings, self._chunks, spool, offline, delta, chains
        )

    def meet_again(self, prepared: PreparedAttempt, study: Study) -> None:
        """Begin to make links of a new meeting: those of the preparation are gone.

        Their peers are known, so this goes on while the members agree. Args: as of `resume`.
        """
        mesh = prepared.side.mesh
        if mesh is not None:
            meeting = digest(b"umpc links of a prepared run 1", mesh.attempt.id)
            self.links.begin_to_connect(self.site, mesh, study, meeting)

    async def resume(self, prepared: PreparedAttempt, study: Study) -> None:
        """Go on with what was prepared, over links of a new meeting.

        Args: study: as it was proposed for the run, perhaps with other addresses.
        """
        self._side = prepared.side
        self._chunks = prepared.chunks
        self.traffic.count_earlier(prepared.bytes_offline)
        self.material.spool = prepared.spool
        self.channels.chains = prepared.chains
        mesh = prepared.side.mesh
        if mesh is None:
            return
        self.compute.is_small = is_small(mesh.attempt)
        if not self.links.has_begun:
            self.meet_again(prepared, study)
        async with self._step("prepare", study.seconds_per_step):
            await self.links.connected()
            await self.material.read_ahead()
        self._rounds = self._rounds_over(mesh, prepared.spool)
        self._has_met = True

    # --- evaluate ------------------------------------------------------------------------------

    def work_ahead(self) -> None:
        """Begin work on no data in the thread; later computations there wait for it."""
        mesh = self.side.mesh
        if isinstance(mesh, WorksAhead) and mesh.has_work_ahead:
            self._ahead = asyncio.create_task(self.compute.in_thread(mesh.work_ahead))

    async def evaluate(self, signatures: Sequence[bytes]) -> None:
        """The rounds with other nodes, and the work on the node's own records.

        Args: signatures: every node's, of the attempt; nothing uses data before they are checked.
        """
        side = self.side
        if self._ahead is not None:
            await self._ahead
        await self.compute.briefly(side.check_prepared, signatures)
        async with self._step("evaluate", side.study.seconds_per_step):
            if side.mesh is not None and self._rounds is not None:
                rounds = self._rounds
                rounds.begin_step("evaluate")
                await rounds.exchange_fields(*side.mesh.peers)
                failpoint("after-fields")
                await evaluate_chunks(rounds, self._chunks)
            steps = side.own_steps()
            while await self.compute.briefly(_goes_on, steps):
                pass

    def check_delivery(self, kept: m.Released | m.Delivery) -> None:
        """The last look before the charge: no violation, and shufflers that take what goes to them.

        Raises: the violation; PeerLost where a shuffler is gone.
        """
        self.guard.settle()
        if isinstance(kept, m.Delivery):
            self.delivery.check()

    def _step(self, step: str, seconds: float) -> AbstractAsyncContextManager[None]:
        """Limit the time of a step. When it is up, note who is missing before all waiting ends."""

        def note() -> None:
            self.missing = self.links.waited_for() + self.material.waited_for(step)

        return time_limit(seconds, note)

    # --- the end -------------------------------------------------------------------------------

    def end(self) -> None:
        """End the run. A run that ended well makes channels for the next study before `close`.

        A preparation leaves that to its run, which may follow at once.
        """
        if self._makes_channels():
            self.material.hang_up()
        else:
            self.close()

    def _makes_channels(self) -> bool:
        """Begin to make channels, if any are due; the run is closed when they are made."""
        mesh = self._side.mesh if self._side is not None else None
        if mesh is None or self._is_parked or not (self.ended_well and self._has_met):
            return False
        return self.channels.make_next(self.site, mesh, self._close_later)

    async def _close_later(self, made: bool) -> None:
        """End the run over whose links channels were made, or could not be."""
        self.ended_well = made
        if made:
            await self.links.finish()
        self.close()
        await self.links.ended()

    def close(self) -> None:
        """End this run, and not what waits prepared."""
        self.material.close(keep_spool=self._is_parked)
        self.links.close()
        if self.links.made and not self.ended_well and self.site.channels is not None:
            self.site.channels.drop(self.links.names)
        self.delivery.close()
        if self._ahead is not None:
            self._ahead.cancel()
        self.compute.close()


def _goes_on(steps: Iterator[None]) -> bool:
    """Take one step. Returns: whether there was one."""
    for _ in steps:
        return True
    return False


# --- mesh preparation -----------------------------------------------------------------------------


@dataclass(frozen=True)
class RunParts:
    """The parts of a run that its preparation uses."""

    compute: RunCompute
    links: RunLinks
    material: RunMaterial
    traffic: RunTraffic
    channels: RunChannels


class MeshPreparation:
    """The preparation of one attempt.

    Args:
        rounds: of the attempt, over the run's links.
        openings, signatures: every node's, as the dealer is told them.
    """

    def __init__(
        self,
        site: Site,
        parts: RunParts,
        rounds: Rounds,
        openings: tuple[bytes, ...],
        signatures: tuple[bytes, ...],
    ):
        self._site = site
        self._parts = parts
        self._rounds = rounds
        self._openings = openings
        self._signatures = signatures
        self._chunks: list[Chunk] = []

    async def ready(self, *, ahead: bool) -> list[Chunk]:
        """Do all of it. Returns: the chunks that are left for the data.

        Args: ahead: all material is fetched or made, for a later run.
        """
        mesh, parts, rounds = self._rounds.session, self._parts, self._rounds
        attempt = mesh.attempt
        self._chunks = await parts.compute.briefly(lambda: list(attempt.chunks_of(mesh.index)))
        if mesh.tosses_early:
            # The coins come from a seed of the node's own, so they need not wait for the dealer.
            await together([self._take_seed(mesh, ahead), self._meet(mesh)])
        elif attempt.needs_dealer:
            await together([self._take_seed(mesh, ahead), self._connect(mesh)])
            await self._set_up(mesh)
        else:
            await self._take_seed(mesh, ahead)
            await self._meet(mesh)
        rounds.material = parts.material.reader
        await self._draw_noise()
        if ahead and attempt.makes_ahead:
            await self._make_ahead(mesh)
        else:
            await parts.material.ready(len(self._chunks), rounds.tell)
        return self._chunks

    async def _take_seed(self, mesh: MeshSide, ahead: bool) -> None:
        attempt, chunks, material = mesh.attempt, self._chunks, self._parts.material
        if ahead and attempt.needs_dealer:
            await material.open_spool(self._site, mesh, chunks, dealt_bytes)
        seed = await material.open(self._site, attempt, self._openings, self._signatures, chunks)
        await self._parts.compute.briefly(mesh.receive_seed, seed)

    async def _meet(self, mesh: MeshSide) -> None:
        """Connect to all peers, set up transfers, and toss the committee's coins over them."""
        by_points = self._parts.channels.by_points(self._site, mesh)
        await together([self._connect(mesh), self._rounds.begin_set_up(*by_points)])
        await self._set_up(mesh)

    async def _connect(self, mesh: MeshSide) -> None:
        parts, attempt = self._parts, mesh.attempt
        channels = parts.channels.of_use(self._site, mesh)
        await parts.links.connect(self._site, mesh, attempt.study, attempt.id, channels)

    async def _set_up(self, mesh: MeshSide) -> None:
        """The rounds over the links that need no data. They need the node's seed."""
        self._parts.channels.count_set_up(mesh)
        await self._rounds.set_up(*mesh.peers)
        failpoint("after-set-up")
        await self._rounds.toss()

    async def _draw_noise(self) -> None:
        """The committee's coins from the dealer's material, before any data are touched."""
        noise = [chunk for chunk in self._chunks if chunk.noise]
        self._chunks = self._chunks[len(noise) :]
        await evaluate_chunks(self._rounds, noise)
        self._parts.traffic.count_as_prepared()

    async def _make_ahead(self, mesh: MeshSide) -> None:
        """The rounds of all chunks that need no data. The run then does the others only."""
        spool = await self._parts.material.open_spool(
            self._site, mesh, self._chunks, TriplesPlan.triples_bytes
        )
        await self._rounds.make_ahead([replace(each, part=AHEAD) for each in self._chunks], spool)
        self._chunks = [replace(each, part=AFTER) for each in self._chunks]
        self._parts.traffic.count_as_prepared()


# --- run delivery ---------------------------------------------------------------------------------


class RunDelivery:
    """The streams of one run to shufflers, in studies that have any."""

    def __init__(self, compute: RunCompute):
        self._compute = compute
        self._streams: ShufflerStreams | None = None

    async def reach(
        self,
        site: Site,
        study: Study,
        attempt: bytes,
        members: Sequence[Member],
        openings: Sequence[bytes],
        signatures: Sequence[bytes],
    ) -> None:
        """Streams to all shufflers, each of which has then derived the attempt and waits."""
        self._streams = ShufflerStreams(study, attempt, members, openings, signatures)
        await site.open_delivery(self._streams)

    async def reach_again(self, site: Site, study: Study, kept: m.Delivery) -> None:
        """Streams as of `reach`, for a message that an earlier run kept."""
        facts = kept.attempt, kept.members, kept.openings, kept.signatures
        await self.reach(site, study, *facts)

    def check(self) -> None:
        """Check that the shufflers take what goes to them. Raises: PeerLost where one is gone."""
        self._reached().check()

    async def send(self, site: Site, study: Study, kept: m.Delivery) -> tuple[m.StepBytes, ...]:
        """The kept message to all shufflers, until each has its part."""
        streams = self._reached()
        node = study.index_of(site.name)
        places = range(len(study.shufflers))
        frames = await self._compute.in_thread(
            lambda: [
                list(protocol_of(study).delivered(place, node, study, kept)) for place in places
            ]
        )
        return await streams.send(frames)

    def _reached(self) -> ShufflerStreams:
        if self._streams is None:
            raise LocalProtocolError("the shufflers were not reached before the charge")
        return self._streams

    def close(self) -> None:
        """Hang up; the channels close in the background."""
        if self._streams:
            self._streams.close()
