"""A node's side of U-MPC: its records' edges with other nodes, and the noisy share.

    side.begin(openings), …                prepare (`preparing_node.py`)
    side.fields_for(peer) / receive_fields evaluate, round 1: records, masked or as labels
    side.protocol(chunk, material)         the rounds of a chunk
    side.own_steps()                       edges inside the node, in the clear
    side.release()                         release: the noisy share

`add` may be called from another thread than the rest: results are appended to a list, never added
in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from umpc.crypto.mesh import Mesh
from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import Message, Protocol
from umpc.crypto.signing import Credentials
from umpc.errors import LocalProtocolError
from umpc.mpc.backends import backend_of
from umpc.mpc.chunks import AHEAD, Chunk
from umpc.mpc.garbled.cells import GarbledCells
from umpc.mpc.masked.cells import SharedCells
from umpc.mpc.masked.tasks import OwnerBatch
from umpc.protocols.base.node import MeshSide
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.u_mpc.preparing_node import PreparingNode
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.ustat.clear import Columns
from umpc.ustat.hypergraph import Owners

INNER_CHUNK = 1 << 17
"""Edges inside the node that are evaluated at once."""


class UMpcNode(PreparingNode):
    """One node, one study, one attempt. Args: as in SeedAgreement."""

    def __init__(
        self, own: Credentials, study: Study, columns: Columns, records: int, entropy: Entropy
    ):
        super().__init__(own, study, columns, records, entropy)
        self._begun: set[Chunk] = set()
        self._chunks_added = 0
        self._inner_begun = False
        self._inner_done = False
        self._is_released = False

    @property
    def mesh(self) -> MeshSide:
        return self

    # --- evaluate ------------------------------------------------------------------------------

    @property
    def has_work_ahead(self) -> bool:
        """Whether `work_ahead` does anything."""
        return isinstance(self._cells, GarbledCells)

    def work_ahead(self) -> None:
        """Do what *evaluate* needs and depends on no record, while the coordinator is awaited."""
        if isinstance(self._cells, GarbledCells):
            self._cells.work_ahead()

    def fields_for(self, peer: int) -> list[Message]:
        """Round 1: this node's records that occur in an edge with the peer, masked or as labels."""
        return self.cells.fields_for(peer)

    def due_fields(self, peer: int) -> list[Message]:
        """The messages that the peer must send in round 1, without their content."""
        return backend_of(self.study).field_shapes(self.attempt, peer, self.index)

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """Round 1 from a peer.

        Raises: EncodingError or RemoteProtocolError where not exactly its records came.
        """
        self.cells.receive_fields(peer, messages)

    def protocol(
        self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash
    ) -> Protocol[Any] | Mesh[Any]:
        """The rounds of one chunk, once; the result goes to `add`.

        Raises: EncodingError on malformed material.
        """
        with self._beginning(chunk):
            return self.cells.protocol(chunk, material, tree_hash)

    def batch(self, chunks: Sequence[Chunk], materials: Sequence[bytes]) -> OwnerBatch | None:
        """The rounds of a chunk, or of small ones, as a value, once, in place of `protocol`.

        None where this backend's chunks share a state, or a subclass evaluates them in its own way:
        only this process evaluates those, by `protocol`.
        """
        if self._evaluates_in_own_way or not isinstance(self.cells, SharedCells):
            return None
        with self._beginning(*chunks):
            return self.cells.batch(chunks, materials)

    @property
    def _evaluates_in_own_way(self) -> bool:
        return type(self).protocol is not UMpcNode.protocol

    @contextmanager
    def _beginning(self, *chunks: Chunk) -> Iterator[None]:
        """Begin chunks, each once, whether or not its triples were made before."""
        work = {chunk if chunk.part in ("", AHEAD) else replace(chunk, part="") for chunk in chunks}
        is_new = len(work) == len(chunks) and self._begun.isdisjoint(work)
        if not is_new or not all(map(self.cells.is_ready, chunks)):
            raise LocalProtocolError("a chunk is evaluated once, after its peers' records came")
        yield
        self._begun |= work

    def add(self, chunk: Chunk, shares: Any) -> None:
        """A chunk's result: its share of each sum, or of noise its share of the noise's own sum."""
        if chunk.noise:
            sums = range(len(self.study.kernels))
            shares = [shares[0] * (number == chunk.sum) for number in sums]
        self._keep(chunk, shares)
        self._chunks_added += 1

    def _keep(self, chunk: Chunk, shares: Any) -> None:
        self._parts.append(shares)

    def own_steps(self) -> Iterator[None]:
        """The edges inside this node, in the clear, at most INNER_CHUNK at a step."""
        if self._inner_begun:
            raise LocalProtocolError("the edges inside this node were evaluated before")
        self._inner_begun = True
        owners = (self.index,) * self.study.degree
        cell = self.attempt.hypergraph.cells.get(owners)
        count = cell.count if cell else 0
        step = self._edges_at_once
        for start in range(0, count, step):
            if cell is None:
                break
            index = cell.edges(start, min(start + step, count))
            records = [
                {name: column.take(side) for name, column in self.columns.items()} for side in index
            ]
            values = [kernel.evaluate(records) for kernel in self.study.parsed_kernels]
            self._keep_inner(owners, start, values)
            yield
        self._inner_done = True

    @property
    def _edges_at_once(self) -> int:
        return INNER_CHUNK

    def _keep_inner(self, owners: Owners, start: int, values: list[np.ndarray]) -> None:
        totals = [int(column.view(np.uint64).sum(dtype=np.uint64)) for column in values]
        self._parts.append(totals)

    # --- release -------------------------------------------------------------------------------

    def release(self) -> m.Released:
        """The noisy shares under their zero shares, once.

        They are uniform to everybody, and the shares of all nodes add up to sum + noise.
        """
        if self._is_released:
            raise LocalProtocolError("the share was released before")
        due = sum(1 for _ in self.attempt.chunks_of(self.index))
        if self._chunks_added != due or not self._inner_done:
            raise LocalProtocolError(
                f"{self._chunks_added} of {due} chunks are evaluated; the share is not complete"
            )
        if self._tossed != self.attempt.tosses(self.index):
            raise LocalProtocolError(
                "the committee's coins were not tossed; the share has no noise"
            )
        self._is_released = True
        return self._released(self._share())

    def _share(self) -> bytes:
        return self._encoded(self._totals())

    def _encoded(self, totals: Sequence[int]) -> bytes:
        """Numbers as elements of the ring."""
        ring = self.attempt.ring
        return b"".join(ring.encode(total).to_bytes(ring.bytes, "little") for total in totals)

    def _totals(self) -> list[int]:
        """The node's share of each sum, with its noise and its zero share."""
        return list(map(sum, zip(*self._parts, self.noise, self._zeros, strict=True)))
