"""The compiled kernel is used if it is there, fits and is enabled. These tests need no kernel."""

from __future__ import annotations

import numpy as np

from tests.support.mpc_studies import seed_of
from umpc.crypto.prg import FixedKeyHash, Stream
from umpc.mpc.masked import dcf
from umpc.mpc.masked.dcf import evaluate, evaluate_in_numpy, generate, generate_in_numpy

HASH = FixedKeyHash(seed_of("tree"))


class Recorder:
    """A kernel that computes in numpy, and remembers that it was asked."""

    def __init__(self):
        self.calls = []

    def generate(self, key, width, mask, roots):
        self._record("generate", key, mask, roots)
        return generate_in_numpy(width, mask, roots, HASH)

    def evaluate(self, key, party, width, corrections, leaves, masked, roots):
        self._record("evaluate", key, corrections, leaves, masked, roots)
        return evaluate_in_numpy(party, width, corrections, leaves, masked, roots, HASH)

    def _record(self, name, key, *arrays):
        assert key == seed_of("tree")[:16] and all(array.flags.c_contiguous for array in arrays)
        self.calls.append(name)


def shares(kernel, limit) -> list[np.ndarray]:
    """Keys and both parties' shares, from arrays that are not contiguous."""
    limit(dcf, KERNEL=kernel)
    mask = Stream(seed_of("mask")).words(600)[::2] & np.uint64(1023)
    roots = Stream(seed_of("roots")).words(2 * 600 * 2).reshape(2, 600, 2)[:, ::2]
    keys = generate(10, mask, roots, HASH)
    found = [keys.corrections, keys.leaves]
    for party in (0, 1):
        found += evaluate(party, keys, mask[::-1], roots[party], HASH)
    return found


def test_a_kernel_is_asked_and_its_answer_is_the_same(limit):
    kernel = Recorder()
    with_kernel, without = shares(kernel, limit), shares(None, limit)
    assert kernel.calls == ["generate", "evaluate", "evaluate"]
    assert all(
        np.array_equal(ours, theirs) for ours, theirs in zip(with_kernel, without, strict=True)
    )


def test_the_gate_is_used_where_one_is_chosen(limit):
    limit(dcf.compiled, CHOSEN="AES-NI")
    assert dcf.find() is dcf.compiled
    limit(dcf.compiled, CHOSEN=None)
    assert dcf.find() is None
