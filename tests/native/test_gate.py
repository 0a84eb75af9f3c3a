"""The compiled sign gate gives numpy's results, byte for byte, on every instruction set here.

Each test loops over the kinds that this machine has. On a machine without a compiler, or without
AES instructions, there are none, and umpc computes in numpy.
"""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from tests.native.oracle import evaluated_alone
from umpc import native as library
from umpc.crypto.prg import FixedKeyHash, Stream, derive
from umpc.mpc.masked.dcf import evaluate_in_numpy, generate_in_numpy, levels

SEED = bytes(range(32))
KEY = derive(SEED, "tree")[:16]
HASH = FixedKeyHash(KEY)
TILE = 256
COUNTS = (0, 1, 2, 31, 32, 33, TILE - 1, TILE, TILE + 1)


def words(label: str, width: int, count: int) -> np.ndarray:
    return Stream(derive(SEED, label, width)).words(count) >> np.uint64(64 - width)


def inputs(width: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return masks, roots, and masked differences: a fifth of them zero, a fifth nearly zero."""
    mask, masked = words("mask", width, count), words("masked", width, count)
    masked[::5] = mask[::5]
    masked[1::5] = mask[1::5] ^ np.uint64(1)
    return mask, masked, words("roots", 64, 4 * count).reshape(2, count, 2)


def same(ours, theirs) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))


def differences(gate, width: int, count: int) -> Iterator[str]:
    """Yield each kind and each result that is not numpy's."""
    mask, masked, roots = inputs(width, count)
    keys = generate_in_numpy(width, mask, roots, HASH)
    shares = [evaluate_in_numpy(p, width, *keys, masked, roots[p], HASH) for p in (0, 1)]
    for kind in gate.kinds():
        if not same(keys, gate.generate(KEY, width, mask, roots, kind)):
            yield f"{kind}, width {width}, {count} gates: keys"
        for party in (0, 1):
            ours = gate.evaluate(KEY, party, width, *keys, masked, roots[party], kind)
            if not same(shares[party], ours):
                yield f"{kind}, width {width}, {count} gates: shares of party {party}"


def test_keys_and_shares_equal_those_of_numpy_at_every_width(gate):
    found = [each for width in range(2, 65) for each in differences(gate, width, 2 * TILE + 77)]
    assert found == []


def test_any_number_of_gates_and_not_a_byte_more(gate):
    assert [each for count in COUNTS for each in differences(gate, 12, count)] == []


def test_a_wrong_bit_would_be_seen(gate):
    """A kind whose control bits are wrong for one gate is found."""
    if not gate.kinds():
        return

    def wrong(*arguments):
        less, equal = gate.evaluate(*arguments)
        less[-1] ^= 1
        return less, equal

    broken = SimpleNamespace(kinds=gate.kinds, generate=gate.generate, evaluate=wrong)
    assert len(list(differences(broken, 12, 33))) == 2 * len(gate.kinds())


def test_numpy_and_every_kind_agree_with_the_paper_one_aes_block_at_a_time(gate):
    """The oracle walks Eval< of one gate with single calls of AES, in Python's integers."""
    for width in (2, 3, 6, 7, 18, 64):
        mask, masked, roots = inputs(width, 35)
        keys = generate_in_numpy(width, mask, roots, HASH)
        for party in (0, 1):
            arrays = (*keys, masked, roots[party])
            expected = [
                evaluated_alone(KEY, party, width, *(array[..., i, :] for array in keys), *gate_in)
                for i, gate_in in enumerate(zip(masked, roots[party], strict=True))
            ]
            found = [evaluate_in_numpy(party, width, *arrays, HASH)]
            found += [gate.evaluate(KEY, party, width, *arrays, kind) for kind in gate.kinds()]
            for less, equal in found:
                assert list(zip(less.tolist(), equal.tolist(), strict=True)) == expected


def test_keys_that_begin_at_any_address(gate):
    mask, masked, roots = inputs(18, 100)
    keys = generate_in_numpy(18, mask, roots, HASH)
    expected = evaluate_in_numpy(0, 18, *keys, masked, roots[0], HASH)
    for kind in gate.kinds():
        for offset in (1, 4, 12):
            moved = [shifted(array, offset) for array in keys]
            assert same(expected, gate.evaluate(KEY, 0, 18, *moved, masked, roots[0], kind))


def shifted(array: np.ndarray, offset: int) -> np.ndarray:
    data = bytes(offset) + array.tobytes()
    return np.frombuffer(data, dtype=array.dtype, offset=offset).reshape(array.shape)


def test_threads_do_not_disturb_each_other(gate):
    mask, masked, roots = inputs(18, 3000)
    keys = generate_in_numpy(18, mask, roots, HASH)
    expected = evaluate_in_numpy(0, 18, *keys, masked, roots[0], HASH)
    with ThreadPoolExecutor(4) as pool:
        runs = [
            pool.submit(gate.evaluate, KEY, 0, 18, *keys, masked, roots[0], kind)
            for kind in gate.kinds()
            for _ in range(8)
        ]
        assert all(same(expected, run.result()) for run in runs)


def test_calls_hold_no_lock(gate):
    """ctypes releases the interpreter's lock for a CDLL, not for a PyDLL."""
    assert library.LIBRARY is None or type(library.LIBRARY) is ctypes.CDLL


def test_a_wrong_argument_is_refused(gate):
    mask, masked, roots = inputs(18, 10)
    keys = generate_in_numpy(18, mask, roots, HASH)
    assert keys[0].shape == (levels(18), 10, 2)
    with pytest.raises(ValueError, match="corrections is"):
        gate.evaluate(KEY, 0, 19, *keys, masked, roots[0])
    with pytest.raises(ValueError, match="roots is"):
        gate.generate(KEY, 18, mask[:9], roots)
    with pytest.raises(ValueError, match="not a quill"):
        gate.generate(KEY, 18, mask, roots, "a quill")


def test_the_library_answers_no_kind_that_has_no_name(gate):
    """A machine with a compiler has a library; it knows only the kinds of `KINDS`."""
    assert library.LIBRARY is not None or not shutil.which("cc")
    if library.LIBRARY is not None:
        assert library.LIBRARY.umpc_kinds() == sum(library.KINDS[kind] for kind in gate.kinds())


def test_a_library_of_another_version_is_not_used(gate, limit):
    if library.LIBRARY is None:
        return
    file = library.LIBRARY._name
    assert library.load(file) is not None
    limit(library, VERSION=library.VERSION + 1)
    assert library.load(file) is None


def test_a_missing_or_damaged_library_is_not_used(tmp_path):
    damaged = tmp_path / "gate.so"
    damaged.write_bytes(b"not a library")
    assert library.load(damaged) is None and library.load(tmp_path / "missing.so") is None
