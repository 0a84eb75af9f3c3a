"""A node's side of `bell-2pc` with noise on groups: the sums of pairs' shares, with own noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk
from umpc.protocols.u_mpc.node import INNER_CHUNK
from umpc.ustat.cell_rows import Owners
from umpc_papers.bell_2pc.group_mechanism import GroupLaplace, groups_of
from umpc_papers.bell_2pc.node import BellNode
from umpc_papers.bell_2pc.noise_binding import noise_of_pairs
from umpc_papers.bell_2pc.settings import group_of


class GroupNode(BellNode):
    """One node, one study, one attempt. Args: as in SeedAgreement.

    The noise of all groups is drawn before any data. The node adds all of it itself, so that its
    records depend on no other node's noise.
    """

    def own_noise(self, attempt: SharedAttempt) -> list[int]:
        laws = [law for law in noise_of_pairs(attempt.sizes) if isinstance(law, GroupLaplace)]
        group = group_of(self.study)
        self.group_noise: dict[Owners, list[list[int]]] = {}
        for owners, cell in attempt.cells_of(self.index).items():
            count = groups_of(cell.count, group)
            self.group_noise[owners] = [
                [law.draw(self._random_bits) for _ in range(count)] for law in laws
            ]
        return []

    @property
    def _edges_at_once(self) -> int:
        return INNER_CHUNK

    def _keep(self, chunk: Chunk, shares: Any) -> None:
        self._values[chunk.owners, chunk.start] = shares

    def _keep_inner(self, owners: Owners, start: int, values: list[np.ndarray]) -> None:
        """The clear values of pairs that are all this node's; they leave in noisy sums only."""
        self._values[owners, start] = np.stack(values).astype(self.attempt.ring.dtype)

    def _share(self) -> bytes:
        """(sums, own groups) of the ring: cell after cell, group after group."""
        dtype = self.attempt.ring.dtype
        none = np.empty((len(self.study.kernels), 0), dtype=dtype)
        values = np.concatenate([none, *self._noisy_groups()], axis=1)
        return values.astype(dtype.newbyteorder("<")).tobytes()

    def _noisy_groups(self) -> Iterator[np.ndarray]:
        """Each cell's sums of groups, with this node's noise: (sums, groups) of the ring."""
        ring = self.attempt.ring
        for owners, noise in sorted(self.group_noise.items()):
            places = sorted(place for place in self._values if place[0] == owners)
            values = np.concatenate([self._values[place] for place in places], axis=1)
            starts = np.arange(0, values.shape[1], group_of(self.study))
            sums = np.add.reduceat(values, starts, axis=1, dtype=ring.dtype)
            drawn = [[ring.encode(each) for each in row] for row in noise]
            yield sums + np.array(drawn, dtype=ring.dtype)
