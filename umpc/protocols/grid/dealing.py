"""The dealer's part: a seed for every node's mask a_u, and shares of what follows from a = Σ a_u.

Shares of a number are uniform words for all nodes but the last one, which gets what is missing.
Shares of a vector are streams of the nodes' seeds, for all nodes but the last one. So the shares of
any N − 1 nodes are uniform and independent of all masks.

Memory: one vector in the ring (of 64-bit words over triples), and those of an operator.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from umpc.crypto.prg import SEED_BYTES
from umpc.crypto.ring import Elements
from umpc.errors import LocalProtocolError
from umpc.mpc.chunks import Chunk
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.masked_form import mask_stream, masked_forms, vector_stream, working_kind
from umpc.study.messages import Frame


class GridDealing:
    """One attempt. Its material is dealt once. Args: entropy: number of bytes → uniform bytes."""

    def __init__(self, attempt: GridAttempt, entropy: Entropy):
        self.attempt = attempt
        self._entropy = entropy
        # one seed a node, of which its mask is a stream
        self._seeds = [entropy(SEED_BYTES) for _ in attempt.members]
        self._dealt = 0
        self._forms = masked_forms(attempt.grid)
        self._masks: Elements | None = None
        self._vector: Elements | None = None
        self._numbers: list[int] = []

    def __repr__(self) -> str:
        return f"GridDealing(attempt {self.attempt.id.hex()[:8]}, <redacted>)"

    def seed_frame(self, node: int) -> Frame:
        """The seed from which a node expands its mask."""
        return Frame("node_seed", (), 0, 1, 8 * SEED_BYTES, self._seeds[node])

    def deal_one(self, chunk: Chunk) -> Iterator[tuple[int, Frame]]:
        """Every node's part of a chunk, in the attempt's order, once.

        Raises: LocalProtocolError for a second time, because a mask serves one table.
        """
        if chunk.number != self._dealt:
            raise LocalProtocolError("the grid's masks were dealt before; they serve one table")
        self._dealt += 1
        if self._masks is None:
            # the dealer knows a = Σ a_u, and nothing of any table
            self._masks = self._sum_of_masks()
        if self.attempt.is_of_vector(chunk):
            yield from self._deal_vector(chunk, self._masks)
        else:
            yield from self._deal_numbers(chunk, self._masks)

    def _deal_vector(self, chunk: Chunk, masks: Elements) -> Iterator[tuple[int, Frame]]:
        """The last node's share of a part of a vector; the others have a seed for theirs."""
        if chunk.start == 0:
            # computed once, when its first part is due
            self._vector = self._missing_vector(chunk.sum, masks)
        last = len(self._seeds) - 1
        for node in range(last):
            yield node, Frame("material", chunk.place, chunk.number, chunk.count, 0, b"")
        if self._vector is not None:
            yield last, self._frame(chunk, self._vector[chunk.start : chunk.stop])

    def _missing_vector(self, number: int, masks: Elements) -> Elements:
        """A sum's vector less the shares of all nodes but the last; its number is kept."""
        layout = self.attempt.layout
        vector, value = next(self._forms).dealt(masks)
        if vector is None:
            raise LocalProtocolError("this sum has no vector to deal")
        self._numbers.append(value)
        # last share = vector − Σ of the others' streams
        missing = vector.astype(layout.ring.dtype)
        for seed in self._seeds[:-1]:
            stream = vector_stream(seed, self.attempt.id, number)
            for start, stop in layout.ranges:
                missing[start:stop] -= stream.words(stop - start, layout.ring.dtype)
        return missing

    def _deal_numbers(self, chunk: Chunk, masks: Elements) -> Iterator[tuple[int, Frame]]:
        """Every node's share of a number for each sum."""
        numbers = [*self._numbers, *(form.dealt(masks)[1] for form in self._forms)]
        self._masks = None
        self._vector = None
        ring = self.attempt.ring
        last = len(self._seeds) - 1
        missing = np.array(numbers, dtype=np.uint64).astype(ring.dtype)
        for node in range(last):
            # uniform share for each node but the last
            share = np.frombuffer(self._entropy(ring.bytes * len(numbers)), dtype=ring.dtype)
            # additive shares of c: the last one is what is missing
            missing -= share
            yield node, self._frame(chunk, share)
        yield last, self._frame(chunk, missing)

    def _frame(self, chunk: Chunk, share: Elements) -> Frame:
        ring = self.attempt.ring
        payload = share.astype(ring.dtype.newbyteorder("<"), copy=False).tobytes()
        return Frame("material", chunk.place, chunk.number, chunk.count, ring.bits, payload)

    def _sum_of_masks(self) -> Elements:
        """a = Σ a_u: (cells,) in the type on which operators work."""
        layout = self.attempt.layout
        total = np.zeros(layout.cells, dtype=layout.ring.dtype)
        for seed in self._seeds:
            stream = mask_stream(seed, self.attempt.id)
            for start, stop in layout.ranges:
                # a = Σ a_u, frame by frame
                total[start:stop] += stream.words(stop - start, layout.ring.dtype)
        return total.astype(working_kind(layout.ring, self.attempt.study.degree), copy=False)
