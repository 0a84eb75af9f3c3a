"""Compiled point keys give numpy's results, byte for byte, on every instruction set here."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.native.point_cases import (
    ALPHAS,
    CELLS,
    COUNTS,
    HASH,
    KEY,
    ROWS,
    PointFunctions,
    differences,
    inputs,
    same,
)
from umpc.crypto.field import P
from umpc.mpc.fss.point import add_up_in_numpy, generate_in_numpy
from umpc.native import points

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_keys_and_sums_equal_those_of_numpy(gate, alpha):
    for cells in CELLS:
        assert list(differences(gate.kinds(), cells, 9, alpha=alpha)) == []


@pytest.mark.parametrize("alpha", ALPHAS[::2])
@pytest.mark.parametrize(("cells", "row"), ROWS)
def test_sums_in_rows_equal_those_of_numpy(gate, cells, row, alpha):
    assert list(differences(gate.kinds(), cells, 9, alpha=alpha, row=row)) == []


@pytest.mark.parametrize("alpha", ALPHAS[::2])
def test_any_number_of_people(gate, alpha):
    for count in COUNTS:
        assert list(differences(gate.kinds(), 100, count, alpha=alpha)) == []


@pytest.mark.parametrize("word", [0, 1, 2**32 - 1, 2**32, P - 2**32, P - 1])
def test_sums_of_corrections_near_p(gate, word):
    """All leaves alike at the ends of F: the sums of words carry far, and are reduced rightly."""
    places, numbers, roots = inputs(33, 3000)
    keys = generate_in_numpy(33, places, roots, HASH, 5)
    keys.leaves[:] = word
    for party in (0, 1):
        due = add_up_in_numpy(party, keys, numbers, roots[party], HASH)
        assert int(due.max()) < P
        given = keys.corrections, keys.leaves, numbers, roots[party]
        for kind in gate.kinds():
            assert np.array_equal(due, points.add_up(KEY, party, 33, *given, kind))


@pytest.mark.parametrize("alpha", [None, 5])
def test_a_wrong_cell_would_be_seen(gate, alpha):
    def wrong(*arguments):
        table = points.add_up(*arguments)
        table[-1, ...] ^= np.uint64(1)
        return table

    path = PointFunctions(points.generate, wrong)
    assert len(list(differences(gate.kinds(), 100, 3, path, alpha))) == 2 * len(gate.kinds())


def shifted(array: np.ndarray, offset: int) -> np.ndarray:
    data = bytes(offset) + array.tobytes()
    return np.frombuffer(data, dtype=array.dtype, offset=offset).reshape(array.shape)


@pytest.mark.parametrize("alpha", [None, 5])
def test_keys_that_begin_at_any_address(gate, alpha):
    places, numbers, roots = inputs(100, 20)
    keys = generate_in_numpy(100, places, roots, HASH, alpha)
    due = add_up_in_numpy(1, keys, numbers, roots[1], HASH)
    for kind in gate.kinds():
        for offset in (1, 4, 8):
            moved = [shifted(each, offset) for each in (keys.corrections, keys.leaves)]
            moved += [shifted(each, offset) for each in (numbers, roots[1])]
            assert np.array_equal(due, points.add_up(KEY, 1, 100, *moved, kind))
            dealt = shifted(places, offset), shifted(roots, offset)
            made = points.generate(KEY, 100, *dealt, kind, alpha)
            assert same((keys.corrections, keys.leaves), made)


def test_threads_do_not_disturb_each_other(gate):
    places, numbers, roots = inputs(1000, 200)
    keys = generate_in_numpy(1000, places, roots, HASH)
    due = add_up_in_numpy(0, keys, numbers, roots[0], HASH)
    given = keys.corrections, keys.leaves, numbers, roots[0]
    with ThreadPoolExecutor(4) as pool:
        runs = [
            pool.submit(points.add_up, KEY, 0, 1000, *given, kind)
            for kind in gate.kinds()
            for _ in range(8)
        ]
        assert all(np.array_equal(due, run.result()) for run in runs)


GOOD = {
    "key": bytes(16),
    "party": 1,
    "cells": 20,
    "corrections": np.zeros((2, 7, 2), dtype=np.uint64),
    "leaves": np.zeros((7, 8), dtype=np.uint64),
    "numbers": np.zeros(7, dtype=np.uint64),
    "roots": np.zeros((7, 2), dtype=np.uint64),
}
BAD = [
    ("key", bytes(15)),
    ("party", 2),
    ("cells", 0),
    ("cells", 33),
    ("cells", (1 << 20) + 1),
    ("corrections", np.zeros((1, 7, 2), dtype=np.uint64)),
    ("corrections", np.zeros((2, 14, 2), dtype=np.uint64)[:, ::2]),
    ("leaves", np.zeros((7, 8), dtype=np.uint32)),
    ("leaves", np.zeros((6, 8), dtype=np.uint64)),
    ("leaves", np.zeros((7, 12), dtype=np.uint64)),
    ("leaves", np.zeros((6, 16), dtype=np.uint64)),
    ("numbers", np.zeros(8, dtype=np.uint64)),
    ("numbers", np.full(7, 20, dtype=np.uint64)),
    ("numbers", np.zeros(7, dtype=np.int64)),
    ("roots", np.zeros((7, 2), dtype=np.uint64)[::-1]),
    ("roots", np.zeros((2, 7, 2), dtype=np.uint64)),
    ("row", -1),
    ("row", 3),
    ("row", 21),
]


def test_arguments_that_fit_are_taken(gate):
    if gate.kinds():
        assert points.add_up(**GOOD, kind=gate.kinds()[0]).shape == (20,)
        assert points.add_up(**GOOD, kind=gate.kinds()[0], row=5).shape == (20,)
        pairs = {"leaves": np.zeros((7, 16), dtype=np.uint64)}
        assert points.add_up(**GOOD | pairs, kind=gate.kinds()[0]).shape == (2, 20)


@pytest.mark.parametrize("number", range(len(BAD)))
def test_a_wrong_argument_is_refused(number):
    """No pointer leaves before this, so no kernel is needed."""
    name, value = BAD[number]
    with pytest.raises(ValueError):
        points.add_up(**{**GOOD, name: value})


@pytest.mark.parametrize("roots", [np.zeros((7, 2), np.uint64), np.zeros((2, 6, 2), np.uint64)])
def test_wrong_roots_of_a_dealer_are_refused(roots):
    with pytest.raises(ValueError):
        points.generate(bytes(16), 20, np.zeros(7, np.uint64), roots)


DIGEST = """
import numpy as np
from hashlib import sha256
from tests.native.point_cases import HASH, inputs
from umpc.mpc.fss.point import PointKeys, add_up, generate
places, numbers, roots = inputs(100, 60)
for alpha in (None, 5):
    keys = generate(100, places[::2], roots[:, ::2], HASH, alpha)
    part = PointKeys(100, keys.corrections[:, ::-1], keys.leaves[::-1])
    table = add_up(1, part, numbers[::-2], roots[1, ::-2], HASH)
    print(sha256(keys.encode() + table.tobytes()).hexdigest())
"""


def test_numpy_computes_where_no_kind_may_run():
    """Both functions with and without a kind, from arrays that are not contiguous."""
    found = []
    for setting in ("0", "1"):
        environment = os.environ | {"UMPC_NATIVE": setting}
        words = [sys.executable, "-c", DIGEST]
        ended = subprocess.run(words, env=environment, capture_output=True, check=True, cwd=ROOT)
        found.append(ended.stdout)
    assert len(set(found)) == 1
