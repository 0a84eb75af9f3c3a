"""Public factors of products of masks, beside the product of the bits themselves."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from umpc.crypto.ring import RINGS
from umpc.mpc.masked.plan_items import Linear, SharedPolynomial, Term, subsets
from umpc.mpc.masked.public_factors import PublicFactors

TERMS = (Term(3, ()), Term(-2, (0,)), Term(5, (0, 2)), Term(-7, (0, 1, 2)), Term(1, (2, 1)))
WIDE = (*TERMS, Term(100, (1,)), Term(-3000, (0, 1)))
TOO_WIDE = (*TERMS, Term(1 << 20, (1, 2)))
CASES = np.array(list(product((0, 1), repeat=6)), dtype=np.uint8)
"""Every opened bit m of three, with every mask s of each."""


@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: f"ring{ring.bits}")
@pytest.mark.parametrize(("terms", "bytes_each"), [(TERMS, 1), (WIDE, 2), (TOO_WIDE, None)])
def test_factors_times_products_of_masks_are_the_terms(terms, bytes_each, ring):
    opened, masks = CASES[:, :3].T, CASES[:, 3:].T
    polynomial = SharedPolynomial(terms, (), 0)
    packed = {n: np.packbits(bits, bitorder="little") for n, bits in enumerate(opened)}
    found = PublicFactors(packed, len(CASES)).of_bits(polynomial, ring)
    assert {public.itemsize for public in found.values()} == {bytes_each or ring.bytes}
    total = np.zeros(len(CASES), dtype=ring.dtype)
    for chosen, public in found.items():
        share = np.prod([masks[bit] for bit in chosen], axis=0, dtype=np.int64, initial=1)
        total += public.astype(ring.dtype) * np.asarray(share).astype(ring.dtype)
    expected = [
        sum(t.coefficient * int(np.prod([m[bit] ^ s[bit] for bit in t.bits])) for t in terms)
        for m, s in zip(opened.T, masks.T, strict=True)
    ]
    assert [ring.decode(int(value)) for value in total] == expected


def test_terms_with_numbers_are_left_out():
    number = Linear(((0, 1),))
    polynomial = SharedPolynomial((Term(2, (1,), (number,)), Term(4, (0, 1))), (), 0)
    assert polynomial.of_bits.keys() == set(subsets((0, 1)))


def test_nothing_of_the_bits_is_shown():
    assert repr(PublicFactors({0: np.zeros(1, np.uint8)}, 8)) == "PublicFactors(<redacted>)"
