"""The runner of an attempt at one node: its course, step by step.

    ready(side, openings)   prepare: seed, links, transfers, noise; the material read ahead up to a
                            window, or with ahead=True all of it onto the disk, for a later run,
                            be it dealt or made by the nodes
    resume(prepared)        prepare, for what an earlier run prepared: links only
    evaluate()              evaluate: records, then chunk by chunk

| part of a run | file |
|---|---|
| what it needs of its process | `site.py` |
| the preparation, where there are peers | `mesh_preparation.py` |
| computation | `run_compute.py` |
| links to the other nodes | `run_links.py` |
| the dealer's material, or the nodes' own | `run_material.py` |
| channels of transfers, taken and made | `run_channels.py` |
| delivery to shufflers | `run_delivery.py` |
| bytes and rounds, counted | `run_traffic.py` |

A side without a mesh talks to no other node. Its attempt then needs none of the above but its own
steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from fractions import Fraction

from umpc.crypto.prg import digest
from umpc.errors import LocalProtocolError
from umpc.failpoints import failpoint
from umpc.mpc.chunks import Chunk
from umpc.node.attempts.guard import ViolationGuard
from umpc.node.attempts.material import MaterialReader
from umpc.node.attempts.mesh_preparation import MeshPreparation, RunParts
from umpc.node.attempts.prepared_attempts import PreparedAttempt
from umpc.node.attempts.rounds import Rounds
from umpc.node.attempts.run_channels import RunChannels
from umpc.node.attempts.run_compute import RunCompute, is_small
from umpc.node.attempts.run_delivery import RunDelivery
from umpc.node.attempts.run_links import RunLinks
from umpc.node.attempts.run_material import RunMaterial
from umpc.node.attempts.run_traffic import RunTraffic
from umpc.node.attempts.running_chunks import evaluate_chunks
from umpc.node.attempts.site import Site
from umpc.node.attempts.spool import Spool
from umpc.protocols.base.node import MeshSide, NodeSide, WorksAhead
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.transport.patience import time_limit


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
