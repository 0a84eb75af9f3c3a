"""The compiled sign gate gives numpy's results, byte for byte, on every instruction set here.

Collected only where the kernel is installed (`make native`): see conftest.py.
"""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import umpc_native

from umpc.crypto.prg import FixedKeyHash, Stream, derive
from umpc.mpc.masked.dcf_tree import evaluate_batches, generate_batches, levels

SEED = bytes(range(32))
KEY = derive(SEED, "tree")[:16]
HASH = FixedKeyHash(KEY)
TILE = 256
KINDS = umpc_native.kinds()


def words(label: str, width: int, count: int) -> np.ndarray:
    return Stream(derive(SEED, label, width)).words(count) >> np.uint64(64 - width)


def inputs(width: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return masks, roots, and masked differences: a fifth of them zero, a fifth nearly zero."""
    mask, masked = words("mask", width, count), words("masked", width, count)
    masked[::5] = mask[::5]
    masked[1::5] = mask[1::5] ^ np.uint64(1)
    return mask, masked, words("roots", 64, 4 * count).reshape(2, count, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", range(2, 65))
def test_keys_and_shares_equal_those_of_numpy(width, kind):
    mask, masked, roots = inputs(width, 2 * TILE + 77)
    keys = generate_batches(width, mask, roots, HASH)
    compiled = umpc_native.generate(KEY, width, mask, roots, kind)
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(keys, compiled, strict=True))
    for party in (0, 1):
        expected = evaluate_batches(party, width, *keys, masked, roots[party], HASH)
        shares = umpc_native.evaluate(KEY, party, width, *keys, masked, roots[party], kind)
        assert np.array_equal(expected, shares), f"party {party}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, TILE - 1, TILE, TILE + 1])
def test_any_number_of_gates_and_not_a_byte_more(count, kind):
    mask, masked, roots = inputs(12, count)
    keys = generate_batches(12, mask, roots, HASH)
    compiled = umpc_native.generate(KEY, 12, mask, roots, kind)
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(keys, compiled, strict=True))
    expected = evaluate_batches(1, 12, *keys, masked, roots[1], HASH)
    assert np.array_equal(expected, umpc_native.evaluate(KEY, 1, 12, *keys, masked, roots[1], kind))


@pytest.mark.parametrize("kind", KINDS)
def test_keys_that_begin_at_any_address(kind):
    mask, masked, roots = inputs(18, 100)
    keys = generate_batches(18, mask, roots, HASH)
    expected = umpc_native.evaluate(KEY, 0, 18, *keys, masked, roots[0], kind)
    for offset in (1, 4, 12):
        corrections, leaves = (shifted(array, offset) for array in keys)
        assert np.array_equal(
            expected, umpc_native.evaluate(KEY, 0, 18, corrections, leaves, masked, roots[0], kind)
        )


def shifted(array: np.ndarray, offset: int) -> np.ndarray:
    data = bytes(offset) + array.tobytes()
    return np.frombuffer(data, dtype=array.dtype, offset=offset).reshape(array.shape)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_disturb_each_other(kind):
    mask, masked, roots = inputs(18, 3000)
    keys = generate_batches(18, mask, roots, HASH)
    expected = evaluate_batches(0, 18, *keys, masked, roots[0], HASH)
    with ThreadPoolExecutor(4) as pool:
        runs = [
            pool.submit(umpc_native.evaluate, KEY, 0, 18, *keys, masked, roots[0], kind)
            for _ in range(16)
        ]
        assert all(np.array_equal(expected, run.result()) for run in runs)


def test_calls_hold_no_lock():
    """ctypes releases the interpreter's lock for a CDLL, not for a PyDLL."""
    assert type(umpc_native._LIBRARY) is ctypes.CDLL


def test_a_wrong_argument_is_refused():
    mask, masked, roots = inputs(18, 10)
    keys = umpc_native.generate(KEY, 18, mask, roots)
    assert keys[0].shape == (levels(18), 10, 2)
    with pytest.raises(ValueError):
        umpc_native.evaluate(KEY, 0, 19, *keys, masked, roots[0])
    with pytest.raises(ValueError):
        umpc_native.generate(KEY, 18, mask[:9], roots)
    with pytest.raises(ValueError, match="not a quill"):
        umpc_native.generate(KEY, 18, mask, roots, "a quill")


def test_the_environment_turns_it_off(monkeypatch):
    monkeypatch.delenv("UMPC_NATIVE", raising=False)
    assert umpc_native.enabled()
    monkeypatch.setenv("UMPC_NATIVE", "0")
    assert not umpc_native.enabled()
