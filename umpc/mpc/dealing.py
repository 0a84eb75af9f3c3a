"""The dealer's computation for one chunk: keys and shares of products of masks."""

from __future__ import annotations

import numpy as np

from umpc.mpc.comparison import generate
from umpc.mpc.masks import Wires, linear_value, modulus
from umpc.mpc.material import DealtPart, SeededPart
from umpc.mpc.plan import PairPlan
from umpc.mpc.prg import FixedKeyHash


def deal_chunk(
    plan: PairPlan,
    first_masks: Wires,
    second_masks: Wires,
    seeds: tuple[bytes, bytes],
    count: int,
    tree_hash: FixedKeyHash,
) -> tuple[DealtPart, DealtPart]:
    """The material of both owners for one chunk.

    Args:
        first_masks, second_masks: per wire (count,) uint64: the masks of each edge's two records.
        seeds: the chunk seeds of the two owners.

    Reveals: the dealer learns masks only; it sees nothing that is computed from data.
    """
    parts = [SeededPart.expand(plan, seed, party, count) for party, seed in enumerate(seeds)]
    keys, top_bits = [], []
    for number, gate in enumerate(plan.comparisons):
        mask = linear_value(gate.difference, first_masks, second_masks, constant=False) & modulus(gate.width)
        roots = np.stack([part.roots[number] for part in parts])
        keys.append(generate(gate.width, mask, roots, tree_hash))
        top_bits.append((mask >> np.uint64(gate.width - 1)).astype(np.uint8))
    bit_masks = _bit_masks(plan, parts, top_bits)
    products = _mask_products(plan, bit_masks, first_masks, second_masks, count)
    first_shares = parts[0].elements
    return DealtPart(tuple(keys), None), DealtPart(tuple(keys), products - first_shares)


def _bit_masks(plan: PairPlan, parts: list[SeededPart], top_bits: list[np.ndarray]) -> np.ndarray:
    """s of every opened bit: (bits, count) uint8."""
    masks = parts[0].sigma ^ parts[1].sigma
    for gate, top in zip(plan.comparisons, top_bits, strict=True):
        if gate.less is not None:
            masks[gate.less] ^= top
    return masks


def _mask_products(
    plan: PairPlan, bit_masks: np.ndarray, first_masks: Wires, second_masks: Wires, count: int
) -> np.ndarray:
    """Every element's product of masks: (elements, count) of the ring."""
    kind = plan.ring.dtype
    products = np.ones((len(plan.elements), count), dtype=kind)
    for row, (bits, factors) in zip(products, plan.elements, strict=True):
        for bit in bits:
            row *= bit_masks[bit]
        for form in factors:
            row *= linear_value(form, first_masks, second_masks, constant=False).astype(kind)
    return products
