"""All that a node with peers does before the data: seed, links, transfers, noise, material."""

from __future__ import annotations

from dataclasses import dataclass, replace

from umpc.failpoints import failpoint
from umpc.mpc.chunks import AFTER, AHEAD, Chunk
from umpc.mpc.masked.material import dealt_bytes
from umpc.mpc.triples.plan import TriplesPlan
from umpc.node.attempts.rounds import Rounds
from umpc.node.attempts.run_channels import RunChannels
from umpc.node.attempts.run_compute import RunCompute
from umpc.node.attempts.run_links import RunLinks
from umpc.node.attempts.run_material import RunMaterial
from umpc.node.attempts.run_traffic import RunTraffic
from umpc.node.attempts.running_chunks import evaluate_chunks
from umpc.node.attempts.site import Site
from umpc.protocols.base.node import MeshSide
from umpc.transport.structured_concurrency import together


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
