"""The dealer's part: a seed for every node's mask a_u, and shares of aᵀAa, where a = Σ a_u.

A sum's shares are uniform words for all nodes but the last one, which gets what is missing. So the
shares of any N − 1 nodes are uniform and independent of all masks.

Memory: one vector in the ring, one of 64-bit words, and those of an operator.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from umpc.crypto.prg import SEED_BYTES
from umpc.errors import LocalProtocolError
from umpc.mpc.chunks import Chunk
from umpc.protocols.arrays import Words
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.masks import inner, mask_stream, widened
from umpc.study.frames import Frame


class GridDealing:
    """One attempt. Its material is dealt once. Args: entropy: number of bytes → uniform bytes."""

    def __init__(self, attempt: GridAttempt, entropy: Entropy):
        self.attempt = attempt
        self._entropy = entropy
        self._seeds = [entropy(SEED_BYTES) for _ in attempt.members]
        self._is_dealt = False

    def __repr__(self) -> str:
        return f"GridDealing(attempt {self.attempt.id.hex()[:8]}, <redacted>)"

    def seed_frame(self, node: int) -> Frame:
        """The seed from which a node expands its mask."""
        return Frame("node_seed", (), 0, 1, 8 * SEED_BYTES, self._seeds[node])

    def deal_one(self, chunk: Chunk) -> Iterator[tuple[int, Frame]]:
        """Every node's shares of aᵀAa, one for each sum, once.

        Raises: LocalProtocolError for a second time, because a mask serves one table.
        """
        if self._is_dealt:
            raise LocalProtocolError("the grid's masks were dealt before; they serve one table")
        self._is_dealt = True
        ring = self.attempt.ring
        masks = self._sum_of_masks()
        products = [inner(masks, form.apply(masks)) for form in self.attempt.grid.forms]
        del masks
        last = len(self._seeds) - 1
        missing = np.array(products, dtype=np.uint64).astype(ring.dtype)
        for node in range(last):
            share = np.frombuffer(self._entropy(ring.bytes * len(products)), dtype=ring.dtype)
            missing -= share
            yield node, self._frame(chunk, share)
        yield last, self._frame(chunk, missing)

    def _frame(self, chunk: Chunk, share: np.ndarray) -> Frame:
        ring = self.attempt.ring
        payload = share.astype(ring.dtype.newbyteorder("<")).tobytes()
        return Frame("material", chunk.place, chunk.number, chunk.count, ring.bits, payload)

    def _sum_of_masks(self) -> Words:
        """a = Σ a_u: (cells,) uint64."""
        layout = self.attempt.layout
        total = np.zeros(layout.cells, dtype=layout.ring.dtype)
        for seed in self._seeds:
            stream = mask_stream(seed, self.attempt.id)
            for start, stop in layout.ranges:
                total[start:stop] += stream.words(stop - start, layout.ring.dtype)
        return widened(total)
