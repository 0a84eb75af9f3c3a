"""The dealer's computation for one chunk: keys and shares of products of masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.masked.dcf import generate
from umpc.mpc.masked.masks import Places, linear_value, modulus
from umpc.mpc.masked.material import DealtPart, SeededPart, Shares
from umpc.mpc.masked.plan import Compared, Plan


def deal_chunk(
    plan: Plan, record_masks: Places, seeds: Sequence[bytes], count: int, tree_hash: FixedKeyHash
) -> list[DealtPart]:
    """The material of all owners for one chunk.

    Args:
        record_masks: per place of a record (count,) uint64: its mask in each edge.
        seeds: the chunk seeds of the owners, in party order.

    Reveals: the dealer learns masks only; it sees nothing that is computed from data.
    """
    parts = [SeededPart.expand(plan, seed, party, count) for party, seed in enumerate(seeds)]
    masks = dict(record_masks)
    for part in parts:
        for place, mask in part.place_masks.items():
            masks[place] = (
                (masks[place] + mask) & modulus(plan.place_width(place)) if place in masks else mask
            )
    keys, top_bits = [], []
    for number, gate in enumerate(plan.comparisons):
        mask = linear_value(gate.difference.mask, masks) & modulus(gate.width)
        roots = np.stack([parts[holder].roots[number] for holder in gate.holders])
        keys.append(generate(gate.width, mask, roots, tree_hash))
        top_bits.append((mask >> np.uint64(gate.width - 1)).astype(np.uint8))
    bit_masks = _bit_masks(plan, parts, top_bits, count)
    elements = _products(plan, bit_masks, masks, count)
    bits = np.concatenate(
        [_bit_products(plan, bit_masks, count), *_one_hot_rows(plan, masks, count)]
    )
    for part in parts[:-1]:
        elements -= part.shares.elements
        bits ^= part.shares.bits
    return [
        DealtPart(
            {number: keys[number] for number in plan.holds_keys(party)},
            Shares(elements, bits) if party == plan.parties - 1 else None,
        )
        for party in plan.everybody
    ]


def _bit_masks(
    plan: Plan, parts: list[SeededPart], top_bits: list[np.ndarray], count: int
) -> np.ndarray:
    """The mask under which each bit is opened: (bits, count) uint8."""
    masks = np.zeros((len(plan.bits), count), dtype=np.uint8)
    for number, (bit, mask) in enumerate(zip(plan.bits, masks, strict=True)):
        for part in parts:
            if number in part.bit_masks:
                mask ^= part.bit_masks[number]
        if isinstance(bit, Compared) and bit.kind == "less":
            mask ^= top_bits[bit.comparison]
    return masks


def _products(plan: Plan, bit_masks: np.ndarray, masks: Places, count: int) -> np.ndarray:
    """Every element's product of masks: (elements, count) of the ring."""
    kind = plan.ring.dtype
    products = np.ones((len(plan.elements), count), dtype=kind)
    for row, (bits, factors) in zip(products, plan.elements, strict=True):
        for bit in bits:
            row *= bit_masks[bit]
        for form in factors:
            row *= linear_value(form, masks).astype(kind)
    return products


def _bit_products(plan: Plan, bit_masks: np.ndarray, count: int) -> np.ndarray:
    """Every bit element's conjunction of masks: (bit elements, count) uint8."""
    products = np.ones((len(plan.bit_elements), count), dtype=np.uint8)
    for row, literals in zip(products, plan.bit_elements, strict=True):
        for bits in literals:
            row &= np.bitwise_xor.reduce(bit_masks[list(bits)], axis=0)
    return products


def _one_hot_rows(plan: Plan, masks: Places, count: int) -> list[np.ndarray]:
    """Per table (2^size, count) uint8: row v says where the mask's piece is v."""
    tables = []
    for table in plan.tables:
        mask = linear_value(table.difference.mask, masks) & modulus(table.width)
        piece = (mask >> np.uint64(table.low)) & modulus(table.size)
        rows = np.arange(1 << table.size, dtype=np.uint64)[:, None] == np.broadcast_to(
            piece, (count,)
        )
        tables.append(rows.astype(np.uint8))
    return tables
