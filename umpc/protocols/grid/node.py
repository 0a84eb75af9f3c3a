"""The node's side of a grid: one masked histogram in place of edges; all else as in U-MPC.

| step | what is new |
|---|---|
| prepare | the dealer's seed of the mask, and shares of what follows from all masks |
| evaluate | the own records counted by cell; the masked table up, the total down, signatures |
| release | the share of 2·S (6·S over triples), and the noise as often, under zero shares |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.ring import Elements
from umpc.crypto.rounds import Protocol
from umpc.errors import EncodingError, LocalProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk, require
from umpc.mpc.masked.material import dealt_bytes
from umpc.protocols.base.aggregation import NodeAggregation
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.binding import grid_attempt
from umpc.protocols.grid.masked_form import masked_forms
from umpc.protocols.grid.node_table import NodeTable
from umpc.protocols.u_mpc.node import UMpcNode


class GridNode(UMpcNode):
    """One node, one study, one attempt. Args: as in SeedAgreement."""

    _table: NodeTable | None = None

    @property
    def aggregation(self) -> NodeAggregation:
        return self.table

    @property
    def table(self) -> NodeTable:
        """This node's masked table."""
        if self._table is None:
            raise LocalProtocolError("the seed of the node's mask has not come")
        return self._table

    @property
    def grid_attempt(self) -> GridAttempt:
        """The attempt, once it has begun."""
        return require(self.attempt, GridAttempt)

    def _make_attempt(self, openings: Sequence[bytes]) -> SharedAttempt:
        return grid_attempt(self.study, self._agreed(openings), openings)

    # --- prepare -------------------------------------------------------------------------------

    def receive_seed(self, node_seed: bytes) -> None:
        """The seed of this node's mask, once."""
        super().receive_seed(node_seed)
        self._table = NodeTable(self.grid_attempt, self.index, node_seed, self._own, self._keys)

    def protocol(self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash) -> Protocol[Any]:
        """The dealt numbers. There is no round. Raises: EncodingError for another size."""
        if chunk in self._begun:
            raise LocalProtocolError("a node of a grid gets each chunk once")
        ring = self.attempt.ring
        size = dealt_bytes(self.attempt.plan(chunk), self.index, chunk.count)
        if len(material) != size:
            raise EncodingError(f"{size} bytes of shares were due, and {len(material)} came")
        self._begun.add(chunk)
        return _as_they_are(np.frombuffer(material, dtype=ring.dtype.newbyteorder("<")))

    def add(self, chunk: Chunk, shares: Any) -> None:
        if not self.grid_attempt.is_of_vector(chunk):
            self.table.deal(shares.tolist())
        elif len(shares):
            self.table.deal_vector(chunk.sum, chunk.start, shares)
        self._chunks_added += 1

    # --- evaluate ------------------------------------------------------------------------------

    def own_steps(self) -> Iterator[None]:
        """Count this node's records by cell, and add up what is linear in them, of each sum."""
        if self._inner_begun:
            raise LocalProtocolError("the records of this node were counted before")
        self._inner_begun = True
        grid = self.grid_attempt.grid
        table = grid.tabulate(self.columns)
        yield
        # one vector of the table's size at a time
        self.table.put(table, [form.own(table) for form in masked_forms(grid)])
        self._inner_done = True
        yield

    # --- release -------------------------------------------------------------------------------

    def _totals(self) -> list[int]:
        """2·(S + noise), or 6 times of triples, shared: uniform given the sum over all nodes."""
        noises = map(sum, zip(*self._parts, self.noise, strict=True))
        parts = zip(self.table.shares, noises, self._zeros, strict=True)
        return [share + self.grid_attempt.factor * noise + zero for share, noise, zero in parts]


def _as_they_are(shares: Elements) -> Protocol[Elements]:
    """A protocol without rounds."""
    yield from ()
    return shares
