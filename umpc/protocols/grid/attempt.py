"""An attempt over a grid: no edges, one vector of cells, and one chunk of dealt numbers.

The committee's coins, the links that they take, zero shares and the ring are those of any attempt
(`umpc/mpc/attempt.py`). The one chunk carries each node's shares of aᵀAa, one for each sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from umpc.crypto.ring import Ring
from umpc.crypto.rounds import Message, silence
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk, ChunkPlan
from umpc.mpc.masked.committee_coins import CoinToss
from umpc.protocols.grid.masks import Layout
from umpc.protocols.grid.operators import Grid
from umpc.study.document import Study
from umpc.study.sizes import Member
from umpc.ustat.hypergraph import Hypergraph

FACTOR = 2
"""Every pair is in HᵀAH twice, so shares are of twice the sums, and noise is added twice."""


@dataclass(frozen=True)
class CorrelationPlan:
    """The plan of the one chunk: a ring element for each sum to every node, and no round."""

    ring: Ring
    parties: int
    sums: int

    @property
    def everybody(self) -> tuple[int, ...]:
        return tuple(range(self.parties))

    @property
    def chunk_edges(self) -> int:
        return self.sums

    @property
    def rounds(self) -> int:
        return 0

    def dealt_bits(self, party: int) -> int:
        return self.ring.bits

    def shape(self, round: int, party: int, count: int) -> Message:
        return silence("open", round)


class GridAttempt(SharedAttempt):
    """Args: grid: the study's operators. The others as of SharedAttempt."""

    def __init__(
        self,
        study: Study,
        members: Sequence[Member],
        openings: Sequence[bytes],
        ring: Ring,
        grid: Grid,
        coins: Sequence[CoinToss] = (),
    ):
        super().__init__(study, members, openings, ring, coins)
        self.grid = grid

    @property
    def layout(self) -> Layout:
        """The frames of a vector of cells."""
        return Layout(self.ring, self.grid.cells)

    @cached_property
    def hypergraph(self) -> Hypergraph:
        """No edge is evaluated by its owners. The number of edges is that of all pairs."""
        counts = tuple(member.records for member in self.members)
        return Hypergraph(counts, self.study.degree, self.sizes.edges, {})

    @property
    def needs_dealer(self) -> bool:
        return True

    @property
    def rounds(self) -> int:
        """Masked histograms and their total; the reveal."""
        return 2

    @cached_property
    def correlation(self) -> Chunk:
        """The chunk of the dealt numbers. It belongs to no data, so it comes before them."""
        nodes = tuple(range(len(self.members)))
        return Chunk(nodes, 0, 0, len(self.study.kernels), noise=True)

    def chunks(self) -> Iterator[Chunk]:
        yield self.correlation

    def plan(self, chunk: Chunk) -> ChunkPlan:
        return CorrelationPlan(self.ring, len(self.members), len(self.study.kernels))
