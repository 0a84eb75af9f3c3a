"""One owner's computation for chunks as programs of the compiled kernel.

It gives the messages and sums of `evaluation.py`. Each layer is one program, and the sums are one
more. Each runs in one call for all chunks that are computed together. A party that expands its
shares of products from its seed does so where they are read.

| source | holds |
|---|---|
| place 0, place 1, … | masked values |
| masks | the masks of all that this party opens |
| elements, tables, products | its shares of products of masks |
| local | bits of its own records in this layer |
| opened | all bits that were opened, under their masks |
| sent, heard 0, heard 1, … | everybody's shares in the layer before |
| mine | this party's shares in this layer |
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from umpc.crypto.ring import packed_size
from umpc.crypto.rounds import Message, Protocol
from umpc.errors import EncodingError
from umpc.mpc.masked.chunk_inputs import ChunkInputs
from umpc.mpc.masked.compiled.layers import layer_program, own_bits, sum_program
from umpc.mpc.masked.compiled.rows import (
    expanded_shares,
    fill_bytes,
    opening_masks,
    place_sources,
    table_bytes,
)
from umpc.mpc.masked.edge_layout import EdgeLayout
from umpc.mpc.masked.evaluation import Names, Together, check_alone
from umpc.mpc.masked.material import dealt_bytes
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import SharedPolynomial
from umpc.native.programs import Joined, Parts, Source, bytes_to_fill, cuts_of
from umpc.ustat.local import evaluate_local


def evaluate_compiled(
    party: int, plan: Plan, inputs: ChunkInputs, material: bytes, seed: bytes
) -> Protocol[list[int]]:
    """One owner's share of each kernel's sum over a chunk of a plan that the kernel serves.

    Raises: EncodingError on malformed material, at once.
    """
    names, counts = [inputs.names], [inputs.count]
    return _alone(compiled_together(party, plan, inputs, names, counts, [material], [seed]))


def compiled_together(
    party: int,
    plan: Plan,
    inputs: ChunkInputs,
    names: Sequence[Names],
    counts: Sequence[int],
    materials: Sequence[bytes],
    seeds: Sequence[bytes],
) -> Together[list[list[int]]]:
    """One owner's share of each kernel's sum over each of several chunks, as in `OwnerBatch`.

    Raises: EncodingError on malformed material, at once.
    """
    return _rounds(_Owner(party, plan, inputs, names, counts, materials, seeds))


class _Owner:
    """One party's state of several chunks."""

    def __init__(
        self,
        party: int,
        plan: Plan,
        inputs: ChunkInputs,
        names: Sequence[Names],
        counts: Sequence[int],
        materials: Sequence[bytes],
        seeds: Sequence[bytes],
    ):
        for count, material in zip(counts, materials, strict=True):
            due = dealt_bytes(plan, party, count)
            if len(material) != due:
                raise EncodingError(
                    f"material of {count} edges takes {due} bytes, and {len(material)} came"
                )
        self.party = party
        self.plan = plan
        self.inputs = inputs
        self.names = names
        self.counts = counts
        self._sizes = [packed_size(count, 1) for count in counts]
        is_last = party == plan.parties - 1
        opened = cuts_of(len(plan.bits) * size for size in self._sizes)
        self._sources: dict[str, Source] = {
            **place_sources(inputs.places, counts),
            **(self._dealt(materials) if is_last else expanded_shares(seeds)),
            "masks": opening_masks(plan, seeds, party, counts),
            "opened": Joined(np.empty(opened[-1], dtype=np.uint8), opened),
        }

    def __repr__(self) -> str:
        return f"_Owner({self.inputs.count} edges, <redacted>)"

    def _dealt(self, materials: Sequence[bytes]) -> dict[str, Source]:
        """The last party's shares. Raises: EncodingError."""
        plan = self.plan
        elements = [plan.ring.bytes * len(plan.elements) * count for count in self.counts]
        tables = [table_bytes(plan) * count for count in self.counts]
        before = [sum(sizes) for sizes in zip(elements, tables, strict=True)]
        products = Parts(materials, before)
        if not fill_bytes(self.counts):
            pairs = zip(materials, before, strict=True)
            products = self._read_rows(
                [memoryview(material)[start:] for material, start in pairs],
                len(plan.bit_elements),
            )
        dealt: dict[str, Source] = {"elements": Parts(materials)}
        return dealt | {"tables": Parts(materials, elements), "products": products}

    def _read_rows(self, parts: Sequence[bytes | memoryview], rows: int) -> Parts:
        """Each chunk's rows of bits, each from a byte on. Raises: EncodingError."""
        pairs = zip(parts, self.counts, strict=True)
        return Parts([EdgeLayout([count]).join_packed([part], rows) for part, count in pairs])

    def shares(self, layer: int) -> list[bytes]:
        """Open the layer before, if there is one, and return this party's shares of a layer.

        Returns: for each chunk its rows of bits, each from a byte on.
        """
        rows = len(self.plan.opened_bits(layer, self.party))
        mine = [bytes_to_fill(rows * size) for size in self._sizes]
        name = f"layer {layer} of {self.party}"
        program = self.plan.remembered(name, partial(layer_program, self.party, layer))
        self._sources["local"] = self._local_bits(layer)
        self._sources["mine"] = Parts(mine)
        program.run(self.counts, self._sources)
        self._sources["sent"] = self._sources["mine"]
        return mine

    def hear(self, layer: int, messages: Sequence[Sequence[Message]]) -> None:
        """Take the others' shares of a layer. Raises: RemoteProtocolError naming a sender.

        Args: messages: of each chunk the others', in party order.
        """
        others = [party for party in self.plan.everybody if party != self.party]
        for party, of_party in zip(others, zip(*messages, strict=True), strict=True):
            self._sources[f"heard {party}"] = self._read(layer, party, of_party)

    def sums(self) -> list[list[int]]:
        """Open the last layer. Returns: of each chunk this party's share of each output's sum."""
        plan = self.plan
        program = plan.remembered(f"sums of {self.party}", partial(sum_program, self.party))
        found = program.run(self.counts, self._sources)
        own = [self._own_sums(output) for output in plan.outputs]
        return [
            [
                plan.ring.encode(total + parts[chunk])
                for total, parts in zip(totals, own, strict=True)
            ]
            for chunk, totals in enumerate(found)
        ]

    def _own_sums(self, output: SharedPolynomial) -> list[int]:
        """Each chunk's sum of the summands that this party knows, without those of opened bits."""
        local = output.local[self.party]
        constant = output.constant if self.party == 0 else 0
        totals = [constant * count for count in self.counts]
        if local.terms:
            kind = self.plan.ring.dtype
            values = self.plan.ring.array(
                evaluate_local(local, self.inputs.records, self.inputs.count)
            )
            for chunk, (start, stop) in enumerate(self._slices):
                totals[chunk] += int(values[start:stop].sum(dtype=kind))
        return totals

    @property
    def _slices(self) -> list[tuple[int, int]]:
        """The edges of each chunk among all."""
        return [*pairwise(cuts_of(self.counts))]

    def _local_bits(self, layer: int) -> Source:
        """This party's own bits of a layer, in the clear."""
        name = f"own bits of {self.party} in {layer}"
        bits = self.plan.remembered(name, partial(own_bits, self.party, layer))
        if not bits:
            return Parts([b""] * len(self.counts))
        found = np.stack(
            [
                evaluate_local(bit.polynomial, self.inputs.records, self.inputs.count)
                for bit in bits.values()
            ]
        ).astype(np.uint8)
        return Parts(
            [
                np.packbits(found[:, start:stop], axis=1, bitorder="little")
                for start, stop in self._slices
            ]
        )

    def messages(self, layer: int, mine: Sequence[bytes]) -> list[Message]:
        """The messages with this party's shares of a layer, one for each chunk."""
        width = self.plan.open_width(layer, self.party)
        return [
            Message("open", self._payload(rows, count), count, width, layer + 1)
            for rows, count in zip(mine, self.counts, strict=True)
        ]

    def _payload(self, rows: bytes, count: int) -> bytes:
        """A chunk's rows of bits without padding between them."""
        if count % 8 == 0:
            return rows
        each = np.frombuffer(rows, np.uint8).reshape(-1, packed_size(count, 1))
        (payload,) = EdgeLayout([count]).cut_packed([*each])
        return payload

    def _read(self, layer: int, party: int, messages: Sequence[Message]) -> Source:
        """Another party's shares. Raises: RemoteProtocolError naming a malformed one's sender."""
        rows = len(self.plan.opened_bits(layer, party))
        payloads = [message.payload for message in messages]
        try:
            for message, count in zip(messages, self.counts, strict=True):
                if len(message.payload) != packed_size(count, rows):
                    raise EncodingError(f"{message!r} has a wrong length")
            return Parts(payloads) if fill_bytes(self.counts) else self._read_rows(payloads, rows)
        except EncodingError:
            each = zip(messages, self.names, self.counts, strict=True)
            for message, names, count in each:
                check_alone(self.plan, layer, party, message, names[party], count)
            raise


def _rounds(owner: _Owner) -> Together[list[list[int]]]:
    for layer in range(len(owner.plan.layers)):
        mine = owner.shares(layer)
        theirs = yield owner.messages(layer, mine)
        owner.hear(layer, theirs)
    return owner.sums()


def _alone(rounds: Together[list[list[int]]]) -> Protocol[list[int]]:
    """The rounds of a single chunk."""
    (message,) = next(rounds)
    while True:
        theirs = yield message
        try:
            (message,) = rounds.send([theirs])
        except StopIteration as stop:
            sums: list[int] = stop.value[0]
            return sums
