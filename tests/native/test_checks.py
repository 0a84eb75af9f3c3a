"""The checks stop every array that the kernel would read or write beyond its end.

They need no kernel.
"""

from __future__ import annotations

import numpy as np
import pytest

from umpc import native as library


def blocks(*shape: int) -> np.ndarray:
    return np.zeros((*shape, 2), dtype=np.uint64)


GOOD = {
    "key": bytes(16),
    "party": 1,
    "width": 9,
    "corrections": blocks(3, 7),
    "leaves": np.zeros((7, 3), dtype=np.uint32),
    "masked": np.zeros(7, dtype=np.uint64),
    "roots": blocks(7),
}
BAD = [
    ("key", bytes(15)),
    ("key", bytes(32)),
    ("key", bytearray(16)),
    ("party", 2),
    ("party", -1),
    ("width", 1),
    ("width", 65),
    ("width", 10),
    ("corrections", blocks(2, 7)),
    ("corrections", blocks(3, 8)),
    ("corrections", blocks(3, 14)[:, ::2]),
    ("corrections", blocks(3, 7).astype(np.float64)),
    ("corrections", blocks(3, 7).astype(">u8")),
    ("leaves", np.zeros((7, 3), dtype=np.uint64)),
    ("leaves", np.zeros((3, 7), dtype=np.uint32).T),
    ("leaves", np.zeros((6, 3), dtype=np.uint32)),
    ("masked", np.zeros(8, dtype=np.uint64)),
    ("masked", np.zeros((7, 1), dtype=np.uint64)),
    ("masked", np.zeros(14, dtype=np.uint64)[::2]),
    ("masked", np.zeros(7, dtype=np.int64)),
    ("masked", [0] * 7),
    ("roots", blocks(2, 7)),
    ("roots", blocks(7)[::-1]),
]


def test_arguments_that_fit_are_taken():
    assert library.check_evaluate(**GOOD) == 7
    assert library.check_generate(bytes(16), 9, GOOD["masked"], blocks(2, 7)) == 7


@pytest.mark.parametrize("number", range(len(BAD)))
def test_an_evaluation_with_one_wrong_argument_is_refused(number):
    name, value = BAD[number]
    with pytest.raises(ValueError):
        library.check_evaluate(**{**GOOD, name: value})


@pytest.mark.parametrize(
    "mask", [np.zeros(6, np.uint64), np.zeros(7, np.uint32), np.zeros(14, np.uint64)[::2]]
)
def test_a_generation_with_a_wrong_mask_is_refused(mask):
    with pytest.raises(ValueError):
        library.check_generate(bytes(16), 9, mask, blocks(2, 7))


@pytest.mark.parametrize(
    "roots", [blocks(7), blocks(3, 7), blocks(7, 2).swapaxes(0, 1), blocks(2, 7).view(np.int64)]
)
def test_a_generation_with_wrong_roots_is_refused(roots):
    with pytest.raises(ValueError):
        library.check_generate(bytes(16), 9, GOOD["masked"], roots)


def test_levels_are_those_of_the_numpy_path():
    from umpc.mpc.masked.dcf import levels

    assert all(library.levels(width) == levels(width) for width in range(2, 65))
