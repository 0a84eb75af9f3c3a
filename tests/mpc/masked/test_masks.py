"""Masked wires: value = masked − mask through all public arithmetic, and all masks differ."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernels import KERNELS, TRIPLE_KERNELS, Case, random_records
from tests.support.mpc_studies import ALPHA, program_of, uniformity
from tests.support.studies import generator
from umpc.crypto.ring import RINGS
from umpc.mpc.masked.edge_layout import (
    bit_of,
    linear_value,
    masked_wires,
    modulus,
    narrow_value,
    wire_masks,
)
from umpc.mpc.masked.plan_items import Linear
from umpc.ustat.polynomial import evaluate_local

CASES = {name: Case(KERNELS, name, (0, 1)) for name in KERNELS}
CASES |= {f"{name} of three": Case(TRIPLE_KERNELS, name, (0, 1, 2)) for name in TRIPLE_KERNELS}
NO_WIRES = {"separable", "constant", "zero", "local_bits", "compared_bits"}
"""Kernels of which no linear form of a record is opened under a mask."""
WIRED = [name for name, case in CASES.items() if case.name not in NO_WIRES]
SEED = b"\5" * 32


@pytest.mark.parametrize("width", [1, 2, 31, 32, 33, 63, 64])
def test_a_modulus_is_w_ones(width):
    assert int(modulus(width)) == 2**width - 1


def test_all_kernels_but_those_have_wires():
    for case in CASES.values():
        wires = program_of(case.kernel, RINGS[0], case.pattern).wires
        assert (wires == ()) == (case.name in NO_WIRES), case.name


@pytest.mark.parametrize("name", WIRED)
@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: ring.bits)
def test_masked_minus_mask_is_the_value_modulo_its_width(name, ring):
    program = program_of(CASES[name].kernel, ring, CASES[name].pattern)
    records = random_records(generator(name), 50)
    masks = wire_masks(program, SEED, 50)
    for wire, masked, mask in zip(
        program.wires, masked_wires(program, records, masks, 50), masks, strict=True
    ):
        assert masked.max() <= modulus(wire.width) and mask.max() <= modulus(wire.width)
        value = evaluate_local(wire.polynomial, {0: records}, 50).view(np.uint64)
        assert np.array_equal((masked - mask) & modulus(wire.width), value & modulus(wire.width))


def test_masks_are_uniform_and_differ_by_wire_record_and_seed():
    program = program_of(KERNELS["three_comparisons"], RINGS[0])
    masks = wire_masks(program, SEED, 4000)
    for wire, mask in zip(program.wires, masks, strict=True):
        p = uniformity(mask & np.uint64(3), 4)
        assert p > ALPHA and wire.width >= 2, f"p = {p:.1e}, N = 4000, seed {SEED!r}"
    pairs = [(masks[i], masks[j]) for i in range(3) for j in range(i)]
    pairs += list(zip(masks, wire_masks(program, b"\6" * 32, 4000), strict=True))
    assert all(np.mean((a ^ b) & np.uint64(3) == 0) < 0.3 for a, b in pairs)


def test_more_records_do_not_change_the_masks_of_the_first():
    program = program_of(KERNELS["kendall_tau"], RINGS[0])
    for few, many in zip(wire_masks(program, SEED, 3), wire_masks(program, SEED, 9), strict=True):
        assert np.array_equal(few, many[:3])


coefficients = st.lists(
    st.tuples(st.integers(0, 5), st.one_of(st.integers(-1, 1), st.integers(-(2**62), 2**62))),
    max_size=5,
    unique_by=lambda term: term[0],
).map(tuple)


@given(terms=coefficients, constant=st.integers(-(2**62), 2**62), seed=st.integers(0, 2**32))
def test_a_linear_form_is_integer_arithmetic_modulo_2_to_the_64(terms, constant, seed):
    """Over all places, and split by who knows which: values less masks are the value."""
    places = dict(
        enumerate(np.random.default_rng(seed).integers(0, 2**64, (6, 5), dtype=np.uint64))
    )
    form = Linear(terms, constant)
    expected = [(constant + sum(c * int(places[n][e]) for n, c in terms)) % 2**64 for e in range(5)]
    assert np.broadcast_to(linear_value(form, places), 5).tolist() == expected
    first, second = ({n: v for n, v in places.items() if n % 2 == side} for side in (0, 1))
    halves = linear_value(form.mask, first) + linear_value(form, second)
    assert np.broadcast_to(halves, 5).tolist() == expected
    masked = {n: value + np.uint64(seed) * np.uint64(n + 1) for n, value in places.items()}
    masks = {n: masked[n] - value for n, value in places.items()}
    unmasked = linear_value(form, masked) - linear_value(form.mask, masks)
    assert np.broadcast_to(unmasked, 5).tolist() == expected


def test_a_form_of_no_known_place_is_its_constant():
    assert int(linear_value(Linear(((3, 7),), -1), {})) == 2**64 - 1
    assert int(linear_value(Linear(((3, 7),), -1).mask, {})) == 0


@pytest.mark.parametrize("width", [1, 31, 32, 33, 64])
def test_a_narrow_value_has_the_low_bits_in_as_few_words_as_fit(width):
    places = {n: generator(f"narrow {n}").integers(0, 1 << 63, 50, np.uint64) for n in range(2)}
    form = Linear(((0, 1), (1, -1)), 5)
    found = narrow_value(form, width, places)
    assert found.itemsize == (4 if width <= 32 else 8)
    assert np.array_equal(found & modulus(width), linear_value(form, places) & modulus(width))
    expected = (linear_value(form, places) >> np.uint64(width - 1)) & np.uint64(1)
    assert np.array_equal(bit_of(found, width - 1), expected)


def test_no_place_is_written_to():
    places = {0: np.arange(4, dtype=np.uint64), 1: np.arange(4, dtype=np.uint64)}
    for terms in (((0, 1),), ((0, -1),), ((0, 1), (1, 3)), ((1, -1), (0, -2))):
        linear_value(Linear(terms, 1), places)
    assert all(np.array_equal(place, np.arange(4)) for place in places.values())
