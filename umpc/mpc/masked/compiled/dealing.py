"""The dealer's computation for chunks as a program of the compiled kernel.

All owners' seeds are expanded where they are read, so the kernel writes the last owner's material
and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.crypto.ring import packed_size
from umpc.mpc.masked.compiled.rows import (
    Rows,
    expanded_shares,
    fill_bytes,
    opening_masks,
    piece_number,
    place_sources,
    table_bytes,
    table_rows,
)
from umpc.mpc.masked.edge_layout import EdgeLayout
from umpc.mpc.masked.masks import PlaceValues
from umpc.mpc.masked.material import opened_bits
from umpc.mpc.masked.plan import Plan
from umpc.native.programs import Code, EdgeProgram, Parts, bytes_to_fill


def deal_compiled(
    plan: Plan,
    record_masks: PlaceValues,
    seeds: Sequence[Sequence[bytes]],
    counts: Sequence[int],
) -> list[list[bytes]]:
    """The material of all owners for several chunks of a plan that the kernel serves.

    Args: record_masks, seeds: as in `deal_chunks`. counts: edges of each chunk.

    Returns: for each chunk the material of each owner, in party order.
    """
    program = plan.remembered("dealing", _program)
    each = plan.ring.bytes * len(plan.elements) + table_bytes(plan)
    rows = len(plan.bit_elements)
    words = [each * count for count in counts]
    pairs = list(zip(words, counts, strict=True))
    materials = [bytes_to_fill(size + packed_size(count, 1) * rows) for size, count in pairs]
    sources = place_sources(record_masks, counts)
    sources |= {"words": Parts(materials), "packed": Parts(materials, words)}
    for party, of_party in enumerate(seeds):
        sources[f"masks {party}"] = opening_masks(plan, of_party, party, counts)
    for party, of_party in enumerate(seeds[:-1]):
        shares = expanded_shares(of_party).items()
        sources |= {f"{name} {party}": source for name, source in shares}
    program.run(counts, sources)
    nothing = [b""] * (plan.parties - 1)
    if fill_bytes(counts):
        return [[*nothing, material] for material in materials]
    return [
        [*nothing, material[:size] + _cut(material, size, count)]
        for material, (size, count) in zip(materials, pairs, strict=True)
    ]


def _cut(material: bytes, before: int, count: int) -> bytes:
    """A chunk's rows of bits without padding between them. Args: before: bytes before the rows."""
    rows = np.frombuffer(material, np.uint8, offset=before).reshape(-1, packed_size(count, 1))
    (packed,) = EdgeLayout([count]).cut_packed([*rows])
    return packed


def _program(plan: Plan) -> EdgeProgram:
    program = EdgeProgram()
    rows = Rows(program)
    _add_tables(plan, program, rows)
    _add_bit_masks(plan, program, rows)
    _add_bit_products(plan, program, rows)
    _add_products(plan, program, rows)
    return program


def _add_tables(plan: Plan, program: EdgeProgram, rows: Rows) -> None:
    """The one-hot rows of the masks' pieces, less what all but the last expand."""
    before = plan.ring.bytes * len(plan.elements)
    for number, table in enumerate(plan.tables):
        mask = rows.difference(table.difference.mask)
        first, *more = (
            table_rows(plan, program, f"tables {party}", number, 0)
            for party in range(plan.parties - 1)
        )
        for word, to in enumerate(table_rows(plan, program, "words", number, before)):
            program.add(Code.ONE_HOT, to, mask, first[word], piece_number(table, word))
            for others in more:
                program.add(Code.XOR_BITS, to, to, others[word])


def _add_bit_masks(plan: Plan, program: EdgeProgram, rows: Rows) -> None:
    """The mask under which each bit is opened, as `dealing.py` has it."""
    places = [{bit: at for at, bit in enumerate(opened_bits(plan, p))} for p in plan.everybody]
    for number in range(len(plan.bits)):
        known = [
            program.row(f"masks {party}", place[number])
            for party, place in enumerate(places)
            if number in place
        ]
        top = plan.top_bit(number)
        if top is not None:
            known.append(rows.top(top.difference.mask, top))
        # A key stream is computed wherever it is read. So a mask alone is copied.
        mask = program.new()
        if len(known) == 1:
            program.add(Code.COPY, mask, known[0])
        one = known[0]
        for other in known[1:]:
            one = program.add(Code.XOR_BITS, mask, one, other)
        rows.bits[number] = mask


def _add_bit_products(plan: Plan, program: EdgeProgram, rows: Rows) -> None:
    """Every bit element's conjunction of masks, less what all but the last expand."""
    for number, element in enumerate(plan.bit_elements):
        literals = [rows.exclusive_or([rows.bits[bit] for bit in bits]) for bits in element]
        to = program.row("packed", number)
        one = rows.conjunction(literals)
        for party in range(plan.parties - 1):
            share = program.row(f"products {party}", number)
            one = program.add(Code.XOR_BITS, to, one, share)


def _add_products(plan: Plan, program: EdgeProgram, rows: Rows) -> None:
    """Every element's product of masks, less what all but the last expand."""
    unit = plan.ring.bytes
    spare = program.new(unit), program.new(unit)
    for number, (bits, _) in enumerate(plan.elements):
        product = program.add(Code.FILL, spare[0])
        masks = rows.conjunction([rows.bits[bit] for bit in bits])
        program.add(Code.ADD_IF, product, masks, number=1)
        for party in range(plan.parties - 1):
            is_last = party == plan.parties - 2
            to = program.row("words", unit * number, unit) if is_last else spare[1 - party % 2]
            share = program.row(f"elements {party}", unit * number, unit)
            product = program.add(Code.SUBTRACT, to, product, share)
