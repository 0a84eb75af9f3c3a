"""The tree in numpy leaves its inputs alone. `test_dcf.py` tests that the bits are right."""

from __future__ import annotations

import hashlib

import numpy as np

from tests.support.mpc_studies import seed_of
from umpc.crypto.prg import FixedKeyHash, Stream
from umpc.mpc.masked.dcf import evaluate_in_numpy, generate_in_numpy

HASH = FixedKeyHash(seed_of("tree"))


def test_inputs_stay_as_they_are_and_need_not_be_contiguous():
    mask, roots = (
        np.arange(40, dtype=np.uint64),
        Stream(seed_of("roots")).words(160).reshape(2, 40, 2),
    )
    before = mask.tobytes() + roots.tobytes()
    keys = generate_in_numpy(18, mask[::2], roots[:, ::2], HASH)
    again = generate_in_numpy(18, mask[::2].copy(), roots[:, ::2].copy(), HASH)
    shares = evaluate_in_numpy(1, 18, *keys, mask[::2], roots[1, ::2], HASH)
    assert all(np.array_equal(one, other) for one, other in zip(keys, again, strict=True))
    assert np.array_equal(
        shares, evaluate_in_numpy(1, 18, *keys, mask[::2].copy(), roots[1, ::2].copy(), HASH)
    )
    assert mask.tobytes() + roots.tobytes() == before


def test_keys_of_numpy_have_the_known_answer():
    """That of test_comparison.py, also where a compiled kernel answers there."""
    roots = Stream(seed_of("known")).words(256).reshape(2, 64, 2)
    keys = generate_in_numpy(18, np.arange(64, dtype=np.uint64) * np.uint64(4095), roots, HASH)
    assert (
        hashlib.sha256(b"".join(part.tobytes() for part in keys)).hexdigest()[:16]
        == "f448c813d2424ca3"
    )
