"""The dealer's computation for chunks: comparison keys, and shares of products of masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.crypto.prg import FixedKeyHash
from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import BitArray, RingArray, WordArray
from umpc.mpc.masked.dcf import ComparisonKeys, generate
from umpc.mpc.masked.edge_layout import EdgeLayout
from umpc.mpc.masked.masks import PlaceValues, linear_value, modulus
from umpc.mpc.masked.material import DealtPart, SeededPart, Shares
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import Compared


def deal_chunk(
    plan: Plan,
    record_masks: PlaceValues,
    seeds: Sequence[bytes],
    count: int,
    tree_hash: FixedKeyHash,
) -> list[DealtPart]:
    """The material of all owners for one chunk.

    Args:
        record_masks: for each place of a record (count,) uint64: its mask in each edge.
        seeds: the chunk seeds of the owners, in party order.

    Reveals: the dealer learns masks only; it sees nothing that is computed from data.
    """
    return deal_chunks(
        plan, record_masks, [[seed] for seed in seeds], EdgeLayout([count]), tree_hash
    )


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
    """
    count = layout.total
    parts = [
        SeededPart.expand_all(plan, of_party, party, layout) for party, of_party in enumerate(seeds)
    ]
    masks = _all_masks(plan, record_masks, parts)
    keys, top_bits = _keys(plan, masks, parts, tree_hash)
    shares = _last_shares(plan, _bit_masks(plan, parts, top_bits, count), masks, parts, count)
    return [
        DealtPart(
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
                mask = (masks[place] + mask) & modulus(plan.place_width(place))
            masks[place] = mask
    return masks


def _keys(
    plan: Plan, masks: PlaceValues, parts: Sequence[SeededPart], tree_hash: FixedKeyHash
) -> tuple[list[ComparisonKeys], list[BitArray]]:
    """The keys of every comparison, and msb(r) of its mask, which less bits are opened under."""
    keys: list[ComparisonKeys] = []
    top_bits: list[BitArray] = []
    for number, gate in enumerate(plan.comparisons):
        mask = linear_value(gate.difference.mask, masks) & modulus(gate.width)
        roots = np.stack([parts[holder].roots[number] for holder in gate.holders])
        keys.append(generate(gate.width, mask, roots, tree_hash))
        top_bits.append((mask >> np.uint64(gate.width - 1)).astype(np.uint8))
    return keys, top_bits


def _last_shares(
    plan: Plan,
    bit_masks: BitArray,
    masks: PlaceValues,
    parts: Sequence[SeededPart],
    count: int,
) -> Shares:
    """The last party's shares: the products of masks less all that the others expand."""
    elements = _products(plan, bit_masks, masks, count)
    tables = one_hot_rows(plan, masks, count)
    bits = np.concatenate([_bit_products(plan, bit_masks, count), *tables])
    for part in parts[:-1]:
        if part.shares is None:
            raise LocalProtocolError("every party but the last expands its shares from its seed")
        elements -= part.shares.elements
        bits ^= part.shares.bits
    return Shares(elements, bits)


def _bit_masks(
    plan: Plan, parts: Sequence[SeededPart], top_bits: Sequence[BitArray], count: int
) -> BitArray:
    """The mask under which each bit is opened: (bits, count) uint8."""
    masks = np.zeros((len(plan.bits), count), dtype=np.uint8)
    for number, (bit, mask) in enumerate(zip(plan.bits, masks, strict=True)):
        for part in parts:
            if number in part.bit_masks:
                mask ^= part.bit_masks[number]
        if isinstance(bit, Compared) and bit.kind == "less":
            mask ^= top_bits[bit.comparison]
    return masks


def _products(plan: Plan, bit_masks: BitArray, masks: PlaceValues, count: int) -> RingArray:
    """Every element's product of masks: (elements, count) of the ring."""
    kind = plan.ring.dtype
    products = np.ones((len(plan.elements), count), dtype=kind)
    for row, (bits, factors) in zip(products, plan.elements, strict=True):
        for bit in bits:
            row *= bit_masks[bit]
        for form in factors:
            row *= linear_value(form, masks).astype(kind)
    return products


def _bit_products(plan: Plan, bit_masks: BitArray, count: int) -> BitArray:
    """Every bit element's conjunction of masks: (bit elements, count) uint8."""
    products = np.ones((len(plan.bit_elements), count), dtype=np.uint8)
    for row, literals in zip(products, plan.bit_elements, strict=True):
        for bits in literals:
            row &= np.bitwise_xor.reduce(bit_masks[list(bits)], axis=0)
    return products


def one_hot_rows(plan: Plan, masks: PlaceValues, count: int) -> list[BitArray]:
    """For each table (2^size, count) uint8: row v is 1 where the mask's piece is v."""
    tables = []
    for table in plan.tables:
        mask = linear_value(table.difference.mask, masks) & modulus(table.width)
        piece = (mask >> np.uint64(table.low)) & modulus(table.size)
        values = np.arange(1 << table.size, dtype=np.uint64)[:, None]
        rows = values == np.broadcast_to(piece, (count,))
        tables.append(rows.astype(np.uint8))
    return tables
