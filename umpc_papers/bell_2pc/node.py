"""A node's side of `bell-2pc`: as in U-MPC, with a noisy value of every pair in place of sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from umpc.crypto.signing import Credentials
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.u_mpc.node import INNER_CHUNK, UMpcNode
from umpc.study.document import Study
from umpc.ustat.cell_rows import Owners
from umpc.ustat.clear import Columns
from umpc_papers.bell_2pc.pair_noise import apply_all, words_of


class BellNode(UMpcNode):
    """One node, one study, one attempt. Args: as in SeedAgreement."""

    def __init__(
        self, own: Credentials, study: Study, columns: Columns, records: int, entropy: Entropy
    ):
        super().__init__(own, study, columns, records, entropy)
        self._values: dict[tuple[Owners, int], np.ndarray] = {}

    def own_noise(self, attempt: SharedAttempt) -> list[int]:
        """Nothing is added to a sum: every pair has its noise already."""
        return [0] * len(attempt.pair_noise)

    def _keep(self, chunk: Chunk, shares: Any) -> None:
        self._values[chunk.owners, chunk.start] = shares

    @property
    def _edges_at_once(self) -> int:
        return max(1, INNER_CHUNK // max(1, words_of(self.attempt.pair_noise)))

    def _keep_inner(self, owners: Owners, start: int, values: list[np.ndarray]) -> None:
        """The values that leave this node for pairs that are all its own, by every pair's law."""
        noises = self.attempt.pair_noise
        count = len(values[0])
        words = self.random_words(words_of(noises) * count).reshape(-1, count)
        noisy = np.stack(apply_all(values, noises, words))
        self._values[owners, start] = noisy.astype(self.attempt.ring.dtype)

    def _share(self) -> bytes:
        """(sums, own edges) of the ring: cell after cell, edge after edge.

        The values are uniform to whoever lacks those of the other owner.
        """
        dtype = self.attempt.ring.dtype
        none = np.empty((len(self.study.kernels), 0), dtype=dtype)
        values = np.concatenate(
            [none, *(self._values[place] for place in sorted(self._values))], axis=1
        )
        return values.astype(dtype.newbyteorder("<")).tobytes()
