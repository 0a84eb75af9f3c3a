"""The programs of one owner's computation: a layer's shares, and the sums at the end.

`rounds.py` runs them, and says what their sources hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.mpc.masked.compiled.rows import Rows, piece_number, table_rows
from umpc.mpc.masked.material import opened_bits
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    Conjunction,
    Local,
    Logic,
    LookupBit,
    TopBit,
)
from umpc.native.programs import NOTHING, Code, EdgeProgram


def own_bits(party: int, layer: int, plan: Plan) -> dict[int, Local]:
    """The bits of a party's own records in a layer."""
    bits = ((number, plan.bits[number]) for number in plan.opened_bits(layer, party))
    return {number: bit for number, bit in bits if isinstance(bit, Local)}


def layer_program(party: int, layer: int, plan: Plan) -> EdgeProgram:
    """Open the layer before, if there is one, and mask this party's shares of a layer."""
    program = EdgeProgram()
    shares = _Shares(program, plan, party)
    if layer:
        _add_opening(program, plan, party, layer - 1)
    local = [*own_bits(party, layer, plan)]
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


def sum_program(party: int, plan: Plan) -> EdgeProgram:
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
