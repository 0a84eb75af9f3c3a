"""Cross terms of a grid without a dealer: who chooses by how many bits, in which messages.

With h_u the table of node u, A the public matrix of kernel values, and pairs u < v of nodes,

    2·S = Σ_u (h_uᵀA h_u − ⟨diagonal, h_u⟩) + 2·Σ_{u<v} ⟨h_u, A·h_v⟩     modulo 2^w.

A node computes its own addend. A cross term is an inner product of two private vectors, computed by
transfers (`umpc/mpc/transfers/ot_inner_products.py`) modulo 2^(w − 1), because it counts twice. The
*chooser* of a pair is the node with fewer records, or the later one of two that have as many. It
chooses by the bits of its table. The other node is the *sender*, with A·h.

Bits. A record adds to one cell of each feature a number in a public range [low, high], which
contains 0. So an entry of a table of n records is in [n·low, n·high], and entry − n·low has as many
bits as n·(high − low). A histogram's range is [0, 1], so its entries have the bits of n. The sender
adds n·low·Σ (A·h) back, which it can do alone.

Everything here is public: numbers of records, the table's cells, and the ring.

*Without dealer.* An attempt over a grid without a dealer: chunks of cells of each cross term.

The committee's coins, zero shares and the ring are those of any attempt. A node has a link to every
other node with which it has a cross term, and to all members of its committee.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations

from umpc.crypto.rounds import Message, silence
from umpc.errors import RangeError
from umpc.mpc.chunks import Chunk, ChunkPlan, ChunkProgram, require
from umpc.mpc.masked.plan import Program
from umpc.mpc.transfers.message_shapes import CHECK_ROOM, EXTEND, MULTIPLES, link_shapes
from umpc.mpc.transfers.ot_inner_products import (
    CORRECT,
    correction_bytes,
    correction_shape,
    extension_shape,
)
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.operators import DyadicGrid, Grid
from umpc.protocols.grid.operators.layout import require_cells
from umpc.protocols.grid.settings import instead
from umpc.study.document import Study
from umpc.study.messages import MAX_PAYLOAD
from umpc.study.sizes import Member
from umpc.ustat.cell_rows import Owners
from umpc.ustat.normal_form import Polynomial
from umpc.ustat.polynomial import bound

MAX_TRANSFERS = 1 << 26
"""The most transfers of one node: half a gigabyte in the ring of 32 bits."""
BITS_A_BYTE_ROW = 8
"""Bits for which an extension has EXTENSION_ROW_BYTES."""
EXTENSION_ROW_BYTES = 32
"""Bytes of an extension for so many bits, without its proof (`message_shapes.extension_bytes`)."""


@dataclass(frozen=True)
class EntryRange:
    """The cells start … stop − 1 of a table: what one record adds to one of them.

    low ≤ 0 ≤ high.
    """

    start: int
    stop: int
    low: int
    high: int

    def bits(self, records: int, width: int) -> int:
        """The bits of an entry less records·low, modulo 2^width."""
        return min(width, (records * (self.high - self.low)).bit_length())


def entry_ranges(grid: Grid | DyadicGrid) -> list[EntryRange]:
    """The ranges of a grid's table, one for each feature; tables of levels count records."""
    if isinstance(grid, DyadicGrid):
        return [EntryRange(0, grid.cells, 0, 1)]
    layout = grid.layout
    size = layout.cells // len(layout.features)
    found = []
    for number, feature in enumerate(layout.features):
        low, high = 1, 1
        if feature:
            # values that a feature of one record may have
            low, high = bound(Polynomial(((feature, Fraction(1)),)), grid.cuts.coarse)
        start = number * size
        found.append(EntryRange(start, start + size, min(low, 0), max(high, 0)))
    return found


@dataclass(frozen=True)
class CrossPair:
    """Two nodes with a cross term. Args: records: of the chooser."""

    sender: int
    chooser: int
    records: int

    @property
    def nodes(self) -> tuple[int, int]:
        """Both nodes, in the study's order."""
        return min(self.sender, self.chooser), max(self.sender, self.chooser)

    def transfers(self, ranges: Sequence[EntryRange], width: int) -> int:
        """The number of transfers: one for each bit of each cell."""
        return sum((part.stop - part.start) * part.bits(self.records, width) for part in ranges)


def cross_pairs(members: Sequence[Member]) -> Iterator[CrossPair]:
    """All pairs of nodes that both have records, in the study's order."""
    for first, second in combinations(range(len(members)), 2):
        sender, chooser = first, second
        # the node with fewer records chooses: its entries have fewer bits
        if members[first].records < members[second].records:
            sender, chooser = second, first
        if members[chooser].records:
            yield CrossPair(sender, chooser, members[chooser].records)


@dataclass(frozen=True)
class CrossPlan(ChunkPlan):
    """The plan of a chunk of cells of one cross term: an extension, then corrections.

    Args: chooser: the chooser's place in the pair. bits: of its entries. width: modulo 2^width.
    sums: how many sums have a cross term.
    """

    chooser: int
    bits: int
    width: int
    sums: int
    parties = 2
    everybody = (0, 1)
    rounds = CORRECT

    @property
    def chunk_edges(self) -> int:
        """The cells of a full chunk: as many as fit a message of either round."""
        # both rounds of a chunk must fit a message
        most = MAX_PAYLOAD // correction_bytes(self.bits, self.width, self.sums)
        room = MAX_PAYLOAD - CHECK_ROOM
        chosen = room // EXTENSION_ROW_BYTES * BITS_A_BYTE_ROW // self.bits
        return min(most, chosen)

    def shape(self, round: int, party: int, count: int) -> Message:
        chooses = party == self.chooser
        if round == CORRECT:
            # round 2: the sender corrects, the chooser is silent
            if chooses:
                return silence(MULTIPLES, CORRECT)
            return correction_shape(count, self.bits, self.width, self.sums)
        # round 1: a transfer for each bit of an entry
        return extension_shape(count, self.bits) if chooses else silence(EXTEND, 1)


def transfers_of(members: Sequence[Member], ranges: Sequence[EntryRange], width: int) -> list[int]:
    """Every node's number of transfers, with all other nodes together."""
    counts = [0] * len(members)
    for pair in cross_pairs(members):
        for node in pair.nodes:
            counts[node] += pair.transfers(ranges, width)
    return counts


def check_transfers(
    study: Study, members: Sequence[Member], grid: Grid | DyadicGrid, width: int
) -> None:
    """Whether no node has too many transfers. Args: width: of the cross terms.

    Raises: RangeError with what to coarsen, or to take instead.
    """
    counts = transfers_of(members, entry_ranges(grid), width)
    most = max(counts, default=0)
    if most <= MAX_TRANSFERS:
        return
    busiest = members[counts.index(most)].name
    reason = (
        f"without a dealer: each takes a transfer for each bit of an entry and for each pair of "
        f"nodes, which are {most:,} for {busiest}, and at most {MAX_TRANSFERS:,} are possible"
    )
    cells = grid.cells * MAX_TRANSFERS // most
    if isinstance(grid, DyadicGrid):
        raise RangeError(
            f"the tables of {grid.resolution} levels have {grid.cells} cells, and at most {cells} "
            f"are possible {reason}; take fewer levels, or name a dealer"
        )
    try:
        require_cells(grid.layout, study.parsed_kernels, cells, reason)
    except RangeError as error:
        raise RangeError(
            f"{error.message}; {instead(study)}, or name a dealer and say "
            f'preprocessing = "dealer", with which a cell costs two ring elements a node'
        ) from error


# --- without dealer -------------------------------------------------------------------------------

SET_UP_ROUND = 1
"""The number in a cross term's set-up messages; those of the committee's coins have 0."""


class CrossProgram(Program):
    """A program without edges. Its window holds few chunks, because one takes megabytes."""

    chunks_in_flight = 8


class DealerlessAttempt(GridAttempt):
    """Args: as in GridAttempt."""

    @cached_property
    def program(self) -> ChunkProgram:
        program = require(super().program, Program)
        # no edges: cross terms take the place of cells
        return CrossProgram(program.ring, program.wires, program.plans)

    @cached_property
    def width(self) -> int:
        """Cross terms are shared modulo 2^width, because shares are of twice the sums."""
        return self.ring.bits - 1

    @cached_property
    def ranges(self) -> tuple[EntryRange, ...]:
        """The ranges of the table's entries."""
        return tuple(entry_ranges(self.grid))

    @cached_property
    def pairs(self) -> dict[Owners, CrossPair]:
        """The pairs of nodes with a cross term, by their nodes."""
        return {pair.nodes: pair for pair in cross_pairs(self.members)}

    @property
    def size(self) -> int:
        """The number of sets: transfers take longer than anything brief."""
        return self.sizes.edges

    @property
    def needs_dealer(self) -> bool:
        return False

    @property
    def rounds(self) -> int:
        """The extension and the corrections, where there is a cross term; the reveal."""
        return 3 if any(True for _ in self.chunks()) else 1

    def peers(self, node: int) -> tuple[int, ...]:
        others = {peer for nodes in self.pairs if node in nodes for peer in nodes}
        return tuple(sorted((others | set(super().peers(node))) - {node}))

    def transfer_peers(self, node: int) -> tuple[int, ...]:
        return self.peers(node)

    def set_up_shapes(self, sender: int, receiver: int) -> list[Message]:
        """One node's messages to another before the data, for their cross term alone."""
        pair = self.pairs.get((min(sender, receiver), max(sender, receiver)))
        if pair is None:
            return []
        places = (0, 1) if sender == pair.sender else (1, 0)
        return [replace(shape, round=SET_UP_ROUND) for shape in link_shapes(*places)]

    # --- chunks ----------------------------------------------------------------------------------

    def chunks(self) -> Iterator[Chunk]:
        """The chunks of all cross terms, which take turns, so that every node has work."""
        waiting = [self._chunks_of_pair(pair) for pair in self.pairs.values()]
        while waiting:
            # pair by pair in turn: nobody waits for one pair
            taken = [(each, next(each, None)) for each in waiting]
            yield from (chunk for _, chunk in taken if chunk is not None)
            waiting = [each for each, chunk in taken if chunk is not None]

    def _chunks_of_pair(self, pair: CrossPair) -> Iterator[Chunk]:
        number = 0
        for part in self.ranges:
            if not part.bits(pair.records, self.width):
                continue
            step = self._plan(pair, part).chunk_edges
            for start in range(part.start, part.stop, step):
                yield Chunk(pair.nodes, number, start, min(start + step, part.stop))
                number += 1

    def chunk_groups(self) -> Iterator[tuple[Chunk, int]]:
        return ((chunk, 1) for chunk in self.chunks())

    def range_of(self, chunk: Chunk) -> EntryRange:
        """The range of a chunk's entries: no chunk has cells of two ranges."""
        return next(part for part in self.ranges if part.start <= chunk.start < part.stop)

    def plan(self, chunk: Chunk) -> CrossPlan:
        return self._plan(self.pairs[chunk.owners], self.range_of(chunk))

    def _plan(self, pair: CrossPair, part: EntryRange) -> CrossPlan:
        bits = part.bits(pair.records, self.width)
        chooser = pair.nodes.index(pair.chooser)
        return CrossPlan(chooser, bits, self.width, self.sums)
