"""The material of one run: asked of the dealer, read as it comes, or kept on disk for a later run.

A node that makes its material with the other nodes keeps that on disk by the same means.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from umpc.crypto.prg import SEED_BYTES
from umpc.failpoints import failpoint
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk
from umpc.node.attempts.guard import ViolationGuard
from umpc.node.attempts.material import (
    WINDOW_BYTES,
    DealerCall,
    DealerLine,
    MaterialReader,
    request_of,
)
from umpc.node.attempts.rounds import PROGRESS_EVERY
from umpc.node.attempts.run_compute import RunCompute
from umpc.node.attempts.site import Site
from umpc.node.attempts.spool import TAG_BYTES, Spool
from umpc.protocols.base.node import AsksEarly, MeshSide, NodeSide


class RunMaterial:
    """The material of one run. Args: guard: takes note of the dealer's violation."""

    def __init__(self, compute: RunCompute, guard: ViolationGuard):
        self.reader: MaterialReader | None = None
        """The dealer's stream, once it is open."""
        self.spool: Spool | None = None
        """The material on disk, where it is fetched or made ahead of the data."""
        self._compute = compute
        self._guard = guard
        self._line: DealerLine | None = None
        self._dialled: asyncio.Task[None] | None = None
        self._asked: DealerCall | None = None
        self._pump: asyncio.Task[None] | None = None

    @property
    def bytes_received(self) -> int:
        return self.reader.bytes_received if self.reader else 0

    def dial(self, site: Site, side: NodeSide) -> None:
        """Begin to connect to the dealer, where a study surely needs one, once the members agree.

        The coordinator waits for the other nodes meanwhile, and the dealer has nothing to do. One
        that cannot be reached is told of when it is asked.
        """
        dial, dealer, mesh = site.dial_dealer, side.study.dealer, side.mesh
        if dial is None or dealer is None or not isinstance(mesh, AsksEarly) or not mesh.asks_early:
            return
        self._line = DealerLine(dealer, side.study)
        self._dialled = asyncio.create_task(dial(self._line))
        self._dialled.add_done_callback(_look_away)

    async def ask_dealer(self, side: NodeSide, openings: tuple[bytes, ...]) -> None:
        """Ask the dealer that was dialled for material, before E is expanded.

        The dealer then expands E at the same time. All that it is told are public facts that every
        node has signed. Raises: PeerUnavailable, CertificateError.
        """
        mesh = side.mesh
        if self._line is None or self._dialled is None or not isinstance(mesh, AsksEarly):
            return
        request = request_of(side.study, mesh.members, openings, side.signatures)
        call = DealerCall(self._line, request)
        await self._dialled
        await call.ask()
        self._asked = call

    async def open(
        self,
        site: Site,
        attempt: SharedAttempt,
        openings: tuple[bytes, ...],
        signatures: tuple[bytes, ...],
        chunks: list[Chunk],
    ) -> bytes:
        """Begin to read. Returns: the node's seed: the dealer's, or its own if nothing is dealt."""
        if not attempt.needs_dealer:
            self.hang_up()
            return os.urandom(SEED_BYTES)
        facts = attempt, openings, signatures, chunks
        self.reader = await site.open_material(*facts, self._asked)
        seed = await self.reader.seed()
        self.reader.on_violation(self._guard.note)
        self._pump = asyncio.create_task(self.reader.pump())
        return seed

    async def open_spool(
        self,
        site: Site,
        mesh: MeshSide,
        chunks: Sequence[Chunk],
        size_of: Callable[[Any, int, int], int],
    ) -> Spool:
        """Room for this node's material, except that of the noise, which is used at once.

        Args: size_of: the bytes of a chunk's material, from its plan, party and number of edges.
        """
        attempt = mesh.attempt

        def opened() -> Spool:
            sizes = (
                size_of(attempt.plan(chunk), chunk.parties.index(mesh.index), chunk.count)
                + TAG_BYTES
                for chunk in chunks
                if not chunk.noise
            )
            return site.open_spool(attempt.study, sum(sizes))

        self.spool = await self._compute.in_thread(opened)
        return self.spool

    async def ready(self, chunks: int, tell: Callable[[int, int], Awaitable[None]]) -> None:
        """All of it on disk, if there is room for that, or as much as the window holds.

        Args: chunks: whose material is still to come. tell: reports progress, as (done, of).
        """
        if self.reader is None:
            return
        if self.spool is None:
            await self.reader.prefetched()
            return
        # The dealer's stream ends with the run.
        for done in range(chunks):
            await self._compute.in_thread(self.spool.add, await self.reader.next())
            failpoint("during-spool")
            if done % PROGRESS_EVERY == PROGRESS_EVERY - 1:
                await tell(done + 1, chunks)

    async def read_ahead(self) -> None:
        """Begin to read what an earlier run put on disk."""
        if self.spool:
            await self.spool.read_ahead(WINDOW_BYTES)

    def waited_for(self, step: str) -> list[str]:
        """The dealer's name, if its material is missing or may be, as in the step *prepare*."""
        if self.reader is not None and (self.reader.is_awaited or step == "prepare"):
            return [self.reader.dealer]
        return []

    def hang_up(self) -> None:
        """End the call to the dealer."""
        if self._pump:
            self._pump.cancel()
        if self._dialled:
            self._dialled.cancel()
        if self.reader:
            self.reader.close()
        elif self._line:
            self._line.close()

    def close(self, *, keep_spool: bool) -> None:
        """End all of it. Args: keep_spool: what is on disk stays."""
        self.hang_up()
        if self.spool and not keep_spool:
            self.spool.close()


def _look_away(dialled: asyncio.Task[None]) -> None:
    """A dealer that nobody asks any more need not have answered."""
    if not dialled.cancelled():
        dialled.exception()
