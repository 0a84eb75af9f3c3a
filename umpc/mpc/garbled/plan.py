"""The public facts of garbled edges between two nodes: circuit, chunks, and messages on a link.

The one of two nodes that comes first in the study garbles, in all their cells. Records of either
node keep their place in the kernel. With two samples a link has the cells (u, v) and (v, u): a
node's records of the first class are argument a in one of them, and its others are argument b in
the other.

With noise inside the circuit (`PairNoise`) a chunk begins with the evaluator's choices for its
random bits. With comparisons of the owners' own numbers (`pieces.py`) it begins with the garbler's
tables; the evaluator's choices for the bits that it looked up follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

from umpc.crypto.ring import Ring
from umpc.crypto.rounds import Message, silence
from umpc.errors import KernelError
from umpc.mpc.arrays import IndexArray
from umpc.mpc.chunks import ChunkPlan, ChunkProgram, Pattern, require
from umpc.mpc.garbled.circuits import LABEL_BITS, Circuit, InputBit
from umpc.mpc.garbled.garbling import EDGES, garbled_bits
from umpc.mpc.garbled.kernel_to_circuit import NOBODYS, PairNoise, circuit_of_all
from umpc.mpc.garbled.piece_tables import table_bits
from umpc.mpc.garbled.pieces import PIECES, LookedUp, carried_bits, pieces_of
from umpc.mpc.transfers.message_shapes import (
    BLOCK_BITS,
    CHECK_ROOM,
    FOLD,
    extend_shape,
    extension_bytes,
)
from umpc.study.messages import MAX_PAYLOAD
from umpc.ustat.cell_rows import Cell, Owners
from umpc.ustat.hypergraph import Hypergraph
from umpc.ustat.kernel import Kernel

LABELS, COINS, GARBLED = "labels", "coins", "garbled"
GARBLER, EVALUATOR = 0, 1
"""Parties of a chunk, in the order of the nodes."""
LABELS_AT_ONCE = 8 * MAX_PAYLOAD // LABEL_BITS
"""Labels in one message."""
CHOICE_BITS = BLOCK_BITS // FOLD
"""Bits of a transfer's extension."""
CHOICES_AT_ONCE = 8 * (MAX_PAYLOAD - CHECK_ROOM) // CHOICE_BITS
"""Choices in one message of the transfers' extension."""
CHUNKS_IN_FLIGHT = 8
WINDOW_BYTES = 8 << 20
"""The most bytes that a garbler may be ahead.

Garbled edges go one way on a link, in the order in which they are asked for, from earlier to later
nodes. So a node that waits for a later one can lock nobody. Choices of bits go the other way, four
bytes a bit: 32 of the 312 bytes of an edge of Kendall's tau over the bank table. A chunk's choices
are one message of at most MAX_PAYLOAD, so those of all chunks in flight fit the window.
"""


@dataclass(frozen=True)
class GarbledPlan(ChunkPlan):
    """The computation of the two owners of a cell, for each of its edges.

    noisy: whether every edge's value gets noise of its own, and is a result of its own.
    """

    circuit: Circuit
    ring: Ring
    noisy: bool = False
    parties = 2
    everybody = (GARBLER, EVALUATOR)

    @cached_property
    def garbled_bits(self) -> int:
        """Bits an edge of garbled gates and elements."""
        return garbled_bits(self.circuit, self.ring)

    @cached_property
    def table_bits(self) -> int:
        """Bits an edge of the tables of comparisons."""
        return table_bits(self.pieces)

    @cached_property
    def edge_bits(self) -> int:
        """Bits an edge that are sent, in both directions."""
        return self.garbled_bits + self.table_bits + CHOICE_BITS * len(self.coin_wires)

    @cached_property
    def pieces(self) -> tuple[LookedUp, ...]:
        """The pieces of comparisons that the owners look up."""
        return pieces_of(self.circuit)

    @cached_property
    def coin_wires(self) -> tuple[int, ...]:
        """The wires of bits that the evaluator chooses for each edge: random, or looked up."""
        return self.circuit.inputs_of(NOBODYS) or self.circuit.inputs_of(PIECES)

    @property
    def chunk_edges(self) -> int:
        """Edges of a chunk: as many as fit one message of each round."""
        # every message of a chunk fits a frame
        widest = max(self.garbled_bits, self.table_bits, CHOICE_BITS * len(self.coin_wires))
        return min(EDGES, 8 * (MAX_PAYLOAD - CHECK_ROOM) // widest) if widest else EDGES

    @property
    def rounds(self) -> int:
        """The rounds of a chunk: tables and choices where there are any, and garbled edges."""
        if not self.edge_bits:
            return 0
        return 1 + bool(self.coin_wires) + bool(self.pieces)

    def shape(self, round: int, party: int, count: int) -> Message:
        """A party's message for `count` edges, with zero bytes in place of its content."""
        if self.coin_wires and round == self.choices_round:
            choices = extension_bytes(self.coin_count(count))
            return self.coins(bytes(choices)) if party == EVALUATOR else silence(COINS, round)
        if party == EVALUATOR:
            return silence(GARBLED, round if self._last else 0)
        if round < self.rounds:
            return self.tables(bytes(self.table_bits // 8 * count), count)
        return self.garbled(bytes(self.garbled_bits // 8 * count), count)

    def coin_count(self, count: int) -> int:
        """Bits of `count` edges that the evaluator chooses."""
        return len(self.coin_wires) * count

    @property
    def choices_round(self) -> int:
        """The number of the round of the evaluator's choices: the last but one."""
        return self.rounds - 1

    def tables(self, payload: bytes, count: int) -> Message:
        """Round 1 of three: the tables of comparisons."""
        return Message(GARBLED, payload, count, self.table_bits, 1)

    def coins(self, payload: bytes) -> Message:
        """The last round but one: the extension of transfers, row by row."""
        return Message(COINS, payload, len(payload), 8, self.choices_round)

    def garbled(self, payload: bytes, count: int) -> Message:
        """The last round."""
        return Message(GARBLED, payload, count, self.garbled_bits, self._last)

    @property
    def _last(self) -> int:
        """The number of the last round; 0 where there is but one."""
        return self.rounds if self.coin_wires else 0


@dataclass(frozen=True)
class GarbledProgram:
    """The plans of all cells, which are all equal."""

    circuit: Circuit
    ring: Ring
    plans: dict[Pattern, GarbledPlan]
    needs_dealer = False
    chunks_in_flight = CHUNKS_IN_FLIGHT
    small_cell = 0
    window = WINDOW_BYTES

    @property
    def rounds(self) -> int:
        """The rounds before the reveal: labels, tables, choices of bits, garbled edges."""
        if not self.plans or not self.circuit.inputs:
            return 0
        return 1 + max(plan.rounds for plan in self.plans.values())


def garbled_program(
    kernels: Sequence[Kernel],
    ring: Ring,
    patterns: Iterable[Pattern],
    noises: Sequence[PairNoise] = (),
) -> GarbledProgram:
    """The program of these kernels.

    noises: of each kernel's value, if every edge has its own.

    Raises: KernelError where a circuit is too large, or one garbled edge fits no message.
    """
    patterns = sorted(set(patterns))
    if not patterns:
        return GarbledProgram(Circuit((), (), ()), ring, {})
    # one circuit serves every cell: patterns differ in owners only
    circuit = circuit_of_kernels(tuple(kernels), tuple(noises), in_pieces=not noises)
    plan = GarbledPlan(circuit, ring, bool(noises))
    if plan.garbled_bits > 8 * MAX_PAYLOAD:
        raise KernelError(
            f"one garbled edge of this kernel takes {plan.garbled_bits // 8} bytes, at most "
            f"{MAX_PAYLOAD} are possible; narrow its fields' bounds, take a coarser resolution or "
            "fewer products"
        )
    return GarbledProgram(plan.circuit, ring, dict.fromkeys(patterns, plan))


@lru_cache(maxsize=64)
def circuit_of_kernels(
    kernels: tuple[Kernel, ...], noises: tuple[PairNoise, ...] = (), *, in_pieces: bool = False
) -> Circuit:
    """The circuit of these kernels of one schema, with noise of each value where there is some.

    in_pieces: whether the owners look up pieces of comparisons (`pieces.py`).

    Raises: KernelError where it is too large.
    """
    expressions = [kernel.expression for kernel in kernels]
    units = [kernel.unit for kernel in kernels]
    return circuit_of_all(expressions, kernels[0].schema, units, noises, in_pieces=in_pieces)


class WireBlock(NamedTuple):
    """Records of one node in one cell, and the bits of these records that have labels.

    carried: the bits: those of `wires`, in their order, and those that only choose rows of tables.
    wires: the input wires that carry bits.
    bits: the range of these bits among all bits of the node: bit after bit, and for every bit
        record after record.
    """

    owners: Owners
    slot: int
    wires: tuple[int, ...]
    carried: tuple[InputBit, ...]
    records: IndexArray
    bits: slice


class PairFacts(Protocol):
    """The facts of an attempt that its links need."""

    @property
    def hypergraph(self) -> Hypergraph:
        """E."""
        ...

    @property
    def program(self) -> ChunkProgram:
        """The plans of all patterns of owners."""
        ...

    def tosses(self, *nodes: int) -> bool:
        """Whether all of these nodes toss coins by transfers."""
        ...


@dataclass(frozen=True, eq=False)
class NodePair:
    """Two nodes that share edges, or toss coins; garbler < evaluator, by their places in the study.

    cells: in canonical order. tosses: whether both are in a committee without a dealer.
    """

    garbler: int
    evaluator: int
    circuit: Circuit
    cells: dict[Owners, Cell]
    tosses: bool = False

    @classmethod
    def of(cls, attempt: PairFacts, node: int, peer: int) -> NodePair:
        """The link of two nodes in an attempt."""
        # the earlier node of the study garbles
        garbler, evaluator = sorted((node, peer))
        shared = attempt.hypergraph.cells_of(node).items()
        cells = {owners: cell for owners, cell in shared if set(owners) == {node, peer}}
        program = require(attempt.program, GarbledProgram)
        tosses = attempt.tosses(node, peer)
        return cls(garbler, evaluator, program.circuit, cells, tosses)

    def blocks(self, node: int) -> list[WireBlock]:
        """A node's records on this link; each is in one block, as it has one place in all edges."""
        return self._blocks[node]

    @cached_property
    def _blocks(self) -> dict[int, list[WireBlock]]:
        return {node: self._blocks_of(node) for node in (self.garbler, self.evaluator)}

    def _blocks_of(self, node: int) -> list[WireBlock]:
        blocks = []
        start = 0
        for owners, cell in self.cells.items():
            slot = owners.index(node)
            wires = self.circuit.inputs_of(slot)
            carried = tuple(self.circuit.inputs[wire] for wire in wires)
            if node == self.evaluator:
                # bits that only choose rows need labels, too
                carried += carried_bits(self.circuit, slot)
            records = cell.records(slot)
            stop = start + len(carried) * len(records)
            blocks.append(WireBlock(owners, slot, wires, carried, records, slice(start, stop)))
            start = stop
        return blocks

    def bits(self, node: int) -> int:
        """The number of bits of a node's records on this link."""
        return sum(len(block.carried) * len(block.records) for block in self.blocks(node))

    @property
    def needs_transfers(self) -> bool:
        """Whether the evaluator has bits to choose by: of its records, or random ones."""
        return bool(self.tosses or self.bits(self.evaluator) or self.circuit.inputs_of(NOBODYS))

    def first_edge(self, owners: Owners) -> int:
        """The number of a cell's first edge.

        The edges of all cells of the link are numbered through: no two have one number under one Δ.
        """
        # numbers go on from cell to cell under one Δ
        before = list(self.cells)[: list(self.cells).index(owners)]
        return sum(self.cells[each].count for each in before)

    def field_shapes(self, sender: int) -> list[Message]:
        """Round 1, with zero bytes as content: the garbler's labels, or the evaluator's choices."""
        counts = [part.stop - part.start for part in self.parts(sender)]
        if sender == self.evaluator:
            return [extend_shape(each, batch) for batch, each in enumerate(counts, 1)]
        return [
            Message(LABELS, bytes(count * LABEL_BITS // 8), count, LABEL_BITS) for count in counts
        ]

    def parts(self, sender: int) -> list[slice]:
        """The cut of a node's bits into messages."""
        most = CHOICES_AT_ONCE if sender == self.evaluator else LABELS_AT_ONCE
        bits = self.bits(sender)
        return [slice(start, min(start + most, bits)) for start in range(0, bits, most)]
