"""The compiled kernel is used if it is there, fits and is enabled. These tests need no kernel."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.mpc_studies import seed_of
from umpc.crypto.prg import FixedKeyHash, Stream
from umpc.mpc.masked import native
from umpc.mpc.masked.dcf import evaluate, generate
from umpc.mpc.masked.dcf_tree import evaluate_batches, generate_batches

HASH = FixedKeyHash(seed_of("tree"))


class Recorder:
    """A kernel that computes in numpy, and remembers that it was asked."""

    KEY_FORMAT = native.KEY_FORMAT

    def __init__(self):
        self.calls = []

    def enabled(self) -> bool:
        return True

    def generate(self, key, width, mask, roots):
        self._record("generate", key, mask, roots)
        return generate_batches(width, mask, roots, HASH)

    def evaluate(self, key, party, width, corrections, leaves, masked, roots):
        self._record("evaluate", key, corrections, leaves, masked, roots)
        return evaluate_batches(party, width, corrections, leaves, masked, roots, HASH)

    def _record(self, name, key, *arrays):
        assert key == seed_of("tree")[:16] and all(array.flags.c_contiguous for array in arrays)
        self.calls.append(name)


def shares(kernel, monkeypatch) -> list[np.ndarray]:
    """Keys and both parties' shares, from arrays that are not contiguous."""
    monkeypatch.setattr(native, "KERNEL", kernel)
    mask = Stream(seed_of("mask")).words(600)[::2] & np.uint64(1023)
    roots = Stream(seed_of("roots")).words(2 * 600 * 2).reshape(2, 600, 2)[:, ::2]
    keys = generate(10, mask, roots, HASH)
    found = [keys.corrections, keys.leaves]
    for party in (0, 1):
        found += evaluate(party, keys, mask[::-1], roots[party], HASH)
    return found


def test_a_kernel_is_asked_and_its_answer_is_the_same(monkeypatch):
    kernel = Recorder()
    with_kernel, without = shares(kernel, monkeypatch), shares(None, monkeypatch)
    assert kernel.calls == ["generate", "evaluate", "evaluate"]
    assert all(
        np.array_equal(ours, theirs) for ours, theirs in zip(with_kernel, without, strict=True)
    )


def installed(monkeypatch, module) -> object:
    monkeypatch.setitem(sys.modules, "umpc_native", module)
    return native.find()


def test_one_that_fits_is_found(monkeypatch):
    kernel = Recorder()
    assert installed(monkeypatch, kernel) is kernel


@pytest.mark.parametrize(
    "module",
    [
        None,
        SimpleNamespace(KEY_FORMAT=native.KEY_FORMAT, enabled=lambda: False),
        SimpleNamespace(KEY_FORMAT=native.KEY_FORMAT + 1, enabled=lambda: True),
    ],
    ids=["not installed", "turned off, or the processor cannot", "of another version"],
)
def test_one_that_does_not_fit_is_not(monkeypatch, module):
    assert installed(monkeypatch, module) is None
