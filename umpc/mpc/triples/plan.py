"""The public facts of a cell that its owners evaluate by triples: gates, rounds and messages.

The circuit of a kernel (`garbled/circuits.py`) is the same for every cell. Which party owns a
record differs from pattern to pattern, and decides what a gate costs. The *support* of a wire is
the set of parties whose records decide its bit. Parties outside it have the share 0.

| gate | cost |
|---|---|
| XOR | none |
| AND whose support is one party | none: that party computes it |
| AND whose support is more parties | a triple among these parties, and two bits opened to each |
| bit of a sum | one transfer between every two parties of its support |

Rounds of a chunk, in all pairs of parties at once:

| round | from → to | what |
|---|---|---|
| 1, 2 | later → earlier, then back | triples: the transfers' extension, then corrections |
| next L | both ways | x ⊕ a and y ⊕ b of the ANDs of a level |
| next 1 | later → earlier | the extension of the transfers that turn bits into numbers |
| next m − 1 | all before a party → that party, in turn | corrections |

L is the number of ANDs with several parties on a path. A party with nothing to say is silent.

Rounds 1 and 2 need no data. A study that is prepared ahead does them in the preparation (part
AHEAD), keeps the triples, and begins its run with the ANDs (part AFTER).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from umpc.crypto.ring import Ring, packed_size
from umpc.crypto.rounds import Message, silence
from umpc.mpc.arrays import IndexArray
from umpc.mpc.chunks import AFTER, AHEAD, ChunkPlan, Pattern
from umpc.mpc.garbled.circuits import Circuit
from umpc.mpc.garbled.plan import circuit_of_kernels
from umpc.mpc.transfers.message_shapes import (
    BLOCK_BITS,
    CHECK_ROOM,
    EXTEND,
    FOLD,
    MULTIPLES,
    extend_shape,
    multiple_bits,
    multiples,
    open_message,
)
from umpc.study.messages import MAX_PAYLOAD
from umpc.ustat.kernel import Kernel

TRIPLES = "triples"
"""The step of all messages of a chunk; their round is the chunk's."""
EXTENSION_BITS = BLOCK_BITS // FOLD
"""Bits of the extension's message a transfer."""
MAX_CHUNK = 1 << 14
"""The most edges in a chunk."""
CHUNKS_IN_FLIGHT = 4
"""Each may hold up to 2 MiB of triples for every peer, and the pads of as many transfers."""


@dataclass(frozen=True)
class TriplesPlan(ChunkPlan):
    """The computation of the owners of a cell of one pattern, for each of its edges.

    part: AHEAD or AFTER for the rounds before or after the triples; empty for all.
    """

    circuit: Circuit
    ring: Ring
    pattern: Pattern
    part: str = ""
    addressed = True

    def only(self, part: str) -> TriplesPlan:
        """The plan of one part of the rounds."""
        return self._parts[part]

    @cached_property
    def _parts(self) -> dict[str, TriplesPlan]:
        return {part: replace(self, part=part) for part in (AHEAD, AFTER)}

    @property
    def parties(self) -> int:
        """The number of parties."""
        return max(self.pattern) + 1

    # --- gates ---------------------------------------------------------------------------------

    @cached_property
    def supports(self) -> tuple[frozenset[int], ...]:
        """For each wire the parties whose records decide its bit."""
        # support: owners whose records decide the bit
        found = [frozenset({self.pattern[bit.record]}) for bit in self.circuit.inputs]
        for gate in self.circuit.gates:
            found.append(found[gate.left] | found[gate.right])
        return tuple(found)

    @cached_property
    def _depths(self) -> tuple[int, ...]:
        """For each wire the most ANDs of several parties on a path from an input."""
        depths = [0] * len(self.circuit.inputs)
        for wire, gate in enumerate(self.circuit.gates, len(depths)):
            # only ANDs across parties take a round
            shared = gate.is_and and len(self.supports[wire]) > 1
            depths.append(max(depths[gate.left], depths[gate.right]) + shared)
        return tuple(depths)

    @cached_property
    def ands(self) -> tuple[int, ...]:
        """The wires of the ANDs of several parties, level by level."""
        first = len(self.circuit.inputs)
        shared = (
            wire
            for wire, gate in enumerate(self.circuit.gates, first)
            if gate.is_and and len(self.supports[wire]) > 1
        )
        return tuple(sorted(shared, key=lambda wire: (self._depths[wire], wire)))

    @cached_property
    def levels(self) -> tuple[slice, ...]:
        """The range of each level among `ands`."""
        depths = [self._depths[wire] for wire in self.ands]
        ends = np.cumsum(np.bincount(depths)[1:]).tolist() if depths else []
        return tuple(slice(start, stop) for start, stop in zip([0, *ends], ends, strict=False))

    @cached_property
    def local_gates(self) -> tuple[tuple[int, ...], ...]:
        """The wires that every party computes alone, in order: before level 1, after it, …"""
        first = len(self.circuit.inputs)
        shared = set(self.ands)
        stages: list[list[int]] = [[] for _ in range(len(self.levels) + 1)]
        for wire in range(first, first + len(self.circuit.gates)):
            if wire not in shared:
                stages[self._depths[wire]].append(wire)
        return tuple(map(tuple, stages))

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """The wires that sums read."""
        return tuple(sorted({wire for total in self.circuit.sums for wire, _ in total.terms}))

    def rows(self, wires: Sequence[int], *parties: int) -> IndexArray:
        """The places of those wires whose support has all of these parties: int64."""
        supports = [self.supports[wire] for wire in wires]
        places = [place for place, found in enumerate(supports) if found.issuperset(parties)]
        return np.array(places, dtype=np.int64)

    @cached_property
    def _pair_rows(self) -> dict[tuple[int, int], tuple[IndexArray, IndexArray]]:
        """For each pair of parties, the earlier first, its rows of `ands` and of `outputs`."""
        return {
            pair: (self.rows(self.ands, *pair), self.rows(self.outputs, *pair))
            for pair in combinations(self.everybody, 2)
        }

    def and_rows(self, party: int, peer: int) -> IndexArray:
        """The rows of `ands` that concern both parties."""
        return self._pair_rows[min(party, peer), max(party, peer)][0]

    def output_rows(self, party: int, peer: int) -> IndexArray:
        """The rows of `outputs` that concern both parties."""
        return self._pair_rows[min(party, peer), max(party, peer)][1]

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of parties that exchange messages, the earlier first."""
        return tuple(pair for pair, (ands, out) in self._pair_rows.items() if len(ands) or len(out))

    @cached_property
    def converts(self) -> bool:
        """Whether a bit of several parties becomes a number."""
        return any(len(rows) for _, rows in self._pair_rows.values())

    # --- messages ------------------------------------------------------------------------------

    @cached_property
    def chunk_edges(self) -> int:
        """Edges of a chunk: as many as fit one message, a multiple of 8 so that bits fill bytes."""
        number = max(EXTENSION_BITS, multiple_bits(self.ring.bits - 1))
        # a message holds the transfers of a whole chunk
        largest = max(
            max(2 * EXTENSION_BITS * len(ands), number * len(out))
            for ands, out in self._pair_rows.values()
        )
        fitting = 8 * (MAX_PAYLOAD - CHECK_ROOM) // max(1, largest)
        return max(8, min(fitting, MAX_CHUNK) // 8 * 8)

    @property
    def rounds(self) -> int:
        """The rounds of a chunk."""
        triples = 2 if self.ands and self.part != AFTER else 0
        if self.part == AHEAD:
            return triples
        return triples + len(self.levels) + (self.parties if self.converts else 0)

    def triples_bytes(self, party: int, count: int) -> int:
        """The bytes of a party's triples for so many edges: three bits an AND that concerns it."""
        return packed_size(3 * len(self.rows(self.ands, party)) * count, 1)

    @property
    def edge_bits(self) -> int:
        """Bits an edge that all parties together send, but for the padding of a chunk's bits."""
        total = 0
        for ands, out in self._pair_rows.values():
            # two transfers, two corrections, four opened bits
            total += len(ands) * (2 * EXTENSION_BITS + 2 * multiple_bits(1) + 4)
            # one transfer and one correction a bit of a sum
            total += len(out) * (EXTENSION_BITS + multiple_bits(self.ring.bits - 1))
        return total

    def own_messages(self, sender: int, receiver: int, count: int) -> list[Message]:
        """One party's messages to another as the protocols of `transfers/` make them, in order.

        They have zero bytes in place of their content, and width 0 where the party is silent.
        """
        ands = 2 * len(self.and_rows(sender, receiver)) * count
        shapes: list[Message] = []
        batch = 0
        if self.ands and self.part != AFTER:
            # batches of a channel are numbered from 1
            batch += bool(ands)
            shapes += self._triples(sender, receiver, ands, batch)
        if self.part == AHEAD:
            return shapes
        shapes += [self._opened(sender, receiver, level, count) for level in self.levels]
        if self.converts:
            outputs = len(self.output_rows(sender, receiver)) * count
            shapes += self._numbers(sender, receiver, outputs, batch + 1)
        return shapes

    @staticmethod
    def _triples(sender: int, receiver: int, count: int, batch: int) -> list[Message]:
        """The two rounds that make triples by `count` transfers."""
        if not count:
            return [silence(EXTEND), silence(MULTIPLES)]
        if sender > receiver:
            return [extend_shape(count, batch), silence(MULTIPLES)]
        due = multiples(bytes(count * multiple_bits(1) // 8), count, 1)
        return [silence(EXTEND), due]

    def _opened(self, sender: int, receiver: int, level: slice, count: int) -> Message:
        """The masked bits of a level."""
        rows = self.and_rows(sender, receiver)
        bits = 2 * int(((rows >= level.start) & (rows < level.stop)).sum()) * count
        shape = open_message(bytes(packed_size(bits, 1)), bits)
        return shape if bits else silence(shape.step)

    def _numbers(self, sender: int, receiver: int, count: int, batch: int) -> list[Message]:
        """The rounds that turn bits into numbers by `count` transfers."""
        width = self.ring.bits - 1
        due = multiples(bytes(count * multiple_bits(width) // 8), count, width)
        speaks = bool(count) and sender > receiver
        shapes = [extend_shape(count, batch) if speaks else silence(EXTEND)]
        for member in range(1, self.parties):
            speaks = bool(count) and sender < receiver == member
            shapes.append(due if speaks else silence(MULTIPLES))
        return shapes

    def shape_to(self, round: int, sender: int, receiver: int, count: int) -> Message:
        """One party's message to another in a round, from 1, with zero bytes as content."""
        return shapes_of(self, sender, receiver, count)[round - 1]


@dataclass(frozen=True)
class TriplesProgram:
    """The plans of all patterns that occur in E, over one circuit."""

    circuit: Circuit
    ring: Ring
    plans: dict[Pattern, TriplesPlan]
    needs_dealer = False
    chunks_in_flight = CHUNKS_IN_FLIGHT
    small_cell = 0
    window = None
    """Links are always read: owners who answer each other are never far apart."""

    @property
    def rounds(self) -> int:
        """The rounds before the reveal: those of the longest plan."""
        return max((plan.rounds for plan in self.plans.values()), default=0)

    def rounds_of(self, part: str) -> int:
        """The rounds of one part of the longest plan."""
        return max((plan.only(part).rounds for plan in self.plans.values()), default=0)


def triples_program(
    kernels: Sequence[Kernel], ring: Ring, patterns: Iterable[Pattern]
) -> TriplesProgram:
    """The plans of these patterns for kernels over one schema.

    Raises: KernelError where the circuit is too large.
    """
    patterns = sorted(set(patterns))
    if not patterns:
        return TriplesProgram(Circuit((), (), ()), ring, {})
    circuit = circuit_of_kernels(tuple(kernels))
    plans = {pattern: TriplesPlan(circuit, ring, pattern) for pattern in patterns}
    return TriplesProgram(circuit, ring, plans)


@lru_cache(maxsize=256)
def shapes_of(plan: TriplesPlan, sender: int, receiver: int, count: int) -> tuple[Message, ...]:
    """One party's messages to another in a chunk, with zero bytes as content."""
    own = plan.own_messages(sender, receiver, count)
    return tuple(numbered(message, round) for round, message in enumerate(own, 1))


def numbered(message: Message, round: int) -> Message:
    """A message of a step's own protocol, as the message of a round of the chunk."""
    if not message.width:
        return silence(TRIPLES, round)
    size = len(message.payload)
    return replace(message, step=TRIPLES, count=size, width=8, round=round)
