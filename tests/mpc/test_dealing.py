"""The dealer's shares are shares of the right products, and reconstruct them edge by edge."""

from __future__ import annotations

import numpy as np
import pytest

from umpc.mpc.dealing import deal_chunk
from umpc.mpc.masks import linear_value, modulus, wire_masks
from umpc.mpc.material import SeededPart
from umpc.mpc.plan import compile_pair
from umpc.mpc.prg import FixedKeyHash
from umpc.mpc.ring import RINGS

from .kernels import KERNELS
from .studies import ALPHA, homogeneity, seed_of, uniformity

COUNT = 40
DEALT = [name for name, kernel in KERNELS.items() if compile_pair(kernel, RINGS[0]).needs_dealer]


@pytest.mark.parametrize("name", DEALT)
@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: ring.bits)
def test_element_shares_add_up_to_products_of_masks(name, ring):
    plan = compile_pair(KERNELS[name], ring)
    masks = [wire_masks(plan, seed_of(f"{name} {side}"), COUNT) for side in (0, 1)]
    seeds = (seed_of("one"), seed_of("two"))
    first, second = deal_chunk(plan, *masks, seeds, COUNT, FixedKeyHash(seed_of("tree")))
    parts = [SeededPart.expand(plan, seed, party, COUNT) for party, seed in enumerate(seeds)]
    assert first.elements is None
    opened_under = parts[0].sigma ^ parts[1].sigma
    for gate in plan.comparisons:
        if gate.less is not None:
            difference = linear_value(gate.difference, *masks, constant=False) & modulus(gate.width)
            opened_under[gate.less] ^= (difference >> np.uint64(gate.width - 1)).astype(np.uint8)
    for row, (bits, factors) in enumerate(plan.elements):
        for edge in range(COUNT):
            expected = 1
            for bit in bits:
                expected *= int(opened_under[bit][edge])
            for form in factors:
                expected *= int(linear_value(form, *masks, constant=False)[edge])
            assert ring.encode(int(parts[0].elements[row][edge]) + int(second.elements[row][edge])) == ring.encode(
                expected
            )


def test_both_owners_get_the_same_keys_and_nothing_of_the_others_seed():
    plan = compile_pair(KERNELS["kendall_tau"], RINGS[0])
    masks = [wire_masks(plan, seed_of(str(side)), COUNT) for side in (0, 1)]
    first, second = deal_chunk(plan, *masks, (seed_of("a"), seed_of("b")), COUNT, FixedKeyHash(seed_of("t")))
    assert [keys.encode() for keys in first.keys] == [keys.encode() for keys in second.keys]
    assert all(seed not in first.encode() + second.encode() for seed in (seed_of("a"), seed_of("b")))


def test_dealt_element_shares_are_uniform_whatever_the_masks():
    """Every product of masks is 0 in one dealing and anything in the other; the second owner sees the same law."""
    plan, count = compile_pair(KERNELS["product"], RINGS[0]), 8000
    shares = []
    for name, masks in {
        "zero": [[np.zeros(count, np.uint64)]] * 2,
        "any": [wire_masks(plan, seed_of(f"side {side}"), count) for side in (0, 1)],
    }.items():
        seeds = (seed_of(f"{name} a"), seed_of(f"{name} b"))
        dealt = deal_chunk(plan, *masks, seeds, count, FixedKeyHash(seed_of("t")))[1]
        shares.append(dealt.elements[0] & 15)
    p = min(homogeneity(*shares), uniformity(shares[0], 16))
    assert p > ALPHA, f"p = {p:.1e}, N = {count}"
