"""The compiled field gives numpy's elements, on every instruction set of this machine.

`tests/crypto/test_field.py` compares both with Python's integers. Here are long arrays, layouts,
and the border to C.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tests.native.hook import HOOK
from tests.native.test_garbled import kinds_that_differ
from umpc import native as library
from umpc.crypto import field as used
from umpc.crypto import field_transforms as transforms
from umpc.crypto.prg import Stream, derive
from umpc.native import field

COUNTS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 1000)


def drawn(label: str, *shape: int) -> np.ndarray:
    """Elements of F, of which a few are corners."""
    stream = Stream(derive(bytes(32), label))
    found = used.field_elements(stream, int(np.prod(shape))).reshape(-1)
    found[::7] = used.P - 1
    found[3::11] = 2**32
    return found.reshape(shape)


def differ(work: Callable[[], np.ndarray]) -> list[str]:
    """The kinds whose elements, shape or type are not numpy's."""

    def shown() -> Any:
        found = work()
        return found.shape, found.dtype, found.tobytes()

    return kinds_that_differ(shown, field)


@pytest.mark.parametrize("count", COUNTS)
def test_any_number_of_elements(count):
    a, b, k, m = drawn("a", count), drawn("b", count), drawn("k", count, 2), drawn("m", count, 2)
    assert differ(lambda: used.multiply(a, b)) == []
    assert differ(lambda: used.times(k, m)) == []
    assert differ(lambda: used.scale(a, m)) == []
    assert differ(lambda: used.inner(a, b)) == []
    assert differ(lambda: used.inner_fk(a, m)) == []
    assert differ(lambda: used.inner_k(k, m)) == []
    assert differ(lambda: used.inverse(a)) == []
    assert differ(lambda: used.inverse_k(k)) == []


@pytest.mark.parametrize("shapes", [((), ()), ((3, 1, 5), (4, 5)), ((2, 3), (1,)), ((0, 3), (3,))])
def test_shapes_broadcast(shapes):
    a, b = (drawn(f"broadcast {i}", *shape) for i, shape in enumerate(shapes))
    k, m = (drawn(f"broadcast k {i}", *shape, 2) for i, shape in enumerate(shapes))
    assert differ(lambda: used.multiply(a, b)) == []
    assert differ(lambda: used.times(k, m)) == []
    assert differ(lambda: used.scale(a, m)) == []
    if shapes[0]:
        assert differ(lambda: used.inner(a, b)) == []
        assert differ(lambda: used.inner(b, a)) == []
        assert differ(lambda: used.inner_k(k, m)) == []
        assert differ(lambda: used.inner_k(m, k)) == []
        assert differ(lambda: used.inner_fk(a, m)) == []
        assert differ(lambda: used.inner_fk(b, k)) == []


def test_layouts_that_are_not_contiguous():
    a = drawn("strides", 12, 10)
    for view in (a.T, a[::2, ::3], a[::-1], np.broadcast_to(a[0], (4, 10))):
        assert differ(lambda: used.multiply(view, view)) == []  # noqa: B023
        assert differ(lambda: used.inner(view, view)) == []  # noqa: B023
        assert differ(lambda: used.inverse(view)) == []  # noqa: B023
    assert differ(lambda: transforms.values_to_coefficients(a[:8].T)) == []
    data = bytes(1) + a.tobytes()
    moved = np.frombuffer(data, dtype=np.uint64, offset=1)
    assert differ(lambda: used.multiply(moved, moved)) == []


@pytest.mark.parametrize("n", [1, 2, 4, 64, 2048])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_transforms_of_every_width(n, width):
    x = drawn("transform", 3, n, width)
    assert differ(lambda: transforms.values_to_coefficients(x, 1)) == []
    assert differ(lambda: transforms.extended(x, 1)) == []
    assert differ(lambda: transforms.values_to_coefficients(x[:0], 1)) == []


def test_sums_that_pass_128_bits():
    """2^17 products of p − 1 and p − 1 carry out of 128 bits many times."""
    most = np.full((1 << 17, 2), used.P - 1, dtype=np.uint64)
    assert differ(lambda: used.inner(most[:, 0], most[:, 1])) == []
    assert differ(lambda: used.inner_k(most, most)) == []


def test_threads_do_not_disturb_each_other():
    k = drawn("threads", 3000, 2)
    expected = used.inverse_k(k)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(used.inverse_k, k) for _ in range(8)]
        assert all(np.array_equal(run.result(), expected) for run in runs)


def test_a_wrong_element_of_a_kind_would_be_seen():
    at = iter(range(100))
    assert differ(lambda: np.full(2, next(at), dtype=np.uint64)) == list(library.kinds())


def test_arrays_of_another_type_or_shape_are_refused():
    a = drawn("refused", 4, 4)
    with pytest.raises(ValueError, match="are uint64, got int64"):
        field.multiply(a.view(np.int64), a)
    with pytest.raises(ValueError, match="are uint64, got >u8"):
        field.inverse(a.astype(">u8"))
    with pytest.raises(ValueError, match="broadcast"):
        field.multiply(a, a[:, :3])
    with pytest.raises(ValueError, match="elements of K are"):
        field.times(a, a)
    with pytest.raises(ValueError, match="elements are"):
        field.inner(a, a, (2, 2))
    with pytest.raises(ValueError, match="widths are"):
        field.inner(a, a, (2, 1))
    with pytest.raises(ValueError, match="broadcast"):
        field.inner(a, a[:, :3], (1, 1))
    for rows, roots in ((a[None, :3], a[0, :3]), (a[None], a[0, :2]), (a[None, :0], a[0, :0])):
        with pytest.raises(ValueError, match="power of two and the number of roots"):
            field.transform(rows, roots)


def test_numbers_of_the_field_are_those_of_the_library():
    text = (HOOK.SOURCE.parent / "field.h").read_text()
    assert f"#define FIELD_P 0x{used.P:X}ULL\n" in text
    assert f"#define FIELD_GENERATOR {used.GENERATOR}\n" in text
