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
from umpc.mpc.masked.edge_layout import EdgeLayout
from umpc.mpc.masked.evaluation import check_alone
from umpc.mpc.masked.kernel_rows import (
    SHARES,
    Rows,
    opening_masks,
    piece_number,
    place_sources,
    table_bytes,
    table_rows,
)
from umpc.mpc.masked.material import dealt_bytes, opened_bits
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    Conjunction,
    Local,
    Logic,
    LookupBit,
    SharedPolynomial,
    TopBit,
)
from umpc.native.programs import NOTHING, Code, EdgeProgram, KeyStream, Source, Tail
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
        program = self.plan.remembered(name, partial(_layer_program, self.party, layer))
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
        program = plan.remembered(f"sums of {self.party}", partial(_sum_program, self.party))
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
        bits = self.plan.remembered(name, partial(_own_bits, self.party, layer))
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


# --- programs ----------------------------------------------------------------------------------


def _own_bits(party: int, layer: int, plan: Plan) -> dict[int, Local]:
    """The bits of a party's own records in a layer."""
    bits = ((number, plan.bits[number]) for number in plan.opened_bits(layer, party))
    return {number: bit for number, bit in bits if isinstance(bit, Local)}


def _layer_program(party: int, layer: int, plan: Plan) -> EdgeProgram:
    program = EdgeProgram()
    shares = _Shares(program, plan, party)
    if layer:
        _add_opening(program, plan, party, layer - 1)
    local = [*_own_bits(party, layer, plan)]
    order = opened_bits(plan, party)
    for at, number in enumerate(plan.opened_bits(layer, party)):
        is_local = number in local
        share = program.row("local", local.index(number)) if is_local else shares.of(number)
        mask = program.row("masks", order.index(number))
        program.add(Code.XOR_BITS, program.row("mine", at), share, mask)
    return program


def _add_opening(program: EdgeProgram, plan: Plan, party: int, layer: int) -> None:
    """Everybody's shares of a layer's bits, added up."""
    sides = [("sent" if other == party else f"heard {other}", other) for other in plan.everybody]
    for number in plan.layers[layer].bits:
        shares = [
            program.row(source, plan.opened_bits(layer, other).index(number))
            for source, other in sides
            if number in plan.opened_bits(layer, other)
        ]
        to = program.row("opened", number)
        if len(shares) == 1:
            program.add(Code.COPY, to, shares[0])
        one = shares[0]
        for share in shares[1:]:
            one = program.add(Code.XOR_BITS, to, one, share)


class _Shares:
    """The steps for a party's shares of bits, as `bit_shares.py` has them."""

    def __init__(self, program: EdgeProgram, plan: Plan, party: int):
        self._program = program
        self._plan = plan
        self._party = party
        self._rows = Rows(program)
        self._looked_up: dict[int, tuple[int, int]] = {}
        self._products: dict[int, int] = {}

    def of(self, number: int) -> int:
        """The row of a bit's share, before it is masked."""
        match self._plan.bits[number]:
            case LookupBit(table, kind, top):
                return self._with_top(self._lookup(table)[0 if kind == "less" else 1], top)
            case Logic() as function:
                return self._with_top(self._logic(function), function.top)
            case _:
                raise NotImplementedError("the plan is not served")

    def _with_top(self, share: int, top: TopBit | None) -> int:
        if top is None or self._party > 0:
            return share
        return self._rows.exclusive_or([share, self._rows.top(top.difference, top)])

    def _lookup(self, number: int) -> tuple[int, int]:
        """[d̂_i < r_i] and [d̂_i = r_i]."""
        if number not in self._looked_up:
            program, table = self._program, self._plan.tables[number]
            difference = self._rows.difference(table.difference)
            first, *_ = table_rows(self._plan, program, "tables", number, 0)
            less, equal = program.new(), program.new()
            program.add(Code.LOOK_UP, less, difference, first, piece_number(table))
            self._looked_up[number] = less, equal
        return self._looked_up[number]

    def _logic(self, function: Logic) -> int:
        parts = [self._conjunction(part) for part in function.conjunctions]
        total = self._rows.exclusive_or(parts)
        if function.constant and self._party == 0:
            return self._program.add(Code.NOT_BITS, self._program.new(), total)
        return total

    def _conjunction(self, conjunction: Conjunction) -> int:
        """Π (m_i ⊕ s_i), from the shares of the products of every subset of the s_i."""
        # The product of nothing is 1, which party 0 holds: NOTHING stands for it.
        products = [NOTHING, *map(self._product, self._plan.subset_rows[conjunction].tolist())]
        for literal in reversed(conjunction):
            half = len(products) // 2
            value = self._literal(literal.bits, literal.inverted)
            steps = zip(products[:half], products[half:], strict=True)
            products = [self._replaced(without, with_it, value) for without, with_it in steps]
        return products[0]

    def _replaced(self, without: int, with_it: int, value: int) -> int:
        if without == NOTHING:
            added = value
            if self._party:
                return with_it
        else:
            added = self._rows.conjunction([without, value])
        return self._rows.exclusive_or([with_it, added])

    def _product(self, row: int) -> int:
        """A share of a product of masks, read once."""
        if row not in self._products:
            share = self._program.row("products", row)
            self._products[row] = self._program.add(Code.COPY, self._program.new(), share)
        return self._products[row]

    def _literal(self, bits: Sequence[int], inverted: bool) -> int:
        value = self._rows.exclusive_or([self._program.row("opened", bit) for bit in bits])
        if inverted:
            return self._program.add(Code.NOT_BITS, self._program.new(), value)
        return value


def _sum_program(party: int, plan: Plan) -> EdgeProgram:
    """Σ over edges of all public factors times shares of products of masks."""
    program = EdgeProgram(len(plan.outputs))
    _add_opening(program, plan, party, len(plan.layers) - 1)
    rows = Rows(program)
    unit = plan.ring.bytes
    factor = program.new(unit)
    for number, output in enumerate(plan.outputs):
        for masks, sums in output.of_bits.items():
            if not masks and party:
                continue
            program.add(Code.FILL, factor, number=sums.get((), 0))
            for bits, coefficient in sums.items():
                if bits:
                    product = rows.conjunction([program.row("opened", bit) for bit in bits])
                    program.add(Code.ADD_IF, factor, product, number=coefficient)
            share = NOTHING
            if masks:
                sign = rows.exclusive_or([program.row("opened", bit) for bit in masks])
                program.add(Code.NEGATE_IF, factor, sign)
                before = unit * plan.element_rows[masks, ()]
                share = program.row("elements", before, unit)
            program.add(Code.DOT, factor, factor, share, number)
    return program
