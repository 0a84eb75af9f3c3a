"""The work of chunks as a value: any process of the site computes it, with the same result.

A task holds everything that its computation reads, and the computation draws nothing and changes
nothing. So a task whose worker died is computed again elsewhere: masks, shares and keys follow from
the chunk's seed, its material and its place in the attempt, and come out the same, byte for byte. A
task sends nothing. Only the node and the dealer send, each message once, after a result is there.

| task | by | result |
|---|---|---|
| `OwnerBatch` | a node | the rounds of one owner in a chunk, or in many small ones with one plan |
| `DealTask` | the dealer | the material of all owners, of one chunk or of many small ones |

*Dealing.* The dealer's computation for chunks: comparison keys, and shares of products of masks.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.ring import packed_size
from umpc.crypto.rounds import Finished, Message, Protocol, resume
from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import BitArray, PieceArray, RingArray, WordArray
from umpc.mpc.masked.dcf import ComparisonKeys, Rows, generate, one_hot
from umpc.mpc.masked.edge_layout import (
    EdgeLayout,
    PlaceValues,
    bit_of,
    linear_value,
    modulus,
    narrow_value,
)
from umpc.mpc.masked.evaluation import (
    Names,
    PartyChunk,
    Together,
    evaluate_together,
    only,
)
from umpc.mpc.masked.material import ChunkInputs, DealtPart, SeededPart, Shares
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import Linear

Heard: TypeAlias = tuple[tuple[Any, ...], ...]
"""For each round so far and each chunk the other owners' messages, in party order."""
Said: TypeAlias = list[Message] | Finished[Any]
"""An owner's messages of its next round, one of each chunk; or its result."""


@dataclass(frozen=True)
class OwnerBatch:
    """One owner's part of a chunk, or of many small chunks of edges that are computed together.

    inputs: of the edges of all chunks. names: the owners' of each chunk. counts: edges of each.
    materials: the dealer's bytes for each chunk. seeds: the owner's seed of each chunk. tree_key:
    of the attempt's GGM hash.
    """

    party: int
    plan: Plan
    inputs: ChunkInputs
    names: Sequence[Names]
    counts: Sequence[int]
    materials: Sequence[bytes]
    seeds: Sequence[bytes]
    tree_key: bytes

    def __repr__(self) -> str:
        return f"OwnerBatch({len(self.counts)} chunks, <redacted>)"

    def protocol(self, tree_hash: FixedKeyHash) -> Together[list[list[int]]]:
        """The rounds of all chunks. Raises: EncodingError on malformed material."""
        # all chunks as one array; seeds and bytes stay apart
        layout = EdgeLayout(self.counts)
        # what the dealer sent for these chunks
        dealt = DealtPart.decode_all(self.plan, self.materials, self.party, layout)
        # what this owner expands alone, from its chunk seeds
        seeded = SeededPart.expand_all(self.plan, self.seeds, self.party, layout)
        chunk = PartyChunk(self.party, self.plan, self.inputs, dealt, seeded, tree_hash)
        return evaluate_together(chunk, self.names, layout)

    def alone(self, tree_hash: FixedKeyHash) -> Protocol[list[int]]:
        """`protocol` of the only chunk, with one message a round."""
        return only(self.protocol(tree_hash))

    @property
    def edge_count(self) -> int:
        """The number of edges."""
        return self.inputs.count

    @property
    def size(self) -> int:
        """About the bytes that the task takes in memory."""
        return _bytes_of(self.inputs) + sum(map(len, self.materials))


def _bytes_of(inputs: ChunkInputs) -> int:
    words = sum(array.nbytes for array in (*inputs.places.values(), *inputs.masks.values()))
    records = (column for record in inputs.records.values() for column in record.values())
    return words + sum(column.nbytes for column in records)


class TaskRounds:
    """The rounds of an owner's task, as far as they have gone.

    It stands for the same computation wherever it is: a copy that goes to another process goes as
    its task, and takes the rounds again there. Each round is answered once. So two sets of messages
    can never be combined with the same masks.
    """

    def __init__(self, task: OwnerBatch):
        self._task = task
        self._protocol: Generator[Any, Any, Any] = task.protocol(FixedKeyHash(task.tree_key))
        self._heard: Heard = ()
        self._said: list[Said] = [resume(self._protocol, None)]

    def __repr__(self) -> str:
        return f"TaskRounds(round {len(self._said)}, <redacted>)"

    def __reduce__(self) -> tuple[type[TaskRounds], tuple[OwnerBatch]]:
        return TaskRounds, (self._task,)

    def __sizeof__(self) -> int:
        # Shares, masks and the tree's results take about as much as the task itself.
        return 2 * self._task.size

    def after(self, heard: Heard) -> Said:
        """Return what the owner says after these rounds.

        Args: heard: of all rounds so far, those that it has heard before among them.
        Raises: LocalProtocolError where a round has other messages than before;
            RemoteProtocolError naming the sender of a malformed message.
        """
        # masks serve one set of messages: another one would open differences
        if any(one != other for one, other in zip(self._heard, heard, strict=False)):
            raise LocalProtocolError(
                "a round of a chunk came with other messages than before; its masks serve once"
            )
        for messages in heard[len(self._heard) :]:
            # one round further, once
            self._said.append(resume(self._protocol, list(messages)))
            self._heard = (*self._heard, messages)
        return self._said[len(heard)]


@dataclass(frozen=True)
class DealTask:
    """The dealer's computation for a chunk, or for several small ones with the same plan.

    record_masks: of the edges of all chunks. seeds: of each owner, its seed of each chunk.
    counts: edges of each chunk.
    """

    plan: Plan
    record_masks: PlaceValues
    seeds: Sequence[Sequence[bytes]]
    counts: Sequence[int]
    tree_key: bytes

    def __repr__(self) -> str:
        return f"DealTask({self.edge_count} edges, <redacted>)"

    @property
    def edge_count(self) -> int:
        """The number of edges."""
        return sum(self.counts)

    @property
    def size(self) -> int:
        """About the bytes that the task takes in memory."""
        return sum(values.nbytes for values in self.record_masks.values())

    def payloads(self) -> list[list[bytes]]:
        """For each chunk the material of each owner, in party order."""
        layout = EdgeLayout(self.counts)
        tree_hash = FixedKeyHash(self.tree_key)
        # spec/masked_dealing.py, `deal`
        parts = deal_chunks(self.plan, self.record_masks, self.seeds, layout, tree_hash)
        by_party = [part.encode_all(layout) for part in parts]
        return [list(payloads) for payloads in zip(*by_party, strict=True)]


# --- dealing --------------------------------------------------------------------------------------

DifferenceMasks: TypeAlias = Mapping[tuple[Linear, int], PieceArray]
"""For each difference and its width the mask, of which the low bits are read: (n,) or ()."""


def deal_chunks(
    plan: Plan,
    record_masks: PlaceValues,
    seeds: Sequence[Sequence[bytes]],
    layout: EdgeLayout,
    tree_hash: FixedKeyHash,
) -> list[DealtPart]:
    """The material of all owners for several chunks, whose edges stand behind each other.

    Args:
        record_masks: for each place of a record (edges of all chunks,) uint64.
        seeds: of each owner, in party order, its seed of each chunk.

    Reveals: the dealer learns masks only; it sees nothing that is computed from data.
    """
    # Sinh & Ramon 2025, A.3: offline phase, before any data
    count = layout.total
    parts = [
        SeededPart.expand_all(plan, of_party, party, layout) for party, of_party in enumerate(seeds)
    ]
    # r of every number, of which no owner knows all parts
    masks = _all_masks(plan, record_masks, parts)
    # Gen< for each two-owner comparison
    keys = _keys(plan, masks, parts, tree_hash)
    differences = _difference_masks(plan, masks)
    # σ of every opened bit
    bit_masks = _bit_masks(plan, parts, differences, count)
    # correct the last party's shares to the true products
    shares = _last_shares(plan, bit_masks, differences, masks, parts, count)
    return [
        DealtPart(
            # both holders get the same key; their roots differ
            {number: keys[number] for number in plan.holds_keys(party)},
            shares if party == plan.parties - 1 else None,
        )
        for party in plan.everybody
    ]


def _all_masks(
    plan: Plan, record_masks: PlaceValues, parts: Sequence[SeededPart]
) -> dict[int, WordArray]:
    """The mask of every place: an opened place has the sum of its contributors' masks."""
    masks = dict(record_masks)
    for part in parts:
        for place, mask in part.place_masks.items():
            if place in masks:
                # Σ of all contributors' masks
                mask = (masks[place] + mask) & modulus(plan.place_width(place))
            masks[place] = mask
    return masks


def _keys(
    plan: Plan, masks: PlaceValues, parts: Sequence[SeededPart], tree_hash: FixedKeyHash
) -> list[ComparisonKeys]:
    """The keys of every comparison."""
    keys: list[ComparisonKeys] = []
    for number, gate in enumerate(plan.comparisons):
        # r mod 2^w of the difference d
        mask = linear_value(gate.difference.mask, masks) & modulus(gate.width)
        roots = np.stack([parts[holder].roots[number] for holder in gate.holders])
        # spec/dcf.py, `generate`
        keys.append(generate(gate.width, mask, roots, tree_hash))
    return keys


def _last_shares(
    plan: Plan,
    bit_masks: BitArray,
    differences: DifferenceMasks,
    masks: PlaceValues,
    parts: Sequence[SeededPart],
    count: int,
) -> Shares:
    """The last party's shares: the products of masks less all that the others expand."""
    # Beaver 1991, for any number of factors: Π of masks
    elements = _products(plan, bit_masks, masks, count)
    # Rathee et al. 2021: rows of the masks' pieces
    tables = one_hot_rows(plan, differences, count)
    # Beaver 1991 over GF(2): ∧ of masks
    bits = _bit_products(plan, bit_masks)
    for part in parts[:-1]:
        if part.shares is None:
            raise LocalProtocolError("every party but the last expands its shares from its seed")
        # last share = product − Σ of the others' shares
        elements -= part.shares.elements
        bits ^= part.shares.bits
        for rows, known in zip(tables, part.shares.tables, strict=True):
            # by XOR for rows of tables
            rows ^= known
    return Shares(elements, tuple(tables), bits)


def _difference_masks(plan: Plan, masks: PlaceValues) -> DifferenceMasks:
    """The masks of all differences of which tables or top bits are dealt."""
    # differences whose msb(r) goes into σ
    tops = (plan.top_bit(number) for number in range(len(plan.bits)))
    read = {(top.difference, top.width) for top in tops if top is not None}
    read |= {(table.difference, table.width) for table in plan.tables}
    return {
        (difference, width): narrow_value(difference.mask, width, masks)
        for difference, width in read
    }


def _bit_masks(
    plan: Plan, parts: Sequence[SeededPart], differences: DifferenceMasks, count: int
) -> BitArray:
    """The mask under which each bit is opened: (bits, ⌈count/8⌉) uint8, eight edges to a byte.

    A sign is opened under msb(r) as well.
    """
    found = np.empty((len(plan.bits), packed_size(count, 1)), dtype=np.uint8)
    for number, mask in enumerate(found):
        # σ = XOR of the contributors' parts
        known = [part.bit_masks[number] for part in parts if number in part.bit_masks]
        top = plan.top_bit(number)
        if top is not None:
            # msb(r), folded into σ so that it costs no message
            bit = bit_of(differences[top.difference, top.width], top.width - 1)
            bit = np.broadcast_to(bit, (count,))
            known.append(np.packbits(bit, bitorder="little"))
        mask[:] = reduce(np.bitwise_xor, known)
    return found


def _products(plan: Plan, bit_masks: BitArray, masks: PlaceValues, count: int) -> RingArray:
    """Every element's product of masks: (elements, count) of the ring."""
    kind = plan.ring.dtype
    if not plan.elements:
        return np.empty((0, count), dtype=kind)
    # begin with 1, and AND the masks of the bits
    packed = np.full((len(plan.elements), packed_size(count, 1)), 255, dtype=np.uint8)
    for row, (bits, _) in zip(packed, plan.elements, strict=True):
        if bits:
            row[:] = reduce(np.bitwise_and, [bit_masks[bit] for bit in bits])
    products = np.unpackbits(packed, axis=1, count=count, bitorder="little").astype(kind)
    for row, (_, factors) in zip(products, plan.elements, strict=True):
        for form in factors:
            # times R of each linear factor, in the ring
            row *= linear_value(form, masks).astype(kind)
    return products


def _bit_products(plan: Plan, bit_masks: BitArray) -> BitArray:
    """Every bit element's conjunction of masks: (bit elements, ⌈count/8⌉) uint8, packed.

    An element without its last literal is an element, too, and comes before it.
    """
    products = np.empty((len(plan.bit_elements), bit_masks.shape[1]), dtype=np.uint8)
    masks: dict[tuple[int, ...], BitArray] = {}
    for row, element in enumerate(plan.bit_elements):
        *_, last = element
        if last not in masks:
            masks[last] = reduce(np.bitwise_xor, [bit_masks[bit] for bit in last])
        # one AND extends the element that lacks the last literal
        shorter = plan.bit_element_rows.get(element[:-1])
        products[row] = masks[last] if shorter is None else products[shorter] & masks[last]
    return products


def one_hot_rows(plan: Plan, differences: DifferenceMasks, count: int) -> list[Rows]:
    """For each table (words, count): the one-hot row of the mask's piece (`dcf.py`)."""
    return [
        one_hot(table, differences[table.difference, table.width], count) for table in plan.tables
    ]
