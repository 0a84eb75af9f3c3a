"""An attempt over a grid: no edges, one vector of cells, and chunks of dealt numbers.

The committee's coins, the links that they take, zero shares and the ring are those of any attempt
(`umpc/mpc/attempt.py`). The chunks carry each node's shares of what `masked_form.py` says: of a
vector for each sum over triples, and last of a number for each sum.

*Total.* The total of all masked histograms: who signed it, and who told whom another one.

*Dealing.* The dealer's part: a seed for every node's mask a_u, and shares of what follows from a =
Σ a_u.

Shares of a number are uniform words for all nodes but the last one, which gets what is missing.
Shares of a vector are streams of the nodes' seeds, for all nodes but the last one. So the shares of
any N − 1 nodes are uniform and independent of all masks.

Memory: one vector in the ring (of 64-bit words over triples), and those of an operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from umpc.crypto.prg import SEED_BYTES, digest
from umpc.crypto.ring import Elements, Ring
from umpc.crypto.rounds import Message, silence
from umpc.crypto.signing import is_signature
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk, ChunkPlan
from umpc.mpc.masked.material import CoinToss
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.grid.masked_form import (
    STEP,
    VECTORS_FROM,
    MaskLayout,
    factor_of,
    mask_stream,
    masked_forms,
    vector_stream,
    working_kind,
)
from umpc.protocols.grid.operators import DyadicGrid, Grid
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.study.sizes import Member
from umpc.ustat.hypergraph import Hypergraph

OPERATIONS_OF_EDGE = 64
"""Ring operations on cells in the time of one edge, of 0.4 ns each: a low estimate."""


@dataclass(frozen=True)
class DealtPlan:
    """The plan of a chunk of ring elements, without a round.

    Args: receivers: the parties that get them from the dealer; all others have a seed for them.
    """

    ring: Ring
    parties: int
    receivers: range
    chunk_edges: int
    addressed = False

    @cached_property
    def everybody(self) -> tuple[int, ...]:
        return tuple(range(self.parties))

    @property
    def rounds(self) -> int:
        return 0

    def dealt_bits(self, party: int) -> int:
        return self.ring.bits * (party in self.receivers)

    def shape(self, round: int, party: int, count: int) -> Message:
        return silence("open", round)

    def shape_to(self, round: int, sender: int, receiver: int, count: int) -> Message:
        return self.shape(round, sender, count)


class GridAttempt(SharedAttempt):
    """Args: grid: the study's operators. The others as in SharedAttempt."""

    def __init__(
        self,
        study: Study,
        members: Sequence[Member],
        openings: Sequence[bytes],
        ring: Ring,
        grid: Grid | DyadicGrid,
        coins: Sequence[CoinToss] = (),
        sums: int | None = None,
    ):
        super().__init__(study, members, openings, ring, coins, sums=sums)
        self.grid = grid

    @property
    def layout(self) -> MaskLayout:
        """The frames of a vector of cells."""
        return MaskLayout(self.ring, self.grid.cells)

    @property
    def factor(self) -> int:
        """Shares are of so many times the sums, and noise is added as often."""
        return factor_of(self.study.degree)

    @cached_property
    def hypergraph(self) -> Hypergraph:
        """No edge is evaluated by its owners. The number of edges is that of all sets."""
        counts = tuple(member.records for member in self.members)
        return Hypergraph(counts, self.study.degree, self.sizes.edges, {})

    @property
    def size(self) -> int:
        """The records; or the edges whose evaluation takes as long as the grid's operators."""
        operations = sum(form.cost for form in self.grid.forms)
        return max(self.sizes.records, operations // OPERATIONS_OF_EDGE)

    @property
    def needs_dealer(self) -> bool:
        return True

    @property
    def rounds(self) -> int:
        """Masked histograms and their total; the reveal."""
        return 2

    @property
    def vectors(self) -> int:
        """The number of sums for which shares of a vector are dealt."""
        return len(self.study.kernels) if self.study.degree >= VECTORS_FROM else 0

    @property
    def dealt_at_most(self) -> int:
        """The last node gets the vectors, and every node a number for each sum."""
        return self.ring.bytes * (self.vectors * self.grid.cells + self.sums)

    def chunks(self) -> Iterator[Chunk]:
        """Vector after vector, then the numbers. They belong to no data, so they come before it."""
        nodes = tuple(range(len(self.members)))
        number = 0
        for vector in range(self.vectors):
            for start, stop in self.layout.ranges:
                yield Chunk(nodes, number, start, stop, noise=True, sum=vector)
                number += 1
        yield Chunk(nodes, number, 0, self.sums, noise=True)

    def chunks_of(self, node: int) -> Iterator[Chunk]:
        return (chunk for chunk in self.chunks() if node in chunk.owners)

    def chunk_groups(self) -> Iterator[tuple[Chunk, int]]:
        """Every chunk by itself: a grid has few of them."""
        return ((chunk, 1) for chunk in self.chunks())

    def is_of_vector(self, chunk: Chunk) -> bool:
        """Whether a chunk is a part of a vector; else it has a number for each sum."""
        return chunk.number < self.vectors * self.layout.frames

    def plan(self, chunk: Chunk) -> ChunkPlan:
        nodes = len(self.members)
        if self.is_of_vector(chunk):
            return DealtPlan(self.ring, nodes, range(nodes - 1, nodes), self.layout.in_frame)
        return DealtPlan(self.ring, nodes, range(nodes), chunk.count)


# --- total ----------------------------------------------------------------------------------------


def total_statement(attempt: bytes, total: bytes) -> bytes:
    """The bytes that every node signs of a total. Args: attempt: its id. total: its SHA-256."""
    # spec/grid.py, `total_statement`
    return digest(b"umpc total 1", attempt, total)


def check_signed(
    statement: bytes,
    members: Sequence[Member],
    keys: Sequence[bytes],
    signatures: Sequence[bytes],
    relay: str | None,
) -> None:
    """Check that all nodes signed one total.

    Args: relay: the process that told the total and passed the signatures on; None where each
    signature came from its node.

    Raises: RemoteProtocolError naming the relay, or without one the node.
    """
    for number, (member, key) in enumerate(zip(members, keys, strict=True)):
        signature = signatures[number] if len(signatures) == len(keys) else b""
        # two totals would open a difference of masked tables
        if not is_signature(key, statement, signature):
            other = f"{relay} told it another one, or changed its signature"
            raise RemoteProtocolError(
                f"{member.name} has not signed the same total of the masked histograms: "
                f"{other if relay else 'it signed something else'}; no share was made, and the "
                f"study ends",
                culprit=relay or member.name,
                step=STEP,
            )


# --- dealing --------------------------------------------------------------------------------------


class GridDealing:
    """One attempt. Its material is dealt once. Args: entropy: number of bytes → uniform bytes."""

    def __init__(self, attempt: GridAttempt, entropy: Entropy):
        self.attempt = attempt
        self._entropy = entropy
        # one seed a node, of which its mask is a stream
        self._seeds = [entropy(SEED_BYTES) for _ in attempt.members]
        self._dealt = 0
        self._forms = masked_forms(attempt.grid, attempt.ring)
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
                theirs = layout.ring.drawn(stream, stop - start)
                missing[start:stop] = layout.ring.minus(missing[start:stop], theirs)
        return missing

    def _deal_numbers(self, chunk: Chunk, masks: Elements) -> Iterator[tuple[int, Frame]]:
        """Every node's share of a number for each sum."""
        numbers = [*self._numbers, *(form.dealt(masks)[1] for form in self._forms)]
        self._masks = None
        self._vector = None
        ring = self.attempt.ring
        last = len(self._seeds) - 1
        missing = np.array([ring.encode(number) for number in numbers], dtype=ring.dtype)
        for node in range(last):
            # uniform share for each node but the last
            share = ring.uniform(self._entropy, len(numbers))
            # additive shares of c: the last one is what is missing
            missing = ring.minus(missing, share)
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
                mask = layout.ring.drawn(stream, stop - start)
                total[start:stop] = layout.ring.plus(total[start:stop], mask)
        return total.astype(working_kind(layout.ring, self.attempt.study.degree), copy=False)
