"""An attempt over a grid without a dealer: chunks of cells of each cross term.

The committee's coins, zero shares and the ring are those of any attempt. A node has a link to every
other node with which it has a cross term, and to all members of its committee.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from umpc.crypto.rounds import Message
from umpc.mpc.chunks import Chunk, ChunkProgram, require
from umpc.mpc.masked.plan import Program
from umpc.mpc.transfers.message_shapes import link_shapes
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.cross_terms import (
    CrossPair,
    CrossPlan,
    EntryRange,
    cross_pairs,
    entry_ranges,
)
from umpc.ustat.cell_rows import Owners

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
