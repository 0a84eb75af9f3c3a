"""Masked wires: value = masked − mask through all public arithmetic, and no two masks from one piece of stream."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umpc.mpc.masks import linear_value, masked_wires, modulus, wire_masks
from umpc.mpc.plan import Linear, compile_pair
from umpc.mpc.ring import RINGS
from umpc.ustat.local import evaluate_local

from .kernels import KERNELS, random_records
from .studies import ALPHA, generator, uniformity

WIRED = [name for name, kernel in KERNELS.items() if compile_pair(kernel, RINGS[0]).wires]
SEED = b"\5" * 32


@pytest.mark.parametrize("width", [1, 2, 31, 32, 33, 63, 64])
def test_a_modulus_is_w_ones(width):
    assert int(modulus(width)) == 2**width - 1


@pytest.mark.parametrize("name", WIRED)
@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: ring.bits)
def test_masked_minus_mask_is_the_value_modulo_its_width(name, ring):
    plan, records = compile_pair(KERNELS[name], ring), random_records(generator(name), 50)
    masks = wire_masks(plan, SEED, 50)
    for wire, masked, mask in zip(plan.wires, masked_wires(plan, records, masks, 50), masks, strict=True):
        assert masked.max() <= modulus(wire.width) and mask.max() <= modulus(wire.width)
        value = evaluate_local(wire.of, records, 50).view(np.uint64)
        assert np.array_equal((masked - mask) & modulus(wire.width), value & modulus(wire.width))


def test_masks_are_uniform_and_differ_by_wire_record_and_seed():
    plan = compile_pair(KERNELS["three_comparisons"], RINGS[0])
    masks = wire_masks(plan, SEED, 4000)
    for wire, mask in zip(plan.wires, masks, strict=True):
        p = uniformity(mask & np.uint64(3), 4)
        assert p > ALPHA and wire.width >= 2, f"p = {p:.1e}, N = 4000, seed {SEED!r}"
    pairs = [(masks[i], masks[j]) for i in range(3) for j in range(i)]
    pairs += list(zip(masks, wire_masks(plan, b"\6" * 32, 4000), strict=True))
    assert all(np.mean((a ^ b) & np.uint64(3) == 0) < 0.3 for a, b in pairs)


def test_more_records_do_not_change_the_masks_of_the_first():
    plan = compile_pair(KERNELS["kendall_tau"], RINGS[0])
    for few, many in zip(wire_masks(plan, SEED, 3), wire_masks(plan, SEED, 9), strict=True):
        assert np.array_equal(few, many[:3])


coefficients = st.lists(st.tuples(st.integers(0, 2), st.integers(-(2**62), 2**62)), max_size=3).map(tuple)


@settings(deadline=None)
@given(first=coefficients, second=coefficients, constant=st.integers(-(2**62), 2**62), seed=st.integers(0, 2**32))
def test_a_linear_form_is_integer_arithmetic_modulo_2_to_the_64(first, second, constant, seed):
    rng = np.random.default_rng(seed)
    sides = rng.integers(0, 2**64, (2, 3, 5), dtype=np.uint64)
    form = Linear(first, second, constant)
    expected = [
        (constant + sum(c * int(side[n][e]) for cs, side in zip((first, second), sides, strict=True) for n, c in cs))
        % 2**64
        for e in range(5)
    ]
    value = linear_value(form, list(sides[0]), list(sides[1]), constant=True)
    assert np.broadcast_to(value, 5).tolist() == expected
    halves = linear_value(form, list(sides[0]), None, constant=False) + linear_value(
        form, None, list(sides[1]), constant=True
    )
    assert np.broadcast_to(halves, 5).tolist() == expected
