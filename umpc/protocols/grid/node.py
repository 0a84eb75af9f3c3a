"""The node's side of a grid: one masked histogram in place of edges; all else as in U-MPC.

| step | what is new |
|---|---|
| prepare | the dealer's seed of the mask, and shares of what follows from all masks |
| evaluate | the own records counted by cell; the masked table up, the total down, signatures |
| release | the share of 2·S (6·S over triples), and the noise as often, under zero shares |

*Node table.* A node's table in one attempt: masked and sent once; then the node's share, from the
total.

Node u's share of a doubled sum over pairs is −⟨a_u, 2·A·Ĥ⟩ + c_u − Σ f(r, r) over its own records
r, where c_u is its share of aᵀAa (`masked_form.py`). The study's first node adds the public part
ĤᵀAĤ. Over triples it is the same with the gradient at Ĥ, and with ⟨Ĥ, g_u⟩ besides.

*Reveals*: the masked table is uniform to everybody who lacks its seed. Shares leave the node under
noise and zero shares only.

Memory: the own table, one 64-bit word for each cell. Later the total and A·Ĥ, each one ring
element for each cell (64 bits over triples), and those of an operator; a mask of one frame. The
last node also keeps its shares of vectors, where these are dealt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from umpc.crypto.prg import FixedKeyHash, Stream
from umpc.crypto.ring import Elements
from umpc.crypto.rounds import Protocol
from umpc.crypto.signing import Credentials
from umpc.errors import EncodingError, LocalProtocolError
from umpc.mpc.arrays import Words
from umpc.mpc.chunks import Chunk, require
from umpc.mpc.masked.material import dealt_bytes
from umpc.protocols.base.node import NodeAggregation
from umpc.protocols.grid.attempt import GridAttempt, check_signed, total_statement
from umpc.protocols.grid.masked_form import (
    HISTOGRAM,
    TOTAL,
    MaskedForm,
    mask_stream,
    masked_forms,
    vector_stream,
    working_kind,
)
from umpc.protocols.u_mpc.node import UMpcNode
from umpc.study.messages import Frame


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

    # --- prepare -------------------------------------------------------------------------------

    def receive_seed(self, node_seed: bytes) -> None:
        """The seed of this node's mask, once."""
        super().receive_seed(node_seed)
        # a_u follows from the dealer's seed
        self._table = NodeTable(self.grid_attempt, self.index, node_seed, self._own, self._keys)

    def protocol(self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash) -> Protocol[Any]:
        """The dealt numbers. There is no round. Raises: EncodingError for another size."""
        if chunk in self._begun:
            raise LocalProtocolError("a node of a grid gets each chunk once")
        ring = self.attempt.ring
        # c_u, and of the last node parts of a vector
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
        table = self._tabulated()
        yield
        # one vector of the table's size at a time
        self.table.put(table, [form.own(table) for form in masked_forms(grid, self.attempt.ring)])
        self._inner_done = True
        yield

    def _tabulated(self) -> Words:
        """h_u: own records counted by cell, (cells,) uint64."""
        return self.grid_attempt.grid.tabulate(self.columns)

    # --- release -------------------------------------------------------------------------------

    def _totals(self) -> list[int]:
        """2·(S + noise), or 6 times of triples, shared: uniform given the sum over all nodes."""
        noises = map(sum, zip(*self.parts, self.noise, strict=True))
        # factor · (S + noise), so noise counts as often
        parts = zip(self.table.shares, noises, self.zeros, strict=True)
        return [share + self.grid_attempt.factor * noise + zero for share, noise, zero in parts]


def _as_they_are(shares: Elements) -> Protocol[Elements]:
    """A protocol without rounds."""
    yield from ()
    return shares


# --- node table -----------------------------------------------------------------------------------


class NodeTable(NodeAggregation):
    """One node's part of one attempt.

    Args:
        seed: the dealer's, of this node's mask. It is forgotten when the share is made.
        own, keys: what the node signs with, and all nodes' public keys.
    """

    def __init__(
        self,
        attempt: GridAttempt,
        node: int,
        seed: bytes,
        own: Credentials,
        keys: Sequence[bytes],
    ):
        self.attempt = attempt
        self.node = node
        self._seed = seed
        self._own = own
        self._keys = keys
        self._table: Words | None = None
        self._own_parts: list[int] = []
        self._is_masked = False
        self._total: Elements | None = None
        self._came = 0
        self._hash = hashlib.sha256()
        self._shares: list[int] | None = None
        self.numbers: list[int] = []
        self.vectors: dict[int, Elements] = {}

    def __repr__(self) -> str:
        return f"NodeTable({self._own.name}, <redacted>)"

    def put(self, table: Words, own: list[int]) -> None:
        """The node's own records: (cells,) uint64, and the part of each sum that is linear."""
        if self._is_masked:
            raise LocalProtocolError("the mask was used before; it serves one table")
        self._table = table
        self._own_parts = own

    def deal(self, numbers: list[int]) -> None:
        """The node's shares of the dealt numbers, one for each sum."""
        self.numbers = numbers

    def deal_vector(self, number: int, start: int, values: Elements) -> None:
        """A part of the node's share of a sum's dealt vector, from cell `start` on."""
        cells = self.attempt.layout.cells
        vector = self.vectors.setdefault(number, np.empty(cells, dtype=values.dtype))
        vector[start : start + len(values)] = values

    def masked(self) -> Iterator[Frame]:
        """Round 1: the table under its mask, frame by frame, once."""
        if self._is_masked or self._table is None:
            raise LocalProtocolError("a table is masked once, after its records were counted")
        self._is_masked = True
        layout = self.attempt.layout
        table = self._table
        self._table = None
        stream = mask_stream(self._seed, self.attempt.id)
        for start, stop in layout.ranges:
            # a_u of these cells
            mask = layout.ring.drawn(stream, stop - start)
            own = table[start:stop].astype(layout.ring.dtype)
            # ĥ_u = h_u + a_u: a one-time pad in the ring
            yield layout.frame(HISTOGRAM, start, layout.ring.plus(own, mask))

    def take(self, frame: Frame) -> bool:
        if not self._is_masked:
            raise LocalProtocolError("the total comes after this node's own table has left")
        layout = self.attempt.layout
        relay = self.attempt.study.coordinator
        start, values = layout.heard(TOTAL, self._came, frame, relay)
        if self._total is None:
            kind = working_kind(layout.ring, self.attempt.study.degree)
            self._total = np.empty(layout.cells, dtype=kind)
        self._total[start : start + len(values)] = values
        # sign what was heard, byte for byte
        self._hash.update(frame.payload)
        self._came += 1
        return self._came == layout.frames

    @property
    def _statement(self) -> bytes:
        if self._came != self.attempt.layout.frames:
            raise LocalProtocolError("the total is not complete")
        return total_statement(self.attempt.id, self._hash.digest())

    def sign(self) -> bytes:
        return self._own.sign(self._statement)

    def confirm(self, signatures: Sequence[bytes]) -> None:
        """Make the node's share of each sum, once all nodes have signed this total.

        Raises: RemoteProtocolError naming the coordinator.
        """
        relay = self.attempt.study.coordinator
        # every node heard one Ĥ, before any share is made
        check_signed(self._statement, self.attempt.members, self._keys, signatures, relay)
        if self._total is None:
            raise LocalProtocolError("shares are made once, from the total")
        self.make_shares(self._total)

    def make_shares(self, total: Elements) -> None:
        """The node's share of each sum, once all have the same total and it is checked."""
        of_total = [
            self._share(total, place, form)
            for place, form in enumerate(masked_forms(self.attempt.grid, self.attempt.ring))
        ]
        parts = zip(self.numbers, self._own_parts, of_total, strict=True)
        # c_u − Σ f(r, r) − ⟨a_u, 2·A·Ĥ⟩
        self._shares = [number + own + part for number, own, part in parts]
        self._total = None
        self.vectors.clear()
        # the mask has served
        self._seed = b""

    def _share(self, total: Elements, place: int, form: MaskedForm) -> int:
        """The part of a node's share that depends on the total."""
        # spec/grid.py, `image`
        image = form.image(total)
        # H = Ĥ − a: the cross terms of Hᵀ A H
        share = -form.times * self._with_stream(mask_stream(self._seed, self.attempt.id), image)
        if place < self.attempt.vectors:
            # over triples: ⟨∇C(a)_u, Ĥ⟩ as well
            share += self._with_vector(place, total)
        # the public part counts once
        if self.node == 0:
            share += form.public(total, image)
        return share

    def _with_vector(self, place: int, total: Elements) -> int:
        """⟨g_u, Ĥ⟩ modulo 2^w: the node's share of a sum's vector is dealt, or a stream."""
        if place in self.vectors:
            vector = self.vectors[place].astype(total.dtype)
            return self.attempt.ring.inner(vector, total)
        return self._with_stream(vector_stream(self._seed, self.attempt.id, place), total)

    def _with_stream(self, stream: Stream, image: Elements) -> int:
        """⟨stream, image⟩ modulo 2^w, with the stream's elements made piece by piece."""
        layout = self.attempt.layout
        found = 0
        for start, stop in layout.ranges:
            mask = layout.ring.drawn(stream, stop - start).astype(image.dtype, copy=False)
            found += layout.ring.inner(mask, image[start:stop])
        return found

    @property
    def shares(self) -> list[int]:
        """The node's share of each multiplied sum, without noise, as any integer."""
        if self._shares is None:
            raise LocalProtocolError("the total was not confirmed; there are no shares")
        return self._shares
