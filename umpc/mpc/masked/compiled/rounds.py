"""One owner's computation for one chunk as programs of the compiled kernel.

It gives the messages and sums of `evaluation.py`. Each layer is one program, and the sums are one
more. A party that expands its shares of products from its seed does so where they are read.

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

import numpy as np

from umpc.crypto.prg import derive
from umpc.crypto.ring import packed_size
from umpc.crypto.rounds import Message, Protocol
from umpc.errors import EncodingError
from umpc.mpc.arrays import BitArray
from umpc.mpc.masked.chunk_inputs import ChunkInputs
from umpc.mpc.masked.compiled.layers import layer_program, own_bits, sum_program
from umpc.mpc.masked.compiled.rows import (
    SHARES,
    opening_masks,
    place_sources,
    table_bytes,
)
from umpc.mpc.masked.edge_layout import EdgeLayout
from umpc.mpc.masked.evaluation import check_alone
from umpc.mpc.masked.material import dealt_bytes
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    SharedPolynomial,
)
from umpc.native.programs import KeyStream, Source, Tail
from umpc.ustat.local import evaluate_local


def evaluate_compiled(
    party: int, plan: Plan, inputs: ChunkInputs, material: bytes, seed: bytes
) -> Protocol[list[int]]:
    """One owner's share of each kernel's sum over a chunk of a plan that the kernel serves.

    Raises: EncodingError on malformed material, at once.
    """
    return _rounds(_Owner(party, plan, inputs, material, seed))


class _Owner:
    """One party's state of a chunk."""

    def __init__(self, party: int, plan: Plan, inputs: ChunkInputs, material: bytes, seed: bytes):
        due = dealt_bytes(plan, party, inputs.count)
        if len(material) != due:
            raise EncodingError(
                f"material of {inputs.count} edges takes {due} bytes, and {len(material)} came"
            )
        self.party = party
        self.plan = plan
        self.inputs = inputs
        self.layout = EdgeLayout([inputs.count])
        self._size = packed_size(inputs.count, 1)
        self._sources = {
            **place_sources(inputs.places),
            **(self._dealt(material) if material else _expanded(seed)),
            "masks": opening_masks(plan, seed, party, self.layout),
            "opened": np.empty((len(plan.bits), self._size), dtype=np.uint8),
        }

    def __repr__(self) -> str:
        return f"_Owner({self.inputs.count} edges, <redacted>)"

    def _dealt(self, material: bytes) -> dict[str, Source]:
        """The last party's shares. Raises: EncodingError."""
        plan, count = self.plan, self.inputs.count
        elements = plan.ring.bytes * len(plan.elements) * count
        words = elements + table_bytes(plan) * count
        packed: Source = Tail(material, words)
        if count % 8:
            rest = memoryview(material)[words:]
            packed = self.layout.join_packed([rest], len(plan.bit_elements))
        tables = Tail(material, elements)
        return {"elements": material, "tables": tables, "products": packed}

    def shares(self, layer: int) -> BitArray:
        """Open the layer before, if there is one, and return this party's shares of a layer."""
        numbers = self.plan.opened_bits(layer, self.party)
        mine = np.empty((len(numbers), self._size), dtype=np.uint8)
        name = f"layer {layer} of {self.party}"
        program = self.plan.remembered(name, partial(layer_program, self.party, layer))
        self._sources["local"] = self._local_bits(layer)
        self._sources["mine"] = mine
        program.run(self.inputs.count, self._sources)
        self._sources["sent"] = mine
        return mine

    def hear(self, layer: int, messages: Sequence[Message]) -> None:
        """Take the others' shares of a layer. Raises: RemoteProtocolError naming a sender."""
        others = (party for party in self.plan.everybody if party != self.party)
        for party, message in zip(others, messages, strict=True):
            self._sources[f"heard {party}"] = self._read(layer, party, message)

    def sums(self) -> list[int]:
        """Open the last layer, and return this party's share of each output's sum."""
        plan = self.plan
        program = plan.remembered(f"sums of {self.party}", partial(sum_program, self.party))
        found = program.run(self.inputs.count, self._sources)
        pairs = zip(plan.outputs, found, strict=True)
        return [plan.ring.encode(total + self._own_sum(output)) for output, total in pairs]

    def _own_sum(self, output: SharedPolynomial) -> int:
        """The sum of the summands that this party knows, without those of opened bits."""
        local = output.local[self.party]
        total = output.constant * self.inputs.count if self.party == 0 else 0
        if local.terms:
            kind = self.plan.ring.dtype
            values = evaluate_local(local, self.inputs.records, self.inputs.count)
            total += int(self.plan.ring.array(values).sum(dtype=kind))
        return total

    def _local_bits(self, layer: int) -> Source:
        """This party's own bits of a layer, in the clear."""
        name = f"own bits of {self.party} in {layer}"
        bits = self.plan.remembered(name, partial(own_bits, self.party, layer))
        if not bits:
            return b""
        found = [
            evaluate_local(bit.polynomial, self.inputs.records, self.inputs.count)
            for bit in bits.values()
        ]
        return np.packbits(np.stack(found).astype(np.uint8), axis=1, bitorder="little")

    def message(self, layer: int, mine: BitArray) -> Message:
        """The message with this party's shares of a layer."""
        if self.inputs.count % 8:
            (payload,) = self.layout.cut_packed([*mine])
        else:
            payload = mine.tobytes()
        width = self.plan.open_width(layer, self.party)
        return Message("open", payload, self.inputs.count, width, layer + 1)

    def _read(self, layer: int, party: int, message: Message) -> Source:
        """Another party's shares. Raises: RemoteProtocolError naming its sender."""
        rows = len(self.plan.opened_bits(layer, party))
        count = self.inputs.count
        try:
            if len(message.payload) != packed_size(count, rows):
                raise EncodingError(f"{message!r} has a wrong length")
            if count % 8 == 0:
                return message.payload
            return self.layout.join_packed([message.payload], rows)
        except EncodingError:
            check_alone(self.plan, layer, party, message, self.inputs.names[party], count)
            raise


def _expanded(seed: bytes) -> dict[str, Source]:
    """The shares of a party other than the last."""
    return {name: KeyStream(derive(seed, purpose)) for name, purpose in SHARES.items()}


def _rounds(owner: _Owner) -> Protocol[list[int]]:
    for layer in range(len(owner.plan.layers)):
        mine = owner.shares(layer)
        theirs = yield owner.message(layer, mine)
        owner.hear(layer, theirs)
    return owner.sums()
